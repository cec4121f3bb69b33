"""From message to request: ids, compression, flags, and the one-letter header."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED

from rocketfleet.producer.errors import InvalidMessage
from rocketfleet.producer.request import (
    SendSettings,
    build,
    encode_for_batch,
    join_batch,
    prepare,
    prepare_batch,
)
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import HeaderForm, decode, encode
from rocketfleet.wire.message import Message, UniqueIds, decode_batch, decode_properties, properties
from rocketfleet.wire.message.compression import Compression, compression_of, decompress
from rocketfleet.wire.queue import MessageQueue

QUEUE_FIELDS = {"a": "g", "b": "t", "c": "TBW102", "d": "4", "e": "3", "g": "1700000000000", "n": "broker-a"}
SETTINGS = SendSettings("g")


@pytest.fixture
def ids() -> UniqueIds:
    return UniqueIds(bytes([10, 0, 0, 1]), 7, 9, clock=lambda: 1.7e9)


def fields_of(message: Message, ids: UniqueIds, settings: SendSettings = SETTINGS) -> dict[str, str]:
    command = build(prepare(message, settings, ids), MessageQueue("t", "broker-a", 3), 1_700_000_000_000, settings)
    return decode(memoryview(encode(command))[4:]).fields


def test_the_header_of_a_single_message(ids: UniqueIds) -> None:
    message = Message("t", b"x", tags="a", keys=["k1", "k2"], properties={"p": "q"}, flag=5)
    fields = fields_of(message, ids)
    assert QUEUE_FIELDS.items() <= fields.items()
    assert (fields["f"], fields["h"]) == ("0", "5")
    assert decode_properties(fields["i"]) == {
        "p": "q",
        "TAGS": "a",
        "KEYS": "k1 k2",
        "WAIT": "true",
        "UNIQ_KEY": message.unique_id,
    }


def test_an_id_is_given_once_and_kept(ids: UniqueIds) -> None:
    message = Message("t", b"x")
    first = prepare(message, SETTINGS, ids).msg_ids
    assert prepare(message, SETTINGS, ids).msg_ids == first == (message.unique_id,)
    assert prepare(Message("t", b"x"), SETTINGS, ids).msg_ids != first


@pytest.mark.parametrize("compression", list(Compression))
def test_a_large_body_is_compressed_and_says_how(ids: UniqueIds, compression: Compression) -> None:
    settings = SETTINGS._replace(compression=compression)
    message = Message("t", b"abc" * 2000)
    prepared = prepare(message, settings, ids)
    assert compression_of(prepared.sys_flag) is compression
    assert decompress(prepared.body, compression) == message.body
    assert len(prepared.body) < len(message.body)
    assert message.body == b"abc" * 2000, "the caller's message is not touched"


def test_a_body_below_the_threshold_is_not_compressed(ids: UniqueIds) -> None:
    assert prepare(Message("t", b"x" * 4095), SETTINGS, ids).sys_flag == 0
    assert prepare(Message("t", b"x" * 4096), SETTINGS, ids).sys_flag != 0


def test_a_half_message_is_flagged(ids: UniqueIds) -> None:
    message = Message("t", b"x")
    message.properties[properties.TRANSACTION_PREPARED] = "true"
    assert prepare(message, SETTINGS, ids).sys_flag == 4


def test_to_a_retry_topic_the_header_carries_the_counts(ids: UniqueIds) -> None:
    message = Message("%RETRY%g", b"x")
    message.properties |= {"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "16"}
    fields = fields_of(message, ids)
    assert (fields["j"], fields["l"]) == ("3", "16")
    assert "RECONSUME_TIME" not in decode_properties(fields["i"])
    assert message.properties["RECONSUME_TIME"] == "3"


@pytest.mark.parametrize("form", list(HeaderForm))
def test_a_batch_carries_its_messages(ids: UniqueIds, form: HeaderForm) -> None:
    settings = SETTINGS._replace(form=form)
    messages = [Message("t", b"one", tags="a"), Message("t", b"two", tags="a", keys="k")]
    command = build(
        prepare_batch(messages, settings, ids), MessageQueue("t", "broker-a", 3), 1_700_000_000_000, settings
    )
    assert command.code == RequestCode.SEND_BATCH_MESSAGE
    read = decode(memoryview(encode(command))[4:])
    assert read.fields["m"] == "true"
    outer = decode_properties(read.fields["i"])
    assert outer["TAGS"] == "a"
    assert outer["UNIQ_KEY"] not in {message.unique_id for message in messages}
    assert [(m.body, m.properties) for m in decode_batch(read.body, "t")] == [(m.body, m.properties) for m in messages]


def test_a_batch_of_mixed_tags_has_none_of_its_own(ids: UniqueIds) -> None:
    prepared = prepare_batch([Message("t", b"x", tags="a"), Message("t", b"x", tags="b")], SETTINGS, ids)
    assert "TAGS" not in decode_properties(prepared.properties)
    unwaited = prepare_batch([Message("t", b"x", wait_store_ok=False)], SETTINGS, ids)
    assert decode_properties(unwaited.properties)["WAIT"] == "false"


def test_a_batch_is_bounded_as_a_whole(ids: UniqueIds) -> None:
    messages = [Message("t", b"x" * 600) for _ in range(2)]
    with pytest.raises(InvalidMessage, match=r"batch of 2 messages takes 1\d\d\d bytes and may take 1000"):
        prepare_batch(messages, SETTINGS._replace(max_message_size=1000), ids)


@UNTIMED
@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=20))
def test_joining_encoded_messages_is_encoding_the_batch(bodies: list[bytes]) -> None:
    makers = [UniqueIds(bytes(4), 1, 1, clock=lambda: 1.7e9) for _ in range(2)]
    one = [Message("t", body) for body in bodies]
    other = [Message("t", body) for body in bodies]
    joined = join_batch(one, [encode_for_batch(m, SETTINGS, makers[0]) or b"" for m in one], SETTINGS, makers[0])
    assert joined == prepare_batch(other, SETTINGS, makers[1])


def test_what_would_be_compressed_is_not_put_into_batches(ids: UniqueIds) -> None:
    assert encode_for_batch(Message("t", b"x" * 4096), SETTINGS, ids) is None


@pytest.mark.parametrize(
    "encoded",
    [
        lambda message, ids: prepare(message, SETTINGS, ids),
        lambda message, ids: prepare_batch([message], SETTINGS, ids),
        lambda message, ids: encode_for_batch(message, SETTINGS, ids),
    ],
    ids=["single", "batch", "accumulated"],
)
@pytest.mark.parametrize(
    ("value", "words"),
    [("a\x01b", "separates properties"), ("x" * 40_000, "bytes and may take 32767"), ("\ud800", "surrogate")],
    ids=["separator", "too long", "surrogate"],
)
def test_properties_that_cannot_travel_are_refused(
    ids: UniqueIds, encoded: Callable[[Message, UniqueIds], object], value: str, words: str
) -> None:
    message = Message("t", b"x")
    message.properties["p"] = value
    with pytest.raises(InvalidMessage, match=words):
        encoded(message, ids)
