"""The producer for code that has no event loop: the same methods, blocking, from any number of threads.

It runs an event loop of its own in a daemon thread, with an ordinary producer in it. A blocked caller costs nothing
there, so sixteen threads that send share one connection a broker, and their requests leave together.
"""

import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rocketfleet.base.loop_thread import LoopThread
from rocketfleet.client.config import ClientConfig
from rocketfleet.producer.errors import ProducerClosed
from rocketfleet.producer.options import ProducerOptions
from rocketfleet.producer.producer import Producer
from rocketfleet.producer.queues.sharding import Selector, ShardingKey
from rocketfleet.producer.result import BatchResult, SendResult
from rocketfleet.producer.transaction import TransactionListener, TransactionResult
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    import concurrent.futures

T = TypeVar("T")


class SyncProducer:
    """`with SyncProducer(config, group="orders") as producer: producer.send(Message("topic", b"body"))`

    Listeners of transactions run as they do in Producer: coroutine functions in the producer's loop, plain ones in a
    thread.
    """

    def __init__(
        self,
        config: ClientConfig,
        group: str,
        options: ProducerOptions | None = None,
        *,
        transactions: TransactionListener | None = None,
    ) -> None:
        self._producer = Producer(config, group, options, transactions=transactions)
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._process = 0
        self._closed = False

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread and the producer in it."""
        with self._lock:
            if self._closed:
                raise ProducerClosed("the producer is closed; make a new one")
            if self._thread is not None:
                raise ProducerClosed("the producer is started already")
            self._thread = LoopThread(f"producer {self._producer.group}")
            self._process = os.getpid()
        try:
            self._call(self._producer.start())
        except BaseException:
            self.close()  # a thread that nobody can use must not stay
            raise

    def close(self) -> None:
        """Send what is waiting, sign off, and end the thread. Calling it again does nothing."""
        with self._lock:
            already, self._closed = self._closed, True
            thread = self._thread
        if already or thread is None or os.getpid() != self._process:
            return
        try:
            thread.call(self._producer.close())
        finally:
            thread.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- sending ------------------------------------------------------------------------------------------------------

    def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        sharding_key: ShardingKey | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """See Producer.send."""
        return self._call(
            self._producer.send(message, queue=queue, sharding_key=sharding_key, selector=selector, timeout=timeout)
        )

    def submit(
        self,
        message: Message,
        on_done: Callable[["concurrent.futures.Future[SendResult]"], None] | None = None,
        *,
        queue: MessageQueue | None = None,
        sharding_key: ShardingKey | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
    ) -> "concurrent.futures.Future[SendResult]":
        """Send without waiting. `on_done` is called with the future, in the producer's thread: it should be brief."""
        work = self._producer.send(message, queue=queue, sharding_key=sharding_key, selector=selector, timeout=timeout)
        return self._submit(work, on_done)

    def send_batch(
        self, messages: Sequence[Message], *, queue: MessageQueue | None = None, timeout: float | None = None
    ) -> BatchResult:
        """See Producer.send_batch."""
        return self._call(self._producer.send_batch(messages, queue=queue, timeout=timeout))

    def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        sharding_key: ShardingKey | None = None,
        selector: Selector | None = None,
    ) -> str:
        """See Producer.send_oneway."""
        return self._call(
            self._producer.send_oneway(message, queue=queue, sharding_key=sharding_key, selector=selector)
        )

    def send_in_transaction(
        self, message: Message, argument: Any = None, *, check_after: int | None = None
    ) -> TransactionResult:
        """See Producer.send_in_transaction."""
        return self._call(self._producer.send_in_transaction(message, argument, check_after=check_after))

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """See Producer.queues."""
        return self._call(self._producer.queues(topic))

    # -- between the threads ------------------------------------------------------------------------------------------

    def _submit(
        self,
        work: Coroutine[Any, Any, T],
        on_done: Callable[["concurrent.futures.Future[T]"], None] | None = None,
    ) -> "concurrent.futures.Future[T]":
        with self._lock:
            thread = self._thread
            if self._closed or thread is None:
                work.close()
                raise ProducerClosed("the producer is closed" if self._closed else "the producer is not started yet")
            if os.getpid() != self._process:
                work.close()
                raise ProducerClosed(
                    "this is a forked process, and threads do not survive a fork: make a producer here"
                )
            if thread.is_current:
                work.close()
                raise RuntimeError(
                    "a callback in the producer's own thread cannot wait for the producer: call it from another thread"
                )
            future = thread.submit(work)
            if on_done is not None:
                # Added in the producer's thread: one that is added here would run here if the work is over by then.
                thread.loop.call_soon_threadsafe(future.add_done_callback, on_done)
            return future

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        future = self._submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # interrupted: nobody waits for it any longer
            raise
