"""A driver process from its first line to its exit code: the driver, its control port, signals, last words.

The control port has a thread of its own and opens before Spark starts: JVMs take their time, and a pod that does not
answer meanwhile would be taken for dead.
"""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING

from rocketfleet.control import last_words
from rocketfleet.control.budget import Margin
from rocketfleet.control.endpoints import Endpoints
from rocketfleet.control.server import ControlThread
from rocketfleet.spark.driver.control import DriverControl
from rocketfleet.spark.driver.driver import Driver, DriverSpec
from rocketfleet.worker.forced_exit import force_exit_soon

if TYPE_CHECKING:
    from pathlib import Path

    from rocketfleet.control.port import ControlPort
    from rocketfleet.control.token import Token

_log = logging.getLogger(__name__)


def run(spec: DriverSpec, port: ControlPort, token: Token, words_file: Path | None = None) -> int:
    """Run one driver to its end; returns the exit code. It belongs to the main thread, which gets the signals."""
    driver = Driver(spec)
    control = ControlThread(Endpoints(DriverControl(driver), token).answer)
    port.announce(*port.open(control.start))

    def note(_number: int, _frame: object) -> None:
        driver.stop_or_hurry()

    # SIGINT is Spark's as soon as there is a session; nobody sends it to a driver in a pod or of `rocketfleet run`.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    outcome = driver.run()
    if outcome.sentence is not None:
        _log.error("%s", outcome.sentence)
        last_words.leave_sentence(words_file, outcome.sentence)
    else:
        last_words.leave(words_file, outcome.last_words)
    control.close(Margin.ANSWER.seconds)
    force_exit_soon(outcome.code)
    return outcome.code
