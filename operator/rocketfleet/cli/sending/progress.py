"""A line on the terminal that says how far things are. Where there is no terminal, there is none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

BAR_WIDTH = 30
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Redraws one line, at most ten times per second; what is said in between stands above it."""

    def __init__(
        self,
        stream: TextIO,
        state: Callable[[], str],
        *,
        wanted: bool = True,
        clock: Callable[[], float] = time.monotonic,
        interval: float = 0.1,
    ) -> None:
        self._stream = stream
        self._state = state
        self._clock = clock
        self._interval = interval
        self._drawn = False
        self._last = float("-inf")
        self.visible = wanted and stream.isatty()

    def update(self) -> None:
        """Draw again, if it is time."""
        if self.visible and self._clock() - self._last >= self._interval:
            self._last = self._clock()
            self._stream.write(_CLEAR + self._state())
            self._stream.flush()
            self._drawn = True

    def say(self, line: str) -> None:
        """A line that stays."""
        self.clear()
        self._stream.write(line + "\n")
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._drawn = False


def bar(done: int, total: int) -> str:
    """`[#####-----] 50%`."""
    share = min(1.0, done / total) if total else 1.0
    filled = int(share * BAR_WIDTH)
    return f"[{'#' * filled}{'-' * (BAR_WIDTH - filled)}] {int(share * 100):3d}%"
