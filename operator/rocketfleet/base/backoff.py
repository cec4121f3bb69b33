"""When to try a peer again after connecting to it failed.

The delay grows with each failure in a row up to a limit, and is drawn from the upper half of that span, so that a
thousand clients of a broker that went away do not all come back in the same instant. Nothing here reads a clock or a
random source: both are passed in.

With a growth of g, whoever has been trying for t seconds waits at most first + (g - 1) * t before the next attempt. So
the growth decides how much later than possible a peer that was away for t is found again: by the same again if the
delay doubles, by a tenth with `RECONNECT`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Bounds of the delay between two attempts, in seconds, and by what it is multiplied after each."""

    first: float = 0.1
    limit: float = 1.0
    growth: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.limit:
            raise ValueError(f"back-off must have 0 < first ({self.first}) <= limit ({self.limit}) seconds")
        if not 1 < self.growth <= 2:
            raise ValueError(f"back-off must have 1 < growth ({self.growth}) <= 2")


RECONNECT = BackoffPolicy(first=0.1, limit=1.0, growth=1.1)
"""Reconnecting. The others give a member's locks away two seconds after its connection broke
(`consumer/handover/roster.py`), so one that was away for most of that time must not wait for the rest of it. The limit
is reached after nine seconds."""


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures in a row of one peer: how many, why the last one failed, and when the next attempt is due."""

    count: int
    reason: str
    until: float


def delay(policy: BackoffPolicy, failures: int, random: Callable[[], float]) -> float:
    """Seconds to wait after this many failures in a row (1 or more); `random` draws from [0, 1)."""
    # 2**1000 is about as much as a float can hold, and the limit has long been reached.
    span = min(policy.limit, policy.first * policy.growth ** min(failures - 1, 1000))
    return span * (0.5 + 0.5 * random())


def after_failure(
    policy: BackoffPolicy, before: Failures | None, reason: str, now: float, random: Callable[[], float]
) -> Failures:
    """The state after one more failure."""
    count = 1 if before is None else before.count + 1
    return Failures(count, reason, now + delay(policy, count, random))
