"""A driver process from its first line to its exit code: the driver, its control port, signals, last words.

The control port has a thread of its own and opens before Spark starts: JVMs take their time, and a pod that does not
answer meanwhile would be taken for dead.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import TYPE_CHECKING, Final

from rocketfleet.spark.driver.control import DriverControl
from rocketfleet.spark.driver.driver import Driver, DriverSpec
from rocketfleet.worker import last_words
from rocketfleet.worker.control_server import ControlThread
from rocketfleet.worker.endpoints import Endpoints

if TYPE_CHECKING:
    from pathlib import Path

    from rocketfleet.worker.port import ControlPort
    from rocketfleet.worker.token import Token

_log = logging.getLogger(__name__)
ANSWER_GRACE: Final = 5.0  # for callers who wait for the drain's outcome
EXIT_GRACE: Final = 10.0  # for whatever threads the pipeline left


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
        offsets = {queue: end.offset for queue, end in outcome.final.items()}
        last_words.leave(words_file, last_words.LastWords(outcome.confirmed, offsets))
    control.close(ANSWER_GRACE)
    _leave_in_any_case(outcome.code)
    return outcome.code


def _leave_in_any_case(code: int) -> None:
    """A thread that somebody left must not keep a driver alive that has drained."""

    def leave() -> None:
        _log.error("the process did not end %g s after its drain: ending it", EXIT_GRACE)
        logging.shutdown()
        os._exit(code)

    timer = threading.Timer(EXIT_GRACE, leave)
    timer.daemon = True
    timer.start()
