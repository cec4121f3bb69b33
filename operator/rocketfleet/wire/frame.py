"""Cutting a byte stream into frames.

A frame is an int32 length and that many bytes. The first four of those are a word that says how the header is written
(its top byte) and how long it is (the rest); then come the header and the body. This file reads no more than those two
words: it must decide from the first eight bytes whether the rest is worth buffering, because a peer that speaks HTTP,
or a length that a bug or an attacker made up, must not make us wait for, or allocate, gigabytes.

A chunk that holds whole frames is not copied: what comes out are views of the chunk. Only a frame that straddles
chunks is gathered in a buffer of its own, which grows with what has arrived, never with what was announced.
"""

import struct
from typing import Final

from rocketfleet.wire.errors import FrameError

MAX_FRAME_LENGTH: Final = 16 * 1024 * 1024
"""The largest frame, length word included. It is what the broker itself accepts, and so the most it sends."""

_WORDS = struct.Struct(">iBBH")  # length, header form, header length (24 bits as 8 + 16)
_WORDS_LENGTH: Final = 8
_HEADER_FORMS: Final = 2


class FrameDecoder:
    """Takes the stream in any cut and gives back the payload of each complete frame: all but its length word."""

    __slots__ = ("_error", "_max_length", "_partial", "_wanted")

    def __init__(self, max_frame: int = MAX_FRAME_LENGTH) -> None:
        self._max_length = max_frame - 4
        self._partial = bytearray()  # the beginning of a frame that has not ended yet, length word included
        self._wanted = 0  # the whole length of that frame, once its first eight bytes are here
        self._error: str | None = None

    @property
    def buffered(self) -> int:
        """How many bytes of an unfinished frame are held."""
        return len(self._partial)

    def feed(self, chunk: bytes) -> list[memoryview]:
        """Give the next bytes of the stream; get the payloads they complete, in order, as read-only views.

        Raises FrameError as soon as the stream stops making sense, and from then on always.
        """
        if self._error is not None:
            raise FrameError(self._error)
        frames: list[memoryview] = []
        position = 0
        if self._partial:
            position = self._finish_partial(chunk, frames)
            if position < 0:
                return frames
        end = len(chunk)
        view = memoryview(chunk).toreadonly()
        while end - position >= _WORDS_LENGTH:
            frame_end = position + self._frame_length(view, position, frames)
            if frame_end > end:
                self._wanted = frame_end - position
                break
            frames.append(view[position + 4 : frame_end])
            position = frame_end
        if position < end:
            if 4 <= end - position < _WORDS_LENGTH:
                self._check_length(view, position, frames)
            self._partial += view[position:]
        return frames

    def _finish_partial(self, chunk: bytes, frames: list[memoryview]) -> int:
        """Add to the unfinished frame; return where in the chunk the next frame begins, or -1 if there is none."""
        partial = self._partial
        position = 0
        if not self._wanted:
            position = _WORDS_LENGTH - len(partial)
            partial += chunk[:position]
            if len(partial) < _WORDS_LENGTH:
                if len(partial) >= 4:
                    self._check_length(partial, 0, frames)
                return -1
            self._wanted = self._frame_length(partial, 0, frames)
        missing = self._wanted - len(partial)
        partial += memoryview(chunk)[position : position + missing]
        if len(partial) < self._wanted:
            return -1
        frames.append(memoryview(partial).toreadonly()[4:])
        self._partial = bytearray()
        self._wanted = 0
        return position + missing

    def _frame_length(self, data: bytearray | memoryview, position: int, frames: list[memoryview]) -> int:
        """The whole length of the frame that begins here, judged by its first eight bytes."""
        length, form, high, low = _WORDS.unpack_from(data, position)
        header = high << 16 | low
        if 4 + header <= length <= self._max_length and form < _HEADER_FORMS:
            whole: int = length + 4
            return whole
        self._check_length(data, position, frames)
        if form >= _HEADER_FORMS:
            problem = f"the peer sent a header of form {form}, and only 0 (JSON) and 1 (ROCKETMQ) are known"
        else:
            problem = f"the peer announced a header of {header} bytes in a frame of {length}"
        raise self._fail(problem, data, position, frames)

    def _check_length(self, data: bytearray | memoryview, position: int, frames: list[memoryview]) -> None:
        """Refuse a length that cannot be, as soon as its four bytes are here: a TLS alert is only seven bytes long."""
        length = int.from_bytes(data[position : position + 4], "big", signed=True)
        if not 4 <= length <= self._max_length:
            problem = f"the peer announced a frame of {length} bytes, and frames have 4 to {self._max_length}"
            raise self._fail(problem, data, position, frames)

    def _fail(self, problem: str, data: bytearray | memoryview, position: int, frames: list[memoryview]) -> FrameError:
        start = bytes(data[position : position + _WORDS_LENGTH])
        self._error = (
            f"{problem} (its first bytes: {start!r}). "
            "Check that the address is a RocketMQ remoting port and that both sides agree on TLS."
        )
        self._partial = bytearray()
        return FrameError(self._error, tuple(frames))
