"""A history taken apart, once for all families: handlings with their ends, faults from when to when, who lived when.

Nothing is judged here. Two things are not in the record and are worked out:

- *When a handling without an end was over.* Its process was killed: the fault is written down just before the kill, and
  the process may have written a little more, so it was over at the later of the two. If nobody killed it, it may still
  run.
- *Who is meant.* Brokers know a member by its client id, the record by the name in `by`; `joined` says that they are
  one.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rocketfleet.testing.history import ChangeName, EventHistory, EventKind, FaultName, HandlingOutcome, HistoryEvent

EVERYBODY: Final = frozenset({"*", "all"})
"""As a target: all members, or all brokers."""
_OWN_KINDS: Final = frozenset({EventKind.BEGIN, EventKind.END, EventKind.OWNS, EventKind.LEAVING})


@dataclass(slots=True, eq=False)
class RecordedHandling:
    """One message in one call of a handler."""

    begun: HistoryEvent
    member: str
    ended: HistoryEvent | None = None
    end: float = math.inf

    @property
    def begin(self) -> float:
        return self.begun.at

    @property
    def message(self) -> str:
        return self.begun.message

    @property
    def queue(self) -> str:
        return self.begun.queue

    @property
    def offset(self) -> int:
        return -1 if self.begun.offset is None else self.begun.offset

    @property
    def place(self) -> tuple[str, int]:
        return self.queue, self.offset

    @property
    def tries(self) -> int:
        tries: int = self.begun.details.get("tries", 0)
        return tries

    @property
    def succeeded(self) -> bool:
        return self.ended is not None and self.ended.details.get("outcome") == HandlingOutcome.SUCCESS

    @property
    def failed(self) -> bool:
        """The handler asked for the message again, or raised."""
        return self.ended is not None and self.ended.details.get("outcome") in (
            HandlingOutcome.RETRY,
            HandlingOutcome.ERROR,
        )


@dataclass(frozen=True, slots=True)
class FaultSpan:
    """A fault while it lasted; `end` is infinite if nothing says that it was healed."""

    name: str
    target: str
    start: float
    end: float
    event: HistoryEvent

    @property
    def lasted(self) -> float:
        return self.end - self.start

    def overlaps(self, begin: float, end: float) -> bool:
        return self.start <= end and self.end >= begin

    def concerns(self, broker: str) -> bool:
        """Whether a member's fault is one of its connections to this broker too."""
        return self.event.details.get("broker", broker) in (broker, *EVERYBODY)


@dataclass(frozen=True, slots=True)
class OutsideChange:
    """A queue of the group was set to an offset by somebody from outside."""

    queue: str
    offset: int
    began: float
    at: float


class CommitSeen(NamedTuple):
    """Somebody knew at a time what the group's offset in a queue was; it was so at some moment since `began`."""

    at: float
    offset: int
    began: float
    by_leaver: bool = False  # in the words of a member that has left, which may be read late


@dataclass
class RunRecord:
    """See the module."""

    history: EventHistory
    handlings: tuple[RecordedHandling, ...]  # by begin
    sent: tuple[HistoryEvent, ...]
    faults: tuple[FaultSpan, ...]
    resets: tuple[OutsideChange, ...]
    changes: tuple[HistoryEvent, ...]
    commits: Mapping[str, tuple[CommitSeen, ...]]  # of each queue, by time
    lives: Mapping[str, tuple[tuple[float, float], ...]]  # member → from when to when it was there
    names: Mapping[str, str]  # client id → member
    end: float
    by_message: Mapping[str, Sequence[RecordedHandling]] = field(init=False)
    by_queue: Mapping[str, Sequence[RecordedHandling]] = field(init=False)
    _fault_targets: Mapping[str, Sequence[FaultSpan]] = field(init=False)
    _last_ends: dict[tuple[str, str], tuple[list[float], list[float]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        by_message: dict[str, list[RecordedHandling]] = defaultdict(list)
        by_queue: dict[str, list[RecordedHandling]] = defaultdict(list)
        for handling in self.handlings:
            by_message[handling.message].append(handling)
            by_queue[handling.queue].append(handling)
        targets: dict[str, list[FaultSpan]] = defaultdict(list)
        for fault in self.faults:
            targets[fault.target].append(fault)
        self.by_message, self.by_queue, self._fault_targets = dict(by_message), dict(by_queue), dict(targets)

    def member(self, name: str) -> str:
        """A member by its name or client id."""
        return self.names.get(name, name)

    def faults_of(self, target: str, *names: FaultName) -> Iterable[FaultSpan]:
        """Faults of these names that struck a member or broker, those of everybody included."""
        for one in (target, *EVERYBODY):
            for fault in self._fault_targets.get(one, ()):
                if fault.name in names:
                    yield fault

    def struck(self, target: str) -> bool:
        """Whether a member or broker was struck by any fault at all."""
        return any(one in self._fault_targets for one in (target, *EVERYBODY))

    def confirmed(self, handling: RecordedHandling) -> float:
        """When the broker was first seen to have an offset beyond the message."""
        commits = self.commits.get(handling.queue, ())
        for seen in commits[bisect_left(commits, (handling.begin, -1)) :]:
            if seen.offset > handling.offset:
                return seen.at
        return math.inf

    def committable(self, handling: RecordedHandling) -> float:
        """When nothing that its member had begun in this queue by its end was left to be done."""
        key = handling.queue, handling.member
        if key not in self._last_ends:
            own = [one for one in self.by_queue[handling.queue] if one.member == handling.member]
            latest, ends = -math.inf, []
            for one in own:
                latest = max(latest, one.end)
                ends.append(latest)
            self._last_ends[key] = [one.begin for one in own], ends
        begins, ends = self._last_ends[key]
        return ends[bisect_right(begins, handling.end) - 1]

    def resets_over(self, queue: str, offset: int, begin: float, end: float) -> Iterable[OutsideChange]:
        """Resets of a queue that were made between two times."""
        return (one for one in self.resets if one.queue == queue and begin <= one.at and one.began <= end)

    def topic_changes(self, queue: str, *names: ChangeName) -> Iterable[HistoryEvent]:
        """Changes of the queue's topic."""
        topic = topic_of(queue)
        return (one for one in self.changes if one.details.get("what") in names and one.details.get("topic") == topic)


def topic_of(queue: str) -> str:
    return queue.partition("@")[0]


def broker_of(queue: str) -> str:
    return queue.partition("@")[2].rpartition("/")[0]


def began(event: HistoryEvent) -> float:
    """From when on what an event says may have been so."""
    moment: float = event.details.get("began", event.at)
    return moment


def take_apart(history: EventHistory) -> RunRecord:
    """The record of a history."""
    names = {event.details["client_id"]: event.by for event in history if event.details.get("client_id")}
    joined: dict[str, list[float]] = defaultdict(list)
    for event in history.kind(EventKind.JOINED):
        joined[event.by].append(event.at)
    changes = history.kind(EventKind.CHANGE)
    faults = _faults(history, names, joined)
    lives = _lives(history, joined, faults)
    end = next((event.at for event in history.kind(EventKind.END_OF_RUN)), None)
    return RunRecord(
        history,
        _handlings(history, lives),
        history.kind(EventKind.SENT),
        faults,
        tuple(_resets(changes)),
        changes,
        _commits(history),
        lives,
        names,
        end if end is not None else (history.events[-1].at if history.events else 0.0),
    )


def _faults(
    history: EventHistory, names: Mapping[str, str], joined: Mapping[str, Sequence[float]]
) -> tuple[FaultSpan, ...]:
    healed: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in history.kind(EventKind.HEALED):
        healed[event.details["name"], event.details["target"]].append(event.at)
    spans = []
    for event in history.kind(EventKind.FAULT):
        name, target = event.details["name"], event.details["target"]
        member = names.get(target, target)
        ends = joined.get(member, ()) if name == FaultName.KILLED else healed[name, target]
        position = bisect_right(ends, event.at)
        spans.append(FaultSpan(name, member, event.at, ends[position] if position < len(ends) else math.inf, event))
    return tuple(spans)


def _lives(
    history: EventHistory, joined: Mapping[str, Sequence[float]], faults: Sequence[FaultSpan]
) -> dict[str, tuple[tuple[float, float], ...]]:
    own: dict[str, list[float]] = defaultdict(list)
    left: dict[str, list[float]] = defaultdict(list)
    for event in history:
        if event.kind in _OWN_KINDS:
            own[event.by].append(event.at)
        elif event.kind is EventKind.LEFT:
            left[event.by].append(event.at)
    killed: dict[str, list[float]] = defaultdict(list)
    for fault in faults:
        if fault.name == FaultName.KILLED:
            killed[fault.target].append(fault.start)
    lives = {}
    for member in {*joined, *own}:
        # Somebody who never said that it joined was there from its first word on.
        begins = joined.get(member) or own[member][:1]
        if own[member] and own[member][0] < begins[0]:
            begins = [own[member][0], *begins[1:]]
        found = []
        for number, begin in enumerate(begins):
            after = begins[number + 1] if number + 1 < len(begins) else math.inf
            end = after
            for gone in (*left[member], *killed[member]):
                if begin <= gone < after:
                    # The fault is written down before the kill, and the process may have written a little more.
                    last = bisect_left(own[member], after) - 1
                    end = min(end, gone if last < 0 or gone in left[member] else max(gone, own[member][last]))
            found.append((begin, end))
        lives[member] = tuple(found)
    return lives


def _handlings(
    history: EventHistory, lives: Mapping[str, Sequence[tuple[float, float]]]
) -> tuple[RecordedHandling, ...]:
    handlings: list[RecordedHandling] = []
    running: dict[tuple[str, object], RecordedHandling] = {}
    for event in history:
        if event.kind is EventKind.BEGIN:
            handling = RecordedHandling(event, event.by)
            handlings.append(handling)
            running[event.by, _pairing(event)] = handling
        elif event.kind is EventKind.END:
            found = running.pop((event.by, _pairing(event)), None)
            if found is not None:
                found.ended, found.end = event, event.at
    for handling in running.values():
        begins = [begin for begin, _ in lives[handling.member]]
        life = max(0, bisect_right(begins, handling.begin) - 1)
        handling.end = lives[handling.member][life][1]
    return tuple(handlings)


def _pairing(event: HistoryEvent) -> object:
    return event.details.get("handling") or (event.message, event.queue, event.offset)


def _resets(changes: Iterable[HistoryEvent]) -> Iterable[OutsideChange]:
    for change in changes:
        if change.details.get("what") == ChangeName.RESET:
            offsets = dict(change.details.get("offsets", {}))
            if change.queue and change.offset is not None:
                offsets[change.queue] = change.offset
            for queue, offset in offsets.items():
                yield OutsideChange(queue, offset, began(change), change.at)


def _commits(history: EventHistory) -> dict[str, tuple[CommitSeen, ...]]:
    commits: dict[str, list[CommitSeen]] = defaultdict(list)
    leaving: dict[str, float] = {}
    for event in history:
        if event.kind is EventKind.COMMITTED and event.offset is not None:
            commits[event.queue].append(CommitSeen(event.at, event.offset, began(event)))
        elif event.kind is EventKind.LEAVING:
            leaving[event.by] = event.at
        elif event.kind is EventKind.LEFT and event.details.get("confirmed"):
            for queue, offset in event.details.get("offsets", {}).items():
                commits[queue].append(CommitSeen(event.at, offset, leaving.get(event.by, -math.inf), by_leaver=True))
    return {queue: tuple(sorted(seen)) for queue, seen in commits.items()}
