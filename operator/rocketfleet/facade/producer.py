"""`Producer` as rocketmq-client-python has it, over `SyncProducer`.

2.0.0's names lead. What only 0.4.4 has (`send_orderly`, `send_oneway_orderly`, `send_async`, `send_batch`,
`set_namesrv_addr`, `set_namesrv_domain`) is here too. What differs, on purpose:

- `with Producer(…) as producer:` gives the producer; the original gives None.
- Two producers of one process may have different name servers. The original's all use those of the first.
- Messages of up to 4 MiB are taken, as by the broker; the original takes 128 KiB unless told otherwise.
- `send_batch` stores the messages one by one. 0.4.4 and a current broker make one unreadable message of them.
- A sharding key goes to the queue that Java's SelectMessageQueueByHash gives it. The original takes C++'s std::hash,
  which no other client can follow.
- An ordered message that fails is tried again in its own queue; the original goes on to the next one, out of order.
- Settings other than the timeout are fixed by `start`; to change one later is an error and not without effect.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rocketfleet.client.errors import RocketMQError
from rocketfleet.facade.connecting import Connecting
from rocketfleet.facade.consts import SendStatus
from rocketfleet.facade.exceptions import (
    NullPointerException,
    ProducerException,
    ProducerSendAsyncFailed,
    ProducerSendOnewayFailed,
    ProducerSendOrderlyFailed,
    ProducerSendSyncFailed,
    ProducerStartFailed,
)
from rocketfleet.facade.message import Message, ReceivedMessage, Text, number_of, outgoing, text_of
from rocketfleet.facade.settings import Settings
from rocketfleet.producer import result as results
from rocketfleet.producer.errors import InvalidMessage, ProducerClosed
from rocketfleet.producer.retry import RetryPolicy
from rocketfleet.producer.sync import SyncProducer
from rocketfleet.wire.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocketfleet.producer.queues.sharding import Selector, ShardingKey
    from rocketfleet.producer.transaction import TransactionListener
    from rocketfleet.wire import message as wire
    from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)

_STATUS = {
    results.SendStatus.SEND_OK: SendStatus.OK,
    results.SendStatus.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    results.SendStatus.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    results.SendStatus.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}
_SHARDING_RETRIES = 3
_CALLBACK_THREADS = 4


class SendResult(NamedTuple):
    """What became of a message. For a batch, `msg_id` is the ids of all, separated by commas, as Java has it."""

    status: SendStatus
    msg_id: str
    offset: int


def result_of(sent: results.SendResult) -> SendResult:
    """The result in the original's form."""
    return SendResult(_STATUS[sent.status], sent.msg_id, sent.queue_offset)


@contextmanager
def raised_as(kind: type[ProducerException]) -> Iterator[None]:
    """Our errors as those of the original; the cause stays attached."""
    try:
        yield
    except (RocketMQError, WireError) as error:
        raise kind(str(error)) from error
    except concurrent.futures.CancelledError as error:
        raise kind("the producer was shut down while it was sending") from error


def hashing_queue_selector(mq_size: int, msg: ReceivedMessage, arg: Any) -> int:
    """0.4.4's default: the argument, a number, modulo the number of queues. `arg` points to it, as a C int."""
    number: int = arg[0]
    return number % mq_size


class Producer(Connecting):
    """Sends messages. Threads may share it once it is started."""

    def __init__(
        self,
        group_id: Text,
        orderly: bool = False,
        timeout: int | None = None,
        compress_level: int | None = None,
        max_message_size: int | None = None,
    ) -> None:
        if group_id is None:
            raise NullPointerException("a producer needs a group")
        if not isinstance(orderly, bool):
            raise TypeError(
                f"the second argument is `orderly`, a bool; if {orderly!r} is the timeout, name it: timeout=…"
            )
        self._settings = Settings(text_of(group_id, "a group"))
        self._lock = threading.Lock()
        self._producer: SyncProducer | None = None
        self._callbacks: concurrent.futures.ThreadPoolExecutor | None = None
        if timeout is not None:
            self.set_timeout(timeout)
        if compress_level is not None:
            self.set_compress_level(compress_level)
        if max_message_size is not None:
            self.set_max_message_size(max_message_size)

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start; a second start does nothing. Whether name servers can be reached shows at the first message."""
        with self._lock:
            if self._producer is not None:
                return
            try:
                producer = SyncProducer(
                    self._settings.client(),
                    self._settings.group,
                    self._settings.options(),
                    transactions=self._transaction_listener(),
                )
                producer.start()
            except (RocketMQError, ValueError, OSError) as error:
                raise ProducerStartFailed(str(error)) from error
            self._callbacks = concurrent.futures.ThreadPoolExecutor(
                _CALLBACK_THREADS, thread_name_prefix=f"producer {self._settings.group} callback"
            )
            self._producer = producer

    def shutdown(self) -> None:
        """Sign off and wait for callbacks that have begun. Without a start it does nothing."""
        with self._lock:
            producer, self._producer = self._producer, None
            callbacks, self._callbacks = self._callbacks, None
        if producer is not None:
            producer.close()
        if callbacks is not None:
            callbacks.shutdown()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _transaction_listener(self) -> TransactionListener | None:
        return None

    def _running(self) -> SyncProducer:
        producer = self._producer
        if producer is None:
            raise ProducerClosed("the producer is not running: start it first, or again after a shutdown")
        return producer

    # -- sending ------------------------------------------------------------------------------------------------------

    def send_sync(self, msg: Message) -> SendResult:
        """Send, and wait until the broker has stored the message."""
        with raised_as(ProducerSendSyncFailed):
            return result_of(self._running().send(to_wire(msg), timeout=self._settings.seconds))

    def send_oneway(self, msg: Message) -> None:
        """Send without an answer: whether the message was stored is not known."""
        with raised_as(ProducerSendOnewayFailed):
            self._running().send_oneway(to_wire(msg))

    def send_batch(self, msgs: Sequence[Message]) -> SendResult:
        """Store messages of one topic together, in one queue."""
        with raised_as(ProducerSendSyncFailed):
            batch = self._running().send_batch([to_wire(msg) for msg in msgs], timeout=self._settings.seconds)
            return SendResult(_STATUS[batch.status], ",".join(batch.msg_ids), batch.queue_offset)

    def send_async(
        self,
        msg: Message,
        success_callback: Callable[[SendResult], Any] | None,
        exception_callback: Callable[[ProducerSendAsyncFailed], Any] | None,
    ) -> None:
        """Send without waiting. One of the callbacks is called, in a thread of its own, where it may send again."""
        callbacks = self._callbacks

        def on_done(future: concurrent.futures.Future[results.SendResult]) -> None:
            assert callbacks is not None
            callbacks.submit(_call_back, future, success_callback, exception_callback)

        with raised_as(ProducerSendAsyncFailed):
            self._running().submit(to_wire(msg), on_done, timeout=self._settings.seconds)

    def send_orderly_with_sharding_key(self, msg: Message, sharding_key: Text) -> SendResult:
        """Send to the queue that belongs to the key: messages with one key stay in order."""
        return self._send_to_its_queue(msg, text_of(sharding_key, "a sharding key"), None, _SHARDING_RETRIES)

    def send_orderly(
        self,
        msg: Message,
        arg: int,
        retry_times: int = 3,
        queue_selector: Callable[[int, ReceivedMessage, Any], int] = hashing_queue_selector,
    ) -> SendResult:
        """Send to the queue that the selector names. It gets a pointer to the argument, as in 0.4.4: `arg[0]`."""
        return self._send_to_its_queue(msg, None, _by_index(queue_selector, arg), retry_times)

    def send_oneway_orderly(
        self,
        msg: Message,
        arg: int,
        queue_selector: Callable[[int, ReceivedMessage, Any], int] = hashing_queue_selector,
    ) -> None:
        """The same without an answer."""
        with raised_as(ProducerSendOnewayFailed):
            self._running().send_oneway(to_wire(msg), selector=_by_index(queue_selector, arg))

    def _send_to_its_queue(
        self, msg: Message, key: ShardingKey | None, selector: Selector | None, retries: int
    ) -> SendResult:
        message, policy = to_wire(msg), RetryPolicy()
        with raised_as(ProducerSendOrderlyFailed):
            for left in reversed(range(max(0, retries) + 1)):
                try:
                    sent = self._running().send(
                        message, sharding_key=key, selector=selector, timeout=self._settings.seconds
                    )
                except RocketMQError as error:
                    if not left or isinstance(error, InvalidMessage | ProducerClosed) or not policy.is_retried(error):
                        raise
                else:
                    return result_of(sent)
        raise AssertionError("unreachable")

    # -- settings -----------------------------------------------------------------------------------------------------

    def set_group(self, group_name: Text) -> None:
        """The producer group."""
        self._unstarted().group = text_of(group_name, "a group")

    def set_instance_name(self, name: Text) -> None:
        """A part of the client's id, instead of a random one."""
        self._unstarted().instance_name = text_of(name, "an instance name")

    def set_timeout(self, timeout: int) -> None:
        """Milliseconds for a whole send; may be changed at any time."""
        milliseconds = number_of(timeout, "a timeout")
        if milliseconds <= 0:
            raise ProducerException(f"the timeout must be more than 0 ms, not {timeout}")
        self._settings.timeout = milliseconds

    def set_compress_level(self, level: int) -> None:
        """zlib's level for bodies of 4 KiB and more."""
        self._unstarted().compress_level = number_of(level, "a compress level")

    def set_max_message_size(self, max_size: int) -> None:
        """Larger bodies are refused before they are sent."""
        self._unstarted().max_message_size = number_of(max_size, "a message size")

    def set_message_trace(self, message_trace: bool) -> None:
        """Traces are not sent by this client; to ask for none is fine."""
        if message_trace:
            raise ProducerException("this client sends no message traces: leave set_message_trace out")

    def _unstarted(self) -> Settings:
        if self._producer is not None:
            raise ProducerException("the producer runs: only its timeout can be changed now; the rest before start()")
        return self._settings


def to_wire(msg: Message) -> wire.Message:
    """The message for the producer underneath."""
    if not isinstance(msg, Message):
        raise TypeError(f"what is sent must be a Message, not {type(msg).__name__}")
    return msg.to_wire()


def _by_index(choose: Callable[[int, ReceivedMessage, Any], int], arg: int) -> Selector:
    """A selector that answers with an index, and gets its argument as C gets it.

    Selectors written for 0.4.4 cast what they get to a pointer and follow it. A plain number would crash them.
    """
    pointer = ctypes.pointer(ctypes.c_int(number_of(arg, "a selector's argument")))

    def select(queues: Sequence[MessageQueue], message: wire.Message, key: ShardingKey | None) -> MessageQueue:
        index = number_of(choose(len(queues), outgoing(message), pointer), "what a queue selector returns")
        if not 0 <= index < len(queues):
            raise InvalidMessage(
                f"the queue selector returned {index}, and the topic has queues 0 to {len(queues) - 1}"
            )
        return queues[index]

    return select


def _call_back(
    future: concurrent.futures.Future[results.SendResult],
    on_success: Callable[[SendResult], Any] | None,
    on_exception: Callable[[ProducerSendAsyncFailed], Any] | None,
) -> None:
    try:
        with raised_as(ProducerSendAsyncFailed):
            sent = future.result()
    except ProducerSendAsyncFailed as failure:
        cause = failure.__cause__
        failure.error = getattr(cause, "code", None) or -1
        failure.type = type(cause).__name__
        if on_exception is None:
            _log.exception("a message was not sent, and there is no callback to tell")
            return
        _guarded(on_exception, failure)
        return
    if on_success is not None:
        _guarded(on_success, result_of(sent))


def _guarded(callback: Callable[[Any], Any], value: Any) -> None:
    try:
        callback(value)
    except Exception:
        _log.exception("a callback of send_async failed")
