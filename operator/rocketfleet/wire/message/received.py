"""Messages as a consumer gets them: the store's format, read as late as possible.

A pull's body is one message after another, each as it lies in the broker's commit log:

    length, magic, body CRC, queue id, flag (int32 each), queue offset, commit log offset (int64), system flag (int32),
    born time (int64), born host, store time (int64), store host, times reconsumed (int32), offset of the prepared
    transaction (int64), length of the body (int32), body, length of the topic, topic, length of the properties (int16),
    properties

A host is 4 or 16 bytes of address (a bit of the system flag each says which) and 4 of port. The topic's length is one
byte under the first magic number and two under the second. A message flagged as an inner batch has a batch, as
SEND_BATCH_MESSAGE carries it, for its body, and stands for the messages in it.

This is the hottest loop of a consumer. What it costs is objects and attribute writes, so the numbers are unpacked in
one call straight into slots, the topic's text is made once for as long as it stays the same, and body, properties and
hosts stay bytes until somebody asks. The price: one message that is kept keeps the whole response it came in.
"""

import struct
import zlib
from functools import lru_cache
from typing import Final

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message import properties as names
from rocketfleet.wire.message import sysflag
from rocketfleet.wire.message.batch import read_batch
from rocketfleet.wire.message.compression import MAX_DECOMPRESSED_LENGTH, compression_of, decompress
from rocketfleet.wire.message.message_id import host_text
from rocketfleet.wire.message.properties import decode_properties
from rocketfleet.wire.queue import MessageQueue

MAGIC_V1: Final = -626843481
MAGIC_V2: Final = -626843477

_BORN_HOST_POSITION: Final = 48
_STORE_HOST_POSITION: Final = 64  # 12 more after an IPv6 born host
_BORN_V6: Final = sysflag.BORN_HOST_V6
_STORE_V6: Final = sysflag.STORE_HOST_V6
_V6: Final = _BORN_V6 | _STORE_V6
_WRAPPED: Final = sysflag.INNER_BATCH | sysflag.NEED_UNWRAP
_RARE: Final = _V6 | _WRAPPED
_COMPRESSED: Final = sysflag.COMPRESSED
_SHORT = struct.Struct(">H")
_CRC_MASK: Final = 0x7FFFFFFF


def _head(born: int, store: int) -> struct.Struct:
    """The numbers before the body. The hosts are skipped: few ask for them."""
    return struct.Struct(f">iiiiiqqiq{born}xq{store}xiqi")


_HEADS = {0: _head(8, 8), _BORN_V6: _head(20, 8), _STORE_V6: _head(8, 20), _V6: _head(20, 20)}
_HEAD_V4 = _HEADS[0]


class ReceivedMessage:
    """One message. Attributes are the stored fields; times are milliseconds since the epoch."""

    __slots__ = (
        "_body",
        "_data",
        "_properties",
        "_start",
        "body_crc",
        "body_length",
        "born_timestamp",
        "broker",
        "commit_log_offset",
        "flag",
        "prepared_transaction_offset",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "store_size",
        "store_timestamp",
        "sys_flag",
        "topic",
    )

    topic: str
    broker: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    store_size: int
    body_crc: int
    body_length: int  # as stored, that is, compressed or not
    flag: int
    sys_flag: int
    born_timestamp: int
    store_timestamp: int
    reconsume_times: int
    prepared_transaction_offset: int
    _data: bytes  # the whole response
    _start: int  # where in it the message begins
    _body: bytes | int  # where it begins, until somebody asks
    _properties: dict[str, str] | int  # where they begin, until somebody asks

    @property
    def body(self) -> bytes:
        """The body, decompressed. Raises MessageError if it cannot be."""
        body = self._body
        if type(body) is int:
            body = self._data[body : body + self.body_length]
            if self.sys_flag & _COMPRESSED:
                body = self._decompress(body, MAX_DECOMPRESSED_LENGTH)
            self._body = body
        return body  # type: ignore[return-value]  # not an int by now; isinstance would tell mypy so, and is slower

    @property
    def properties(self) -> dict[str, str]:
        """The properties, the sender's own and the system's."""
        held = self._properties
        if type(held) is not int:
            return held  # type: ignore[return-value]  # as above
        raw = self._data[held : self._start + self.store_size]
        try:
            properties = decode_properties(raw.decode())
        except UnicodeDecodeError:
            properties = decode_properties(raw.decode("utf-8", "replace"))
        self._properties = properties
        return properties

    @property
    def raw_body(self) -> memoryview:
        """The body as it was stored, compressed or not, without copying it."""
        if type(self._body) is bytes and not self.sys_flag & _COMPRESSED:
            return memoryview(self._body)
        start = self._start + _HEADS[self.sys_flag & _V6].size
        return memoryview(self._data)[start : start + self.body_length]

    @property
    def born_host(self) -> str:
        """The producer's address and port."""
        start = self._start + _BORN_HOST_POSITION
        if self.sys_flag & _BORN_V6:
            return host_text[self._data[start : start + 20]]
        return host_text[self._data[start : start + 8]]

    @property
    def store_host(self) -> str:
        """The broker's address and port."""
        if self.sys_flag & _V6:
            return host_text[self._raw_store_host()]
        start = self._start + _STORE_HOST_POSITION
        return host_text[self._data[start : start + 8]]

    def _raw_store_host(self) -> bytes:
        flags = self.sys_flag & _V6
        start = self._start + (_STORE_HOST_POSITION + 12 if flags & _BORN_V6 else _STORE_HOST_POSITION)
        return self._data[start : start + (20 if flags & _STORE_V6 else 8)]

    @property
    def queue(self) -> MessageQueue:
        return MessageQueue(self.topic, self.broker, self.queue_id)

    @property
    def offset_msg_id(self) -> str:
        """Where the message lies: the broker's address and the commit log offset."""
        return f"{self._raw_store_host().hex()}{self.commit_log_offset & 0xFFFFFFFFFFFFFFFF:016x}".upper()

    @property
    def msg_id(self) -> str:
        """The id the producer gave the message; if it gave none, where the message lies."""
        return self._property(names.UNIQUE_ID, b"UNIQ_KEY\x01") or self.offset_msg_id

    @property
    def tags(self) -> str | None:
        return self._property(names.TAGS, b"TAGS\x01")

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple((self._property(names.KEYS, b"KEYS\x01") or "").split())

    def _property(self, name: str, raw_name: bytes) -> str | None:
        """One property. To look for its bytes is cheaper than to decode them all, and a filter needs just the tags."""
        start = self._properties
        if type(start) is not int:
            return start.get(name)  # type: ignore[union-attr]  # as above
        data = self._data
        stop = end = self._start + self.store_size
        while True:
            found = data.rfind(raw_name, start, stop)
            if found < 0:
                return None
            if found == start or data[found - 1] == 2:  # else it is the end of a longer name, or part of a value
                value_end = data.find(b"\x02", found, end)
                raw = data[found + len(raw_name) : value_end if value_end >= 0 else end]
                return raw.decode("utf-8", "replace")
            stop = found + len(raw_name) - 1

    def _decompress(self, body: bytes, limit: int) -> bytes:
        compression = compression_of(self.sys_flag)
        assert compression is not None
        return decompress(body, compression, limit)

    def __repr__(self) -> str:
        return f"<ReceivedMessage {self.topic}@{self.broker}/{self.queue_id} offset={self.queue_offset}>"


def decode_messages(data: bytes | memoryview, broker: str = "") -> list[ReceivedMessage]:
    """Read a response's body: all its messages, in order. `broker` is the name of the broker that sent it."""
    data = bytes(data)
    messages: list[ReceivedMessage] = []
    append, unpack, head_size = messages.append, _HEAD_V4.unpack_from, _HEAD_V4.size
    position, end = 0, len(data)
    wrapped = False
    # The last topic, its bytes with their length in front, and a struct that reads just these bytes and the length of
    # the properties. All messages of a response are of one topic, as a rule.
    topic, tail, last_tail = "", _tail(0), -1
    raw_topic: bytes | None = None
    unpack_tail, tail_size = tail.unpack_from, tail.size
    try:
        while position < end:
            message = ReceivedMessage()
            (
                store_size,
                magic,
                message.body_crc,
                message.queue_id,
                message.flag,
                message.queue_offset,
                message.commit_log_offset,
                sys_flag,
                message.born_timestamp,
                message.store_timestamp,
                message.reconsume_times,
                message.prepared_transaction_offset,
                body_length,
            ) = unpack(data, position)
            body = position + head_size
            if sys_flag & _RARE:
                head = _HEADS[sys_flag & _V6]
                (
                    message.store_timestamp,
                    message.reconsume_times,
                    message.prepared_transaction_offset,
                    body_length,
                ) = head.unpack_from(data, position)[-4:]
                body = position + head.size
                wrapped = wrapped or sys_flag & _WRAPPED == _WRAPPED
            after_body = body + body_length
            if body_length < 0:
                raise MessageError(f"the message at byte {position} of {end} has a body of {body_length} bytes")
            if after_body <= last_tail:
                raw, properties_length = unpack_tail(data, after_body)
            else:
                raw = b""  # too near the end for a topic of that length; no topic's bytes are empty
            if raw != raw_topic or magic != MAGIC_V1:
                topic, raw_topic, tail = _read_topic(data, magic, after_body)
                unpack_tail, tail_size = tail.unpack_from, tail.size
                last_tail = end - tail_size
                _, properties_length = unpack_tail(data, after_body)
            message._start = position  # noqa: SLF001 - this function is the class's constructor
            position += store_size
            properties = after_body + tail_size
            if properties + properties_length != position:
                raise MessageError(
                    f"the message at byte {position - store_size} of {end} says it has {store_size} bytes, "
                    "but its parts do not add up"
                )
            message.store_size = store_size
            message.sys_flag = sys_flag
            message.body_length = body_length
            message.topic = topic
            message.broker = broker
            message._data = data  # noqa: SLF001 - as above
            message._body = body  # noqa: SLF001 - as above
            message._properties = properties  # noqa: SLF001 - as above
            append(message)
    except (struct.error, IndexError) as error:
        raise MessageError(f"the message at byte {position} of {end} ends too soon") from error
    if position != end:
        raise MessageError(f"the last message ends at byte {position} of {end}")
    return _unwrap_all(messages) if wrapped else messages


@lru_cache(maxsize=256)
def _tail(length: int) -> struct.Struct:
    """What follows a body: so many bytes of topic, the topic's length included, and the length of the properties."""
    return struct.Struct(f">{length}sH")


def _read_topic(data: bytes, magic: int, position: int) -> tuple[str, bytes | None, struct.Struct]:
    """The topic, its bytes with their length in front (for the next message to be compared with), their struct."""
    if magic == MAGIC_V1:
        start = position + 1
        end = start + data[position]
        raw = data[position:end]
    elif magic == MAGIC_V2:
        start = position + 2
        end = start + _SHORT.unpack_from(data, position)[0]
        raw = None
    else:
        raise MessageError(f"a message has the unknown magic number {magic}")
    return data[start:end].decode("utf-8", "replace"), raw, _tail(end - position)


def _unwrap_all(messages: list[ReceivedMessage]) -> list[ReceivedMessage]:
    """Put the messages of each inner batch in the place of the message that holds them."""
    unwrapped: list[ReceivedMessage] = []
    room = MAX_DECOMPRESSED_LENGTH
    for outer in messages:
        if outer.sys_flag & _WRAPPED != _WRAPPED:
            unwrapped.append(outer)
            continue
        body = bytes(outer.raw_body)
        if outer.sys_flag & _COMPRESSED:
            body = outer._decompress(body, room)  # noqa: SLF001 - part of the constructor
            room -= len(body)
        for number, (flag, inner_body, properties) in enumerate(read_batch(body)):
            unwrapped.append(_inner_message(outer, number, flag, inner_body, properties))
    return unwrapped


def _inner_message(
    outer: ReceivedMessage, number: int, flag: int, body: bytes, properties: dict[str, str]
) -> ReceivedMessage:
    """One message of an inner batch: its own body and properties, and where and when of the message that held it."""
    inner = ReceivedMessage()
    for name in ("topic", "broker", "queue_id", "commit_log_offset", "born_timestamp", "store_timestamp"):
        setattr(inner, name, getattr(outer, name))
    inner.queue_offset = outer.queue_offset + number
    inner.sys_flag = outer.sys_flag & ~_COMPRESSED
    inner.flag = flag
    inner.body_crc = zlib.crc32(body) & _CRC_MASK
    inner.body_length = inner.store_size = len(body)
    inner.reconsume_times = inner.prepared_transaction_offset = 0
    inner._data = outer._data  # noqa: SLF001 - part of the constructor
    inner._start = outer._start  # noqa: SLF001 - part of the constructor
    inner._body = body  # noqa: SLF001 - part of the constructor
    inner._properties = properties  # noqa: SLF001 - part of the constructor
    return inner
