"""How long work tells what it does: to a terminal in place, to a log as a line now and then, to tests not at all."""

import threading
import time
from collections.abc import Callable
from typing import Protocol, TextIO


class Reporter(Protocol):
    """Where start-up and downloads say what they do."""

    def say(self, line: str) -> None:
        """Tell something that stays on the screen."""

    def progress(self, line: str) -> None:
        """Tell the present state of something; the next call replaces it."""


class Silent:
    """For tests and programs that do not care."""

    def say(self, line: str) -> None:
        pass

    def progress(self, line: str) -> None:
        pass


class StreamReporter:
    """Writes to a text stream, usually stderr: stdout belongs to the answer (`--json`)."""

    # A log file needs signs of life, not every step.
    PLAIN_INTERVAL_SECONDS = 5.0

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._in_place = stream.isatty()
        self._open_line = False
        self._last_line = ""
        self._last_time = float("-inf")
        self._lock = threading.Lock()  # downloads report from several threads

    def say(self, line: str) -> None:
        with self._lock:
            self._clear()
            self._write(line + "\n")

    def progress(self, line: str) -> None:
        with self._lock:
            self._progress(line)

    def _progress(self, line: str) -> None:
        if line == self._last_line:
            return
        if self._in_place:
            self._write("\r\x1b[K" + line)
            self._open_line = True
        else:
            now = self._clock()
            if now - self._last_time < self.PLAIN_INTERVAL_SECONDS:
                return
            self._last_time = now
            self._write(line + "\n")
        self._last_line = line

    def _clear(self) -> None:
        if self._open_line:
            self._write("\r\x1b[K")
            self._open_line = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
