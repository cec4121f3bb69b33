"""What a worker is before it is a member: it imports the user's handler, which may load a model for minutes.

The control port is open all that time, so that whoever looks can tell "still importing" from "does not answer":
/healthz is well until `limit` seconds are over, /readyz is not ready and says why. Nothing is held yet, so a request to
drain is answered at once, and such a worker never joins. A signal ends it on the spot (stop_signals.py).
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from rocketfleet.control import exit_codes, last_words
from rocketfleet.control.endpoints import Unavailable
from rocketfleet.control.messages import Assignment, DrainOutcome, DrainReport
from rocketfleet.worker.outcome import Outcome


class Starting:
    """A Control over a worker that imports its handler."""

    def __init__(
        self, group: str, client_id: str, limit: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._group = group
        self._client_id = client_id
        self._limit = limit
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()  # the port has a thread of its own
        self._drained = False
        self._over = False

    def end(self) -> bool:
        """The handler is there. False: the worker was drained meanwhile, and must not join."""
        with self._lock:
            self._over = True
            return not self._drained

    async def health(self) -> list[str]:
        taken = self._clock() - self._began
        if taken <= self._limit:
            return []
        return [f"the handler's module is still being imported after {taken:.0f} s (limit {self._limit:g} s)"]

    async def readiness(self) -> list[str]:
        return ["the handler's module is being imported"]

    async def metrics(self) -> tuple[str, bytes]:
        from rocketfleet.worker import metrics

        return metrics.CONTENT_TYPE, b""

    async def assignment(self) -> Assignment:
        raise Unavailable("the handler's module is being imported: nothing is held yet")

    async def rebalance(self) -> Assignment:
        raise Unavailable("there is nothing to rebalance: the handler's module is being imported", status=409)

    async def drain(self) -> DrainReport:
        with self._lock:
            if self._over:
                raise Unavailable("the worker has just begun to join: ask again")
            self._drained = True
        return Outcome(exit_codes.DRAINED).report(self._group, self._client_id)


class DrainedExit:
    """Ends a process that holds nothing, whatever runs in it: there is nothing to finish.

    A signal is heard twice, by the main thread and by the one that listens, and a parent may be gone at the same
    moment. Only the first leaves the last words: another would empty their file just before the process ends.
    """

    def __init__(self, words_file: Path | None, *, end: Callable[[int], object] = os._exit) -> None:
        self._words_file = words_file
        self._end = end
        self._begun = threading.Lock()  # never let go; never waited for, since a signal interrupts its own thread

    def __call__(self) -> None:
        if self._begun.acquire(blocking=False):
            last_words.leave(self._words_file, DrainOutcome(confirmed=True, offsets={}))
            self._end(exit_codes.DRAINED)
