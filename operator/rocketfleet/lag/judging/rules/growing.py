"""GROWING: the group consumes, but less than comes in."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rocketfleet.base.counting import counted
from rocketfleet.lag.judging.rules.standing import keeps_up, span_text, stands_still, waits
from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, LagFinding, LagVerdict, RuleLimits

if TYPE_CHECKING:
    from rocketfleet.lag.judging.window import Window


def growing(window: Window, limits: RuleLimits = DEFAULT_LIMITS) -> list[LagVerdict]:
    """In a queue with lag at every moment of the window the offset moves on, and the lag never falls and has grown, and
    messages have waited for two looks.
    """
    found = []
    for (queue, member), track in window.tracks.items():
        if not waits(track, limits) or stands_still(track) or keeps_up(track, limits):
            continue
        lags = [row.lag or 0 for row in track]
        if lags[-1] > lags[0] and all(before <= after for before, after in pairwise(lags)):
            sentence = f"the lag in {queue} grew from {lags[0]} to {counted(lags[-1])} in {span_text(track)}"
            found.append(LagVerdict(LagFinding.GROWING, sentence, queue, member))
    return found
