"""What the controller remembers of a group between two passes, with a section for each writer.

Whoever writes a section is the only one who does; the others read it. What a look returns is put in its place when the
look is over, so one that fails leaves what was known before. The reconciler owns the whole, and a new uid begins with a
new one. All of it may be lost at any moment: it saves work, makes figures, and holds tasks; what must
survive is with the pods, in the status, or at the broker. Its moments are by a clock that nobody sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from rocketfleet.api.status import ConsumerGroupStatus, LastDrain, LastRebalance
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.lag.lag_watch import LagState
from rocketfleet.controller.planning.broker_trouble import BrokerTrouble
from rocketfleet.controller.planning.preparation import Preparation
from rocketfleet.controller.planning.rebalance_tracking import Tracking
from rocketfleet.controller.planning.snapshot import Ownership, Pod
from rocketfleet.controller.reconciling.sightings import Sightings

if TYPE_CHECKING:
    import asyncio


@dataclass(slots=True)
class Asked:
    """The last answers of members that were asked through a broker."""

    at: float
    client_ids: frozenset[str]
    ownership: Ownership


@dataclass(slots=True)
class Filters:
    """By what the brokers said that they filter, when these were the members and this the manifest's wish."""

    at: float
    members: frozenset[str]
    wanted: str
    found: Mapping[str, Mapping[str, str]]


class Asking(Enum):
    """What members are asked for in the background."""

    DRAIN = "drain"
    REBALANCE = "rebalance"


@dataclass(frozen=True, slots=True)
class Counts:
    """What is counted of a group, for whoever makes graphs of it."""

    desired: int = 0
    ready: int = 0
    rebalances: int = 0
    drains: int = 0
    unverified: int = 0  # drains after which not every offset was safe


@dataclass(slots=True)
class Observed:
    """What a look knows of those before it. The observer gets the last one, changes a copy, and returns that."""

    # what is at the brokers
    preparation: Preparation = field(default_factory=Preparation)
    preparations: int = 0  # how many there had been (`Applied.preparations`) when that was seen
    prepared: str | None = None  # what was last seen to be prepared (`preparation_of`)
    brokers: frozenset[str] = frozenset()  # that had the group's queues when those were last seen
    asked: Asked | None = None
    filters: Filters | None = None
    # who was there
    sightings: Sightings = field(default_factory=Sightings)
    pods: dict[str, Pod] = field(default_factory=dict)  # by uid, as last seen
    failed: dict[int, tuple[int, str, str]] = field(
        default_factory=dict
    )  # by ordinal: how many in a row, the last one's uid and revision
    gone: frozenset[str] = frozenset()  # client ids whose locks may be left behind
    code: str | None = None  # the hash of the code that pods without one have
    taken_by: str | None = None  # whose the group was at the last look, if another's

    def copy(self) -> "Observed":
        """One that can be changed without changing this one."""
        return replace(
            self,
            preparation=replace(self.preparation, looks=dict(self.preparation.looks)),
            sightings=self.sightings.copy(),
            pods=dict(self.pods),
            failed=dict(self.failed),
        )


@dataclass(slots=True)
class Applied:
    """What was done, and what is under way. The applier and its tasks write it."""

    preparations: int = 0  # after each, what was seen of the brokers before no longer counts
    outcomes: dict[str, DrainOutcome] = field(default_factory=dict)  # by pod uid, from calls to drain
    deletions: dict[str, float] = field(default_factory=dict)  # by pod uid: asked for at, while a cache may not show it
    told: frozenset[str] = frozenset()  # pod uids
    told_at: float = 0.0
    telling: frozenset[str] = frozenset()  # whom the task that is under way, or was last, tells
    released: frozenset[str] = frozenset()  # client ids whose locks were given back for them
    refused: bool = False  # something was not done in the last pass because the brokers did not allow it
    evictions_unlimited: bool = False  # the disruption budget could not be written in the last pass
    last_drain: LastDrain | None = None
    drains: int = 0
    unverified: int = 0
    # what is asked for, and of which pods (uids)
    tasks: dict[tuple[Asking, frozenset[str]], "asyncio.Task[None]"] = field(default_factory=dict)


@dataclass(slots=True)
class Tracked:
    """What only a row of passes shows. The reconciler writes it."""

    requested: str | None = None  # the last rebalance that somebody asked for; told at the first look: none is owed
    tracking: Tracking = field(default_factory=Tracking)
    unbalanced_since: float | None = None
    last_desired: int | None = None
    ready: int = 0
    failures: int = 0  # looks in a row that did not work
    troubled: bool = False  # the last pass could not do all that it wanted to
    seen: object = None  # a digest of the last look: while it stays the same, nothing moves
    seen_since: float = 0.0


@dataclass(slots=True)
class Reported:
    """What people were told, so that it is told once. The reconciler writes it."""

    code_missing: str | None = None
    hindrance: BrokerTrouble | None = None
    limited: tuple[int, int] | None = None  # by queues, to how many of how many pods
    disagreement: str | None = None  # about subscriptions
    last_rebalance: LastRebalance | None = None
    rebalances: int = 0
    status: ConsumerGroupStatus | None = None  # as last written by us
    shown: ConsumerGroupStatus | None = None  # as of the last pass, written or not


@dataclass(slots=True)
class GroupState:
    """One group. `uid` is the object's: one that is deleted and made again starts with a clean state."""

    uid: str
    observed: Observed = field(default_factory=Observed)
    applied: Applied = field(default_factory=Applied)
    tracked: Tracked = field(default_factory=Tracked)
    reported: Reported = field(default_factory=Reported)
    lag: LagState | None = None  # the lag watch writes it; None: the group's lag is not watched

    @property
    def counts(self) -> Counts:
        return Counts(
            desired=self.tracked.last_desired or 0,
            ready=self.tracked.ready,
            rebalances=self.reported.rebalances,
            drains=self.applied.drains,
            unverified=self.applied.unverified,
        )
