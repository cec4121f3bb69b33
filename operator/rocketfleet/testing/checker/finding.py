"""A finding: something that is promised not to happen, and did; with the part of the history that shows it."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from rocketfleet.testing.checker.run_record import RunRecord
from rocketfleet.testing.history import EventKind, HistoryEvent

_OF_MESSAGE, _AROUND = 12, 12  # lines of an excerpt, at most
_MARGIN = 2.0  # seconds
_CONTEXT = frozenset({EventKind.FAULT, EventKind.HEALED, EventKind.CHANGE, EventKind.COMMITTED, EventKind.END_OFFSET})
_MEMBERS = frozenset({EventKind.JOINED, EventKind.OWNS, EventKind.LEAVING, EventKind.LEFT, EventKind.OWNERS})


class FindingFamily(StrEnum):
    LOST = "lost"  # begun, and never handled successfully
    UNSEEN = "unseen"  # never begun
    REPEATED = "repeated"
    OUT_OF_ORDER = "out of order"
    DOUBLE = "double"  # two members inside handlers of one queue
    WENT_BACK = "went back"  # an offset
    UNOWNED = "unowned"  # a queue, for longer than promised
    STUCK = "stuck"  # a backlog that nobody works off


@dataclass(frozen=True, slots=True)
class HistoryFinding:
    """`begin` and `end` are when it happened; `messages` are those concerned."""

    family: FindingFamily
    summary: str
    begin: float
    end: float
    queue: str = ""
    messages: tuple[str, ...] = ()
    excerpt: tuple[HistoryEvent, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.family}: {self.summary}", *(f"    {event}" for event in self.excerpt)]
        return "\n".join(lines)


def excerpt(record: RunRecord, finding: HistoryFinding) -> tuple[HistoryEvent, ...]:
    """The events that show it: those of its messages, and what else was done and seen around them."""
    concerned = sorted(_of_messages(record, finding), key=lambda event: event.at)
    begin = min([finding.begin, *(event.at for event in concerned)]) - _MARGIN
    end = max([finding.end, *(event.at for event in concerned)]) + _MARGIN
    around = [event for event in record.history if begin <= event.at <= end and _is_context(event, finding)]
    shown = [*_ends_of(concerned, _OF_MESSAGE), *_ends_of(around, _AROUND)]
    return tuple(sorted(shown, key=lambda event: event.at))


def _of_messages(record: RunRecord, finding: HistoryFinding) -> Iterator[HistoryEvent]:
    wanted = frozenset(finding.messages)
    yield from (event for event in record.sent if event.message in wanted)
    for message in wanted:
        for handling in record.by_message.get(message, ()):
            yield handling.begun
            if handling.ended is not None:
                yield handling.ended


def _is_context(event: HistoryEvent, finding: HistoryFinding) -> bool:
    if event.kind in _CONTEXT:
        return event.queue in ("", finding.queue)
    if event.kind in _MEMBERS:
        # Of what members say of themselves only what is about the queue, and only where it is about who has it.
        return finding.family in (FindingFamily.UNOWNED, FindingFamily.DOUBLE)
    return event.kind is EventKind.END_OF_RUN


def _ends_of(events: list[HistoryEvent], count: int) -> list[HistoryEvent]:
    """The first and the last of them."""
    return events if len(events) <= count else [*events[: count // 2], *events[-count // 2 :]]
