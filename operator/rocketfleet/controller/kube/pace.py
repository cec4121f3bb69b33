"""How fast the API server is called: so many calls per second, with bursts, and not at all while it asks us to wait.

The bucket is kept as one moment: when it would be full of calls again. A call moves it on by its share of a second, and
waits for as long as the moment is further ahead than a burst. A call that would have to wait longer than it may takes
no place: where more is asked for than the rate allows, as many calls as ever get through. `hold` is for 429 and its
Retry-After; what waits for its end comes at the rate, not all at once.
"""

import asyncio
import time
from collections.abc import Callable

QPS = 100.0
BURST = 200
LONGEST_HOLD = 60.0
UNSAID = 1.0  # seconds to wait where the server does not say


class CallRate:
    """The calls of one process, all together."""

    def __init__(self, qps: float = QPS, burst: int = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = 1.0 / qps
        self._ahead = burst / qps
        self._clock = clock
        self._full_at = clock()
        self._held_until = 0.0

    def reserve(self, limit: float) -> float | None:
        """Take a place; the seconds until it has come. None: that would be the limit or more, and none is taken."""
        now = self._clock()
        full_at = max(self._full_at, now) + self._share
        wait = max(0.0, full_at - self._ahead - now)
        if wait >= limit:
            return None
        self._full_at = full_at
        return wait

    def hold(self, retry_after: str | None) -> None:
        """The server asks us to wait. Its header is a number of seconds; a date is nothing that it sends."""
        text = (retry_after or "").strip()
        seconds = float(text) if text.isascii() and text.isdecimal() else UNSAID
        self._held_until = max(self._held_until, self._clock() + min(max(seconds, UNSAID), LONGEST_HOLD))
        self._full_at = max(self._full_at, self._held_until + self._ahead - self._share)  # no burst at its end

    async def turn(self, limit: float) -> float | None:
        """Wait for a place, at most so long; what is left of the limit, or None: it would have taken longer."""
        while (wait := self.reserve(limit)) is not None:
            if wait > 0.0:
                await asyncio.sleep(wait)
            limit -= wait
            if self._clock() >= self._held_until:
                return limit
            # The server has asked us to wait since: another place, after that.
        return None
