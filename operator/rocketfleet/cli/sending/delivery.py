"""Many bodies to a topic: read, paced, batched, a bounded number under way, every failure counted, and a stop that is
orderly.

The reader is asked for the next body only when there is room to send it, so a slow broker slows the reader and not
the memory. Stopping means: take no more, let what is under way come to its end, say what was done.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rocketfleet.base.counting import counted
from rocketfleet.cli.sending.lines import LineSplitter
from rocketfleet.client.errors import RocketMQError
from rocketfleet.wire.errors import WireError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from rocketfleet.cli.sending.pace import SendRate

CHUNK_BYTES = 1 << 16
MOST_FAILURES_SAID = 10


class OutgoingBody(NamedTuple):
    """Something to send. `number` is its line, or which repetition it is; None as `data`: the line was too long."""

    number: int
    data: bytes | None


@dataclass
class SendCounters:
    """What became of the bodies so far."""

    clock: Callable[[], float] = time.monotonic
    sent: int = 0
    failed: int = 0
    empty: int = 0
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def seconds(self) -> float:
        return self.clock() - self.began

    def summary(self, topic: str, seconds: float) -> str:
        """The last line that a user sees."""
        rate = f", {self.sent / seconds:,.0f} per second" if seconds > 0 and self.sent > 1 else ""
        parts = [f"sent {counted(self.sent, grouped=True)} to {topic} in {seconds:.2f} s{rate}"]
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self.empty:
            parts.append(f"{counted(self.empty, 'empty line', grouped=True)} left out")
        return "; ".join(parts)


class Delivery:
    """Sends bodies by `send`, which takes one or, with `batch` above 1, several at once."""

    def __init__(
        self,
        send: Callable[[Sequence[bytes]], Awaitable[None]],
        *,
        tally: SendCounters,
        stop: asyncio.Event,
        say: Callable[[str], None],
        tick: Callable[[], None] = lambda: None,
        most_bytes: int,
        unit: str = "line",
        batch: int = 1,
        batch_overhead: int = 0,
        under_way: int = 1,
        pace: SendRate | None = None,
    ) -> None:
        self._send = send
        self._tally = tally
        self._stop = stop
        self._say = say
        self._tick = tick
        self._most_bytes = most_bytes
        self._unit = unit
        self._batch = batch
        self._overhead = batch_overhead
        self._room = asyncio.Semaphore(under_way)
        self._pace = pace
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: list[OutgoingBody] = []
        self._waiting_bytes = 0
        self._said = 0

    async def run(self, bodies: AsyncIterator[OutgoingBody]) -> None:
        """Send everything, or until the stop."""
        try:
            async for body in bodies:
                if self._stop.is_set():
                    break
                await self._accept(body)
            if not self._stop.is_set():
                await self._depart()
        finally:
            while self._tasks:
                await asyncio.wait(self._tasks)

    async def _accept(self, body: OutgoingBody) -> None:
        if body.data is None or len(body.data) + self._overhead > self._most_bytes:
            self._fail([body], f"longer than a message may be ({self._most_bytes:,} bytes)")
            return
        if not body.data:
            self._tally.empty += 1
            return
        size = len(body.data) + self._overhead
        if self._waiting and self._waiting_bytes + size > self._most_bytes:
            await self._depart()
        self._waiting.append(body)
        self._waiting_bytes += size
        if len(self._waiting) >= self._batch:
            await self._depart()

    async def _depart(self) -> None:
        """Send what has gathered, as soon as pace and room allow."""
        bodies, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not bodies:
            return
        if self._pace is not None:
            delay = self._pace.take(len(bodies))
            if delay > 0 and await stopped_within(self._stop, delay):
                return
        await self._room.acquire()
        if self._stop.is_set():
            self._room.release()
            return
        task = asyncio.create_task(self._deliver(bodies))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, bodies: Sequence[OutgoingBody]) -> None:
        try:
            await self._send([body.data for body in bodies if body.data is not None])
        except (RocketMQError, WireError) as error:
            self._fail(bodies, str(error))
        else:
            self._tally.sent += len(bodies)
        finally:
            self._room.release()
            self._tick()

    def _fail(self, bodies: Sequence[OutgoingBody], reason: str) -> None:
        self._tally.failed += len(bodies)
        self._said += 1
        if self._said <= MOST_FAILURES_SAID:
            first, last = bodies[0].number, bodies[-1].number
            which = f"{self._unit} {first}" if first == last else f"{self._unit}s {first} to {last}"
            self._say(f"{which}: {reason}")
        elif self._said == MOST_FAILURES_SAID + 1:
            self._say("more failures are counted but not shown")


async def stopped_within(stop: asyncio.Event, seconds: float) -> bool:
    """Wait so long, unless stopped before."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return False
    return True


async def lines_of(descriptor: int, limit: int, stop: asyncio.Event) -> AsyncIterator[OutgoingBody]:
    """The lines of a file, pipe or terminal, as they come."""
    splitter = LineSplitter(limit)
    while await _readable(descriptor, stop):
        chunk = os.read(descriptor, CHUNK_BYTES)
        for number, data in splitter.feed(chunk) if chunk else splitter.finish():
            yield OutgoingBody(number, data)
        if not chunk:
            return


async def _readable(descriptor: int, stop: asyncio.Event) -> bool:
    """Wait until there is something to read, or the end of it; False if stopped first.

    No thread reads here: one that blocks in a read cannot be stopped and would keep the program from ending.
    """
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:  # a regular file, which is always readable
        await asyncio.sleep(0)
        return not stop.is_set()
    waits = [asyncio.ensure_future(ready.wait()), asyncio.ensure_future(stop.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(descriptor)
        for wait in waits:
            wait.cancel()
    return not stop.is_set()


async def repeated(data: bytes, count: int) -> AsyncIterator[OutgoingBody]:
    """The same body so many times."""
    for number in range(1, count + 1):
        yield OutgoingBody(number, data)


async def at_most(bodies: AsyncIterator[OutgoingBody], count: int) -> AsyncIterator[OutgoingBody]:
    """The first so many."""
    taken = 0
    async for body in bodies:
        yield body
        taken += 1
        if taken == count:
            return
