"""What several rules ask of one queue over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.lag.figures import QueueLag
    from rocketfleet.lag.judging.rules.verdict import RuleLimits


def waits(track: Sequence[QueueLag], limits: RuleLimits) -> bool:
    """Whether there are enough moments, and lag at every one: a group that was at the end of a queue keeps up."""
    return len(track) >= limits.moments and all(row.lag is not None and row.lag > limits.allowed_lag for row in track)


def stands_still(track: Sequence[QueueLag]) -> bool:
    """Whether the group's offset is the same all the time, or there is none all the time."""
    return all(row.consumer_offset == track[0].consumer_offset for row in track)


def keeps_up(track: Sequence[QueueLag], limits: RuleLimits) -> bool:
    """Whether all is consumed that was there two looks ago, and longer ago than a group takes to commit its offsets.

    What a look finds waiting has mostly just come in, or is consumed and not committed yet. How much that is differs
    from look to look, and over a handful of looks it grows by chance often enough.
    """
    last = track[-1]
    for row in reversed(track[:-2]):
        if row.observed_at <= last.observed_at - limits.commit_seconds:
            return (last.consumer_offset or 0) >= (row.max_offset or 0)
    return True  # too short a time to say


def span_text(track: Sequence[QueueLag]) -> str:
    """How long that is, for a sentence. Coarse, or it would be another sentence each time."""
    seconds = track[-1].observed_at - track[0].observed_at
    if seconds < 60:
        return "less than a minute"
    minutes = int(seconds // 60)
    return "a minute" if minutes == 1 else f"{minutes} minutes"
