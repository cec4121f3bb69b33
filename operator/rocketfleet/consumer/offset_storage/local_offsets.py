"""Where one member of a broadcasting group stands: in a file of its own, for the broker keeps no offsets for such
groups.

The file is written to a temporary name, synchronised, and renamed, and the one before is kept: whatever is
interrupted, one of the two is whole. Its layout is Java's (LocalFileOffsetStore), except that keys are text, and that
it says when the member began each topic, in milliseconds since the epoch:
`{"offsetTable": {"topic@broker/0": 12}, "begun": {"topic": 1700000000000}}`.

Where a queue starts that has no offset:

| | FirstOffset | Timestamp | LastOffset |
|---|---|---|---|
| the topic is begun now | 0 | by that time | the end of the queue |
| begun, and offsets of it at that broker: the queue is new | 0 | by that time | 0 |
| begun, and none at that broker: it is new, or was away | 0 | by that time | by the time at which the topic was begun |

So a LastOffset member skips what was there before it began, and nothing that came later. The queues of a topic at a
broker are begun together, in one write: one that is missing beside others is a new one. The start is in the file before
the first message is delivered, so that a member that is killed before its first commit begins there again, and not at a
later end.
"""

import asyncio
import contextlib
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rocketfleet.client import fanout
from rocketfleet.client.client import Client
from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_offsets
from rocketfleet.consumer.offset_storage.start_offset import Start, start_without_offset
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
CLOCKS_DIFFER: Final = 10_000
"""Milliseconds by which a broker's clock may be behind ours: so much more is read, rather than too little."""


class OffsetFileError(RocketMQError):
    """The file with a member's offsets can't be read or written, and guessing would skip or repeat messages."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a file says: offsets by queue, and when each topic was begun."""

    offsets: dict[str, int] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)


def read_offsets(path: Path) -> Stored:
    """What the file says, or its predecessor if it is damaged; nothing if there is neither."""
    before = path.with_name(path.name + ".bak")
    if not path.exists() and not before.exists():
        return Stored()
    problems = []
    for candidate in (path, before):
        try:
            content = json.loads(candidate.read_text())
            tables = content["offsetTable"], content.get("begun", {})
            return Stored(*({str(key): int(value) for key, value in table.items()} for table in tables))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{candidate}: {error}")
    raise OffsetFileError(
        f"the offsets of a broadcasting group cannot be read ({'; '.join(problems)}). "
        "Repair or remove the files; without them the group starts where consumeFromWhere says"
    )


def write_offsets(path: Path, stored: Stored) -> None:
    """Replace the file in one step, keeping the one before."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w") as file:
            json.dump({"offsetTable": stored.offsets, "begun": stored.begun}, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            _keep(path, path.with_name(path.name + ".bak"))
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise OffsetFileError(
            f"the offsets of a broadcasting group cannot be written to {path}: {error}. "
            "Make room or give the right to write there, or name another directory (--offset-directory)"
        ) from error


def _keep(path: Path, before: Path) -> None:
    before.unlink(missing_ok=True)
    try:
        os.link(path, before)
    except OSError:  # not every file system of a cluster has links
        shutil.copyfile(path, before)


class LocalOffsets:
    """The offsets of one member of a broadcasting group; the same calls as BrokerOffsets, and `begin`."""

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        path: Path,
        *,
        let_go: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._settings = settings
        self._path = path
        self._let_go = let_go
        self._clock = clock
        self._written = read_offsets(path)  # what the file says
        self._offsets = dict(self._written.offsets)
        # A topic of an older file was begun, nobody knows when: whatever is not in the file is read from its beginning.
        self._begun = {key.partition("@")[0]: 0 for key in self._offsets} | self._written.begun
        self._beginning: dict[str, asyncio.Lock] = {}
        self._writing = asyncio.Lock()
        self._disk = threading.Lock()  # a cancelled write goes on in its thread: the next one waits for it
        self._closed = False

    # -- where queues start -------------------------------------------------------------------------------------------

    async def begin(self, topic: str, queues: Iterable[MessageQueue]) -> None:
        """Note where this member begins a topic, given the queues that there are now; only the first time counts.

        Brokers that do not answer are left out, and hold up no other: their queues start by the time of the beginning.
        """
        async with self._beginning.setdefault(topic, asyncio.Lock()):
            if topic not in self._begun:
                mark = int(self._clock() * 1000)
                brokers: dict[str, list[MessageQueue]] = {}
                for queue in queues:
                    brokers.setdefault(queue.broker, []).append(queue)
                # All queues of a broker or none: one that is missing beside others is taken for a new one.
                found = await fanout.each(brokers, lambda broker: _each(brokers[broker], self._first_start))
                for broker, error in found.errors.items():
                    _log.warning("%s at %s will be read from the time of its beginning: %s", topic, broker, error)
                for starts in found.results.values():
                    self._offsets |= starts
                self._begun[topic] = mark
            await self._save()

    async def start(self, queue: MessageQueue) -> int:
        key = str(queue)
        if key not in self._offsets:
            if queue.topic not in self._begun:
                await self.begin(queue.topic, await self._queues_beside(queue))
            async with self._beginning.setdefault(queue.topic, asyncio.Lock()):
                if key not in self._offsets:
                    self._offsets |= await self._late_starts(queue)
        if key not in self._written.offsets:
            await self._save()
        return self._offsets[key]

    async def _queues_beside(self, queue: MessageQueue) -> set[MessageQueue]:
        """All of its topic that there are now: begun one by one, each would be new to the one before."""
        return {queue, *await self._client.subscribe_queues(queue.topic)}

    async def _first_start(self, queue: MessageQueue) -> int:
        if self._start_of(queue) is Start.END:
            return await broker_offsets.max_offset(
                self._client.remoting, self._client.reader(queue.broker).address, queue
            )
        return await self._unmoving_start(queue)

    async def _late_starts(self, queue: MessageQueue) -> dict[str, int]:
        """Of a queue of a topic that was begun without it, and of all that are in the same position."""
        if self._start_of(queue) is not Start.END:
            return {str(queue): await self._unmoving_start(queue)}
        mark = self._begun[queue.topic] - CLOCKS_DIFFER
        if mark <= 0 or any(key.startswith(f"{queue.topic}@{queue.broker}/") for key in self._offsets):
            starts = {str(queue): 0}
        else:
            here = [one for one in await self._queues_beside(queue) if one.broker == queue.broker]
            starts = await _each(here, lambda one: self._by_time(one, mark))
        for key, offset in starts.items():
            _log.info("%s: not seen when its topic was begun, it starts at %d", key, offset)
        return starts

    async def _unmoving_start(self, queue: MessageQueue) -> int:
        """FirstOffset and Timestamp: the same whenever it is asked for."""
        if self._start_of(queue) is Start.BEGINNING:
            return 0
        assert self._settings.consume_timestamp is not None
        return await self._by_time(queue, int(self._settings.consume_timestamp * 1000))

    async def _by_time(self, queue: MessageQueue, timestamp: int) -> int:
        address = self._client.reader(queue.broker).address  # a slave knows it too, where there is no master
        return await broker_offsets.search_offset(self._client.remoting, address, queue, timestamp)

    def _start_of(self, queue: MessageQueue) -> Start:
        return start_without_offset(self._settings.consume_from_where, queue.topic)

    # -- where they are -----------------------------------------------------------------------------------------------

    async def persist(self, offsets: Mapping[MessageQueue, int], *, again: bool = False) -> None:
        """Write the file, if it does not say all of this. A write that failed is repeated the next time."""
        for queue, offset in offsets.items():
            self._offsets[str(queue)] = max(offset, self._offsets.get(str(queue), -1))
        await self._save()

    async def confirm(self, queue: MessageQueue, offset: int, *, timeout: float | None = None) -> int:
        await self.persist({queue: offset})
        return self._offsets[str(queue)]

    async def check(self, queue: MessageQueue) -> bool:
        """Nobody else writes the file."""
        return True

    def forget(self, queue: MessageQueue) -> None:
        """Offsets stay: a queue that comes back goes on where it was."""

    def reset(self, queue: MessageQueue, offset: int) -> None:
        """The queue starts again at this offset, also if it stood at a higher one: that one did not exist."""
        self._offsets[str(queue)] = offset

    # -- the file -----------------------------------------------------------------------------------------------------

    async def _save(self) -> None:
        async with self._writing:
            if (self._offsets, self._begun) != (self._written.offsets, self._written.begun):
                await asyncio.to_thread(self._write)

    def _write(self) -> None:
        with self._disk:
            if self._closed:
                raise OffsetFileError(f"the offsets in {self._path} are no longer this member's")
            now = Stored(dict(self._offsets), dict(self._begun))
            write_offsets(self._path, now)
            self._written = now

    def close(self) -> None:
        """Nothing is written from now on: the file may be another's."""
        with self._disk:
            if not self._closed:
                self._closed = True
                self._let_go()


async def _each(queues: Collection[MessageQueue], offset: Callable[[MessageQueue], Awaitable[int]]) -> dict[str, int]:
    """The offsets of all of them, or an error."""
    offsets = await asyncio.gather(*(offset(queue) for queue in queues))
    return {str(queue): found for queue, found in zip(queues, offsets, strict=True)}
