"""Reading a range of a queue: several pulls under way at once, and their answers in order.

Offsets of a queue are consecutive, so where a pull will end is known before it is answered, and a range can be pulled
in chunks side by side: one connection, one queue, as many requests in flight as `AHEAD`. A chunk that is not taken yet
keeps the next from being asked for, which bounds the memory. A broker gives less than it is asked for when it reads
from disk, so a chunk is pulled until its end is reached.

With a filter the broker skips what does not match and may answer with messages beyond the chunk's end; those belong to
the next chunk and are dropped later (`columns.py`). Chunks are larger then, or every chunk would be searched for the
same few messages.

What the broker may answer besides messages:
- nothing matched, go on there;
- the offset is below the queue's beginning: retention has deleted it. It is an error, or counted, as the user wishes;
- the offset is within the queue and yet another one is offered: somebody has reset the group. A read of given offsets
  does not follow; the broker forgets the reset once it is told, so the same pull is made again;
- nothing there, before the chunk's end: from a slave, it is behind; the master is asked, or the slave again. From the
  master, the queue has become shorter, and what is missing is lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rocketfleet.base.counting import counted
from rocketfleet.client.errors import (
    ConnectError,
    ConnectionLost,
    NoBroker,
    NoPermission,
    RequestTimeout,
    RocketMQError,
    SystemBusy,
)
from rocketfleet.client.requests.broker_messages import pull_request, pulled
from rocketfleet.consumer.subscription import ALL
from rocketfleet.spark.source.errors import SourceError
from rocketfleet.spark.source.tasks.ranges import QueueRange
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.message.sysflag import PULL_SUBSCRIPTION

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocketfleet.client.client import Client
    from rocketfleet.client.requests.broker_messages import Pulled
    from rocketfleet.spark.source.options import ReadOptions
    from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
AHEAD: Final = 8  # chunks under way or waiting to be taken
FILTERED_CHUNK: Final = 32  # how many times as long a chunk is where the broker filters
_PASSING = (ConnectError, ConnectionLost, RequestTimeout, SystemBusy, NoBroker)


@dataclass(frozen=True, slots=True)
class RangeTimings:
    """Seconds."""

    patience: float = 60.0  # for which a broker that does not answer is asked again
    first_pause: float = 0.1
    longest_pause: float = 3.0


_TIMINGS: Final = RangeTimings()


@dataclass(slots=True)
class Chunk:
    """A piece of the range with all its answers: the bodies of pulls, still encoded, and what was found to be gone."""

    range: QueueRange
    bodies: list[bytes] = field(default_factory=list)
    lost: list[QueueRange] = field(default_factory=list)


class RangePuller:
    """`take` gives the chunks of a range in order. Belongs to the client's loop."""

    def __init__(
        self,
        client: Client,
        options: ReadOptions,
        wanted: QueueRange,
        *,
        clock: Callable[[], float] = time.monotonic,
        timings: RangeTimings = _TIMINGS,
    ) -> None:
        self._client = client
        self._options = options
        self._wanted = wanted
        self._clock = clock
        self._timings = timings
        self._position = wanted.start
        self._replica = 0
        self._under_way: deque[asyncio.Task[Chunk]] = deque()
        filtered = options.expression != ALL
        self._step = options.pull_batch_size * (FILTERED_CHUNK if filtered else 1)

    async def take(self, rows: int, size: int) -> list[Chunk]:
        """The next chunks, in order, until they have so many offsets or bytes; none at all after the last."""
        taken: list[Chunk] = []
        while rows > 0 and size > 0:
            self._fill()
            if not self._under_way:
                break
            chunk = await self._under_way.popleft()
            taken.append(chunk)
            rows -= chunk.range.size
            size -= sum(map(len, chunk.bodies))
        self._fill()
        return taken

    async def close(self) -> None:
        """Give up what is under way."""
        tasks = list(self._under_way)
        self._under_way.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _fill(self) -> None:
        while len(self._under_way) < AHEAD and self._position < self._wanted.end:
            end = min(self._position + self._step, self._wanted.end)
            chunk = Chunk(QueueRange(self._wanted.queue, self._position, end))
            self._under_way.append(asyncio.get_running_loop().create_task(self._read(chunk)))
            self._position = end

    async def _read(self, chunk: Chunk) -> Chunk:
        queue, end = chunk.range.queue, chunk.range.end
        await self._client.route(queue.topic)  # so that the broker's address is known
        offset, stalled = chunk.range.start, self._clock()
        while offset < end:
            answer, from_slave = await self._pull(queue, offset, end)
            before = offset
            if answer.code == ResponseCode.SUCCESS:
                chunk.bodies.append(bytes(answer.body))
                offset = max(answer.next_begin_offset, offset + 1)
            elif answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY:
                offset = max(answer.next_begin_offset, offset)
            elif offset < answer.min_offset:
                offset = self._lose(chunk, offset, min(answer.min_offset, end))
            elif not from_slave and offset >= answer.max_offset:
                offset = self._lose(chunk, offset, end)
            elif answer.code == ResponseCode.PULL_OFFSET_MOVED and not from_slave:
                _log.warning(
                    "%s: group %s was reset at the broker; this read goes on at offset %d regardless",
                    queue,
                    self._options.group,
                    offset,
                    extra={"offset": offset},
                )
            if offset > before:
                stalled = self._clock()
                continue
            if self._clock() >= stalled + self._timings.patience:
                raise SourceError(
                    f"{queue.broker} says that {queue} ends at offset {answer.max_offset} and yet has given nothing "
                    f"from offset {offset} on for {self._timings.patience:g} s: look at the broker's log"
                )
            self._replica = 0
            await asyncio.sleep(self._timings.first_pause)
        return chunk

    def _lose(self, chunk: Chunk, start: int, end: int) -> int:
        gone = QueueRange(chunk.range.queue, start, end)
        if self._options.fail_on_data_loss:
            raise SourceError(data_loss(gone))
        chunk.lost.append(gone)
        return end

    async def _pull(self, queue: MessageQueue, offset: int, end: int) -> tuple[Pulled, bool]:
        """One answer, from a slave or not; a broker that does not answer is asked again for a while."""
        options = self._options
        filtered = options.expression != ALL
        command = pull_request(
            options.group,
            queue,
            offset,
            max_messages=options.pull_batch_size if filtered else min(options.pull_batch_size, end - offset),
            sys_flag=PULL_SUBSCRIPTION,
            subscription=options.expression,
        )
        give_up, pause = self._clock() + self._timings.patience, self._timings.first_pause
        while True:
            try:
                found = self._client.reader(queue.broker, self._replica)
                timeout = max(self._client.config.timeout, 10.0)
                answer = pulled(await self._client.remoting.call(found.address, command, timeout), found.address)
            except _PASSING as error:
                if self._clock() >= give_up:
                    raise
                self._replica = 0
                _log.info(
                    "pulling %s at offset %d failed, next try in %.1f s: %s",
                    queue,
                    offset,
                    pause,
                    error,
                    extra={"offset": offset},
                )
                await asyncio.sleep(pause)
                pause = min(pause * 2, self._timings.longest_pause)
                if isinstance(error, NoBroker | ConnectError):
                    await self._look_again(queue.topic)
            except NoPermission as error:
                raise SourceError(
                    f"group {options.group} may not read topic {queue.topic} at {queue.broker}: {error.remark}"
                ) from None
            else:
                self._replica = answer.suggest_broker_id
                return answer, found.slave

    async def _look_again(self, topic: str) -> None:
        """The broker may have come back elsewhere, or left a slave behind."""
        try:
            await self._client.routes.refresh(topic)
        except RocketMQError as error:
            _log.info("the route of %s could not be read again: %s", topic, error)


def data_loss(gone: QueueRange) -> str:
    """The sentence about messages that are no longer there."""
    return (
        f"{gone} are gone ({counted(gone.size)}): retention or a deleted topic took them before they were read; "
        "set failOnDataLoss to false to go on without them"
    )
