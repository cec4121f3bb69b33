"""How many members a group needs in each hour of the day, and whether it has queues enough for them. Pure.

Members are what comes in at the hour's peak, over what one member really does, at four fifths of that: the share that
the autoscaler plans with too. What a member does is seen only while it has plenty to do (`busy`). Where that never was
so, it is only known to do at least what it did (`shown`), and as many members as kept up in that hour are enough.

A queue has one member at a time. So there are never more members than queues; if more are needed, queues are to be
added, and if a single queue gets more than a member does, no number of members helps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from rocketfleet.autoscale.demand import UTILISATION
from rocketfleet.autoscale.shares import even_step
from rocketfleet.base.counting import counted
from rocketfleet.spark.analytics.figures import HOURS
from rocketfleet.spark.analytics.wording import number, per_second

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.spark.analytics.figures import ClusterGroupKey, GroupFigures, HourOfDay

Learnt = Literal["busy", "shown", "unknown"]
FEWEST_BUSY: Final = 3
"""Windows in which members were busy: fewer may be a restart."""


ABOUT: Final = 0.9
UNEVEN: Final = 1.5
"""Times an even share of what comes in: a queue that gets more is the keys' doing, and more queues do not help."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What a group needs. An hour that was never seen has no number; nor has any, where `why` says so."""

    key: ClusterGroupKey
    members: tuple[int | None, ...]  # by the hour of the day, in UTC
    needed: tuple[int | None, ...]  # the same if there were queues enough
    queues: int
    queues_to_add: int
    member_rate: float | None
    learnt: Learnt
    why: str


def recommend(group: GroupFigures) -> Recommendation:
    """Of one group."""
    rate, learnt = learnt_rate(group)
    nothing: tuple[int | None, ...] = (None,) * HOURS
    if group.shared:
        why = "every member gets every message (broadcasting), so more members take no work off each other"
        return Recommendation(group.key, nothing, nothing, group.queues, 0, rate, learnt, why)
    if rate is None:
        why = "nobody was seen consuming, so what a member does is not known"
        return Recommendation(group.key, nothing, nothing, group.queues, 0, None, learnt, why)
    needed = tuple(None if hour is None else members_needed(hour, rate, learnt) for hour in group.hours)
    given = tuple(None if many is None else bounded(many, group.queues) for many in needed)
    most = max((many for many in needed if many is not None), default=0)
    to_add = max(0, most - group.queues)
    why = _why(group, rate, learnt, needed, to_add)
    return Recommendation(group.key, given, needed, group.queues, to_add, rate, learnt, why)


def learnt_rate(group: GroupFigures) -> tuple[float | None, Learnt]:
    """Messages per second that one member does, and how that is known."""
    shown = group.shown_rate or 0.0
    # A member that did more without being busy can do more: what it did while busy was held up by something else.
    if group.busy_rate and group.busy_windows >= FEWEST_BUSY and group.busy_rate >= ABOUT * shown:
        return max(group.busy_rate, shown), "busy"
    if group.shown_rate:
        return group.shown_rate, "shown"
    return None, "unknown"


def members_needed(hour: HourOfDay, rate: float, learnt: Learnt) -> int | None:
    """How many take what comes in at the peak of an hour; None if that is not known."""
    if hour.produce_peak is None:
        return None
    many = math.ceil(hour.produce_peak / (UTILISATION * rate) - 1e-9)
    if learnt == "shown" and hour.members:
        many = min(many, hour.members)
    return many


def bounded(members: int, queues: int) -> int:
    """As many as there are queues for, and in a step that shares them out evenly."""
    return min(even_step(queues, members), queues) if queues else members


def _why(
    group: GroupFigures,
    rate: float,
    learnt: Learnt,
    needed: Sequence[int | None],
    to_add: int,
) -> str:
    known = [many for many in needed if many is not None]
    if not known:
        return "what comes in was not seen"
    peak = max((hour.produce_peak or 0.0 for hour in group.hours if hour is not None), default=0.0)
    does = "at least " if learnt == "shown" else ""
    text = f"up to {per_second(peak)} come in, and a member does {does}{per_second(rate)}"
    if to_add:
        queues, more = counted(group.queues, "queue", grouped=True), counted(to_add, "queue", grouped=True)
        text += f": that takes {counted(max(known), 'member')}, and there are {queues}. Add {more}"
    hottest = peak * (group.produce_skew or 1.0) / group.queues if group.queues else 0.0
    if learnt == "busy" and hottest > rate and (group.produce_skew or 1.0) >= UNEVEN:
        text += f". But one queue gets {number(hottest)} of them, more than any one member does: spread its keys"
    return text
