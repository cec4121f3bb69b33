"""What is refused before it is sent, and in which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED

from rocketfleet.producer import checks
from rocketfleet.producer.errors import InvalidMessage
from rocketfleet.wire.message import Message, properties


@pytest.mark.parametrize("topic", ["orders", "%RETRY%group", "a|b", "A_b-9", "x" * 127, "TBW102"])
def test_good_topics(topic: str) -> None:
    checks.check_topic(topic)


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("", "no name"),
        ("x" * 128, "at most 127"),
        ("a b", "letters, digits"),
        ("a.b", "letters, digits"),
        ("订单", "letters, digits"),
        ("ends\n", "letters, digits"),
        ("SCHEDULE_TOPIC_XXXX", "broker's own"),
        ("RMQ_SYS_TRANS_HALF_TOPIC", "broker's own"),
    ],
)
def test_bad_topics(topic: str, words: str) -> None:
    with pytest.raises(InvalidMessage, match=words):
        checks.check_topic(topic)


@pytest.mark.parametrize("group", ["", "DEFAULT_PRODUCER", "a/b", "x" * 121])
def test_bad_groups(group: str) -> None:
    with pytest.raises(InvalidMessage):
        checks.check_group(group)


@pytest.mark.parametrize(
    ("body", "words"), [("text", "must be bytes, not str"), (None, "NoneType"), (b"", "empty"), (b"12345", "5 bytes")]
)
def test_bad_bodies(body: object, words: str) -> None:
    with pytest.raises(InvalidMessage, match=words):
        checks.check_body(body, 4)


def test_the_limit_itself_is_allowed() -> None:
    checks.check_body(b"1234", 4)
    checks.check_properties("x" * 32767)
    with pytest.raises(InvalidMessage, match="32768 bytes"):
        checks.check_properties("x" * 32768)


@UNTIMED
@given(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(32700, 32900))
def test_properties_are_measured_in_bytes(text: str, length: int) -> None:
    text = text * (length // len(text.encode()))
    if len(text.encode()) <= 32767:
        checks.check_properties(text)
    else:
        with pytest.raises(InvalidMessage):
            checks.check_properties(text)


def test_what_utf8_cannot_carry_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="lone surrogate"):
        checks.check_properties("name\x01\ud800\x02")


def test_properties_of_wide_characters() -> None:
    checks.check_properties("订" * 10922)
    with pytest.raises(InvalidMessage, match="32769 bytes"):
        checks.check_properties("订" * 10923)


def transactional() -> Message:
    message = Message("t", b"x")
    message.properties[properties.TRANSACTION_PREPARED] = "true"
    return message


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "empty"),
        ([Message("t", b"x"), Message("u", b"x")], "number 0 goes to t, number 1 to u"),
        ([Message("t", b"x"), Message("t", b"x", delay_level=3)], "message 1 of the batch is delayed"),
        ([Message("t", b"x", delay_seconds=3)], "message 0 of the batch is delayed"),
        ([Message("t", b"x", delay_milliseconds=3)], "delayed"),
        ([Message("t", b"x", deliver_at=3)], "delayed"),
        ([Message("t", b"x"), Message("t", b"x", wait_store_ok=False)], "wait_store_ok; number 1"),
        ([Message("%RETRY%g", b"x")], "retry topic"),
        ([transactional()], "transactional"),
        ([Message("t", b"x"), Message("t", b"")], "empty"),
        ([Message("t", b"12345")], "5 bytes"),
    ],
)
def test_bad_batches(messages: list[Message], words: str) -> None:
    with pytest.raises(InvalidMessage, match=words):
        checks.check_batch(messages, 4)


def test_a_batch_may_mix_tags_and_keys() -> None:
    checks.check_batch([Message("t", b"x", tags="a"), Message("t", b"x", tags="b", keys="k")])


def test_what_the_accumulator_leaves_alone() -> None:
    assert checks.can_join_batch(Message("t", b"x", tags="a", keys="k", properties={"p": "q"}))
    assert not checks.can_join_batch(Message("t", b"x", delay_level=1))
    assert not checks.can_join_batch(Message("t", b"x", deliver_at=1))
    assert not checks.can_join_batch(Message("%RETRY%g", b"x"))
    assert not checks.can_join_batch(transactional())
