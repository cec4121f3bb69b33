"""FAILING: most of what handlers attempt fails, or messages become dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.base.counting import counted
from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, LagFinding, LagVerdict, RuleLimits

if TYPE_CHECKING:
    from rocketfleet.lag.figures import GroupLag
    from rocketfleet.lag.judging.window import Window


def failing(window: Window, limits: RuleLimits = DEFAULT_LIMITS) -> list[LagVerdict]:
    """Of the last minute's attempts half or more failed, and not just a few; it goes on until others succeed, or until
    nothing waits for another try. Or messages became dead letters during the window.

    Lag does not show this: a failed message waits for its next try where no offset tells of it (`handling.py`).
    """
    latest = window.latest
    if latest is None or len(window.judged) < limits.moments:
        return []
    found = []
    attempts = latest.attempts
    if attempts is not None and attempts.failed >= limits.failures and 2 * attempts.failed >= attempts.tried:
        goes_on = latest.observed_at - attempts.at <= limits.failing_seconds
        if goes_on or latest.delayed:
            found.append(LagVerdict(LagFinding.FAILING, _sentence(latest)))
    given_up = _given_up(window)
    if given_up:
        text = f"the handlers have given up on {counted(given_up)}, now among the dead letters"
        found.append(LagVerdict(LagFinding.FAILING, text))
    return found


def _sentence(latest: GroupLag) -> str:
    attempts = latest.attempts
    assert attempts is not None
    if latest.work is None:  # nobody but the brokers can be asked
        consumed = counted(attempts.tried, "was consumed", "were consumed")
        text = f"{counted(attempts.failed)} came back to be tried again while {consumed}"
    else:
        text = f"the handlers failed in {attempts.failed} of their last {attempts.tried} attempts"
    waiting = counted(latest.delayed or 0, "message waits for its", "messages wait for their")
    return f"{text}, and {waiting} next try" if latest.delayed else text


def _given_up(window: Window) -> int:
    ends = [moment.dlq_end for moment in window.judged if moment.dlq_end is not None]
    return max(0, ends[-1] - ends[0]) if ends else 0
