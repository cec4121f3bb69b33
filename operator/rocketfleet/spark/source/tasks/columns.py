"""From the bodies of pulls to Arrow record batches, a column at a time.

The stored form of messages is described in `wire/message/received.py`. Here no object is made for a message. One loop
hops from length to length; then the fixed parts of all messages are gathered into a matrix of bytes, of which every
number is a slice, and bodies and properties are cut out of the joined answers by Arrow itself, from a table of where
they begin and end. Tags, keys and ids are searched in the properties by a regular expression, again in Arrow.

That holds for messages as they nearly always are: IPv4 hosts, a topic of at most 127 bytes, properties in UTF-8, no
inner batch. A batch with any other message goes the long way, through `decode_messages`, which knows them all.
Compressed bodies are common and only cost the batch its short way for bodies.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message import sysflag
from rocketfleet.wire.message.compression import compression_of, decompress
from rocketfleet.wire.message.properties import decode_properties
from rocketfleet.wire.message.received import MAGIC_V1, decode_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.spark.source.tasks.ranges import QueueRange
    from rocketfleet.wire.message.received import ReceivedMessage
    from rocketfleet.wire.queue import MessageQueue

MICROSECONDS: Final = pa.timestamp("us", tz="UTC")
SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("broker", pa.string()),
        ("queueId", pa.int32()),
        ("queueOffset", pa.int64()),
        ("body", pa.binary()),
        ("tags", pa.string()),
        ("keys", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("bornTime", MICROSECONDS),
        ("storeTime", MICROSECONDS),
        ("msgId", pa.string()),
        ("reconsumeTimes", pa.int32()),
    ]
)
"""What `schema.py` declares to Spark, as Arrow has it. A test holds them together."""

_HEAD: Final = 88  # bytes before the body, with IPv4 hosts
_RARE: Final = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6 | sysflag.INNER_BATCH | sysflag.NEED_UNWRAP
_LENGTH = struct.Struct(">i")


Piece = tuple["QueueRange", "Sequence[bytes]"]
"""Offsets of a queue, and the answers to the pulls for them. An answer may hold messages beyond: those of a filter, or
of an inner batch that a pull began in the middle of. They are in the next piece again."""


def record_batch(
    pieces: Sequence[Piece], *, tags: frozenset[str] = frozenset(), properties: bool = False
) -> pa.RecordBatch:
    """The messages of pieces of one queue: those within their piece's offsets and, if tags are given, of these tags."""
    queue = pieces[0][0].queue
    sizes = [sum(map(len, bodies)) for _, bodies in pieces]
    data = b"".join([body for _, bodies in pieces for body in bodies])
    found = _short_way(data, np.cumsum(sizes), queue, properties=properties)
    if found is None:
        found = _long_way(pieces, queue, properties=properties)
    columns, piece_of = found
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    keep = _wanted(batch, pieces, piece_of, tags)
    return batch if keep is None else batch.filter(keep)


def _wanted(batch: pa.RecordBatch, pieces: Sequence[Piece], piece_of: np.ndarray, tags: frozenset[str]) -> Any:
    """Which rows are wanted; None for all of them."""
    offsets = batch.column("queueOffset").to_numpy()
    first, end = (np.array([edges[n] for edges, _ in pieces], np.int64)[piece_of] for n in (1, 2))
    within = (offsets >= first) & (offsets < end)
    keep = None if within.all() else pa.array(within)
    if tags:  # the broker compares hash codes, and two tags may have one
        tagged = pc.is_in(batch.column("tags"), value_set=pa.array(sorted(tags), pa.string()))
        keep = tagged if keep is None else pc.and_(keep, tagged)
    return keep


def _short_way(
    data: bytes, piece_ends: np.ndarray, queue: MessageQueue, *, properties: bool
) -> tuple[list[pa.Array], np.ndarray] | None:
    """The columns and the piece of each row, or None if there is a message for the long way."""
    starts = _starts(data)
    count = len(starts)
    if not count:
        return None
    raw = np.frombuffer(data, np.uint8)
    if starts[-1] + _HEAD >= len(data):
        return None  # a message that is too short: the long way says so
    head = np.lib.stride_tricks.sliding_window_view(raw, _HEAD)[starts]

    def number(position: int, size: int) -> np.ndarray:
        big_endian = np.ascontiguousarray(head[:, position : position + size]).view(f">i{size}")
        return big_endian.ravel().astype(np.int64)

    flags, body_length = number(36, 4), number(84, 4)
    stops = np.append(starts[1:], len(data))
    body_start = starts + _HEAD
    body_end = body_start + body_length
    unusual = (number(4, 4) != MAGIC_V1) | (flags & _RARE != 0)
    if (unusual | (body_length < 0) | (body_end >= stops)).any():
        return None
    tail = body_end + 1 + raw[body_end]  # past the topic
    if (tail + 2 > stops).any():
        return None
    stated = raw[tail].astype(np.int64) << 8 | raw[tail + 1]
    text_start = tail + 2
    if (text_start + stated != stops).any():
        return None
    texts = _cut(data, text_start, stops)
    try:
        texts = texts.cast(pa.string())
    except pa.ArrowInvalid:
        return None  # not UTF-8
    whole: list[dict[str, str]] | None = [decode_properties(text) for text in texts.to_pylist()] if properties else None
    columns = [
        pa.repeat(pa.scalar(queue.topic), count),
        pa.repeat(pa.scalar(queue.broker), count),
        pa.repeat(pa.scalar(queue.queue_id, pa.int32()), count),
        pa.array(number(20, 8)),
        _bodies(data, flags, body_start, body_end),
        _property(texts, "TAGS"),
        _property(texts, "KEYS"),
        _properties(whole, count),
        _moments(number(40, 8)),
        _moments(number(56, 8)),
        _ids(_property(texts, "UNIQ_KEY"), data, starts),
        pa.array(number(72, 4).astype(np.int32)),
    ]
    return columns, np.searchsorted(piece_ends, starts, side="right")


def _starts(data: bytes) -> np.ndarray:
    """Where each message begins."""
    found: list[int] = []
    note, length_at = found.append, _LENGTH.unpack_from
    position, end = 0, len(data)
    while position < end - 4:
        note(position)
        (length,) = length_at(data, position)
        if length < _HEAD:
            raise MessageError(f"the message at byte {position} of {end} says it has {length} bytes")
        position += length
    if position != end:
        raise MessageError(f"the last message ends at byte {position} of {end}")
    return np.array(found, np.int64)


def _cut(data: bytes, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """The slices of the data. To Arrow, what lies between two of them is a value too, and every other one is taken."""
    count = len(starts)
    edges = np.empty(2 * count, np.int64)
    edges[0::2], edges[1::2] = starts, ends
    every = pa.Array.from_buffers(pa.large_binary(), 2 * count - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)])
    return every.take(pa.array(np.arange(0, 2 * count - 1, 2)))


def _bodies(
    data: bytes,
    flags: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> pa.Array:
    if not (flags & sysflag.COMPRESSED).any():
        return _cut(data, starts, ends).cast(pa.binary())
    found: list[bytes] = []
    for flag, start, end in zip(flags.tolist(), starts.tolist(), ends.tolist(), strict=True):
        compression = compression_of(flag)
        body = data[start:end]
        found.append(body if compression is None else decompress(body, compression))
    return pa.array(found, pa.binary())


def _property(texts: pa.Array, name: str) -> pa.Array:
    """One property of each message, null where it has none."""
    # Often no message has it: to see that is many times as fast as to search each.
    held = texts.buffers()[2]
    if held is None or f"{name}\x01".encode() not in held.to_pybytes():
        return pa.nulls(len(texts), pa.string())
    return pc.struct_field(pc.extract_regex(texts, f"(?:^|\\x02){name}\\x01(?P<value>[^\\x02]*)"), "value")


def _properties(found: list[dict[str, str]] | None, count: int) -> pa.Array:
    kind = SCHEMA.field("properties").type
    return pa.nulls(count, kind) if found is None else pa.array([list(one.items()) for one in found], kind)


def _moments(milliseconds: np.ndarray) -> pa.Array:
    return pa.array(milliseconds * 1000).cast(MICROSECONDS)


def _ids(ids: pa.Array, data: bytes, starts: np.ndarray) -> pa.Array:
    """The producer's ids; where one gave none, the broker's: its address and where the message lies."""
    if not ids.null_count:
        return ids
    found = ids.to_pylist()
    for row, start in enumerate(starts.tolist()):
        if found[row] is None:
            found[row] = (data[start + 64 : start + 72] + data[start + 28 : start + 36]).hex().upper()
    return pa.array(found, pa.string())


def _long_way(pieces: Sequence[Piece], queue: MessageQueue, *, properties: bool) -> tuple[list[pa.Array], np.ndarray]:
    messages: list[ReceivedMessage] = []
    piece_of: list[int] = []
    for number, (_, bodies) in enumerate(pieces):
        for body in bodies:
            decoded = decode_messages(body, queue.broker)
            messages += decoded
            piece_of += [number] * len(decoded)
    count = len(messages)
    rows = [one.properties for one in messages]
    columns = [
        pa.repeat(pa.scalar(queue.topic), count),
        pa.repeat(pa.scalar(queue.broker), count),
        pa.repeat(pa.scalar(queue.queue_id, pa.int32()), count),
        pa.array([one.queue_offset for one in messages], pa.int64()),
        pa.array([one.body for one in messages], pa.binary()),
        pa.array([one.get("TAGS") for one in rows], pa.string()),
        pa.array([one.get("KEYS") for one in rows], pa.string()),
        _properties(rows if properties else None, count),
        pa.array([one.born_timestamp * 1000 for one in messages], pa.int64()).cast(MICROSECONDS),
        pa.array([one.store_timestamp * 1000 for one in messages], pa.int64()).cast(MICROSECONDS),
        pa.array([one.msg_id for one in messages], pa.string()),
        pa.array([one.reconsume_times for one in messages], pa.int32()),
    ]
    return columns, np.array(piece_of, np.int64)
