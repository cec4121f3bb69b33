"""What the controller remembers of a group between two looks. All of it may be lost at any moment: it saves work, makes
figures, and holds tasks; what must survive is with the pods, in the status, or at the broker. Its moments are by a
clock that nobody sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from rocketfleet.api.status import ConsumerGroupStatus, LastDrain, LastRebalance
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.planning.broker_trouble import Hindrance
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


@dataclass(slots=True)
class Counts:
    """What is counted of a group, for whoever makes graphs of it."""

    desired: int = 0
    ready: int = 0
    rebalances: int = 0
    drains: int = 0
    unverified: int = 0  # drains after which not every offset was safe


@dataclass(slots=True)
class Memory:
    """One group. `uid` is the object's: one that is deleted and made again starts with a clean memory."""

    uid: str
    # what is at the brokers
    preparation: Preparation = field(default_factory=Preparation)
    prepared: str | None = None  # what was last seen to be prepared (`preparation_of`)
    # what was done
    outcomes: dict[str, DrainOutcome] = field(default_factory=dict)  # by pod uid, from calls to drain
    deletions: dict[str, float] = field(default_factory=dict)  # by pod uid: asked for at, while a cache may not show it
    told: frozenset[str] = frozenset()  # pod uids
    told_at: float = 0.0
    requested: str | None = None  # the last rebalance that somebody asked for; told at the first look: none is owed
    telling: frozenset[str] = frozenset()  # whom the task that is under way, or was last, tells
    code: str | None = None  # the hash of the code that pods without one have
    code_missing: str | None = None  # as last told
    taken_by: str | None = None  # whose the group was at the last look, if another's
    # who was there
    sightings: Sightings = field(default_factory=Sightings)
    pods: dict[str, Pod] = field(default_factory=dict)  # by uid, as last seen
    failed: dict[int, tuple[int, str, str]] = field(
        default_factory=dict
    )  # by ordinal: how many in a row, the last one's uid and revision
    gone: frozenset[str] = frozenset()  # client ids whose locks may be left behind
    released: frozenset[str] = frozenset()
    asked: Asked | None = None
    filters: Filters | None = None
    disagreement: str | None = None  # about subscriptions, as last told
    last_desired: int | None = None
    limited: tuple[int, int] | None = None  # by queues, to how many of how many pods: as last told
    brokers: frozenset[str] = frozenset()  # that had the group's queues when those were last seen
    # what is shown
    hindrance: Hindrance | None = None
    refused: bool = False  # something was not done in the last pass because the brokers did not allow it
    evictions_unlimited: bool = False  # the disruption budget could not be written in the last pass
    tracking: Tracking = field(default_factory=Tracking)
    last_rebalance: LastRebalance | None = None
    last_drain: LastDrain | None = None
    status: ConsumerGroupStatus | None = None  # as last written by us
    shown: ConsumerGroupStatus | None = None  # as of the last pass, written or not
    counts: Counts = field(default_factory=Counts)
    # how things go
    failures: int = 0  # looks in a row that did not work
    troubled: bool = False  # the last pass could not do all that it wanted to
    unbalanced_since: float | None = None
    seen: object = None  # a digest of the last look: while it stays the same, nothing moves
    seen_since: float = 0.0
    # what is under way: what is asked for, and of which pods (uids)
    tasks: dict[tuple[Asking, frozenset[str]], "asyncio.Task[None]"] = field(default_factory=dict)

    def forget_pods(self, present: Mapping[str, Pod]) -> None:
        """Let go of what was noted of pods that are no more."""
        for table in (self.outcomes, self.deletions):
            for uid in table.keys() - present.keys():
                del table[uid]
