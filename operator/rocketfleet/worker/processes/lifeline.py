"""The thread between a parent process and each of its children: a socket pair that both hold one end of.

The parent sends the child's number and its control token (so that it stands in no environment and no argument list);
the child answers with the port it listens on. After that nothing is said: the end of the stream means that the other
one is gone. A child that loses its parent drains as if it were told to stop, and ends in any case some time later, even
when its event loop is stuck, because a thread sees to it.
"""

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, MutableMapping

_log = logging.getLogger(__name__)
VARIABLE = "ROCKETFLEET_WORKER_LIFELINE"
_LONGEST_LINE = 4096


class Lifeline:
    """A child's end."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        end.set_inheritable(False)
        hello = json.loads(_line(end))
        self.process = int(hello["process"])
        self.token = str(hello["token"])

    def report_port(self, port: int) -> None:
        """Tell the parent where we listen."""
        self._socket.sendall(json.dumps({"port": port}).encode() + b"\n")

    def hold(self, grace: float, stop: Callable[[], object]) -> None:
        """From now on: when the parent is gone, call `stop`, in a thread, and end `grace` seconds later in any case."""
        threading.Thread(target=self._watch, args=(grace, stop), name="lifeline", daemon=True).start()

    def _watch(self, grace: float, stop: Callable[[], object]) -> None:
        try:
            while self._socket.recv(_LONGEST_LINE):
                pass
        except OSError:
            pass
        _log.error("the parent process is gone: draining")
        with contextlib.suppress(RuntimeError):  # the event loop is closed: it is ending anyway
            stop()
        time.sleep(grace)
        _log.critical("still here %g s after the parent went: ending at once", grace)
        os._exit(1)


def adopt(environment: MutableMapping[str, str]) -> Lifeline | None:
    """Our end, if a parent started us. The variable is taken away: it is not for processes that we start."""
    number = environment.pop(VARIABLE, None)
    return None if number is None else Lifeline(socket.socket(fileno=int(number)))


def _line(end: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        if len(data) > _LONGEST_LINE or not (more := end.recv(1)):
            raise ConnectionError("the parent process went away before it said hello")
        data += more
    return data
