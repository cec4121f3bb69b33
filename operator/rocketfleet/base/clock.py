"""The clock that leases are measured by: monotonic, and running while the process or the machine sleeps.

CLOCK_MONOTONIC goes on while a process is stopped, but not while the machine is suspended; CLOCK_BOOTTIME does. Where
there is none the monotonic clock has to do. It is asked before every message, hence no Python function around it.
"""

import time
from collections.abc import Callable
from functools import partial

lease_clock: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
"""Seconds since some moment; never goes back."""
