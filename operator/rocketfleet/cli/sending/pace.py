"""So many per second: when the next one may go. Pure: the clock is the caller's.

The schedule is counted from the first one, so that small delays do not add up and the rate holds over the whole run.
Who falls behind may catch up, but by no more than `burst` seconds: after a stall the rest is not sent all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SendRate:
    """Grants turns at a rate. Not for several tasks at once."""

    def __init__(self, rate: float, clock: Callable[[], float], burst: float = 1.0) -> None:
        if rate <= 0:
            raise ValueError(f"a rate must be more than 0 per second, not {rate}")
        self._interval = 1 / rate
        self._clock = clock
        self._burst = burst
        self._next = float("-inf")

    def take(self, count: int = 1) -> float:
        """Take `count` turns; returns how many seconds to wait before using them."""
        now = self._clock()
        start = max(self._next, now - self._burst) if self._next > float("-inf") else now
        self._next = start + count * self._interval
        return max(0.0, start - now)
