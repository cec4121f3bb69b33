"""Is the worker alive? What the event loop leaves behind, and how another thread judges it.

A task on the consumer's loop notes the time and which of the consumer's tasks still run, a few times a second. The
control port's thread looks at the notes: an old one means that the loop is stuck, most likely in an asynchronous
handler that blocks. A rebalance that has not been round for long, or a task that has ended by itself, means that the
consumer will not get going again without a restart. Everything else that can be wrong (a broker that is gone, a handler
that hangs) a restart would not mend, so it is not asked here.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from rocketfleet.consumer.settings import ConsumerSettings

BEAT_SECONDS = 0.25
ROUNDS_MISSED = 3
_SHORTEST_ROUND_LIMIT = 10.0  # however short the interval, a slow broker is no reason to be killed


@dataclass(frozen=True, slots=True)
class Vitals:
    """What is known at one moment. `since_round` is None while there is nothing to rebalance: joining, draining."""

    since_beat: float
    since_round: float | None = None
    ended_tasks: tuple[str, ...] = ()


def problems(vitals: Vitals, *, stuck_after: float, round_limit: float) -> list[str]:
    """Why the process should be restarted, a sentence each; empty if it is well."""
    found = []
    if vitals.since_beat > stuck_after:
        found.append(
            f"the event loop has not run for {vitals.since_beat:.1f} s (limit {stuck_after:g} s): "
            "does an asynchronous handler block?"
        )
    if vitals.since_round is not None and vitals.since_round > round_limit:
        found.append(f"no round of rebalancing for {vitals.since_round:.1f} s (limit {round_limit:g} s)")
    found += [f"the consumer's task {name!r} has ended by itself" for name in vitals.ended_tasks]
    return found


def round_limit(settings: ConsumerSettings) -> float:
    """How long rebalancing may stay away."""
    return max(ROUNDS_MISSED * settings.rebalance_interval, _SHORTEST_ROUND_LIMIT)


def expected_tasks(settings: ConsumerSettings) -> frozenset[str]:
    """The names of the tasks without which a running consumer does not do its work."""
    names = ["rebalance", "heartbeat", "persist", "tick"]
    if not settings.is_broadcasting:
        names.append("commit soon")
    if settings.locks_queues:
        names += ["locks", "watch"]
    return frozenset(f"{name} {settings.group}" for name in names)


class Pulse:
    """The notes. `beat` belongs on the consumer's loop; what it notes is read from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.last_beat = clock()
        self.running: frozenset[str] = frozenset()

    def beat(self) -> None:
        """Note that the loop runs, and what runs on it."""
        self.running = frozenset(task.get_name() for task in asyncio.all_tasks())
        self.last_beat = self._clock()
