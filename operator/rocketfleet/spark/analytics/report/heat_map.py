"""Heat maps by the hour: a group's days below each other, and all groups below each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocketfleet.spark.analytics.figures import HOURS
from rocketfleet.spark.analytics.report.svg import box, picture, text
from rocketfleet.spark.analytics.wording import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

MOST_DAYS: Final = 31
_FAINTEST: Final = 0.08


def days_by_hour(hourly: Mapping[date, Mapping[int, float]]) -> str:
    """Messages per second that came, by day and hour; the last days where there are many."""
    days = sorted(hourly)[-MOST_DAYS:]
    most = max((value for day in days for value in hourly[day].values()), default=0.0)
    rows = [(f"{day:%a} {day.day}", [hourly[day].get(hour) for hour in range(HOURS)], most) for day in days]
    titles = [str(day) for day in days]
    return _map(rows, titles, width=400, left=56, height=20 if len(days) <= 10 else 11)


def groups_by_hour(groups: Sequence[tuple[str, Sequence[float | None]]]) -> str:
    """Each group's usual hours, by its own largest: what matters is when, not how much."""
    rows = []
    for name, values in groups:
        most = max((value for value in values if value is not None), default=0.0)
        rows.append((name if len(name) <= 24 else f"{name[:23]}…", values, most))
    return _map(rows, [name for name, _ in groups], width=1040, left=170, height=24)


def _map(
    rows: Sequence[tuple[str, Sequence[float | None], float]],
    titles: Sequence[str],
    *,
    width: int,
    left: int,
    height: int,
) -> str:
    cell = (width - left - 4) / HOURS
    parts = []
    for line, ((label, values, most), title) in enumerate(zip(rows, titles, strict=True)):
        top = 4 + line * height
        parts.append(text(left - 8, top + height / 2 + 4, label, anchor="end"))
        for hour, value in enumerate(values):
            kind, extra, words = "cell none", "", "not seen"
            if value is not None:
                share = value / most if most > 0 else 0.0
                kind, words = "cell", f"{number(value)} per second"
                extra = f' fill-opacity="{_FAINTEST + (1 - _FAINTEST) * share:.2f}"'
            place = left + hour * cell
            parts.append(box(place, top, cell - 2, height - 2, kind, f"{title} {hour:02d}:00 – {words}", extra))
    foot = 4 + len(rows) * height
    parts += [text(left + hour * cell, foot + 13, f"{hour:02d}") for hour in range(0, HOURS, 3)]
    return picture(width, foot + 18, "Messages per second by the hour of the day, in UTC", *parts)
