"""Which faults come when: drawn at random from a seed, and a pure function of it.

A schedule is drawn from left to right. At each moment we know who is a member, what is broken and until when, and draw
only what makes sense then: nobody who is gone is killed, nothing that is broken is broken again, and only a few things
are broken at a time. So every schedule can be played, everything that it breaks it makes whole again before it
ends, and somebody is left (or comes back) to consume.

A kind of fault is one line in `RULES`. A schedule with its stage can be written as JSON, which another run can replay.
"""

import json
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum, auto
from typing import Any, Final

from tests.faults.modes import STRATEGIES, FaultMode, read_mode

MOST_MEMBERS: Final = 5  # processes
MOST_AT_ONCE: Final = 3  # faults that last
MOST_GROWTHS: Final = 2
MARGIN: Final = 1.0  # between the last heal and the end, in seconds
ALL_MEMBERS: Final = "all"
"""The target of a fault that concerns the handlers of everybody."""


class FaultFamily(StrEnum):
    """What can be left out as a whole."""

    MEMBERS = "members"
    HANDLERS = "handlers"
    BROKERS = "brokers"
    TOPOLOGY = "topology"
    NETWORK = "network"
    CLOCKS = "clocks"
    MANIFEST = "manifest"


class FaultKind(StrEnum):
    """One kind of fault or change."""

    MEMBER_JOINS = "member-joins"
    MEMBER_LEAVES = "member-leaves"
    MEMBER_KILLED = "member-killed"  # for good
    MEMBER_RESTARTED = "member-restarted"  # killed, and after a while the same member again
    MEMBER_FROZEN = "member-frozen"
    HANDLER_SLOW = "handler-slow"
    HANDLER_FAILING = "handler-failing"
    HANDLER_HANGING = "handler-hanging"
    BROKER_PAUSED = "broker-paused"
    BROKER_KILLED = "broker-killed"
    BROKER_RESTARTED = "broker-restarted"  # in good order
    BROKER_REFUSES_WRITES = "broker-refuses-writes"
    NAME_SERVER_KILLED = "name-server-killed"
    TOPIC_GROWS = "topic-grows"
    BROKER_ADDED = "broker-added"  # to the topic
    QUEUES_READ_ONLY = "queues-read-only"
    GROUP_RESET = "group-reset"
    CUT_OFF = "cut-off"  # a member from a broker, both ways
    CUT_TO_BROKER = "cut-to-broker"  # one way
    CUT_FROM_BROKER = "cut-from-broker"  # the other way
    LOSSY = "lossy"
    THROTTLED = "throttled"
    CLOCK_JUMPS = "clock-jumps"
    REPLICAS_EDITED = "replicas-edited"
    STRATEGY_EDITED = "strategy-edited"
    CODE_EDITED = "code-edited"
    SUBSCRIPTION_EDITED = "subscription-edited"
    GROUP_SUSPENDED = "group-suspended"
    GROUP_DELETED = "group-deleted"
    AUTOSCALED = "autoscaled"
    RUN_KILLED = "run-killed"
    POD_KILLED = "pod-killed"
    POD_FROZEN = "pod-frozen"


class TargetKind(StrEnum):
    """What a fault is done to."""

    NEWCOMER = auto()
    MEMBER = auto()
    HANDLER = auto()
    BROKER = auto()
    NAME_SERVER = auto()
    TOPIC = auto()
    LINK = auto()  # from a member to a broker
    OBJECT = auto()  # the ConsumerGroup in its manifest
    POD = auto()


@dataclass(frozen=True, slots=True)
class FaultRule:
    """How a kind is drawn: how often, against what, and for how long (seconds; 0 and 0: what is done is done)."""

    family: FaultFamily
    target: TargetKind
    weight: float
    shortest: float = 0.0
    longest: float = 0.0


RULES: Final[Mapping[FaultKind, FaultRule]] = {
    FaultKind.MEMBER_JOINS: FaultRule(FaultFamily.MEMBERS, TargetKind.NEWCOMER, 5),
    FaultKind.MEMBER_LEAVES: FaultRule(FaultFamily.MEMBERS, TargetKind.MEMBER, 3),
    FaultKind.MEMBER_KILLED: FaultRule(FaultFamily.MEMBERS, TargetKind.MEMBER, 3),
    FaultKind.MEMBER_RESTARTED: FaultRule(FaultFamily.MEMBERS, TargetKind.MEMBER, 3, 0.1, 10),
    FaultKind.MEMBER_FROZEN: FaultRule(FaultFamily.MEMBERS, TargetKind.MEMBER, 3, 2, 90),
    FaultKind.HANDLER_SLOW: FaultRule(FaultFamily.HANDLERS, TargetKind.HANDLER, 2, 2, 15),
    FaultKind.HANDLER_FAILING: FaultRule(FaultFamily.HANDLERS, TargetKind.HANDLER, 2, 1, 8),
    FaultKind.HANDLER_HANGING: FaultRule(FaultFamily.HANDLERS, TargetKind.HANDLER, 2, 2, 20),
    FaultKind.BROKER_PAUSED: FaultRule(FaultFamily.BROKERS, TargetKind.BROKER, 3, 0.5, 20),
    FaultKind.BROKER_KILLED: FaultRule(FaultFamily.BROKERS, TargetKind.BROKER, 3, 0.1, 15),
    FaultKind.BROKER_RESTARTED: FaultRule(FaultFamily.BROKERS, TargetKind.BROKER, 1, 0.1, 5),
    FaultKind.BROKER_REFUSES_WRITES: FaultRule(FaultFamily.BROKERS, TargetKind.BROKER, 1, 2, 15),
    FaultKind.NAME_SERVER_KILLED: FaultRule(FaultFamily.BROKERS, TargetKind.NAME_SERVER, 1, 0.1, 20),
    FaultKind.TOPIC_GROWS: FaultRule(FaultFamily.TOPOLOGY, TargetKind.TOPIC, 2),
    FaultKind.BROKER_ADDED: FaultRule(FaultFamily.TOPOLOGY, TargetKind.TOPIC, 2),
    FaultKind.QUEUES_READ_ONLY: FaultRule(FaultFamily.TOPOLOGY, TargetKind.TOPIC, 1, 2, 15),
    FaultKind.GROUP_RESET: FaultRule(FaultFamily.TOPOLOGY, TargetKind.TOPIC, 1),
    FaultKind.CUT_OFF: FaultRule(FaultFamily.NETWORK, TargetKind.LINK, 3, 0.5, 60),
    FaultKind.CUT_TO_BROKER: FaultRule(FaultFamily.NETWORK, TargetKind.LINK, 2, 0.5, 60),
    FaultKind.CUT_FROM_BROKER: FaultRule(FaultFamily.NETWORK, TargetKind.LINK, 2, 0.5, 60),
    FaultKind.LOSSY: FaultRule(FaultFamily.NETWORK, TargetKind.LINK, 2, 2, 30),
    FaultKind.THROTTLED: FaultRule(FaultFamily.NETWORK, TargetKind.LINK, 1, 2, 30),
    FaultKind.CLOCK_JUMPS: FaultRule(FaultFamily.CLOCKS, TargetKind.MEMBER, 3, 1, 30),
    FaultKind.REPLICAS_EDITED: FaultRule(FaultFamily.MANIFEST, TargetKind.OBJECT, 5),
    FaultKind.STRATEGY_EDITED: FaultRule(FaultFamily.MANIFEST, TargetKind.OBJECT, 1),
    FaultKind.CODE_EDITED: FaultRule(FaultFamily.MANIFEST, TargetKind.OBJECT, 2),
    FaultKind.SUBSCRIPTION_EDITED: FaultRule(FaultFamily.MANIFEST, TargetKind.OBJECT, 1, 5, 30),
    FaultKind.GROUP_SUSPENDED: FaultRule(FaultFamily.MANIFEST, TargetKind.OBJECT, 1, 1, 15),
    FaultKind.GROUP_DELETED: FaultRule(FaultFamily.MANIFEST, TargetKind.OBJECT, 1, 1, 15),
    FaultKind.AUTOSCALED: FaultRule(FaultFamily.MANIFEST, TargetKind.OBJECT, 1, 5, 30),
    FaultKind.RUN_KILLED: FaultRule(FaultFamily.MANIFEST, TargetKind.OBJECT, 2, 0.1, 15),
    FaultKind.POD_KILLED: FaultRule(FaultFamily.MANIFEST, TargetKind.POD, 3),
    FaultKind.POD_FROZEN: FaultRule(FaultFamily.MANIFEST, TargetKind.POD, 2, 2, 60),
}
_WITHOUT_MANIFEST: Final = frozenset({FaultFamily.MEMBERS, FaultFamily.NETWORK, FaultFamily.CLOCKS})
"""What a group that is run by its manifest has no part in: its members come and go as it says."""
LONGEST_START: Final = 15.0  # of a broker that was killed, on a busy machine: until then it counts as broken


@dataclass(frozen=True, slots=True)
class TimedFault:
    """One fault: `at` so many seconds after the beginning, healed after so many more. `lasts` 0: there is nothing to
    heal."""

    at: float
    kind: FaultKind
    target: str
    lasts: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ends(self) -> float:
        return self.at + self.lasts

    def __str__(self) -> str:
        details = "".join(f" {name}={value}" for name, value in self.details.items())
        return f"{self.at:6.1f} s  {self.kind} {self.target}{details}" + (
            f" for {self.lasts:g} s" if self.lasts else ""
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """What a schedule is played on."""

    brokers: int = 2
    topic_brokers: int = 2  # that have the topic in the beginning
    slaves: bool = False
    controller: bool = False
    queues: int = 4  # on each broker
    members: int = 2
    manifest: bool = False  # whether `rocketfleet run` runs it
    lock_seconds: float = 60.0  # how long brokers keep a lock that is not renewed
    from_last_offset: bool = False
    handler_seconds: float = 0.005
    rate: float = 100.0  # messages per second

    @property
    def broker_names(self) -> tuple[str, ...]:
        return tuple(f"broker-{letter}" for letter in "abcdefgh"[: self.brokers])

    @property
    def member_names(self) -> tuple[str, ...]:
        return tuple(f"m{number + 1}" for number in range(self.members))


@dataclass(frozen=True, slots=True)
class FaultSchedule:
    """All that a run needs to be the same again."""

    seed: int
    mode: FaultMode
    duration: float
    stage: Stage
    faults: tuple[TimedFault, ...]

    @property
    def families(self) -> frozenset[FaultFamily]:
        return frozenset(RULES[fault.kind].family for fault in self.faults)

    def to_json(self) -> str:
        """To be kept, and to be replayed; one line for each fault."""
        head = {"seed": self.seed, "mode": str(self.mode), "duration": self.duration, "stage": asdict(self.stage)}
        lines = ",\n".join(f"    {json.dumps(_plain(fault))}" for fault in self.faults)
        return json.dumps(head, indent=2)[:-2] + ',\n  "faults": [' + (f"\n{lines}\n  " if lines else "") + "]\n}\n"

    @classmethod
    def from_json(cls, text: str) -> "FaultSchedule":
        given = json.loads(text)
        faults = tuple(TimedFault(**{**one, "kind": FaultKind(one["kind"])}) for one in given["faults"])
        return cls(given["seed"], read_mode(given["mode"]), given["duration"], Stage(**given["stage"]), faults)


def _plain(fault: TimedFault) -> dict[str, Any]:
    content = {"at": fault.at, "kind": fault.kind.value, "target": fault.target}
    return (
        content
        | ({"lasts": fault.lasts} if fault.lasts else {})
        | ({"details": fault.details} if fault.details else {})
    )


def draw_schedule(
    seed: int, mode: FaultMode, duration: float, families: Collection[FaultFamily] = tuple(FaultFamily)
) -> FaultSchedule:
    """The schedule of a seed. The same arguments give the same schedule, on any machine."""
    random_numbers = random.Random(f"{seed} {mode} {duration:g} {','.join(sorted(families))}")
    drawing = _Drawing(random_numbers, duration, _chosen_families(random_numbers, families))
    return FaultSchedule(seed, mode, duration, drawing.stage, tuple(drawing.draw()))


def _chosen_families(random_numbers: random.Random, families: Iterable[FaultFamily]) -> tuple[FaultFamily, ...]:
    """One alone every fourth time, or some, or all of them."""
    ordered = [family for family in FaultFamily if family in set(families)]
    if len(ordered) > 1 and random_numbers.random() < 0.25:
        return (random_numbers.choice(ordered),)
    return tuple(random_numbers.sample(ordered, random_numbers.randint(min(2, len(ordered)), len(ordered))))


class _Drawing:
    """A schedule while it is drawn: who is there at this moment, and what is broken until when."""

    def __init__(self, random_numbers: random.Random, duration: float, families: Collection[FaultFamily]) -> None:
        self._random = random_numbers
        self._end = max(duration - MARGIN, 0.0)
        by_manifest = FaultFamily.MANIFEST in families and (
            not _WITHOUT_MANIFEST & set(families) or random_numbers.random() < 0.3
        )
        families = set(families) - (_WITHOUT_MANIFEST if by_manifest else {FaultFamily.MANIFEST})
        self._kinds = [kind for kind, rule in RULES.items() if rule.family in families]
        kinds_of_broker = FaultFamily.BROKERS in families
        replicated = kinds_of_broker and random_numbers.random() < 0.25
        brokers = 1 if replicated or random_numbers.random() < 0.3 else 2
        with_topic = 1 if FaultFamily.TOPOLOGY in families and random_numbers.random() < 0.5 else brokers
        self.stage = Stage(
            brokers=brokers,
            topic_brokers=with_topic,
            slaves=replicated,
            controller=replicated and random_numbers.random() < 0.5,
            queues=random_numbers.choice((2, 4, 6)),
            members=random_numbers.choice((1, 2, 2, 3)),
            manifest=by_manifest,
            lock_seconds=random_numbers.choice((60.0, 15.0)),
            # A slave of 5.5.0 copies no offsets (DESIGN.md): a LastOffset group without members would begin anew.
            from_last_offset=random_numbers.random() < 0.5 and not replicated,
            handler_seconds=random_numbers.choice((0.001, 0.005, 0.02)),
        )
        self._now = 0.0
        self._busy: dict[str, float] = {}  # what is broken, until when
        self._lasting: list[float] = []  # the ends of faults that last
        self._processes = {} if by_manifest else dict.fromkeys(self.stage.member_names, 1)
        self._number = self.stage.members
        self._queues = self.stage.queues
        self._growths = 0
        self._brokers = self.stage.topic_brokers
        self._mean_gap = max(2.0, min(6.0, duration / 12))

    def draw(self) -> Iterable[TimedFault]:
        while True:
            self._now = round(self._now + max(0.1, self._random.expovariate(1 / self._mean_gap)), 1)
            if self._now >= self._end:
                return
            possible = [(kind, targets) for kind in self._kinds if (targets := self._targets(kind))]
            if not possible:
                continue
            weights = [RULES[kind].weight for kind, _ in possible]
            kind, targets = self._random.choices(possible, weights)[0]
            yield self._drawn(kind, self._random.choice(targets))

    # -- what can be broken now ---------------------------------------------------------------------------------------

    def _targets(self, kind: FaultKind) -> list[str]:
        rule = RULES[kind]
        if rule.longest:
            at_once = sum(end > self._now for end in self._lasting)
            if at_once >= MOST_AT_ONCE or self._end - self._now < rule.shortest:
                return []
        match rule.target:
            case TargetKind.NEWCOMER:
                return [f"m{self._number + 1}"] if sum(self._processes.values()) < MOST_MEMBERS else []
            case TargetKind.MEMBER if kind in (FaultKind.MEMBER_LEAVES, FaultKind.MEMBER_KILLED):
                # Somebody is left who is whole.
                return self._whole_members() if len(self._whole_members()) > 1 else []
            case TargetKind.MEMBER:
                return self._whole_members()
            case TargetKind.HANDLER:
                places = [ALL_MEMBERS, *self._whole_members()]
                return [place for place in places if self._is_whole(f"handler {place}")]
            case TargetKind.BROKER:
                # One is left that is whole, where there are several.
                whole = [name for name in self.stage.broker_names if self._is_whole(name)]
                return whole if len(whole) == self.stage.brokers else []
            case TargetKind.NAME_SERVER:
                return ["name-server"] if self._is_whole("name-server") else []
            case TargetKind.TOPIC:
                return ["topic"] if self._can_change_topic(kind) else []
            case TargetKind.LINK:
                links = [f"{member}/{broker}" for member in self._whole_members() for broker in self.stage.broker_names]
                return [link for link in links if self._is_whole(link)]
            case TargetKind.OBJECT:
                return ["group"] if self._is_whole("group") else []
            case TargetKind.POD:
                return ["pod"] if self._is_whole("pod") else []

    def _can_change_topic(self, kind: FaultKind) -> bool:
        if not self._is_whole("topic") or not all(map(self._is_whole, (*self.stage.broker_names, "name-server"))):
            return False  # it is changed at every broker
        if kind is FaultKind.TOPIC_GROWS:
            return self._growths < MOST_GROWTHS
        return kind is not FaultKind.BROKER_ADDED or self._brokers < self.stage.brokers

    def _is_whole(self, name: str) -> bool:
        return self._busy.get(name, 0.0) <= self._now

    def _whole_members(self) -> list[str]:
        return [member for member in self._processes if self._is_whole(member)]

    # -- one fault ----------------------------------------------------------------------------------------------------

    def _drawn(self, kind: FaultKind, target: str) -> TimedFault:
        rule, details, lasts = RULES[kind], self._details(kind), 0.0
        if rule.longest:
            # Short ones as often as long ones: most limits of the product are seconds, some are a minute.
            longest = min(rule.longest, self._end - self._now)
            lasts = round(rule.shortest * (max(longest / rule.shortest, 1.0) ** self._random.random()), 1)
            lasts = min(max(lasts, 0.1), round(self._end - self._now, 1))
            self._lasting.append(self._now + lasts)
        if kind in (FaultKind.MEMBER_LEAVES, FaultKind.MEMBER_KILLED):
            del self._processes[target]
        elif kind is FaultKind.MEMBER_JOINS:
            self._number += 1
            self._processes[target] = details.get("processes", 1)
        elif kind is FaultKind.TOPIC_GROWS:
            self._growths += 1
        elif kind is FaultKind.BROKER_ADDED:
            self._brokers += 1
        starts = kind in (FaultKind.BROKER_KILLED, FaultKind.BROKER_RESTARTED, FaultKind.NAME_SERVER_KILLED)
        key = f"handler {target}" if rule.target is TargetKind.HANDLER else target
        self._busy[key] = self._now + lasts + (LONGEST_START if starts else 0.0)
        if rule.target is TargetKind.LINK:
            member = target.partition("/")[0]
            self._busy[member] = max(self._busy.get(member, 0.0), self._now + lasts)
        return TimedFault(self._now, kind, target, lasts, details)

    def _details(self, kind: FaultKind) -> dict[str, Any]:
        draw = self._random
        match kind:
            case FaultKind.MEMBER_JOINS:
                room = MOST_MEMBERS - sum(self._processes.values())
                return {"processes": 2} if room >= 2 and draw.random() < 0.3 else {}
            case FaultKind.HANDLER_SLOW:
                return {"seconds": draw.choice((0.05, 0.2, 1.0))}
            case FaultKind.HANDLER_FAILING:
                return {"share": draw.choice((0.1, 0.5, 1.0))}
            case FaultKind.TOPIC_GROWS:
                self._queues += draw.choice((1, 2, 4))
                return {"queues": self._queues}
            case FaultKind.CUT_OFF:
                return {"resets": True} if draw.random() < 0.4 else {}
            case FaultKind.LOSSY:
                return {"percent": draw.choice((5, 20, 50))}
            case FaultKind.THROTTLED:
                return {"kilobits": draw.choice((64, 256))}
            case FaultKind.GROUP_RESET:
                return {"seconds_back": draw.choice((0, 5, 30))}
            case FaultKind.CLOCK_JUMPS:
                return {"seconds": draw.choice((-3600, -45, 45, 3600))}
            case FaultKind.REPLICAS_EDITED | FaultKind.AUTOSCALED:
                return {"replicas": draw.randint(1, 4)}
            case FaultKind.STRATEGY_EDITED:
                return {"strategy": draw.choice(STRATEGIES).value}
            case FaultKind.POD_KILLED | FaultKind.POD_FROZEN:
                return {"which": round(draw.random(), 3)}
            case _:
                return {}
