"""Which brokers are slow or gone, for how long they are left alone, and when they are tried again.

The rule is Java's latency fault tolerance. Every answer's latency is looked up in a ladder: below 550 ms nothing
happens, from 550 ms on the broker is left alone for 30 s, from 1 s on for 60 s, and so on up to 10 minutes. A failed
send counts as if it had taken 10 s. A period once begun is never cut short by a quick answer that was under way at
the same time, it can only be extended: with many sends in flight the quick ones would otherwise undo the verdict at
once.

Two things are kept apart, because they end differently. A broker left alone for being *slow* stays so for its time:
that is the purpose. A broker left alone for *failing* may be back in a second, and three minutes of unused broker are
a waste, so a probe asks it every two seconds, and the first answer ends that period. (Java's probe only notes that
the broker is reachable and lets the period run; its newer tables are shorter instead.) A broker that fails again
after that, or answers slowly, is left alone again by the same rules.

The table is pure state: time comes from the clock it was given, and nothing here waits or sends.
"""

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Final

LADDER: Final[tuple[tuple[float, float], ...]] = (
    (0.050, 0.0),
    (0.100, 0.0),
    (0.550, 30.0),
    (1.000, 60.0),
    (2.000, 120.0),
    (3.000, 180.0),
    (15.000, 600.0),
)
"""(latency from which the rung applies, how long the broker is left alone), in seconds, ascending."""

FAILURE_LATENCY: Final = 10.0
"""The latency that a failed send is taken for."""


def rest_period(latency: float, ladder: tuple[tuple[float, float], ...] = LADDER) -> float:
    """How long a broker that took `latency` seconds is left alone."""
    for threshold, period in reversed(ladder):
        if latency >= threshold:
            return period
    return 0.0


class _Record:
    __slots__ = ("failed_until", "latency", "next_probe", "reachable", "slow_until")

    def __init__(self) -> None:
        self.latency = 0.0
        self.reachable = True
        self.slow_until = float("-inf")
        self.failed_until = float("-inf")
        self.next_probe = float("-inf")

    @property
    def resting_until(self) -> float:
        return max(self.slow_until, self.failed_until)


class FaultTable:
    """What is known of each broker's health. A broker that was never heard of is healthy."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        ladder: tuple[tuple[float, float], ...] = LADDER,
        failure_latency: float = FAILURE_LATENCY,
        probe_interval: float = 2.0,
    ) -> None:
        self._clock = clock
        self._ladder = ladder
        self._harmless = min((threshold for threshold, period in ladder if period > 0), default=float("inf"))
        self._failure_period = rest_period(failure_latency, ladder)
        self._probe_interval = probe_interval
        self._records: dict[str, _Record] = {}
        self._turn = itertools.count()

    def answered(self, broker: str, latency: float) -> None:
        """The broker stored a message after `latency` seconds."""
        record = self._records.get(broker)
        if record is None:
            record = self._records[broker] = _Record()
        record.latency = latency
        record.reachable = True
        if latency >= self._harmless:
            record.slow_until = max(record.slow_until, self._clock() + rest_period(latency, self._ladder))

    def failed(self, broker: str, latency: float, *, reachable: bool) -> None:
        """A send failed: refused by the broker (`reachable`), or lost on the way to it or back."""
        record = self._records.setdefault(broker, _Record())
        now = self._clock()
        record.latency = latency
        record.reachable = reachable
        record.failed_until = max(record.failed_until, now + self._failure_period)
        record.next_probe = max(record.next_probe, now + self._probe_interval)

    def is_available(self, broker: str) -> bool:
        """Whether the broker should be sent to: not resting."""
        record = self._records.get(broker)
        if record is None:
            return True
        now = self._clock()
        return now >= record.slow_until and now >= record.failed_until

    def is_reachable(self, broker: str) -> bool:
        """Whether the last word from the broker was an answer."""
        record = self._records.get(broker)
        return record is None or record.reachable

    def latency(self, broker: str) -> float | None:
        """The last latency noted, or None of an unknown broker."""
        record = self._records.get(broker)
        return None if record is None else record.latency

    def pick_one_at_least(self, brokers: Iterable[str]) -> str | None:
        """When all are resting: one of the better half of the reachable brokers, in turn. None if none is reachable."""
        candidates = sorted((b for b in set(brokers) if self.is_reachable(b)), key=self._badness)
        if not candidates:
            return None
        better_half = max(1, len(candidates) // 2)
        return candidates[next(self._turn) % better_half]

    def forget(self, brokers: Iterable[str]) -> None:
        """Drop brokers that no route names any more."""
        for broker in brokers:
            self._records.pop(broker, None)

    def known(self) -> tuple[str, ...]:
        """Every broker the table has something on."""
        return tuple(self._records)

    def due_for_probe(self) -> list[str]:
        """Brokers that failed and were not asked within the interval. Asking counts from now."""
        now = self._clock()
        due = []
        for broker, record in self._records.items():
            waiting = not record.reachable or now < record.failed_until
            if waiting and now >= record.next_probe:
                record.next_probe = now + self._probe_interval
                due.append(broker)
        return due

    def came_back(self, broker: str) -> bool:
        """A probe was answered in time. True if that put the broker back into use."""
        record = self._records.get(broker)
        if record is None:
            return False
        was_available = record.reachable and self.is_available(broker)
        record.reachable = True
        record.failed_until = float("-inf")
        return not was_available and self.is_available(broker)

    def _badness(self, broker: str) -> tuple[bool, float, float, str]:
        record = self._records.get(broker)
        if record is None:
            return (False, 0.0, float("-inf"), broker)
        return (not self.is_available(broker), record.latency, record.resting_until, broker)
