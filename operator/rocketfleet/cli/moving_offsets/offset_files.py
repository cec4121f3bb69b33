"""The file of `snapshot-offsets`: a group's offsets at one moment, readable years later by people and programs.

A file is there as a whole or not at all. It says which group and which cluster it is of, because offsets mean nothing
anywhere else.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND: Final = "OffsetSnapshot"
VERSION: Final = 1
LARGEST_OFFSET: Final = 2**63 - 1


class SnapshotError(Exception):
    """The file is no snapshot, or cannot be written; the sentence says why."""


@dataclass(frozen=True, slots=True)
class OffsetSnapshot:
    """A group's offsets. None is a queue in which the group had none."""

    group: str
    clusters: tuple[str, ...]
    time: str
    offsets: Mapping[MessageQueue, int | None]

    def stored(self) -> dict[MessageQueue, int]:
        """The queues in which the group had an offset."""
        return {queue: offset for queue, offset in self.offsets.items() if offset is not None}


def encode(snapshot: OffsetSnapshot) -> str:
    """The text of a file."""
    content = {
        "kind": KIND,
        "version": VERSION,
        "group": snapshot.group,
        "cluster": list(snapshot.clusters),
        "time": snapshot.time,
        "offsets": [
            {"topic": queue.topic, "broker": queue.broker, "queueId": queue.queue_id, "offset": offset}
            for queue, offset in sorted(snapshot.offsets.items())
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def decode(text: str, name: str) -> OffsetSnapshot:
    """Read a file's text; `name` is for the sentence when it is none."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{name} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise SnapshotError(f"{name} is no snapshot of offsets: `rocketfleet snapshot-offsets` writes one")
    if content.get("version") != VERSION:
        raise SnapshotError(f"{name} is a snapshot of version {content.get('version')}; this program reads {VERSION}")
    match content:
        case {"group": str(group), "cluster": list(clusters), "time": str(time), "offsets": list(entries)} if all(
            isinstance(cluster, str) for cluster in clusters
        ):
            offsets: dict[MessageQueue, int | None] = {}
            for number, entry in enumerate(entries, start=1):
                queue, offset = _entry(entry, f"{name}: entry {number} of offsets")
                if queue in offsets:
                    raise SnapshotError(f"{name} has {queue} twice")
                offsets[queue] = offset
            return OffsetSnapshot(group, tuple(clusters), time, offsets)
    raise SnapshotError(f"{name} must have group, cluster, time and offsets")


def _entry(entry: Any, where: str) -> tuple[MessageQueue, int | None]:
    match entry:
        case {"topic": str(topic), "broker": str(broker), "queueId": int(queue_id), "offset": int() | None as offset}:
            # To Python, true is a number; and an offset the broker cannot hold is none.
            if not isinstance(queue_id, bool) and not isinstance(offset, bool) and 0 <= (offset or 0) <= LARGEST_OFFSET:
                return MessageQueue(topic, broker, queue_id), offset
    raise SnapshotError(f"{where} must have topic, broker, queueId and offset, a number of 0 or more or null")


def read(path: Path) -> OffsetSnapshot:
    """Read a snapshot; - is standard input."""
    name = "standard input" if str(path) == "-" else str(path)
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise SnapshotError(f"{name} is not UTF-8 text") from error
    except OSError as error:
        raise SnapshotError(f"cannot read {name}: {error.strerror}") from error
    return decode(text, name)


def write(path: Path, snapshot: OffsetSnapshot, *, replace: bool = False) -> None:
    """Write a snapshot. One that is there is kept unless it may be replaced: it may be the only way back."""
    text = encode(snapshot)
    if path.exists() and not replace:
        raise SnapshotError(f"{path} is there already: name another file, or add --force to replace it")
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise SnapshotError(f"cannot write to {path.parent}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)  # it holds no secret, and temporary files are for their maker alone
        Path(temporary).replace(path)
    except OSError as error:
        raise SnapshotError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
