"""Whether what was seen of a replay is what the model allows: what passed the proxies, and what handlers wrote. Pure.

A broker does not tell who holds a lock, but all requests for locks pass the proxies, and so do the answers. Between
being forwarded and being answered a request is handled, nobody knows when. So a member holds a lock *for certain* from
the answer to its request, until the lock may have ended or somebody may have released it in its name; what is judged
holds whichever way it was in between.

The sentences are those of the model (`Model.wrong` and where it calls `_wrong_if`), as far as they can be seen from
outside.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.broker.replay.script import COMMIT, RELEASE, UNLOCK, Prediction

_WRITTEN = 0.02
"""Seconds that may lie between a look at the lease and the line that says that a handler began."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request at a broker. Times are monotonic; None: never."""

    member: str
    request: str
    forwarded: float | None
    answered: float | None
    queues: frozenset[int] = frozenset()
    granted: frozenset[int] = frozenset()  # locks
    name: str = ""  # in whose name
    offset: int = -1


@dataclass(frozen=True, slots=True)
class Handled:
    """One call of a handler; `end` is None where it was killed."""

    member: str
    queue: int
    offset: int
    message: str
    begin: float
    end: float | None


@dataclass(frozen=True, slots=True)
class Done:
    """What the replay did to somebody. `member` is empty if it was a broker, or an administrator."""

    do: str
    begin: float
    end: float
    member: str = ""
    queue: int = -1
    offset: int = -1


@dataclass(slots=True)
class History:
    """What is known of a replay."""

    lives: float
    seen: list[Seen] = field(default_factory=list)
    handled: list[Handled] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    sent: dict[str, float] = field(default_factory=dict)  # message → when
    old: int = 0  # messages in each queue before the group began
    due_since: float = 0.0  # what was sent before then may be history
    stored: list[tuple[float, int, int]] = field(default_factory=list)  # when, queue, offset: looked at now and then

    def times_of(self, *kinds: str, queue: int = -1) -> list[float]:
        """When such things began to be done; to a queue, or to everybody."""
        return [one.begin for one in self.done if one.do in kinds and one.queue in (-1, queue)]

    def holder(self, queue: int, at: float) -> str:
        """Who holds a lock for certain; empty: nobody does."""
        for grant in self.seen:
            if queue in grant.granted and grant.answered is not None and grant.answered <= at:
                assert grant.forwarded is not None
                if at < grant.forwarded + self.lives and not self._may_have_ended(queue, grant, at):
                    return grant.member
        return ""

    def _may_have_ended(self, queue: int, grant: Seen, at: float) -> bool:
        assert grant.forwarded is not None
        for one in self.seen:
            if one.request in (UNLOCK, RELEASE) and queue in one.queues and one.name == grant.member:
                handled_before = one.answered is not None and one.answered < grant.forwarded
                if one.forwarded is not None and one.forwarded <= at and not handled_before:
                    return True
        return any(grant.forwarded <= time <= at for time in self.times_of("restart"))


def judge(history: History, predicted: Prediction) -> list[str]:
    """What must not be; empty if all is as the model has it."""
    return [
        *_two_owners(history),
        *_commits_of_others(history),
        *_gone_back(history),
        *_done_before(history),
        *_long_past(history),
        *_overlaps(history),
        *(_repeated(history) if predicted.clean else ()),
        *(_robbed(history) if predicted.steady else ()),
        *_lost(history),
        *(() if predicted.excused else _undone(history)),
    ]


def _two_owners(history: History) -> Iterator[str]:
    woken = history.times_of("wake")
    for one in history.handled:
        holder = history.holder(one.queue, one.begin - _WRITTEN)
        if holder in ("", one.member) or holder != history.holder(one.queue, one.begin):
            continue
        if any(0 <= one.begin - time <= _WRITTEN for time in woken):
            continue  # it was frozen between its look at the lease and the line that says so
        yield f"q{one.queue} has two owners: {one.member} begins {one.offset}, and {holder} has its lock"


def _commits_of_others(history: History) -> Iterator[str]:
    for one in history.seen:
        if one.request == COMMIT and one.forwarded is not None and one.answered is not None:
            if one.forwarded < history.due_since:
                continue  # where the group begins is written by whoever has the lock of that
            for queue in one.queues:
                holder = history.holder(queue, one.forwarded)
                if holder not in ("", one.member) and holder == history.holder(queue, one.answered):
                    yield f"{one.member} commits {one.offset} of q{queue}, and {holder} has its lock"


def _forgotten(history: History, queue: int) -> list[float]:
    """When a queue's stored offset may have gone back: a broker was killed, or the group was rewound."""
    return history.times_of("restart", "rewind", queue=queue)


def _gone_back(history: History) -> Iterator[str]:
    """Of the offsets that were looked at, and of those that were sent."""
    late = {one.member for one in history.done if one.do == "aside"}
    for queue in sorted({queue for _, queue, _ in history.stored}):
        looks = [(time, offset) for time, one, offset in history.stored if one == queue]
        for (before, high), (after, low) in pairwise(looks):
            forgotten = any(before - 1.0 <= time <= after for time in _forgotten(history, queue))
            if low < high and not forgotten and not late:
                yield f"q{queue}'s offset goes back from {high} to {low}"
    commits = [one for one in history.seen if one.request == COMMIT and one.forwarded is not None]
    for one in commits:
        for other in commits:
            if one.queues != other.queues or other.answered is None or one.forwarded is None:
                continue
            (queue,) = one.queues
            between = any(
                (other.forwarded or 0.0) <= time <= (one.answered or one.forwarded)
                for time in _forgotten(history, queue)
            )
            own = one.member == other.member and one.member in late
            # What an owner hears of a rewind may lie some way back.
            rewound = bool(history.times_of("rewind", queue=queue))
            if other.answered < one.forwarded and one.offset < other.offset and not (between or own or rewound):
                yield f"{one.member} commits {one.offset} of q{queue}, after {other.offset} of {other.member}'s"


def _done_before(history: History) -> Iterator[str]:
    """Nothing is begun below the stored offset."""
    for one in history.handled:
        for other in history.seen:
            if other.request != COMMIT or other.answered is None or one.queue not in other.queues:
                continue
            if other.offset > one.offset and other.answered < one.begin - _WRITTEN:
                since = (time for time in _forgotten(history, one.queue) if (other.forwarded or 0.0) - 1.0 <= time)
                if not any(time <= one.begin for time in since):
                    at = f"{one.offset} of q{one.queue}"
                    yield f"{at} is begun by {one.member}, though the group is at {other.offset}"
                    break


def _long_past(history: History) -> Iterator[str]:
    for one in history.handled:
        if one.offset < history.old:
            yield f"{one.offset} of q{one.queue} is history, and {one.member} begins it"


def _overlaps(history: History) -> Iterator[str]:
    """A handler that was begun before its member was in doubt may still run while somebody else begins."""
    for one in history.handled:
        for other in history.handled:
            if one.queue == other.queue and one.member != other.member and one.begin < other.begin:
                if one.end is not None and one.end <= other.begin:
                    continue
                if not _in_doubt(history, one.member, one.begin, other.begin):
                    at = f"{other.offset} of q{one.queue}"
                    yield f"{at} is begun by {other.member} while {one.member} has {one.offset}"


def _in_doubt(history: History, member: str, begin: float, end: float) -> bool:
    """Whether a member was cut off, frozen or dead at some time between."""
    broken = [
        one for one in history.done if one.do in ("cut", "kill", "freeze", "restart") and one.member in ("", member)
    ]
    return any(one.begin <= end and (one.end >= begin or one.do in ("cut", "kill", "freeze")) for one in broken)


def _repeated(history: History) -> Iterator[str]:
    begun = Counter((one.queue, one.offset) for one in history.handled)
    for (queue, offset), times in begun.items():
        if times > 1:
            yield f"{offset} of q{queue} is begun {times} times"


def _robbed(history: History) -> Iterator[str]:
    """A queue has another holder though the last one neither gave it up nor died."""
    dead = {one.member: one.begin for one in history.done if one.do == "kill"}
    for queue in sorted({queue for one in history.seen for queue in one.granted}):
        grants = [one for one in history.seen if queue in one.granted]
        grants.sort(key=lambda one: one.forwarded or 0.0)
        for before, after in pairwise(grants):
            if before.member == after.member:
                continue
            given = any(
                one.request == UNLOCK
                and one.member == before.member
                and queue in one.queues
                and (before.forwarded or 0.0) <= (one.forwarded or 0.0) <= (after.answered or 0.0)
                for one in history.seen
            )
            if not given and dead.get(before.member, after.answered or 0.0) >= (after.answered or 0.0):
                yield f"q{queue} is taken from {before.member}, who lives, by {after.member}"


def _lost(history: History) -> Iterator[str]:
    finished = {one.message for one in history.handled if one.end is not None}
    lost = [one for one, at in history.sent.items() if at >= history.due_since and one not in finished]
    if lost:
        yield f"{len(lost)} messages are lost: {_some(lost)}"


def _undone(history: History) -> Iterator[str]:
    """Everything from where the group was rewound to is begun again."""
    for rewind in history.done:
        if rewind.do == "rewind":
            again = {one.offset for one in history.handled if one.queue == rewind.queue and one.begin > rewind.begin}
            before = {one.offset for one in history.handled if one.queue == rewind.queue and one.begin <= rewind.begin}
            if missing := sorted(offset for offset in before - again if offset >= rewind.offset):
                those = _some(map(str, missing))
                yield f"q{rewind.queue} was rewound to {rewind.offset}, and {those} did not come again"


def _some(these: Iterable[str]) -> str:
    listed: Sequence[str] = sorted(these)
    return ", ".join(listed[:5]) + (" …" if len(listed) > 5 else "")
