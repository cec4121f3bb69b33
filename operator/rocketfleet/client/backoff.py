"""When to try a peer again after connecting to it failed.

The delay doubles with each failure in a row up to a limit, and is drawn from the upper half of that span, so that a
thousand clients of a broker that went away do not all come back in the same instant. Nothing here reads a clock or a
random source: both are passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Bounds of the delay between two attempts, in seconds."""

    first: float = 0.1
    limit: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.limit:
            raise ValueError(f"back-off must have 0 < first ({self.first}) <= limit ({self.limit}) seconds")


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures in a row of one peer: how many, why the last one failed, and when the next attempt is due."""

    count: int
    reason: str
    until: float


def delay(policy: BackoffPolicy, failures: int, random: Callable[[], float]) -> float:
    """Seconds to wait after this many failures in a row (1 or more); `random` draws from [0, 1)."""
    # Beyond 2**60 the exponent only costs digits: the limit has long been reached.
    span = min(policy.limit, policy.first * 2.0 ** min(failures - 1, 60))
    return span * (0.5 + 0.5 * random())


def after_failure(
    policy: BackoffPolicy, before: Failures | None, reason: str, now: float, random: Callable[[], float]
) -> Failures:
    """The state after one more failure."""
    count = 1 if before is None else before.count + 1
    return Failures(count, reason, now + delay(policy, count, random))
