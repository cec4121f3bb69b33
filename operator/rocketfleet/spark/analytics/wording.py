"""Figures for people: short numbers, spans and rates. Pure."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

NONE: Final = "–"
_STEPS: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: float | None) -> str:
    """1234 → 1,234; 12345 → 12.3 k; 0.25 → 0.25."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞"
    for size, unit in _STEPS:
        if abs(value) >= size * (10 if unit == "k" else 1):
            return f"{_three(value / size)} {unit}"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return _three(value)


def _three(value: float) -> str:
    """Three figures, without zeros that say nothing."""
    places = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def per_second(value: float | None) -> str:
    return NONE if value is None else f"{number(value)} per second"


def span(seconds: float | None) -> str:
    """The two largest units: 3 d 4 h, 5 min, 0.4 s."""
    if seconds is None or math.isnan(seconds):
        return NONE
    if math.isinf(seconds):
        return "never"
    if seconds < 10:
        return f"{_three(seconds)} s"
    whole = round(seconds)
    parts = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        many, whole = divmod(whole, size)
        if many:
            parts.append((size, f"{many} {unit}"))
    first, *rest = parts
    follows = rest[0][1] if rest and rest[0][0] * 100 >= first[0] else ""
    return f"{first[1]} {follows}".strip()


def moment(seconds: float) -> str:
    """A time in UTC, to the minute."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
