"""What a rule says: a state, whom it is about, and a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rocketfleet.group.commit_interval import COMMIT_SECONDS

if TYPE_CHECKING:
    from rocketfleet.wire.queue import MessageQueue


class LagFinding(StrEnum):
    """Milder ones first: of several, the last one here is the group's."""

    OK = "OK"
    UNKNOWN = "UNKNOWN"
    IDLE_MEMBER = "IDLE_MEMBER"
    SKEWED = "SKEWED"
    GROWING = "GROWING"
    REWOUND = "REWOUND"
    FAILING = "FAILING"
    STALLED = "STALLED"
    STOPPED = "STOPPED"

    @property
    def severity(self) -> int:
        return _ORDER[self]

    @property
    def healthy(self) -> bool | None:
        """Whether messages are consumed as they should be; None if that cannot be said."""
        if self is LagFinding.UNKNOWN:
            return None
        return self in (LagFinding.OK, LagFinding.IDLE_MEMBER, LagFinding.SKEWED)


_ORDER = {state: place for place, state in enumerate(LagFinding)}


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """How much it takes."""

    moments: int = 5
    """Nobody is accused on less than this many moments: after a start, a reset or a gap."""
    allowed_lag: int = 0
    """Up to this many messages in a queue are no lag."""
    skew_messages: int = 100
    """A backlog below this is too small to be called skewed."""
    failures: int = 5
    """Fewer failed attempts are those of single messages."""
    failing_seconds: float = 120.0
    """For so long the last attempts are believed to tell of the present, if nobody knows what waits for another."""
    commit_seconds: float = COMMIT_SECONDS
    """What lies there for a shorter time may only not be committed yet."""


DEFAULT_LIMITS = RuleLimits()


@dataclass(frozen=True, slots=True)
class LagVerdict:
    """One finding. What it is about: a queue, a member (client id), or, with neither, the group."""

    state: LagFinding
    sentence: str
    queue: MessageQueue | None = None
    member: str | None = None


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """The worst of all findings, and the findings, the worst first."""

    state: LagFinding
    sentence: str
    verdicts: tuple[LagVerdict, ...] = ()
    early: bool = False  # nothing was found, because there is too little to judge yet
