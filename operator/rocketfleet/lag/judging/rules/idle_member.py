"""IDLE_MEMBER: a member of the group has had no queue all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.base.counting import counted
from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, LagFinding, LagVerdict, RuleLimits

if TYPE_CHECKING:
    from rocketfleet.lag.judging.window import Window


def idle_member(window: Window, limits: RuleLimits = DEFAULT_LIMITS) -> list[LagVerdict]:
    """At every moment of the window the member was in the group, owners of queues were known, and it was none.

    In a broadcasting group every member has every queue, so none is idle.
    """
    judged = window.judged
    if window.broadcast or len(judged) < limits.moments:
        return []
    idle: frozenset[str] | None = None
    for moment in judged:
        owners = {row.owner for row in moment.queues if row.owner is not None}
        if moment.member_ids is None or not owners:
            return []
        without = moment.member_ids - owners
        idle = without if idle is None else idle & without
    members, queues = judged[-1].members or 0, len(judged[-1].queues)
    why = f": there are {counted(members, 'member')} and {counted(queues, 'queue')}" if members > queues else ""
    return [
        LagVerdict(LagFinding.IDLE_MEMBER, f"member {member} has had no queue{why}", member=member)
        for member in sorted(idle or ())
    ]
