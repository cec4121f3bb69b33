"""UNKNOWN: there are no figures to judge, or they are old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, LagFinding, LagVerdict, RuleLimits

if TYPE_CHECKING:
    from rocketfleet.lag.judging.window import Window


def unread(window: Window, _limits: RuleLimits = DEFAULT_LIMITS) -> list[LagVerdict]:
    """Nothing was read yet, no queue's lag is known, or some queues were not read twice in a row."""
    latest = window.latest
    if latest is None:
        return [LagVerdict(LagFinding.UNKNOWN, "the group has not been looked at yet")]
    if not latest.queues:
        return [LagVerdict(LagFinding.UNKNOWN, "no queue of the group could be read")]
    before = window.moments[-2].observed_at if len(window.moments) > 1 else latest.observed_at
    old = [row for row in latest.queues if row.observed_at < before]
    if old:
        brokers = ", ".join(sorted({row.queue.broker for row in old}))
        return [
            LagVerdict(
                LagFinding.UNKNOWN, f"{len(old)} of {len(latest.queues)} queues are not read: see broker {brokers}"
            )
        ]
    if latest.unknown == len(latest.queues):
        return [LagVerdict(LagFinding.UNKNOWN, "no offset is stored, and where the group will begin is not known")]
    return []
