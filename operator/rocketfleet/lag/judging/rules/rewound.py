"""REWOUND: the group's offset in a queue went back, and has not come back to where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, LagFinding, LagVerdict, RuleLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.lag.figures import QueueLag
    from rocketfleet.lag.judging.window import Window


def rewound(window: Window, limits: RuleLimits = DEFAULT_LIMITS) -> list[LagVerdict]:
    """The offset fell from one moment to the next, no later one reached what it fell from, and there is lag now.

    A few messages done twice at a change of owner are made up for in moments, so they are no rewind. A reset that was
    announced begins the window anew. A queue whose end lies before where the group was is a topic made again, not a
    group gone back.
    """
    found = []
    for (queue, member), track in window.tracks.items():
        fall = _fall(track)
        if fall is not None and (track[-1].lag or 0) > limits.allowed_lag:
            before, after = fall
            sentence = f"queue {queue} went back from {before} to {after}: what lies between is consumed again"
            found.append(LagVerdict(LagFinding.REWOUND, sentence, queue, member))
    return found


def _fall(track: Sequence[QueueLag]) -> tuple[int, int] | None:
    """From where to where the last fall went that was not made up for."""
    highest: int | None = None
    fall: tuple[int, int] | None = None
    for row in track:
        at = row.consumer_offset
        if at is None:
            continue
        if row.max_offset is not None and highest is not None and row.max_offset < highest:
            highest, fall = at, None  # the topic was made again
            continue
        if highest is None or at >= highest:
            highest, fall = at, None
        elif fall is None:
            fall = highest, at
    return fall
