"""STALLED: somebody has the queue, messages wait in it, and its offset stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.base.counting import counted
from rocketfleet.lag.judging.rules.standing import span_text, stands_still, waits
from rocketfleet.lag.judging.rules.stopped import stopped
from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, LagFinding, LagVerdict, RuleLimits

if TYPE_CHECKING:
    from rocketfleet.lag.judging.window import Window


def stalled(window: Window, limits: RuleLimits = DEFAULT_LIMITS) -> list[LagVerdict]:
    """In a queue with lag at every moment of the window the offset did not move: a handler hangs, one message is
    tried again and again, or nobody has the queue. A group that has stopped as a whole is not stalled as well.
    """
    if stopped(window, limits):
        return []
    found = []
    for (queue, member), track in window.tracks.items():
        if waits(track, limits) and stands_still(track):
            owner = track[-1].owner
            whose = f" (with {owner})" if owner else ""
            waiting = counted(track[-1].lag or 0, "message waits", "messages wait")
            sentence = f"queue {queue}{whose} has stood still for {span_text(track)}, and {waiting} in it"
            found.append(LagVerdict(LagFinding.STALLED, sentence, queue, member))
    return found
