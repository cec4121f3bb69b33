"""How many messages a worker takes at once: as many as fill about two milliseconds.

A hand-over to a thread costs some ten microseconds, which is nothing beside a handler that asks a database and
everything beside one that counts. So the length of a run follows the handler's measured time: one message for a slow
handler, so that all threads share the work; hundreds for a quick one. `is_quick` says when waking another thread
costs more than it brings: with quick handlers the interpreter lock lets only one of them run anyway.
"""

RUN_SECONDS = 0.002
MAX_RUN = 256
QUICK = 0.0002


class HandlerPace:
    """A moving average of the time one message takes. Shared by all workers; a lost update does no harm."""

    __slots__ = ("_average",)

    def __init__(self) -> None:
        self._average: float | None = None

    def note(self, seconds: float, messages: int) -> None:
        """A worker handled `messages` in `seconds`."""
        if messages < 1:
            return
        sample = seconds / messages
        average = self._average
        if average is None or sample > average:
            self._average = sample  # slower than thought: believe it at once, a long run of slow messages hurts
        else:
            self._average = average + 0.25 * (sample - average)

    @property
    def average(self) -> float | None:
        """Seconds a message takes, or None before the first."""
        return self._average

    @property
    def run_length(self) -> int:
        average = self._average
        if average is None:
            return 1
        if average * MAX_RUN <= RUN_SECONDS:
            return MAX_RUN
        return max(1, int(RUN_SECONDS / average))

    @property
    def is_quick(self) -> bool:
        average = self._average
        return average is not None and average < QUICK
