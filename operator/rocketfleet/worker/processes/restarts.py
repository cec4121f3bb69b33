"""When to start a process again that has ended by itself: at once at first, then less and less often."""

from dataclasses import dataclass
from typing import Final

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
STABLE_SECONDS: Final = 60.0  # a process that lived so long had no trouble starting
FAILURES_TO_GIVE_UP: Final = 5  # failures in a row after which the pod is better started afresh


@dataclass(slots=True)
class Restarts:
    """One process's history."""

    failures: int = 0  # in a row
    total: int = 0

    def ended(self, lived: float) -> float:
        """It ended after so many seconds: how long to wait before it is started again."""
        self.failures = 1 if lived >= STABLE_SECONDS else self.failures + 1
        self.total += 1
        return float(min(FIRST_PAUSE * 2 ** min(self.failures - 1, 16), LONGEST_PAUSE))

    @property
    def too_many(self) -> bool:
        return self.failures >= FAILURES_TO_GIVE_UP
