"""A wall clock that can be set, inside of one process: `time.time` and `time.time_ns` are off by what a file says.

Python imports this by itself, before anything else, if the folder is on its path. Monotonic clocks and sleeps are
as ever. (libfaketime would do it for all libraries, but breaks `time.sleep`, which waits for a point of a
monotonic clock.)
"""

import os
import time

FILE = "FAULTS_CLOCK"
LOOK_SECONDS = 0.05


def set_clock(path: str) -> None:
    wall, wall_ns, monotonic = time.time, time.time_ns, time.monotonic
    seen, off = float("-inf"), 0

    def seconds_off() -> int:
        nonlocal seen, off
        now = monotonic()
        if now - seen > LOOK_SECONDS:
            seen = now
            with open(path) as file:  # noqa: PTH123 - pathlib would be imported into every process that starts
                off = int(file.read())
        return off

    def fake_time() -> float:
        return wall() + seconds_off()

    def fake_time_ns() -> int:
        return wall_ns() + seconds_off() * 1_000_000_000

    time.time, time.time_ns = fake_time, fake_time_ns


if FILE in os.environ:
    set_clock(os.environ[FILE])
