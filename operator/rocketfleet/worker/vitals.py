"""Is the worker alive? What the event loop leaves behind, and how another thread judges it.

A task on the consumer's loop notes the time, a few times per second. The control port's thread looks at the note: an
old one means that the loop is stuck, most likely in an asynchronous handler that blocks. A rebalance that has not been
round for long, or a task that has ended by itself, one of the consumer's or one of a queue's, means that it will not
get going again without a restart: the consumer says which (`ended_tasks`, `queue_problems`). Everything else that can
be wrong (a broker that is gone, a handler that hangs) a restart would not mend, so it is not asked here.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from rocketfleet.consumer.settings import ConsumerSettings

BEAT_SECONDS = 0.25
ROUNDS_MISSED = 3
_SHORTEST_ROUND_LIMIT = 10.0  # however short the interval, a slow broker is no reason to be killed


@dataclass(frozen=True, slots=True)
class MemberVitals:
    """What is known at one moment. `since_round` is None while there is nothing to rebalance: joining, draining."""

    since_beat: float
    since_round: float | None = None
    ended_tasks: tuple[str, ...] = ()
    queue_problems: tuple[str, ...] = ()  # sentences of the consumer's own, about tasks of single queues


def problems(vitals: MemberVitals, *, stuck_after: float, round_limit: float) -> list[str]:
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
    found += vitals.queue_problems
    return found


def round_limit(settings: ConsumerSettings) -> float:
    """How long rebalancing may stay away."""
    return max(ROUNDS_MISSED * settings.rebalance_interval, _SHORTEST_ROUND_LIMIT)


class Pulse:
    """The note. `beat` belongs on the consumer's loop; what it notes is read from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.last_beat = clock()

    def beat(self) -> None:
        """Note that the loop runs."""
        self.last_beat = self._clock()
