"""What happened in a run, written down by everybody who took part: the format of a history.

A history is some files with one JSON object per line. Each line is one event, written with one `write` on a descriptor
opened for appending, so that a process that is killed leaves a true record. At most the line that was being written is
cut off; the reader counts such lines (`cut_lines`) and goes on. A process that starts again may go on with its file,
but two that run at once need one each.

Times are seconds of CLOCK_MONOTONIC: the same for all processes of one machine, and not moved by jumps of the wall
clock. (A process in a time namespace of its own, or under a library that fakes this clock, has to be given `clock`.)

Fields of every line: `at`, `kind`, `by` (who says so: a member or an observer), and where there are any `message` (its
id), `queue` (as `str(MessageQueue)` has it: topic@broker/number), `offset`; everything else is `details`. By kind:

| kind | written by | details |
|---|---|---|
| sent | the sender, when the broker has acknowledged | `began`: when the send began |
| begin | the member, just before its handler runs | `handling` (its end has the same), `tries`, `call` of a batch |
| end | the member, just after | `handling`, `tries`, `outcome` (`HandlingOutcome`), `answer` if it was no plain one |
| joined | the member, or who started it | `client_id`, if brokers know it by another name than `by` |
| owns | the member, when what it owns has changed | `queues`: all that it owns now |
| leaving, left | the member | left: `offsets` (queue → final offset), `confirmed` |
| committed | an observer: the group's offset, read at the broker; one event for each queue | `began` of the look |
| end_offset | an observer: the end of the queue, read at the broker | |
| owners | an observer, asking through the broker | `owners`: every queue → client ids that say they hold it |
| fault | whoever makes it, just before | `name` (see `FaultName`), `target`; anything else that explains it |
| healed | whoever ends it, just after | `name` and `target` as in the fault |
| change | whoever makes it, just after | `what` (see `ChangeName`), and what that needs; `began`, if it took a while |
| end_of_run | the harness: all faults are healed, and the group had its time to settle | |

A handling without an end was cut by the end of its process.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from rocketfleet.wire.queue import MessageQueue

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_FIELDS: Final = ("at", "kind", "by", "message", "queue", "offset")


class EventKind(StrEnum):
    SENT = "sent"
    BEGIN = "begin"
    END = "end"
    JOINED = "joined"
    OWNS = "owns"
    LEAVING = "leaving"
    LEFT = "left"
    COMMITTED = "committed"
    END_OFFSET = "end_offset"
    OWNERS = "owners"
    FAULT = "fault"
    HEALED = "healed"
    CHANGE = "change"
    END_OF_RUN = "end_of_run"


class HandlingOutcome(StrEnum):
    """How a handling ended. A handler that was cancelled is `CUT`, as is one whose process died."""

    SUCCESS = "success"
    RETRY = "retry"
    ERROR = "error"
    CUT = "cut"


class FaultName(StrEnum):
    """The faults that the checker knows the consequences of. `target` is a member (its `by` or client id) or a broker.

    A fault lasts until `healed` says the same name and target; one of a member that was killed, until it joins again.
    A fault with any other name may be written down too: it is shown beside findings, and excuses nothing.
    """

    KILLED = "killed"  # a member, by SIGKILL
    FROZEN = "frozen"  # a member: SIGSTOP, a paused machine
    CUT = "cut"  # a member's connections; details `broker`, if it is only those to one
    LOSSY = "lossy"  # packets of a member are dropped, so that its connections may break; details as for a cut
    SLOWED = "slowed"  # a member or a broker that gets little of its processor or network
    BROKER_KILLED = "broker_killed"  # by SIGKILL: it forgets locks, members, and what it had not yet saved
    BROKER_LOST = "broker_lost"  # its disk too
    BROKER_STOPPED = "broker_stopped"  # in good order
    BROKER_FROZEN = "broker_frozen"
    BROKER_CUT = "broker_cut"  # from everybody
    NAME_SERVER_KILLED = "name_server_killed"
    CLOCK_JUMPED = "clock_jumped"  # the wall clock of a broker or member; details `seconds`


class ChangeName(StrEnum):
    """What may excuse a message that was not handled, or was handled again; and what else was done to the group."""

    RESET = "reset"  # of the event's queue to its offset, or of all queues in details `offsets` to theirs
    TOPIC_DELETED = "topic_deleted"  # details `topic`
    TOPIC_CREATED = "topic_created"  # details `topic`
    TOPIC_GREW = "topic_grew"  # details `topic`
    DEAD_LETTERED = "dead_lettered"  # the event's message was found among the dead letters
    GROUP_BEGAN = "group_began"  # a LastOffset group: what was sent before is none of its own
    SCALED = "scaled"  # details `replicas`
    EDITED = "edited"  # the manifest; details as you like


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One line. `queue` and `message` are empty, and `offset` None, where the event is not about one."""

    at: float
    kind: EventKind
    by: str
    message: str = ""
    queue: str = ""
    offset: int | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    @property
    def line(self) -> str:
        """As it is written, with its end of line."""
        content: dict[str, Any] = {"at": round(self.at, 6), "kind": self.kind.value, "by": self.by}
        if self.message:
            content["message"] = self.message
        if self.queue:
            content["queue"] = self.queue
        if self.offset is not None:
            content["offset"] = self.offset
        return json.dumps({**content, **self.details}, ensure_ascii=False, separators=(",", ":")) + "\n"

    def __str__(self) -> str:
        """For people."""
        place = f" {self.queue}" + ("" if self.offset is None else f" offset {self.offset}") if self.queue else ""
        details = "".join(f" {name}={value}" for name, value in self.details.items())
        return f"{self.at:.3f} {self.by}: {self.kind}{place}{self.message and f' {self.message}'}{details}"


class HistoryFormatError(ValueError):
    """A line that no recorder wrote."""


@dataclass(frozen=True)
class EventHistory:
    """Events in the order of their times; those of one time in the order they were read."""

    events: tuple[HistoryEvent, ...]
    cut_lines: int = 0

    @classmethod
    def of(cls, events: Iterable[HistoryEvent], cut_lines: int = 0) -> "EventHistory":
        return cls(tuple(sorted(events, key=lambda event: event.at)), cut_lines)

    def __iter__(self) -> Iterator[HistoryEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def kind(self, *kinds: EventKind) -> tuple[HistoryEvent, ...]:
        """Only these kinds."""
        return tuple(event for event in self.events if event.kind in kinds)


class Recorder:
    """Writes events of one member or observer. May be used from any thread."""

    def __init__(self, path: Path | str, by: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.by = by
        self._clock = clock
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # whoever wrote here before was killed in the middle of a line

    def note(
        self,
        kind: EventKind,
        *,
        message: str = "",
        queue: MessageQueue | str = "",
        offset: int | None = None,
        at: float | None = None,
        **details: Any,
    ) -> HistoryEvent:
        """Write one event; `at` is now unless it is given."""
        event = self.event(kind, message=message, queue=queue, offset=offset, at=at, **details)
        self.write((event,))
        return event

    def event(
        self,
        kind: EventKind,
        *,
        message: str = "",
        queue: MessageQueue | str = "",
        offset: int | None = None,
        at: float | None = None,
        **details: Any,
    ) -> HistoryEvent:
        """One event, not yet written."""
        return HistoryEvent(self._clock() if at is None else at, kind, self.by, message, str(queue), offset, details)

    def write(self, events: Iterable[HistoryEvent]) -> None:
        """Write several at once."""
        os.write(self._file, "".join([event.line for event in events]).encode())

    def close(self) -> None:
        os.close(self._file)


def read(paths: Iterable[Path | str]) -> EventHistory:
    """What these files hold; a directory stands for all *.jsonl in it."""
    events: list[HistoryEvent] = []
    cut = 0
    for path in _files(paths):
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if not line:
                continue
            try:
                content = json.loads(line)
            except ValueError:
                if not line.startswith(b'{"at":'[: len(line)]):
                    raise HistoryFormatError(f"{path}, line {number} is no event: {line[:80]!r}") from None
                cut += 1
                continue
            events.append(_event(content, f"{path}, line {number}"))
    return EventHistory.of(events, cut)


def _files(paths: Iterable[Path | str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(path.glob("*.jsonl")) if path.is_dir() else [path]


def _event(content: dict[str, Any], where: str) -> HistoryEvent:
    try:
        return HistoryEvent(
            content["at"],
            EventKind(content["kind"]),
            content["by"],
            content.get("message", ""),
            content.get("queue", ""),
            content.get("offset"),
            {name: value for name, value in content.items() if name not in _FIELDS},
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise HistoryFormatError(f"{where} is no event: {error!r}") from None
