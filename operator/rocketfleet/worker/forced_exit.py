"""The last resort of a process that is over: a thread which the user's code left must not keep it alive."""

import logging
import os
import threading

from rocketfleet.control.budget import Margin

_log = logging.getLogger(__name__)


def force_exit_soon(code: int) -> None:
    """Exit hooks and threads get their time from now on, and no more; then the process ends with this code."""

    def leave() -> None:
        _log.error("the process has not ended after %g s: ending it", Margin.EXIT.seconds)
        logging.shutdown()
        os._exit(code)

    timer = threading.Timer(Margin.EXIT.seconds, leave)
    timer.daemon = True
    timer.start()
