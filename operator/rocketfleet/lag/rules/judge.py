"""All rules together. The worst finding is the group's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rocketfleet.lag.rules.growing import growing
from rocketfleet.lag.rules.idle_member import idle_member
from rocketfleet.lag.rules.rewound import rewound
from rocketfleet.lag.rules.skewed import skewed
from rocketfleet.lag.rules.stalled import stalled
from rocketfleet.lag.rules.stopped import stopped
from rocketfleet.lag.rules.unread import unread
from rocketfleet.lag.rules.verdict import DEFAULT_LIMITS, GroupVerdict, Limits, State, Verdict
from rocketfleet.lag.window import Window

Rule = Callable[[Window, Limits], list[Verdict]]
OF_LAG: Final[tuple[Rule, ...]] = (stopped, stalled, rewound, growing, skewed)
"""A group that has caught up everywhere cannot break these, so they are not asked."""
OTHERS: Final[tuple[Rule, ...]] = (idle_member, unread)


def judge(window: Window, limits: Limits = DEFAULT_LIMITS) -> GroupVerdict:
    """What the window says about its group."""
    latest = window.latest
    rules = (*OF_LAG, *OTHERS) if latest is not None and latest.at_least else OTHERS
    found = [verdict for rule in rules for verdict in rule(window, limits)]
    if not found:
        return GroupVerdict(State.OK, _fine(window, limits))
    # The worst first, and of equals the queue with the most lag: its sentence is the one that is shown.
    found.sort(key=lambda verdict: (-verdict.state.severity, -_lag(window, verdict)))
    worst = found[0]
    others = sum(verdict.state is worst.state for verdict in found) - 1
    more = f" (and {others} more)" if others else ""
    return GroupVerdict(worst.state, worst.sentence + more, tuple(found))


def _lag(window: Window, verdict: Verdict) -> int:
    if verdict.queue is None:
        return 0
    track = window.tracks.get((verdict.queue, verdict.member))
    return (track[-1].lag or 0) if track else 0


def _fine(window: Window, limits: Limits) -> str:
    if len(window.judged) < limits.moments:
        return "the group has just begun, or was reset: it is too early to judge"
    return "messages are consumed as they come"
