"""Standard output by whole lines, for handlers that print from many threads.

`print` writes its arguments and the line end one by one, and threads take turns in between: of two lines a jumble would
come out. Here a thread's words are kept until its line ends, and a line goes out as one, at once: nobody waits for a
buffer to fill to see what a handler did.
"""

from __future__ import annotations

import atexit
import io
import sys
import threading
from typing import Any, TextIO


class WholeLines(io.TextIOBase):
    """In place of a text stream; what it does not do itself, the stream does."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._begun: dict[int, str] = {}  # by thread: a line without its end

    def write(self, text: str) -> int:
        thread = threading.get_ident()
        with self._lock:
            lines, end, rest = (self._begun.pop(thread, "") + text).rpartition("\n")
            if rest:
                self._begun[thread] = rest
            if end:
                self._stream.write(lines + end)
                self._stream.flush()
        return len(text)

    def flush(self) -> None:
        """Also what has no end yet, of this thread: somebody wants to see it."""
        with self._lock:
            begun = self._begun.pop(threading.get_ident(), "")
            if begun:
                self._stream.write(begun)
            self._stream.flush()

    def finish(self) -> None:
        """At the end: what other threads have begun goes out too."""
        with self._lock:
            for begun in self._begun.values():
                self._stream.write(begun)
            self._begun.clear()
            self._stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def install() -> None:
    """Have everything that this process prints go out by whole lines."""
    if sys.stdout is None or isinstance(sys.stdout, WholeLines):
        return
    lines = WholeLines(sys.stdout)
    sys.stdout = lines
    atexit.register(lines.finish)
