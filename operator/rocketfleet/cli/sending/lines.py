"""Lines out of a stream of chunks, numbered, in bounded memory. Pure: whoever reads the stream feeds it in.

A line ends with LF or CR LF, and neither belongs to it; the last line may have no end. A line longer than the limit is
dropped as it comes in, so a stream without line ends cannot fill the memory, and is reported by its number alone.
"""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """A line by its number, from 1 on. `body` is None if the line was longer than the limit."""

    number: int
    body: bytes | None


class LineSplitter:
    """Feed chunks, take lines; `finish` at the end of the stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._number = 0
        self._pieces: list[bytes] = []
        self._held = 0
        self._too_long = False

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that end in this chunk."""
        first, *others = chunk.split(b"\n")
        self._hold(first)
        lines = []
        for piece in others:
            lines.append(self._end_line())
            self._hold(piece)
        return lines

    def finish(self) -> list[Line]:
        """The last line, if the stream does not end with a line end."""
        return [self._end_line()] if self._held or self._too_long else []

    def _hold(self, piece: bytes) -> None:
        if self._too_long or not piece:
            return
        # One byte above the limit may still be the CR of the line's end.
        if self._held + len(piece) > self._limit + 1:
            self._too_long = True
            self._pieces.clear()
            self._held = 0
        else:
            self._pieces.append(piece)
            self._held += len(piece)

    def _end_line(self) -> Line:
        self._number += 1
        body = b"".join(self._pieces).removesuffix(b"\r")
        too_long = self._too_long or len(body) > self._limit
        self._pieces.clear()
        self._held = 0
        self._too_long = False
        return Line(self._number, None if too_long else body)
