"""Histories written by hand: a few lines say what happened, everything else is filled in."""

import itertools
from typing import Any, Self

from rocketfleet.testing.checker.check import check
from rocketfleet.testing.checker.history_verdict import HistoryVerdict
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.history import EventHistory, EventKind, HistoryEvent

QUEUE = "orders@broker-a/0"
OTHER = "orders@broker-b/0"


def message_of(queue: str, offset: int) -> str:
    return f"{queue}:{offset}"


class Story:
    """Each method adds what its name says, and returns the story."""

    def __init__(self) -> None:
        self.events: list[HistoryEvent] = []
        self._numbers = itertools.count(1)

    def add(self, at: float, kind: EventKind, by: str = "observer", **more: Any) -> Self:
        fields = {name: more.pop(name) for name in ("message", "queue", "offset") if name in more}
        self.events.append(HistoryEvent(at, kind, by, **fields, details=more))
        return self

    def sent(self, at: float, *offsets: int, queue: str = QUEUE) -> Self:
        for offset in offsets:
            self.add(
                at,
                EventKind.SENT,
                "sender",
                message=message_of(queue, offset),
                queue=queue,
                offset=offset,
                began=at - 0.01,
            )
        return self

    def handled(
        self,
        member: str,
        offset: int,
        begin: float,
        end: float | None,
        *,
        queue: str = QUEUE,
        message: str = "",
        outcome: str = "success",
        tries: int = 0,
        **more: Any,
    ) -> Self:
        """`end` is None if the handler was never done."""
        place = {"message": message or message_of(queue, offset), "queue": queue, "offset": offset}
        handling = str(next(self._numbers))
        self.add(begin, EventKind.BEGIN, member, **place, handling=handling, tries=tries, **more)
        if end is not None:
            self.add(end, EventKind.END, member, **place, handling=handling, tries=tries, outcome=outcome)
        return self

    def committed(self, at: float, offset: int, queue: str = QUEUE) -> Self:
        return self.add(at, EventKind.COMMITTED, queue=queue, offset=offset)

    def joined(self, at: float, *members: str) -> Self:
        for member in members:
            self.add(at, EventKind.JOINED, member)
        return self

    def owns(self, at: float, member: str, *queues: str) -> Self:
        return self.add(at, EventKind.OWNS, member, queues=list(queues))

    def owners(self, at: float, **owners: list[str]) -> Self:
        """What the broker says about QUEUE (as `queue`) and OTHER (as `other`)."""
        names = {"queue": QUEUE, "other": OTHER}
        return self.add(at, EventKind.OWNERS, owners={names[name]: found for name, found in owners.items()})

    def fault(self, at: float, name: str, target: str, until: float | None = None, **details: Any) -> Self:
        self.add(at, EventKind.FAULT, "harness", name=name, target=target, **details)
        if until is not None:
            self.add(until, EventKind.HEALED, "harness", name=name, target=target)
        return self

    def change(self, at: float, what: str, **more: Any) -> Self:
        return self.add(at, EventKind.CHANGE, "harness", what=what, **more)

    def ended(self, at: float, end: int | None = None, queue: str = QUEUE) -> Self:
        if end is not None:
            self.add(at, EventKind.END_OFFSET, queue=queue, offset=end)
        return self.add(at, EventKind.END_OF_RUN, "harness")

    def verdict(self, **promises: Any) -> HistoryVerdict:
        return check(EventHistory.of(self.events), Promises(**promises))


def found(verdict: HistoryVerdict) -> dict[str, int]:
    """Only the families with findings."""
    return {family.value: count for family, count in verdict.counts.items() if count}
