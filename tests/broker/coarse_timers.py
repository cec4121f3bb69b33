"""Timers of child processes that need not be exact.

A broker has dozens of threads that wake every few milliseconds to find nothing to do, and each is woken on its own. If
the kernel may be late by a few milliseconds it wakes many at once: a third to a half of an idle broker's processor time
is gone. That matters where brokers idle beside tests on two cores. Tests do not assert on absolute time; benchmarks
measure it, and start their brokers without this.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_TIMERSLACK = 29
_LATE_NANOSECONDS = 10_000_000


@contextmanager
def coarse_timers() -> Iterator[None]:
    """Processes that this thread starts meanwhile have coarse timers; its own are exact again afterwards."""
    if sys.platform != "linux":
        yield
        return
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(_LATE_NANOSECONDS))
    try:
        yield
    finally:
        prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(0))  # 0: what the thread began with
