"""All rules together. The worst finding is the group's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rocketfleet.base.counting import counted
from rocketfleet.lag.judging.rules.failing import failing
from rocketfleet.lag.judging.rules.growing import growing
from rocketfleet.lag.judging.rules.idle_member import idle_member
from rocketfleet.lag.judging.rules.rewound import rewound
from rocketfleet.lag.judging.rules.skewed import skewed
from rocketfleet.lag.judging.rules.stalled import stalled
from rocketfleet.lag.judging.rules.stopped import stopped
from rocketfleet.lag.judging.rules.unread import unread
from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, GroupVerdict, LagFinding, LagVerdict, RuleLimits
from rocketfleet.lag.judging.window import Window

Rule = Callable[[Window, RuleLimits], list[LagVerdict]]
OF_LAG: Final[tuple[Rule, ...]] = (stopped, stalled, rewound, growing, skewed)
"""A group that has caught up everywhere cannot break these, so they are not asked."""
FINE: Final = "messages are consumed as they come"
TOO_EARLY: Final = "the group has just begun, or was reset: it is too early to judge"
OTHERS: Final[tuple[Rule, ...]] = (failing, idle_member, unread)


def judge(window: Window, limits: RuleLimits = DEFAULT_LIMITS) -> GroupVerdict:
    """What the window says about its group."""
    latest = window.latest
    rules = (*OF_LAG, *OTHERS) if latest is not None and latest.at_least else OTHERS
    found = [verdict for rule in rules for verdict in rule(window, limits)]
    if not found:
        early = len(window.judged) < limits.moments
        return GroupVerdict(LagFinding.OK, TOO_EARLY if early else FINE, early=early)
    # The worst first, and of equals the queue with the most lag: its sentence is the one that is shown.
    found.sort(key=lambda verdict: (-verdict.state.severity, -_lag(window, verdict)))
    worst = found[0]
    others = [verdict for verdict in found[1:] if verdict.state is worst.state]
    return GroupVerdict(worst.state, worst.sentence + _more(others), tuple(found))


def _more(others: Sequence[LagVerdict]) -> str:
    """What else is found of the same state: in words if it is one thing about the group, else how much."""
    if len(others) == 1 and others[0].queue is None:
        return f"; {others[0].sentence}"
    if not others:
        return ""
    return f" (and {len(others)} more)" if others[0].queue is None else f" (and {counted(len(others), 'more queue')})"


def _lag(window: Window, verdict: LagVerdict) -> int:
    if verdict.queue is None:
        return 0
    track = window.tracks.get((verdict.queue, verdict.member))
    return (track[-1].lag or 0) if track else 0
