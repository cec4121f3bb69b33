"""How long a rebalance took and what it moved, as a small state that is carried from one look to the next.

A rebalance begins when the members change, or when a queue is seen without exactly one owner. It is over when each
queue has one owner again *and* every worker knows of the same members as the broker: right after a member has joined
each queue still has its one old owner, and that is the beginning, not the end. Without members there is nothing to
share out, so a group that starts is measured from its first member on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rocketfleet.base.counting import counted
from rocketfleet.wire.queue import MessageQueue

Owners = Mapping[MessageQueue, frozenset[str]]


@dataclass(frozen=True, slots=True)
class SharingSeen:
    """What one look found out. Members is None where the brokers did not say."""

    members: frozenset[str] | None
    owners: Owners
    balanced: bool
    agreed: bool  # every worker knows of these members, and has what it was given


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """A completed rebalance."""

    reason: str
    moved: int | None  # None: nobody saw how it was before, as an operator that took over in the middle of it
    seconds: float


@dataclass(frozen=True, slots=True)
class Tracking:
    """The group when it was last at rest, and what has begun since."""

    members: frozenset[str] = frozenset()
    owners: Owners = field(default_factory=dict)
    known: bool = False  # whether it was ever seen at rest
    since: float | None = None
    reason: str = ""


def track(before: Tracking, seen: SharingSeen, now: float) -> tuple[Tracking, Rebalanced | None]:
    """The state after this look, and the rebalance that it has seen completed."""
    if seen.members is None:
        return before, None  # nothing was seen
    if not seen.members:
        return Tracking(known=True), None
    at_rest = seen.balanced and seen.agreed
    if not before.known and before.since is None and at_rest:
        # The first look finds a group at rest: that is nothing to tell.
        return Tracking(seen.members, _only(seen), known=True), None
    since, reason = before.since, before.reason
    if since is None:
        if at_rest and seen.members == before.members:
            return (before if before.owners == _only(seen) else _rest(seen)), None
        since = now
    if seen.members != before.members:
        reason = _change(before, len(seen.members))
    reason = reason or "queues were without exactly one owner"
    if not at_rest:
        return Tracking(before.members, before.owners, before.known, since, reason), None
    moved = sum(seen.owners[queue] != before.owners.get(queue) for queue in _only(seen)) if before.known else None
    return _rest(seen), Rebalanced(reason, moved, now - since)


def _rest(seen: SharingSeen) -> Tracking:
    assert seen.members is not None
    return Tracking(seen.members, _only(seen), known=True)


def _only(seen: SharingSeen) -> Owners:
    return {queue: them for queue, them in seen.owners.items() if len(them) == 1}


def _change(before: Tracking, after: int) -> str:
    if not before.known:
        return f"members changed; there are {after}"
    if len(before.members) == after:
        return f"a member was replaced; there are {after}"
    return f"from {len(before.members)} to {counted(after, 'member')}"
