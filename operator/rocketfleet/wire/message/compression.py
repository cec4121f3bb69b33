"""Compressed bodies: the three ways in which a RocketMQ producer makes a body smaller, and the way back.

Three bits of the system flag say which: 1 is LZ4 (the frame format, not the block format), 2 is zstd, 3 is zlib; 0 is
zlib too, as written by producers older than the bits. Java's compressors write streams, so neither zstd nor LZ4 frames
announce their decompressed size, and a size that is announced is a claim by whoever sent the message. Hence the bound:
decompression stops at a stated number of bytes and reports the message, rather than trusting it with our memory.
"""

import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import lz4.frame
import zstandard

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message.sysflag import COMPRESSED, COMPRESSION_MASK, COMPRESSION_SHIFT

MAX_DECOMPRESSED_LENGTH: Final = 64 * 1024 * 1024
"""No body is decompressed beyond this. A broker takes 4 MiB by default, and honest bodies do not shrink by more."""

DEFAULT_LEVEL: Final = 5
_FIRST_STEP: Final = 64 * 1024
_LARGEST_STEP: Final = 4 * 1024 * 1024


class Compression(IntEnum):
    """The compression type, as the system flag numbers it."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3

    @property
    def flag(self) -> int:
        """The system flag's bits for a body compressed this way."""
        return COMPRESSED | self.value << COMPRESSION_SHIFT


def compression_of(sys_flag: int) -> Compression | None:
    """How the body of a message with this system flag is compressed; None if it is not."""
    if not sys_flag & COMPRESSED:
        return None
    number = (sys_flag & COMPRESSION_MASK) >> COMPRESSION_SHIFT
    if number in (0, 3):
        return Compression.ZLIB
    if number == 1:
        return Compression.LZ4
    if number == 2:
        return Compression.ZSTD
    raise MessageError(f"compression type {number} is not known; 1 is LZ4, 2 zstd, 3 zlib")


def compress(body: bytes | memoryview, compression: Compression, level: int = DEFAULT_LEVEL) -> bytes:
    """Compress as Java's producer does."""
    if compression == Compression.ZLIB:
        return zlib.compress(body, level)
    if compression == Compression.ZSTD:
        return zstandard.ZstdCompressor(level=level).compress(body)
    # Java's reader knows only independent blocks; linked ones, the library's default, it refuses.
    compressed: bytes = lz4.frame.compress(body, block_linked=False, store_size=False)
    return compressed


def decompress(body: bytes | memoryview, compression: Compression, limit: int = MAX_DECOMPRESSED_LENGTH) -> bytes:
    """The body as it was before compression, of at most `limit` bytes. Nothing at all stands for nothing."""
    if not body:
        return b""
    try:
        if compression == Compression.ZLIB:
            return _inflate(body, limit)
        if compression == Compression.ZSTD:
            return _unzstd(bytes(body), limit)
        return _unlz4(bytes(body), limit)
    except (zlib.error, zstandard.ZstdError, RuntimeError, EOFError) as error:
        raise MessageError(f"the body is not readable as {compression.name}: {error}") from error


def _too_large(compression: Compression, limit: int) -> MessageError:
    return MessageError(f"the body decompresses from {compression.name} to more than {limit} bytes")


def _ends_too_soon() -> EOFError:
    return EOFError("it ends too soon")


def _inflate(body: bytes | memoryview, limit: int) -> bytes:
    inflater = zlib.decompressobj()
    plain = inflater.decompress(body, limit + 1)
    if len(plain) > limit:
        raise _too_large(Compression.ZLIB, limit)
    if not inflater.eof:
        raise _ends_too_soon()
    return plain


def _unlz4(body: bytes, limit: int) -> bytes:
    """LZ4 frames, one after another. The decompressor allocates what it may return: little at first."""
    pieces: list[bytes] = []
    total = 0
    step = _FIRST_STEP
    while body:
        decompressor = lz4.frame.LZ4FrameDecompressor()
        rest = body
        while not decompressor.eof:
            piece = decompressor.decompress(rest, min(step, limit + 1 - total))
            rest = b""
            pieces.append(piece)
            total += len(piece)
            if total > limit:
                raise _too_large(Compression.LZ4, limit)
            if not decompressor.eof and decompressor.needs_input:
                raise _ends_too_soon()
            step = min(2 * step, _LARGEST_STEP)
        body = decompressor.unused_data or b""
    return b"".join(pieces)


def _unzstd(body: bytes, limit: int) -> bytes:
    """Zstd frames, one after another, fed block by block: a block is at most 128 KiB, a call without bound is not."""
    pieces: list[bytes] = []
    total = 0
    while body:
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        position = 0
        for end in _zstd_steps(body):
            piece = decompressor.decompress(body[position:end])
            position = end
            pieces.append(piece)
            total += len(piece)
            if total > limit:
                raise _too_large(Compression.ZSTD, limit)
        if not decompressor.eof:
            raise _ends_too_soon()
        body = body[position:]
    return b"".join(pieces)


def _zstd_steps(frame: bytes) -> Iterator[int]:
    """Where each block of a frame ends, and last where the frame does.

    A block begins with three bytes, little-endian: one bit says that it is the last, two its type, the rest its size.
    Of a block of type 1, a byte repeated, only the byte is there.
    """
    has_checksum = zstandard.get_frame_parameters(frame).has_checksum
    position: int = zstandard.frame_header_size(frame)
    while True:
        header = int.from_bytes(frame[position : position + 3], "little")
        position += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
        if position > len(frame):
            raise _ends_too_soon()
        if header & 1:
            break
        yield position
    yield position + 4 if has_checksum else position
