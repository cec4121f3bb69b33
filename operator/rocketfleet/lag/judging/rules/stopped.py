"""STOPPED: nobody consumes, in any queue, and messages wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.base.counting import counted
from rocketfleet.lag.judging.rules.standing import span_text, stands_still, waits
from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, LagFinding, LagVerdict, RuleLimits

if TYPE_CHECKING:
    from rocketfleet.lag.judging.window import Window


def stopped(window: Window, limits: RuleLimits = DEFAULT_LIMITS) -> list[LagVerdict]:
    """No offset of the group moved in the whole window, in some queue there was lag at every moment, and the group
    has no members; or, where it is not known whether it has any, nothing tells of one.

    Burrow tells a stopped consumer from a stalled one by whether it still commits. A broker shows no commit that
    changes nothing, but it shows who is there: a hanging member is stalled, a group without members is stopped.
    """
    judged = window.judged
    if len(judged) < limits.moments or any(moment.members for moment in judged):
        return []
    tracks = window.tracks.values()
    waiting = [track for track in tracks if waits(track, limits)]
    if not waiting or not all(stands_still(track) for track in tracks):
        return []
    messages = counted(sum(track[-1].lag or 0 for track in waiting), "message waits", "messages wait")
    who = "the group has no member" if judged[-1].members == 0 else "no member of the group commits anything"
    return [LagVerdict(LagFinding.STOPPED, f"{who}, for {span_text(waiting[0])} now, and {messages}")]
