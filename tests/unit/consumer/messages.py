"""Messages for tests that need no broker: real ones, decoded from the bytes that a broker would send."""

import struct
import zlib

from rocketfleet.wire.message import ReceivedMessage, decode_messages, encode_properties

MAGIC_V1 = -626843481


def stored(
    offset: int,
    *,
    topic: str = "t",
    queue_id: int = 0,
    body: bytes = b"body",
    tags: str | None = None,
    times: int = 0,
    properties: dict[str, str] | None = None,
) -> bytes:
    """One message as it lies in a commit log."""
    held = dict(properties or {})
    if tags is not None:
        held["TAGS"] = tags
    encoded, name = encode_properties(held).encode(), topic.encode()
    tail = struct.pack(">i", len(body)) + body + bytes([len(name)]) + name + struct.pack(">H", len(encoded)) + encoded
    head = struct.pack(
        ">iiiiqqiq8sq8siq",
        MAGIC_V1,
        zlib.crc32(body) & 0x7FFFFFFF,
        queue_id,
        0,
        offset,
        1000 * offset,
        0,
        1,
        bytes(8),
        2,
        bytes(8),
        times,
        0,
    )
    return struct.pack(">i", 4 + len(head) + len(tail)) + head + tail


def received(offset: int, *, broker: str = "broker-a", **parts: object) -> ReceivedMessage:
    """One message as a handler gets it."""
    [message] = decode_messages(stored(offset, **parts), broker)  # type: ignore[arg-type]  # passed through
    return message


def several(first: int, count: int, **parts: object) -> list[ReceivedMessage]:
    """Consecutive messages."""
    return [received(offset, **parts) for offset in range(first, first + count)]  # type: ignore[arg-type]  # as above
