"""Stored messages are read field by field as they were written, lazily, and never from broken bytes."""

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wire.strategies import stored_fields

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message import sysflag
from rocketfleet.wire.message.batch import write_batch
from rocketfleet.wire.message.compression import Compression, compress
from rocketfleet.wire.message.message_id import decode_offset_id
from rocketfleet.wire.message.received import ReceivedMessage, decode_messages
from rocketfleet.wire.message.stored import encode_stored
from rocketfleet.wire.queue import MessageQueue

DEFAULTS: dict[str, Any] = {
    "queue_id": 0,
    "queue_offset": 0,
    "commit_log_offset": 0,
    "flag": 0,
    "born_timestamp": 0,
    "born_host": "127.0.0.1:0",
    "store_timestamp": 0,
    "store_host": "127.0.0.1:10911",
    "reconsume_times": 0,
    "prepared_transaction_offset": 0,
}


def crc_matches(message: ReceivedMessage) -> bool:
    """Whether the checksum is that of the stored body."""
    return zlib.crc32(message.raw_body) & 0x7FFFFFFF == message.body_crc & 0x7FFFFFFF


def check(message: ReceivedMessage, fields: dict[str, Any]) -> None:
    for name, value in (DEFAULTS | fields).items():
        if name == "sys_flag":
            hosts = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6
            assert message.sys_flag & ~hosts == value
        else:
            assert getattr(message, name) == value, name
    assert crc_matches(message)


@given(st.lists(stored_fields, max_size=5))
def test_what_is_stored_is_read(stored: list[dict[str, Any]]) -> None:
    parts = [encode_stored(**fields) for fields in stored]
    messages = decode_messages(memoryview(b"".join(parts)), "broker-a")
    assert len(messages) == len(stored)
    for message, fields, part in zip(messages, stored, parts, strict=True):
        check(message, fields)
        assert message.store_size == len(part)
        assert message.queue == MessageQueue(fields["topic"], "broker-a", message.queue_id)


@given(stored_fields)
def test_single_properties_are_found_without_decoding_all(fields: dict[str, Any]) -> None:
    held = fields["properties"] | {"xTAGS": "no", "UNIQ_KEY": "id", "NOTE": "TAGS", "TAGS": "yes", "TAGSx": "no"}
    quick, thorough = (decode_messages(encode_stored(**fields | {"properties": held}))[0] for _ in range(2))
    assert thorough.properties == held
    for name in ("tags", "keys", "msg_id"):
        assert getattr(quick, name) == getattr(thorough, name)
    assert quick.tags == "yes"
    assert quick.msg_id == "id"


@given(st.text(st.sampled_from("TAGSx\x01\x02"), max_size=30))
def test_single_properties_are_found_in_malformed_ones_too(text: str) -> None:
    raw = text.encode()
    stored = encode_stored("t", b"", {"a": "b"})
    broken = bytearray(stored[:-6] + struct.pack(">h", len(raw)) + raw)
    broken[:4] = struct.pack(">i", len(broken))
    quick, thorough = (decode_messages(bytes(broken))[0] for _ in range(2))
    assert quick.tags == thorough.properties.get("TAGS")


def test_a_message_without_an_id_goes_by_its_place() -> None:
    stored = encode_stored("t", b"", commit_log_offset=77, store_host="[2001:db8::1]:10911")
    (message,) = decode_messages(stored)
    assert message.msg_id == message.offset_msg_id
    assert decode_offset_id(message.msg_id) == ("2001:db8::1", 10911, 77)
    assert message.tags is None
    assert message.keys == ()


def test_the_topic_may_change_from_message_to_message() -> None:
    topics = ["a", "b", "long" * 50, "a", "", "x" * 127, "x" * 128, "", "a", "\N{SNOWMAN}", "x" * 127, "b"]
    messages = decode_messages(b"".join(encode_stored(topic, topic.encode()) for topic in topics))
    assert [message.topic for message in messages] == topics
    assert [message.body.decode() for message in messages] == topics


def test_an_empty_topic_after_a_long_one_is_not_taken_for_it() -> None:
    # The two-byte length of the first topic is, byte for byte, an empty topic and the start of its properties' length.
    first = encode_stored("x" * 200, b"")
    second = encode_stored("", b"", {"a": "y" * 198})
    messages = decode_messages(first + second)
    assert [message.topic for message in messages] == ["x" * 200, ""]
    assert messages[1].properties == {"a": "y" * 198}


def test_bodies_are_views_until_asked_for() -> None:
    data = b"".join(encode_stored("t", b"body" * 10, {"a": "b"}) for _ in range(3))
    message = decode_messages(data)[1]
    assert message.raw_body.obj is data
    assert message.raw_body == message.body
    assert message.body is message.body
    assert message.properties is message.properties


@pytest.mark.parametrize("kind", Compression)
def test_compressed_bodies(kind: Compression) -> None:
    (message,) = decode_messages(encode_stored("t", b"hello " * 100, sys_flag=kind.flag))
    assert message.body == b"hello " * 100
    assert message.raw_body == compress(b"hello " * 100, kind)
    assert message.body_length == len(message.raw_body) < 600
    assert crc_matches(message)


def test_a_body_that_does_not_decompress_is_reported_when_asked_for() -> None:
    stored = bytearray(encode_stored("t", b"not compressed"))
    stored[36:40] = struct.pack(">i", sysflag.COMPRESSED | Compression.ZSTD << 8)
    (message,) = decode_messages(bytes(stored))
    assert message.queue_offset == 0
    with pytest.raises(MessageError, match="ZSTD"):
        _ = message.body


def test_a_changed_body_is_noticed() -> None:
    stored = encode_stored("t", b"AAAA")
    (message,) = decode_messages(stored.replace(b"AAAA", b"AABA"))
    assert not crc_matches(message)


def test_properties_in_another_encoding_are_replaced_not_refused() -> None:
    stored = encode_stored("t", b"", {"a": "XXXX", "TAGS": "YYYY"})
    broken = stored.replace(b"XXXX", "标签".encode("gbk")).replace(b"YYYY", b"\xff\xfe\xfd\xfc")
    quick, thorough = (decode_messages(broken)[0] for _ in range(2))
    assert "\N{REPLACEMENT CHARACTER}" in thorough.properties["a"]
    assert quick.tags == thorough.properties["TAGS"]


INNER = sysflag.INNER_BATCH | sysflag.NEED_UNWRAP


@pytest.mark.parametrize("compression", [0, *(kind.flag for kind in Compression)])
@pytest.mark.parametrize("host", ["1.2.3.4:5", "[::1]:5"])
def test_an_inner_batch_is_unwrapped(compression: int, host: str) -> None:
    batch = write_batch([(7, b"one", {"UNIQ_KEY": "1"}), (8, b"", {}), (9, b"three", {"TAGS": "t"})])
    data = b"".join(
        [
            encode_stored("t", b"before", queue_offset=9),
            encode_stored(
                "t",
                batch,
                {"INNER_NUM": "3"},
                sys_flag=INNER | compression,
                queue_offset=10,
                queue_id=4,
                store_host=host,
                born_host=host,
                born_timestamp=5,
                commit_log_offset=6,
            ),
            encode_stored("t", b"after", queue_offset=13),
        ]
    )
    messages = decode_messages(data, "b")
    assert [message.queue_offset for message in messages] == [9, 10, 11, 12, 13]
    assert [message.body for message in messages] == [b"before", b"one", b"", b"three", b"after"]
    assert [message.flag for message in messages] == [0, 7, 8, 9, 0]
    assert messages[1].msg_id == "1"
    assert messages[2].msg_id == messages[2].offset_msg_id
    assert messages[3].tags == "t"
    for message in messages[1:4]:
        assert (message.topic, message.broker, message.queue_id, message.born_timestamp) == ("t", "b", 4, 5)
        assert (message.store_host, message.born_host, message.commit_log_offset) == (host, host, 6)
        assert message.raw_body == message.body
        assert crc_matches(message)
        assert not message.sys_flag & sysflag.COMPRESSED


def test_a_broken_inner_batch_is_a_message_error() -> None:
    with pytest.raises(MessageError, match="batch"):
        decode_messages(encode_stored("t", b"nonsense", sys_flag=INNER))


def test_bombs_in_inner_batches_share_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocketfleet.wire.message.received.MAX_DECOMPRESSED_LENGTH", 100_000)
    batch = write_batch([(0, bytes(60_000), {})])
    one = encode_stored("t", batch, sys_flag=INNER | Compression.ZSTD.flag)
    assert len(decode_messages(one)) == 1
    with pytest.raises(MessageError, match="more than"):
        decode_messages(one * 2)


GOOD = encode_stored("topic", b"body", {"name": "value"}, store_host="[::1]:1") + encode_stored("topic", b"body")


@pytest.mark.parametrize("end", range(1, len(GOOD)))
def test_cut_messages_are_an_error(end: int) -> None:
    if end == len(encode_stored("topic", b"body", {"name": "value"}, store_host="[::1]:1")):
        assert len(decode_messages(GOOD[:end])) == 1
    else:
        with pytest.raises(MessageError):
            decode_messages(GOOD[:end])


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (0, 0),  # sizes that would never end, or go back
        (0, -1),
        (0, -200),
        (0, 1),
        (0, 0x7FFFFFFF),
        (4, -875286124),  # the blank at the end of a commit log file
        (4, 0),
        (84, -1),  # lengths of the body
        (84, -5),
        (84, 0x7FFFFFFF),
        (84, 1000),
        (84, 5),
    ],
)
def test_broken_numbers_are_an_error(position: int, value: int) -> None:
    stored = bytearray(encode_stored("topic", b"body", {"name": "value"}))
    stored[position : position + 4] = struct.pack(">i", value)
    with pytest.raises(MessageError):
        decode_messages(bytes(stored))


@given(st.binary(max_size=300))
def test_garbage_is_a_message_error_or_messages(garbage: bytes) -> None:
    try:
        decode_messages(garbage)
    except MessageError:
        return
    assert not garbage


def test_no_bytes_are_no_messages() -> None:
    assert decode_messages(b"") == []


def test_crc_of_the_store() -> None:
    (message,) = decode_messages(encode_stored("t", b"body"))
    assert message.body_crc == zlib.crc32(b"body") & 0x7FFFFFFF
    assert repr(message) == "<ReceivedMessage t@/0 offset=0>"


@pytest.mark.parametrize(
    "fields",
    [{"queue_id": 1 << 40}, {"topic": "\ud800"}, {"topic": "x" * 70_000}, {"properties": {"a": "x" * 40_000}}],
)
def test_what_cannot_be_stored_is_a_message_error(fields: dict[str, Any]) -> None:
    with pytest.raises(MessageError):
        encode_stored(**{"topic": "t", "body": b"", **fields})
