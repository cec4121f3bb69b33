"""What every chart is drawn with: scales, ticks, lines, and text that is safe to put into a page."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Place = tuple[float, float | None]
"""Where and how much; None is a gap."""

_HOUR: Final = 3600
_DAY: Final = 86_400
_TIME_STEPS: Final = (
    *(_HOUR // 12, _HOUR // 4, _HOUR // 2, _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 91 * _DAY, 364 * _DAY),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """From a figure to a place in the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return self.start + share * (self.end - self.start)


def safe(text: object) -> str:
    """Text as it may stand in HTML, in an element or in quotes. Names of groups and topics are anybody's."""
    return html.escape(str(text), quote=True)


def place(value: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def value_ticks(most: float, about: int = 3) -> list[float]:
    """Round numbers from 0 to at least the most, some three of them above 0."""
    if most <= 0 or not math.isfinite(most):
        return [0.0, 1.0]
    rough = most / about
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    return [step * count for count in range(math.ceil(most / step - 1e-9) + 1)]


def time_ticks(since: float, until: float, most: int = 10) -> list[tuple[float, str]]:
    """Round times with their labels: days where there are several, else hours."""
    step = next((one for one in _TIME_STEPS if (until - since) / one <= most), _TIME_STEPS[-1])
    first = math.ceil(since / step) * step
    ticks: list[tuple[float, str]] = []
    for count in range(int((until - first) // step) + 1):
        moment = datetime.fromtimestamp(first + count * step, UTC)
        whole_day = step >= _DAY or (moment.hour, moment.minute) == (0, 0)
        ticks.append(
            (first + count * step, f"{moment:%a} {moment.day} {moment:%b}" if whole_day else f"{moment:%H:%M}")
        )
    return ticks


def line(places: Iterable[Place], x: Scale, y: Scale) -> str:
    """A path through what is known; a gap ends one line and begins the next."""
    parts: list[str] = []
    drawing = False
    for at, value in places:
        if value is None:
            drawing = False
            continue
        parts.append(f"{'L' if drawing else 'M'}{place(x(at))} {place(y(value))}")
        drawing = True
    return "".join(parts)


def area(places: Sequence[Place], x: Scale, y: Scale) -> str:
    """The same, filled down to nothing."""
    parts: list[str] = []
    stretch: list[tuple[float, float]] = []

    def close() -> None:
        if stretch:
            ground = place(y(0.0))
            top = "".join(f"L{place(x(at))} {place(y(value))}" for at, value in stretch)
            parts.append(f"M{place(x(stretch[0][0]))} {ground}{top}L{place(x(stretch[-1][0]))} {ground}Z")
            stretch.clear()

    for at, value in places:
        if value is None:
            close()
        else:
            stretch.append((at, value))
    close()
    return "".join(parts)


def text(x: float, y: float, words: str, kind: str = "tick", anchor: str = "start") -> str:
    return f'<text x="{place(x)}" y="{place(y)}" class="{kind}" text-anchor="{anchor}">{safe(words)}</text>'


def rule(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    return f'<line x1="{place(x1)}" y1="{place(y1)}" x2="{place(x2)}" y2="{place(y2)}" class="{kind}"/>'


def box(x: float, y: float, width: float, height: float, kind: str, title: str = "", extra: str = "") -> str:
    """A rectangle that says what it is when it is pointed at."""
    shape = f'<rect x="{place(x)}" y="{place(y)}" width="{place(width)}" height="{place(max(0.0, height))}"'
    shape += f' class="{kind}"{extra}'
    return f"{shape}><title>{safe(title)}</title></rect>" if title else f"{shape}/>"


def picture(width: int, height: int, label: str, *parts: str) -> str:
    """The parts as one picture, with words for those who do not see it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{safe(label)}" '
        f'preserveAspectRatio="xMidYMid meet">{"".join(parts)}</svg>'
    )
