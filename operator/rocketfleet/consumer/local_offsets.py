"""Where one member of a broadcasting group stands: in a file of its own, for the broker keeps no offsets for such
groups.

The file is written to a temporary name, synchronised, and renamed, and the one before is kept: whatever is
interrupted, one of the two is whole. Its layout is Java's (LocalFileOffsetStore), except that keys are text:
`{"offsetTable": {"topic@broker/0": 12}}`.
"""

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from rocketfleet.client import broker_offsets
from rocketfleet.client.client import Client
from rocketfleet.client.errors import RocketMQError
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.start_offset import Start, start_without_offset
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)


class OffsetFileError(RocketMQError):
    """The file with a member's offsets can't be read or written, and guessing would skip or repeat messages."""


def read_offsets(path: Path) -> dict[str, int]:
    """The offsets in the file, or in its predecessor if it is damaged; none if there is neither."""
    before = path.with_name(path.name + ".bak")
    if not path.exists() and not before.exists():
        return {}
    problems = []
    for candidate in (path, before):
        try:
            table = json.loads(candidate.read_text())["offsetTable"]
            return {str(queue): int(offset) for queue, offset in table.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{candidate}: {error}")
    raise OffsetFileError(
        f"the offsets of a broadcasting group cannot be read ({'; '.join(problems)}). "
        "Repair or remove the files; without them the group starts where consumeFromWhere says"
    )


def write_offsets(path: Path, offsets: dict[str, int]) -> None:
    """Replace the file in one step, keeping the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w") as file:
            json.dump({"offsetTable": offsets}, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            before = path.with_name(path.name + ".bak")
            before.unlink(missing_ok=True)
            os.link(path, before)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OffsetFileError(f"the offsets of a broadcasting group cannot be written to {path}: {error}") from error


class LocalOffsets:
    """The offsets of one member of a broadcasting group; the same calls as BrokerOffsets."""

    def __init__(self, client: Client, settings: ConsumerSettings, path: Path) -> None:
        self._client = client
        self._settings = settings
        self._path = path
        self._written = read_offsets(path)  # what the file says
        self._offsets = dict(self._written)
        self._writing = asyncio.Lock()

    async def start(self, queue: MessageQueue) -> int:
        stored = self._offsets.get(str(queue))
        if stored is not None:
            return stored
        remoting, master = self._client.remoting, self._client.master(queue.broker)
        start = start_without_offset(self._settings.consume_from_where, queue.topic)
        if start is Start.BEGINNING:
            return 0
        if start is Start.END:
            return await broker_offsets.max_offset(remoting, master, queue)
        assert self._settings.consume_timestamp is not None
        return await broker_offsets.search_offset(remoting, master, queue, int(self._settings.consume_timestamp * 1000))

    def is_news(self, queue: MessageQueue, offset: int) -> bool:
        return offset > self._written.get(str(queue), -1)

    async def persist(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Write the file, if it does not say all of this. A write that failed is repeated the next time."""
        for queue, offset in offsets.items():
            self._offsets[str(queue)] = max(offset, self._offsets.get(str(queue), -1))
        async with self._writing:
            now = dict(self._offsets)
            if now != self._written:
                await asyncio.to_thread(write_offsets, self._path, now)
                self._written = now

    async def confirm(self, queue: MessageQueue, offset: int, *, timeout: float | None = None) -> None:
        await self.persist({queue: offset})

    def forget(self, queue: MessageQueue) -> None:
        """Offsets stay: a queue that comes back goes on where it was."""

    def reset(self, queue: MessageQueue, offset: int) -> None:
        """The queue starts again at this offset, also if it stood at a higher one: that one did not exist."""
        self._offsets[str(queue)] = offset
