"""From a way through the model to a script for real brokers and processes. Pure: steps in, actions out.

Theory. A way is a list of moves, one after the other. In the real world three sorts of them are left:

- What is done to members and brokers (a cut, a freeze, a restart, a join) the replay does. `_DONE` has these.
- What a member does and others can see is a request (`REQUESTS`). The member sends it by itself, and rarely in the
  order of the way; but each member reaches the brokers through a proxy of ours. What could have been done earlier on
  the way and was not is *held* there: from the move that makes it possible to the move that is it. A move whose time
  has come is let through and *expected*: the script goes on when the broker has answered. What a handler does is held
  back by its gate.
- All else (noticing, settling, a flush to disk) happens inside, by itself: it is left out, and counted.

Time. A tick of the model has no fixed length: durations are shortened there so that only their order is kept. So
whatever a member does is waited for, however long it takes. Only what is done to somebody after some ticks is done when
as much time has passed as brings the real durations into the same order (`seconds_of`).

Requests that are *late* are set aside until their sender has given up, and handled when the way says so; of those that
are not heard the answer is dropped.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from tests.unit.protocol.model import UP, Claim, World, number
from tests.unit.protocol.paths import TICK, Step, Way

from rocketfleet.consumer.handover import ownership, roster
from rocketfleet.consumer.handover.ownership import Lock

LOOK = "look"  # for the list of members
LOCK = "lock"  # ask for a lock that is not ours for certain; a renewal is none
UNLOCK = "unlock"  # give a lock back
RELEASE = "release"  # give a lock back in a departed member's name
READ = "read"  # of a stored offset
COMMIT = "commit"
BEAT = "beat"
PULL = "pull"
RENEW = "renew"
CLAIM = "claim"  # lock the mark of the group's beginning
MARK = "mark"  # write it
HANDLE = "handle"  # no request: a handler that finishes
REQUESTS = (LOOK, LOCK, UNLOCK, RELEASE, READ, COMMIT, CLAIM, MARK, HANDLE)

GIVES_UP = {COMMIT: 3.0, READ: 3.0, MARK: 3.0, CLAIM: 3.0}
"""Seconds after which a sender gives up on what is not answered; 1 s for all others."""

_EARLY = {UNLOCK, RELEASE, CLAIM, MARK}
"""What is held from the last of its kind on: a member is quick, and may have sent it before the script is there. Not
what members repeat: holding that for long would make them give up in between. Nor reads, for a last commit begins with
one."""


class Action(NamedTuple):
    """One thing that the replay does or waits for. What does not apply is empty."""

    do: str
    member: str = ""
    request: str = ""
    broker: int = -1
    queue: int = -1
    offset: int = -1
    seconds: float = 0.0
    since: int = 0  # of an expectation: it may have been met since this action began
    outcome: str = ""  # granted, refused, arrived
    move: str = ""

    def written(self) -> dict[str, Any]:
        """As JSON, without what is empty."""
        empty = Action("")
        return {name: value for name, value in self._asdict().items() if value != getattr(empty, name)}


class Prediction(NamedTuple):
    """What the model says of the end, and of the way."""

    owners: tuple[str, ...]  # of each queue, when all is well again
    present: tuple[str, ...]  # who is a member then
    clean: bool  # no message is begun twice
    steady: bool  # no queue is taken from a member that lives and has a window on it
    forgets: bool  # a broker is killed, with offsets that it has not flushed
    rewound: bool
    excused: bool  # a rewind may be undone, for nobody has told its owner


class Script(NamedTuple):
    actions: tuple[Action, ...]
    skipped: tuple[str, ...]  # moves without a counterpart in the real world
    prediction: Prediction


class UntranslatableError(Exception):
    """A way has a move that the replay cannot do."""


class _Said(NamedTuple):
    """What a member's move is: a request."""

    member: str
    request: str


_SENT = (
    (re.compile(r"(m\d) looks round"), LOOK),
    (re.compile(r"(m\d) asks b\d for .*"), LOCK),
    (re.compile(r"(m\d) releases .*"), RELEASE),
    (re.compile(r"(m\d): q\d starts at .*"), READ),
    (re.compile(r"(m\d): q\d is checked"), READ),
    (re.compile(r"(m\d): q\d commits .*"), COMMIT),
    (re.compile(r"(m\d): q\d is unlocked.*"), UNLOCK),
    (re.compile(r"(m\d): q\d (?:begins|finishes) .*"), HANDLE),
    (re.compile(r"(m\d) wants to begin"), CLAIM),
    (re.compile(r"(m\d) (?:marks a beginning|has begun)"), MARK),
    (re.compile(r"(m\d) writes the ends"), COMMIT),
)
_INSIDE = re.compile(
    r".*(notices that|knows when|has settled|lapses|hears of|flushed|was never locked|waits|is read back|leaves"
    r"|begins anew|stray lock|ends by itself|given up unconfirmed|a group of others|has no master)"
)
_QUEUE = re.compile(r"\bq(\d)")
_BROKER = re.compile(r"\bb(\d)")
_LATE = re.compile(r"(m\d)'s late (lock|commit).* is handled")
_UNLOCKED = re.compile(r"an unlock of q(\d) for (m\d) is handled")
_DEAF, _SLOW = ", and hears nothing", ", which is late"
_DONE = {
    "JOINS": "join",
    "AGAIN": "again",
    "KILLED": "kill",
    "FREEZES": "freeze",
    "wakes": "wake",
    "DRAINS": "drain",
    "CUT": "cut",
    "RESET": "cut",
    "drops silent": "cut",
    "connects to": "mend",
    "RESTARTS": "restart",
    "REWOUND": "rewind",
    "a message comes": "send_one",
}
"""What is done to somebody, by a word of its label. A reset is a cut that is soon over."""


def seconds_of(ticks: int, lives: float) -> float:
    """How much time so many ticks stand for, so that durations are in the same order."""
    lease = ownership.lease_until(0.0, lives)
    within = [0.0, 0.2, ownership.CONFIRM_APART + 0.3, roster.GRACE_SECONDS + 0.3, roster.GRACE_SECONDS + 0.6]
    if ticks < len(within):
        return within[ticks]
    return round((lease + 0.2, (lease + lives) / 2, lives + 0.3)[min(ticks - len(within), 2)], 2)


def translate(way: Way, lives: float) -> Script:
    """The script of a way, for brokers whose locks live for so long."""
    return _Writing(way, lives).script()


def _said(label: str, world: World) -> _Said | None:
    """What a member sends in a move that is possible in this world."""
    plain = label.removesuffix(_DEAF).removesuffix(_SLOW)
    for pattern, request in _SENT:
        if found := pattern.fullmatch(plain):
            if request == LOCK and all(claim.lock in (Lock.HELD, Lock.CHECKING) for claim in _claims(plain, world)):
                # Members see to that by themselves, when it is time; of interest is only one that fails.
                return None if plain == label else _Said(found[1], RENEW)
            return _Said(found[1], request)
    return None


def _claims(label: str, world: World) -> list[Claim]:
    member = world.members[number(label[:2])]
    return [cast("Claim", member.claims[int(queue)]) for queue in _QUEUE.findall(label)]


class _Held(NamedTuple):
    """A request that could have been sent from `first` on, and was not before `last`."""

    said: _Said
    first: int
    last: int
    taken: bool


def _merged(held: Iterable[_Held], handled: Iterable[tuple[_Said, int]]) -> list[_Held]:
    """A release that could have been decided on, and then is on its way, is held all the time until it is handled.

    Whether a survivor has decided on it or one that is refused cannot be seen: if both have, they are held together.
    """
    merged: list[_Held] = []
    for one in sorted(held):
        last = merged[-1] if merged else None
        if last is not None and one.said == last.said and one.said.request == RELEASE and one.first <= last.last + 1:
            merged[-1] = last._replace(last=max(last.last, one.last), taken=one.taken)
        else:
            merged.append(one)
    for said, at in handled:
        for one in [one for one in merged if one.said == said and one.first <= at < one.last]:
            merged.remove(one)
            merged += [one._replace(last=at, taken=True), one._replace(first=at + 1)]
    return sorted(merged)


class _Writing:
    """See the module."""

    def __init__(self, way: Way, lives: float) -> None:
        self.way = way
        self.lives = lives
        self.steps = way.steps
        self.actions: list[Action] = []
        self.skipped: list[str] = []
        self.began_at: list[int] = []  # step → the first action of it
        self.ticks = 0
        self.senders: dict[str, str] = {}  # departed member → who releases its locks
        self.sent = [_said(step.label, step.before) for step in self.steps]

    def script(self) -> Script:
        flights = list(self._flights())
        held = _merged([*self._held(), *flights], [(one.said, one.last) for one in flights])
        begins, ends = self._holds(held)
        self._change(begins.get(-1, ()), "hold")
        if self.way.scenario.fresh:
            self.actions += [Action("join", f"m{m}") for m in self.way.scenario.running]
        for at, step in enumerate(self.steps):
            self.began_at.append(len(self.actions))
            self._change(ends.get(at, ()), "release")
            self._change(begins.get(at, ()), "hold")
            self._step(at, step, self._possible_since(at, held))
        if self.ticks:
            self._pass()
        return Script(tuple(self.actions), tuple(self.skipped), self._prediction())

    def _change(self, said: Iterable[_Said], do: str) -> None:
        self.actions += [Action(do, one.member, one.request) for one in sorted(said)]

    # -- what is held -------------------------------------------------------------------------------------------------

    def _held(self) -> Iterable[_Held]:
        """Whatever was possible for a while before it was done, or was never done."""
        since: dict[_Said, int] = {}
        for at, step in enumerate(self.steps):
            found = {_said(label, step.before) for label in step.others}
            possible = {said for said in found if said is not None and said.request != RENEW}
            mine = self.sent[at]
            for said in [one for one in since if one not in possible or one == mine]:
                yield _Held(said, since.pop(said), at, said == mine)
            for said in possible - {mine}:
                since.setdefault(said, at)
        for said, first in since.items():
            yield _Held(said, first, len(self.steps), taken=False)

    def _flights(self) -> Iterable[_Held]:
        """Releases that are on their way for a while."""
        for at, step in enumerate(self.steps):
            said = self.sent[at]
            for flight in set(step.after.flights) - set(step.before.flights):
                if flight.kind == "unlock" and said is not None and said.request in (LOCK, RELEASE):
                    label = f"an unlock of q{flight.queue} for m{flight.member} is handled"
                    there = (one for one in range(at, len(self.steps)) if self.steps[one].label == label)
                    yield _Held(_Said(said.member, RELEASE), at, next(there, len(self.steps)), taken=True)

    def _holds(self, held: Sequence[_Held]) -> tuple[Mapping[int, set[_Said]], Mapping[int, set[_Said]]]:
        """Before which steps a hold begins (-1: before the first), and ends."""
        begins: dict[int, set[_Said]] = {}
        ends: dict[int, set[_Said]] = {}
        for one in held:
            between = range(one.first, one.last)
            if not any(self._takes_time(at) for at in between):
                continue
            first = max(one.first - 1, 0)
            while first and one.said.request not in (LOOK, HANDLE) and self.steps[first].label == TICK:
                first -= 1
            if one.said.request in _EARLY:
                before = (other.last + 1 for other in held if other.said == one.said and other.last < one.first)
                first = max((*before, *(at + 1 for at in range(one.first) if self.sent[at] == one.said)), default=-1)
            if one.first == 0:
                first = -1
            begins.setdefault(first, set()).add(one.said)
            if one.last < len(self.steps):
                ends.setdefault(one.last, set()).add(one.said)
        return begins, ends

    def _takes_time(self, at: int) -> bool:
        label = self.steps[at].label
        return label != TICK and (self.sent[at] is not None or not _INSIDE.match(label))

    def _possible_since(self, at: int, held: Iterable[_Held]) -> int:
        """The action since which a step may have been made by a member that is quick."""
        first = min((one.first for one in held if one.last == at and one.taken), default=at)
        first = max(first - 1, 0)
        while first and (first >= at or self.steps[first].label == TICK or self._is_empty(first)):
            first -= 1
        return self.began_at[first] if first < at else 0

    def _is_empty(self, at: int) -> bool:
        """Whether nothing was written for a step but what is held from there on, and what no longer is."""
        end = self.began_at[at + 1] if at + 1 < len(self.began_at) else len(self.actions)
        return all(one.do in ("hold", "release") for one in self.actions[self.began_at[at] : end])

    # -- a step -------------------------------------------------------------------------------------------------------

    def _step(self, at: int, step: Step, since: int) -> None:
        label, said = step.label, self.sent[at]
        if label == TICK:
            self.ticks += 1
        elif said is not None:
            self._send(said, step, since)
        elif late := _LATE.fullmatch(label):
            self.actions.append(Action("free", late[1], late[2], move=label))
        elif unlocked := _UNLOCKED.fullmatch(label):
            self._unlocked(unlocked[2], int(unlocked[1]), label, since)
        elif " is sent to " in label and "lost" not in label:
            self.actions.append(Action("expect", label[:2], PULL, since=since, outcome="moved", move=label))
        elif done := next((do for word, do in _DONE.items() if word in label), None):
            self._do(done, label, step)
        elif label.endswith("leaves"):
            self.actions.append(Action("gone", label[:2], move=label))
        elif _INSIDE.match(label) or " asks b" in label:
            self.skipped.append(label)
        else:
            raise UntranslatableError(label)

    def _send(self, said: _Said, step: Step, since: int) -> None:
        member, request = said
        label = step.label
        if label.endswith(_SLOW):
            seconds = GIVES_UP.get(request, 1.0)
            self.actions.append(Action("aside", member, request, seconds=seconds, since=since, move=label))
            return
        if label.endswith(_DEAF):
            self.actions.append(Action("deafen", member, request))
        if request == HANDLE:
            handled = "begun" if self.way.scenario.slow and " begins " in label else "finished"
            self.actions.append(Action("expect", member, request, since=since, outcome=handled, move=label))
            return
        outcome = ""
        if request in (LOCK, RENEW):
            after = [step.after.members[number(member)].claims[int(queue)] for queue in _QUEUE.findall(label)]
            lost = any(claim is None or claim.lock is Lock.NONE for claim in after)
            outcome = "refused" if lost else "granted"
            for flight in step.after.flights:
                if flight not in step.before.flights and flight.kind == "unlock":
                    self.senders[f"m{flight.member}"] = member
                    request, outcome = RELEASE, "arrived"  # in a departed member's name, by one that is refused
        elif request == RELEASE:
            outcome = "arrived"
            others = label.removeprefix(f"{member} releases ").partition(" at ")[0]
            self.senders |= dict.fromkeys(others.split(", "), member)
        if request == RELEASE:
            since = self._release_since(member, since)
        queue = int(found[1]) if (found := _QUEUE.search(label)) else -1
        self.actions.append(Action("expect", member, request, queue=queue, since=since, outcome=outcome, move=label))

    def _release_since(self, member: str, since: int) -> int:
        """One that is refused and a survivor may decide on a release in either order, and at once."""
        for action in reversed(self.actions):
            if action.do in _DONE.values():
                break
            if (action.member, action.request, action.outcome) == (member, RELEASE, "arrived"):
                return min(since, action.since)
        return since

    def _unlocked(self, departed: str, queue: int, label: str, since: int) -> None:
        if (sender := self.senders.get(departed)) is None:
            self.actions.append(Action("free", departed, UNLOCK, move=label))
            return
        since = max((at for at, one in enumerate(self.actions) if one.request == RELEASE), default=since)
        self.actions.append(Action("expect", sender, RELEASE, queue=queue, since=since, move=label))

    def _do(self, done: str, label: str, step: Step) -> None:
        member = found[0] if (found := re.search(r"\bm\d", label)) else ""
        broker = int(found[1]) if (found := _BROKER.search(label)) else -1
        queue = int(found[1]) if (found := _QUEUE.search(label)) else -1
        if self.ticks:
            self._pass()
        if done == "mend" and step.before.brokers[broker].headless >= 0:
            raise UntranslatableError(label)
        if done in ("join", "again") and UP not in step.after.members[number(member)].conns:
            self.skipped.append(label)  # it cannot start before it reaches a broker
            return
        if done == "mend" and not any(one.do in ("join", "mend") and one.member == member for one in self.actions):
            joined = any(one.label.startswith(f"{member} JOINS") for one in self.way.steps)
            done = "join" if joined else done
        offset = int(label.rpartition(" ")[2]) if done == "rewind" else -1
        self.actions.append(Action(done, member, broker=broker, queue=queue, offset=offset, move=label))

    def _pass(self) -> None:
        self.actions.append(Action("pass", seconds=seconds_of(self.ticks, self.lives)))
        self.ticks = 0

    # -- the end ------------------------------------------------------------------------------------------------------

    def _prediction(self) -> Prediction:
        scenario, end = self.way.scenario, self.way.end
        faults = " ".join(label for label in self.way.labels)
        return Prediction(
            owners=tuple(f"m{shelf.holder}" for shelf in end.shelves),
            present=tuple(f"m{m}" for m, member in enumerate(end.members) if member.life == 1),
            clean=scenario.clean,
            steady=scenario.steady,
            forgets=scenario.restarted or "RESTARTS" in faults,
            rewound="REWOUND" in faults,
            excused=self.way.excused,
        )
