"""A group over the last minutes: what rules judge, rates come from and scaling looks back on.

A window is immutable and holds moments in their order, the newest last. `since` is the moment before which nothing is
held against the group: when it was first seen, started from nothing, or was reset. What lies before is kept, as it
happened, but rules look at `judged` only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rocketfleet.lag.figures import GroupLag, QueueLag
    from rocketfleet.wire.queue import MessageQueue

MOMENTS: Final = 10
"""How many moments a window holds, unless told otherwise."""


@dataclass(frozen=True)
class Window:
    """See the module."""

    moments: tuple[GroupLag, ...] = ()
    since: float = 0.0
    excused: bool = False  # the group began from nothing, and has consumed nothing since
    broadcast: bool = False
    size: int = MOMENTS

    @property
    def latest(self) -> GroupLag | None:
        return self.moments[-1] if self.moments else None

    @cached_property
    def judged(self) -> tuple[GroupLag, ...]:
        """The moments that count against the group."""
        return tuple(moment for moment in self.moments if moment.observed_at >= self.since)

    def after(self, moment: GroupLag) -> Window:
        """The window with one more moment, and the oldest gone if it is full.

        A group that had no member and has one now has just started, and is given time. Not again and again: one whose
        members come and go without getting anywhere would never be judged. So the next start is excused only after
        something was consumed.
        """
        moments = (*self.moments, moment)[-self.size :]
        before = self.latest
        if before is None:
            return replace(self, moments=moments)
        excused = self.excused and not _progressed(before, moment)
        if before.members == 0 and moment.members and not excused:
            return replace(self, moments=moments, since=moment.observed_at, excused=True)
        return replace(self, moments=moments, excused=excused)

    def with_latest(self, moment: GroupLag) -> Window:
        """The same window with more said about its latest moment."""
        return replace(self, moments=(*self.moments[:-1], moment))

    def reset(self, now: float) -> Window:
        """Its offsets were moved on purpose, or it goes on after a rest: what was before says nothing about what is."""
        return replace(self, since=max(now, self.since), excused=False)

    @cached_property
    def tracks(self) -> dict[tuple[MessageQueue, str | None], tuple[QueueLag, ...]]:
        """Each queue over the judged moments, without those at which it was not read. In a broadcasting group every
        member has a place of its own in a queue, so the key names it; in others it is None, as owners change.
        """
        found: dict[tuple[MessageQueue, str | None], list[QueueLag]] = {}
        for moment in self.judged:
            for row in moment.queues:
                if row.observed_at >= moment.observed_at:  # else it stands there from before
                    found.setdefault((row.queue, row.owner if self.broadcast else None), []).append(row)
        return {key: tuple(rows) for key, rows in found.items()}


def _progressed(before: GroupLag, after: GroupLag) -> bool:
    """Whether an offset of the group has moved on, or there is nothing to do."""
    if after.messages == 0:
        return True
    places = {row.queue: row.consumer_offset for row in before.queues}
    return any((row.consumer_offset or 0) > (places.get(row.queue) or 0) for row in after.queues)
