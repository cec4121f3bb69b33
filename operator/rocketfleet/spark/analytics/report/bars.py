"""Charts of bars: what each queue had, and how many members each hour needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocketfleet.base.counting import counted
from rocketfleet.spark.analytics.figures import HOURS
from rocketfleet.spark.analytics.report.svg import Scale, box, picture, place, rule, text, value_ticks
from rocketfleet.spark.analytics.wording import number

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rocketfleet.spark.analytics.figures import GroupFigures, QueueTotal
    from rocketfleet.spark.analytics.recommending import Recommendation

WIDTH: Final = 300
HEIGHT: Final = 170
_LEFT: Final = 44


def queue_bars(queues: Sequence[QueueTotal], stuck: Collection[str]) -> str:
    """Each queue's mean lag above, and below what came into it: the same shape means that the keys are uneven."""
    lags = [queue.lag_mean or 0.0 for queue in queues]
    rates = [queue.produce_rate or 0.0 for queue in queues]
    parts = [
        *_bars(queues, lags, 8, 88, "bar lag", "messages waited on average", stuck),
        *_bars(queues, rates, 104, HEIGHT - 22, "bar in", "per second came in", ()),
        text(_LEFT, HEIGHT - 6, f"{counted(len(queues), 'queue')}; dashed: an even share"),
    ]
    return picture(WIDTH, HEIGHT, "Each queue's lag, and what came into it", *parts)


def _bars(
    queues: Sequence[QueueTotal],
    values: Sequence[float],
    top: float,
    bottom: float,
    kind: str,
    words: str,
    marked: Collection[str],
) -> list[str]:
    ticks = value_ticks(max(values, default=0.0), 2)
    y = Scale(0.0, ticks[-1], bottom, top)
    wide = (WIDTH - _LEFT - 4) / max(1, len(values))
    parts = []
    for tick in ticks:
        parts.append(rule(_LEFT, y(tick), WIDTH - 4, y(tick), "grid" if tick else "axis"))
        if tick in {ticks[0], ticks[-1]}:
            parts.append(text(_LEFT - 6, y(tick) + 4, number(tick), anchor="end"))
    for count, (queue, value) in enumerate(zip(queues, values, strict=True)):
        shape = f"{kind} stuck" if queue.name in marked else kind
        gap = 3 if wide > 8 else 0.6
        left = _LEFT + count * wide + gap / 2
        parts.append(
            box(left, y(value), wide - gap, bottom - y(value), shape, f"{queue.name}: {number(value)} {words}")
        )
    if values and sum(values):
        even = y(sum(values) / len(values))
        parts.append(rule(_LEFT, even, WIDTH - 4, even, "even"))
    return parts


def member_bars(group: GroupFigures, advice: Recommendation) -> str:
    """Members that each hour needs, as bars; what there are no queues for on top, and those there were as a line."""
    had = [None if hour is None else hour.members for hour in group.hours]
    most = max((many for many in (*advice.needed, *advice.members, *had) if many is not None), default=1)
    ticks = [tick for tick in value_ticks(max(most, 1)) if tick == int(tick)]
    y = Scale(0.0, max(most, ticks[-1]), HEIGHT - 24, 8)
    cell = (WIDTH - _LEFT - 4) / HOURS
    parts = []
    for tick in ticks:
        parts.append(rule(_LEFT, y(tick), WIDTH - 4, y(tick), "grid" if tick else "axis"))
        parts.append(text(_LEFT - 6, y(tick) + 4, number(tick), anchor="end"))
    for hour, (many, needed) in enumerate(zip(advice.members, advice.needed, strict=True)):
        if many is None or needed is None:
            continue
        left = _LEFT + hour * cell + 1
        words = f"{hour:02d}:00 – {counted(many, 'member')}"
        parts.append(box(left, y(many), cell - 2, y(0) - y(many), "bar advice", words))
        if needed > advice.queues:
            lacking = f"{hour:02d}:00 – {needed} members, if there were as many queues"
            parts.append(box(left, y(needed), cell - 2, y(many) - y(needed), "bar lacking", lacking))
    if any(many is not None and many > advice.queues for many in advice.needed):
        parts.append(rule(_LEFT, y(advice.queues), WIDTH - 4, y(advice.queues), "even"))
    steps = "".join(
        f"M{place(_LEFT + hour * cell)} {place(y(many))}H{place(_LEFT + (hour + 1) * cell)}"
        for hour, many in enumerate(had)
        if many is not None
    )
    parts.append(f'<path d="{steps}" class="had"/>')
    parts += [text(_LEFT + hour * cell, HEIGHT - 8, f"{hour:02d}") for hour in range(0, HOURS, 6)]
    return picture(WIDTH, HEIGHT, "Members that each hour of the day needs, in UTC", *parts)
