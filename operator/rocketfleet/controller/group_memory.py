"""What the controller remembers of a group between two looks. All of it may be lost at any moment: it saves work, makes
figures, and holds tasks; what must survive is with the pods, in the status, or at the broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rocketfleet.api.status import ConsumerGroupStatus, LastDrain, LastRebalance
from rocketfleet.controller.rebalance_tracking import Tracking
from rocketfleet.controller.snapshot import DrainOutcome, Ownership, Pod

if TYPE_CHECKING:
    import asyncio


@dataclass(slots=True)
class Asked:
    """The last answers of members that were asked through a broker."""

    at: float
    client_ids: frozenset[str]
    ownership: Ownership


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
    # what was done
    prepared: str | None = None
    outcomes: dict[str, DrainOutcome] = field(default_factory=dict)  # by pod uid, from calls to drain
    deletions: dict[str, float] = field(default_factory=dict)  # by pod uid: asked for at, while a cache may not show it
    told: frozenset[str] = frozenset()  # pod uids
    told_at: float = 0.0
    requested: str | None = None  # the last rebalance that somebody asked for; told at the first look: none is owed
    telling: frozenset[str] = frozenset()  # whom the task that is under way, or was last, tells
    # who was there
    pods: dict[str, Pod] = field(default_factory=dict)  # by uid, as last seen
    gone: frozenset[str] = frozenset()  # client ids whose locks may be left behind
    released: frozenset[str] = frozenset()
    asked: Asked | None = None
    last_desired: int | None = None
    # what is shown
    reachable: bool | None = None
    tracking: Tracking = field(default_factory=Tracking)
    last_rebalance: LastRebalance | None = None
    last_drain: LastDrain | None = None
    status: ConsumerGroupStatus | None = None  # as last written by us
    counts: Counts = field(default_factory=Counts)
    # how things go
    failures: int = 0  # looks in a row that did not work
    unbalanced_since: float | None = None
    seen: object = None  # a digest of the last look: while it stays the same, nothing moves
    seen_since: float = 0.0
    tasks: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)  # what is under way, by what it is

    def forget_pods(self, present: Mapping[str, Pod]) -> None:
        """Let go of what was noted of pods that are no more."""
        for table in (self.outcomes, self.deletions):
            for uid in table.keys() - present.keys():
                del table[uid]
