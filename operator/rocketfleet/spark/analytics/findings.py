"""What in the figures a person should know first, in sentences, and which groups are worth a look. Pure.

| finding | when |
|---|---|
| stuck | a queue stands still to the end of the period: messages wait, and none is consumed |
| behind | it did not catch up once in the later half of the period, and was closer to the end in the earlier |
| stood still | a queue stood still for a while, and moves again |
| skewed | half of the time one queue had more than twice an even share of what waited |
| too few queues | more members are needed than there are queues for |
| gone | nothing was seen of the group in the last hour |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from rocketfleet.base.counting import counted
from rocketfleet.spark.analytics.recommending import recommend
from rocketfleet.spark.analytics.wording import moment, number, span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocketfleet.spark.analytics.figures import (
        Analysis,
        ClusterGroupKey,
        GroupDetail,
        GroupFigures,
        Point,
        StuckQueue,
    )
    from rocketfleet.spark.analytics.recommending import Recommendation

SKEWED: Final = 2.0
BEHIND: Final = 1.5
PLENTY: Final = 60.0
"""Seconds of traffic: a group that is never less behind than that has not caught up."""
GONE: Final = 3600.0


class Weight(IntEnum):
    """How much it matters."""

    BAD = 3
    WARNING = 2
    HINT = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one group."""

    key: ClusterGroupKey
    weight: Weight
    word: str
    sentence: str


def findings(analysis: Analysis, recommendations: Iterable[Recommendation]) -> list[Finding]:
    """All of them, what matters most first."""
    together: dict[tuple[ClusterGroupKey, bool], list[StuckQueue]] = {}
    for queue in analysis.stuck:
        together.setdefault((queue.key, queue.still), []).append(queue)
    found = [_stuck(queues) for queues in together.values()]
    by_key = {one.key: one for one in recommendations}
    for group in analysis.groups:
        if group.last_seen + analysis.window < analysis.until - GONE:
            sentence = f"Nothing was seen of it since {moment(group.last_seen + analysis.window)}."
            found.append(Finding(group.key, Weight.HINT, "gone", sentence))
            continue
        detail = analysis.details.get(group.key)
        found += [one for one in (_behind(group, detail), _skewed(group, detail)) if one is not None]
        advice = by_key.get(group.key)
        if advice is not None and advice.queues_to_add:
            sentence = f"{advice.why[:1].upper()}{advice.why[1:]}."
            found.append(Finding(group.key, Weight.WARNING, "too few queues", sentence))
    return sorted(found, key=lambda one: (-one.weight, one.key))


def _stuck(queues: Sequence[StuckQueue]) -> Finding:
    """Of the queues of one group, the longest first, that all stand still or all move again."""
    first, lasted = queues[0], span(max(queue.until - queue.since for queue in queues))
    which = f"Queue {first.name}" if len(queues) == 1 else f"{len(queues)} queues"
    if not first.still:
        until = moment(max(queue.until for queue in queues))
        sentence = f"{which} stood still for {lasted}, until {until}{_owned(queues)}."
        return Finding(first.key, Weight.HINT, "stood still", sentence)
    verb = "has" if len(queues) == 1 else "have"
    waiting = counted(sum(queue.lag or 0 for queue in queues), "message", grouped=True)
    sentence = f"{which} {verb} stood still for {lasted} with {waiting} waiting{_owned(queues)}."
    return Finding(first.key, Weight.BAD, "stuck", sentence)


def _owned(queues: Sequence[StuckQueue]) -> str:
    owners = {queue.owner for queue in queues}
    if owners == {None}:
        return ", owned by nobody"
    return f", owned by {owners.pop()}" if len(owners) == 1 else ""


def _behind(group: GroupFigures, detail: GroupDetail | None) -> Finding | None:
    if detail is None:
        return None
    lows = low_water(detail.points)
    if lows is None:
        return None
    before, since = lows
    if since <= PLENTY * max(group.produce_rate or 0.0, 1.0) or since < BEHIND * before:
        return None
    share = ""
    if group.produce_rate and group.consume_rate is not None and group.consume_rate < group.produce_rate:
        share = f" Lately it consumes {group.consume_rate / group.produce_rate:.0%} of what comes in."
    fewest = f"in the first half of the period as few as {number(before)} waited, since then never fewer than"
    sentence = f"It falls behind: {fewest} {number(since)}."
    return Finding(group.key, Weight.BAD, "behind", sentence + share)


def low_water(points: Sequence[Point]) -> tuple[float, float] | None:
    """The least lag in the earlier half of the period and in the later; None if there is too little to tell."""
    known = [point.lag for point in points if point.lag is not None]
    middle = len(known) // 2
    return (min(known[:middle]), min(known[middle:])) if middle >= 6 else None


def _skewed(group: GroupFigures, detail: GroupDetail | None) -> Finding | None:
    if group.lag_skew is None or group.lag_skew < SKEWED or group.queues < 2:
        return None
    by_lag = sorted(detail.queues, key=lambda one: one.lag_mean or 0.0) if detail is not None else []
    which = f", most of all {by_lag[-1].name}" if by_lag else ""
    keys = ""
    if group.produce_skew is not None and group.produce_skew >= SKEWED:
        keys = " More comes into it, too: the keys are uneven."
    sentence = f"One queue has {number(group.lag_skew)} times an even share of what waits{which}.{keys}"
    return Finding(group.key, Weight.WARNING, "skewed", sentence)


def most_worth_a_look(groups: Sequence[GroupFigures], stuck: Sequence[StuckQueue], most: int) -> list[ClusterGroupKey]:
    """The groups that get charts: those with queues that stand still, then by how long messages wait in them."""
    still = {queue.key for queue in stuck if queue.still}

    def weight(group: GroupFigures) -> tuple[bool, bool, float, float]:
        advice = recommend(group)
        return (group.key in still, advice.queues_to_add > 0, group.seconds_p95 or 0.0, group.lag_p95 or 0.0)

    return [group.key for group in sorted(groups, key=weight, reverse=True)[:most]]
