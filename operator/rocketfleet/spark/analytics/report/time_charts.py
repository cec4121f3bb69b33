"""Charts over time: how much waited, how much came and went, and the same as a line the size of a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocketfleet.base.counting import counted
from rocketfleet.spark.analytics.report.svg import (
    Scale,
    area,
    box,
    line,
    picture,
    rule,
    text,
    time_ticks,
    value_ticks,
)
from rocketfleet.spark.analytics.wording import moment, number, span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocketfleet.spark.analytics.figures import Point
    from rocketfleet.spark.analytics.report.svg import Place

WIDTH: Final = 1040
_LEFT, _RIGHT = 56, 10
LAG_HEIGHT: Final = 190
RATE_HEIGHT: Final = 140


def lag_chart(points: Sequence[Point], since: float, until: float, step: int) -> str:
    """Messages that waited, as a hill."""
    lags: list[Place] = [(point.at + step / 2, point.lag) for point in points]
    most = max((value for _, value in lags if value is not None), default=0.0)
    x, y, frame = _frame(since, until, most, LAG_HEIGHT)
    parts = [
        *frame,
        f'<path d="{area(lags, x, y)}" class="lag-area"/>',
        f'<path d="{line(lags, x, y)}" class="lag-line"/>',
        *_pointed_at(points, step, x, LAG_HEIGHT, _lag_words),
    ]
    return picture(WIDTH, LAG_HEIGHT, f"Lag over time, up to {number(most)} messages", *parts)


def rate_chart(points: Sequence[Point], since: float, until: float, step: int) -> str:
    """What came in, as a hill, and what was consumed, as a line across it."""
    came: list[Place] = [(point.at + step / 2, point.produce_rate) for point in points]
    went: list[Place] = [(point.at + step / 2, point.consume_rate) for point in points]
    most = max((value for _, value in (*came, *went) if value is not None), default=0.0)
    x, y, frame = _frame(since, until, most, RATE_HEIGHT)
    parts = [
        *frame,
        f'<path d="{area(came, x, y)}" class="in-area"/>',
        f'<path d="{line(came, x, y)}" class="in-line"/>',
        f'<path d="{line(went, x, y)}" class="out-line"/>',
        *_pointed_at(points, step, x, RATE_HEIGHT, _rate_words),
    ]
    return picture(WIDTH, RATE_HEIGHT, f"Messages per second, up to {number(most)}", *parts)


def sparkline(points: Sequence[Point], since: float, until: float) -> str:
    """The lag without axes."""
    width, height = 150, 28
    lags: list[Place] = [(point.at, point.lag) for point in points]
    most = max((value for _, value in lags if value is not None), default=0.0)
    x, y = Scale(since, until, 1, width - 1), Scale(0.0, max(most, 1.0), height - 2, 3)
    shapes = f'<path d="{area(lags, x, y)}" class="lag-area"/><path d="{line(lags, x, y)}" class="lag-line thin"/>'
    return picture(width, height, f"Lag over time, up to {number(most)}", shapes)


def _frame(since: float, until: float, most: float, height: int) -> tuple[Scale, Scale, list[str]]:
    ticks = value_ticks(most)
    x, y = Scale(since, until, _LEFT, WIDTH - _RIGHT), Scale(0.0, ticks[-1], height - 24, 8)
    parts = []
    for tick in ticks:
        parts.append(rule(_LEFT, y(tick), WIDTH - _RIGHT, y(tick), "grid" if tick else "axis"))
        parts.append(text(_LEFT - 8, y(tick) + 4, number(tick), anchor="end"))
    for at, label in time_ticks(since, until):
        parts.append(rule(x(at), 8, x(at), height - 24, "grid faint"))
        near_end = x(at) > WIDTH - _RIGHT - 34
        parts.append(text(x(at), height - 8, label, anchor="end" if near_end else "middle"))
    return x, y, parts


def _pointed_at(points: Sequence[Point], step: int, x: Scale, height: int, words: Callable[[Point], str]) -> list[str]:
    """Invisible columns that tell their figures when they are pointed at."""
    return [
        box(x(point.at), 8, x(point.at + step) - x(point.at), height - 32, "hover", words(point)) for point in points
    ]


def _lag_words(point: Point) -> str:
    oldest = "" if point.seconds is None else f", the oldest for {span(point.seconds)}"
    return f"{moment(point.at)}: {number(point.lag)} waited{oldest}; {counted(point.members, 'member')}"


def _rate_words(point: Point) -> str:
    return f"{moment(point.at)}: {number(point.produce_rate)} in, {number(point.consume_rate)} out, per second"
