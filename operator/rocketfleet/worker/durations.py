"""How long handlers take, as a histogram cheap enough to be always on.

A wrapper around the handler reads the clock twice and raises one number in a list. Threads raise the same numbers
without a lock: now and then an update is lost, which a statistic can bear and two hundred thousand locks a second
could not.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import wraps
from itertools import accumulate
from time import perf_counter
from typing import Any, Final

from rocketfleet.consumer.handler import Handler

BOUNDS: Final = (
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip


class HandlerExited(Exception):
    """The handler called sys.exit: its message has failed. Let through, it would end a thread without a word, or us."""

    def __init__(self) -> None:
        super().__init__("the handler called sys.exit; raise an error instead, the worker is stopped by a signal")


class Durations:
    """Calls by how long they took: at most each bound, and longer than all of them."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def note(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """As Prometheus has it: calls that took at most so long, up to `+Inf`."""
        names = [*(str(bound) for bound in BOUNDS), "+Inf"]
        return list(zip(names, accumulate(map(float, self.counts)), strict=True))


def timed(handler: Handler, durations: Durations) -> Callable[[Any], Any]:
    """The handler, with every call noted, and an ordinary error where it calls sys.exit.

    It looks like the original to whoever inspects its signature.
    """
    call, note, clock = handler.call, durations.note, perf_counter
    counts, shortest = durations.counts, BOUNDS[0]

    if handler.is_async:

        @wraps(call)
        async def measured(argument: Any) -> Any:
            started = clock()
            try:
                return await call(argument)
            except SystemExit as error:
                raise HandlerExited from error
            finally:
                note(clock() - started)

    else:

        @wraps(call)
        def measured(argument: Any) -> Any:
            started = clock()
            try:
                return call(argument)
            except SystemExit as error:
                raise HandlerExited from error
            finally:
                elapsed = clock() - started
                if elapsed <= shortest:  # where every nanosecond shows, one call less
                    counts[0] += 1
                    durations.total += elapsed
                else:
                    note(elapsed)

    return measured
