"""The shell around the accumulator: callers wait, a timer closes batches, a batch is sent once and answers all in it.

A batch is one task, however many messages it has. A caller that is cancelled while its message waits takes the message
along; once the batch is under way the message may be stored, and only nobody waits for the answer.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from rocketfleet.client.errors import RocketMQError
from rocketfleet.producer.batching.accumulator import Accumulator, Batch, BatchLimits
from rocketfleet.producer.errors import ProducerClosed, ProducerError, SendTimeout
from rocketfleet.producer.result import SendResult
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue


class BatchKey(NamedTuple):
    """Messages travel together only if they agree on all of this."""

    topic: str
    queue: MessageQueue | None
    wait_store_ok: bool
    tags: str | None
    timeout: float


class Waiting(NamedTuple):
    """A message in a batch, already encoded, and whoever waits for it."""

    message: Message
    encoded: bytes
    answer: "asyncio.Future[SendResult]"


Deliver = Callable[[BatchKey, Sequence[Waiting]], Awaitable[Sequence[SendResult]]]
"""Sends the messages of a batch; returns a result for each, or raises for all."""


class Accumulating:
    """See the module."""

    def __init__(self, limits: BatchLimits, deliver: Deliver) -> None:
        self._loop = asyncio.get_running_loop()
        self._deliver = deliver
        self.max_bytes = limits.max_bytes
        self._batches: Accumulator[BatchKey, Waiting] = Accumulator(self._loop.time, limits)
        self._for_room: deque[tuple[asyncio.Future[None], int]] = deque()
        self._under_way: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def held(self) -> int:
        """Bytes of messages that are waiting or under way."""
        return self._batches.held

    async def send(self, key: BatchKey, message: Message, encoded: bytes) -> SendResult:
        """Add a message and wait for its own result."""
        if self._closed:
            raise ProducerClosed("the producer is closed")
        size = len(encoded)
        if self._for_room or not self._batches.has_room(size):
            await self._room(key, size)
        answer: asyncio.Future[SendResult] = self._loop.create_future()
        for batch in self._batches.add(key, Waiting(message, encoded, answer), size):
            self._start(batch)
        if self._for_room:
            self._admit()  # only now, so that the next in line sees what this one has left
        self._set_timer()
        return await answer

    async def _room(self, key: BatchKey, size: int) -> None:
        """Wait in line. Whoever comes later queues up behind, so nothing slips in between being let in and adding."""
        place = (self._loop.create_future(), size)
        self._for_room.append(place)
        try:
            async with asyncio.timeout(key.timeout):
                await place[0]
            self._for_room.remove(place)
        except BaseException as error:
            self._for_room.remove(place)
            self._admit()
            if isinstance(error, TimeoutError):
                raise SendTimeout(
                    f"topic {key.topic}: no room for the message within {key.timeout:g} s; {self._batches.held} bytes "
                    "wait to be sent or answered. Send less at once, or raise max_held"
                ) from None
            raise

    def _admit(self) -> None:
        """Let the first in line in, if there is room for it."""
        if self._for_room:
            turn, size = self._for_room[0]
            if not turn.done() and self._batches.has_room(size):
                turn.set_result(None)

    def _set_timer(self) -> None:
        if self._timer is None:
            deadline = self._batches.next_deadline()
            if deadline is not None:
                self._timer = self._loop.call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        for batch in self._batches.due():
            self._start(batch)
        self._set_timer()

    def _start(self, batch: Batch[BatchKey, Waiting]) -> None:
        task = self._loop.create_task(self._run(batch), name=f"batch to {batch.key.topic}")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _run(self, batch: Batch[BatchKey, Waiting]) -> None:
        wanted = [one for one in batch.items if not one.answer.done()]
        try:
            if wanted:
                results = await self._deliver(batch.key, wanted)
                for one, result in zip(wanted, results, strict=True):
                    if not one.answer.done():
                        one.answer.set_result(result)
        except (RocketMQError, ValueError) as error:
            _fail(wanted, error)
        except BaseException as error:
            # A bug or a cancellation: nobody must be left waiting, whatever else becomes of it.
            _fail(wanted, ProducerError(f"the batch was given up: {error!r}"))
            raise
        finally:
            self._batches.release(batch)
            self._admit()

    async def close(self) -> None:
        """Take no more, send what is waiting, and return when everything is answered."""
        self._closed = True
        while self._for_room or self._under_way or self._batches.next_deadline() is not None:
            for batch in self._batches.flush():
                self._start(batch)
            if self._under_way:
                await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(0)  # whoever was let in adds its message in this turn of the loop
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _fail(waiting: Sequence[Waiting], error: Exception) -> None:
    for one in waiting:
        if not one.answer.done():
            # A copy each: one object raised in many tasks would collect all their tracebacks.
            own = copy.copy(error)
            own.__cause__ = error.__cause__
            one.answer.set_exception(own)
