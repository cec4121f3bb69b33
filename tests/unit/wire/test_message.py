"""Messages to be sent keep Java's meaning of tags, keys and delays, and refuse what the wire cannot carry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wire.strategies import int32, properties, property_text

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message import (
    Message,
    decode_batch,
    decode_properties,
    encode_batch,
    encode_properties,
    tag_hash,
)
from rocketfleet.wire.message import properties as names


@given(properties)
def test_properties_survive(held: dict[str, str]) -> None:
    assert decode_properties(encode_properties(held)) == held


@pytest.mark.parametrize("separator", ["\x01", "\x02"])
@pytest.mark.parametrize("part", ["name", "value"])
def test_a_separator_is_refused_with_its_place(separator: str, part: str) -> None:
    bad = f"a{separator}b"
    held = {"good": "fine", **({bad: "x"} if part == "name" else {"user": bad})}
    with pytest.raises(MessageError, match=f"the {part} of property"):
        encode_properties(held)


def test_separators_that_cancel_out_are_refused_too() -> None:
    with pytest.raises(MessageError, match="'b'"):
        encode_properties({"a": "x", "b": "y\x02z\x01"})
    with pytest.raises(MessageError):
        encode_properties({"": "x"})


def read_as_java(text: str) -> dict[str, str]:
    """What MessageDecoder.string2messageProperties does, but for the empty values that Java drops."""
    held = {}
    for entry in text.split("\x02"):
        name, separator, value = entry.partition("\x01")
        if name and separator:
            held[name] = value
    return held


@given(st.text(st.sampled_from("ab\x01\x02"), max_size=20))
def test_malformed_properties_are_read_as_java_reads_them(text: str) -> None:
    assert decode_properties(text) == read_as_java(text)


def test_what_the_constructor_takes_becomes_properties() -> None:
    message = Message(
        "orders",
        b"body",
        tags="created",
        keys=["k1", "k2"],
        properties={"mine": "1"},
        sharding_key="customer-7",
        buyer_id="b",
        priority=3,
    )
    assert message.properties == {
        "mine": "1",
        "TAGS": "created",
        "KEYS": "k1 k2",
        "__SHARDINGKEY": "customer-7",
        "BUYER_ID": "b",
        "_SYS_MSG_PRIORITY_": "3",
        "WAIT": "true",
    }
    assert message.tags == "created"
    assert message.keys == ("k1", "k2")
    assert message.sharding_key == "customer-7"
    assert message.unique_id is None
    assert message.wait_store_ok
    assert not message.is_delayed
    assert "4 bytes" in repr(message)


def test_the_least_message() -> None:
    message = Message("t", b"")
    assert message.properties == {"WAIT": "true"}
    assert (message.tags, message.keys, message.delay_level, message.flag) == (None, (), 0, 0)
    assert Message("t", b"", keys="a b").keys == ("a", "b")
    assert not Message("t", b"", wait_store_ok=False).wait_store_ok


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("delay_level", names.DELAY_LEVEL),
        ("delay_seconds", names.TIMER_DELAY_SECONDS),
        ("delay_milliseconds", names.TIMER_DELAY_MILLISECONDS),
        ("deliver_at", names.TIMER_DELIVER_AT),
    ],
)
def test_delays(argument: str, name: str) -> None:
    message = Message("t", b"", **{argument: 5})  # type: ignore[arg-type]  # one of four integers, chosen at run time
    assert message.properties[name] == "5"
    assert message.is_delayed


def test_two_delays_are_one_too_many() -> None:
    with pytest.raises(MessageError, match="DELAY and TIMER_DELIVER_MS"):
        Message("t", b"", delay_level=1, deliver_at=5)


@pytest.mark.parametrize("name", sorted(names.SYSTEM_PROPERTIES))
def test_system_names_are_refused(name: str) -> None:
    with pytest.raises(MessageError, match="RocketMQ itself"):
        Message("t", b"", properties={name: "x"})


@pytest.mark.parametrize(
    ("name", "value"), [("", "x"), (" ", "x"), ("x", ""), ("x", "\t"), ("a\x01", "x"), ("x", "\x02")]
)
def test_blank_and_broken_properties_are_refused(name: str, value: str) -> None:
    with pytest.raises(MessageError):
        Message("t", b"", properties={name: value})


@given(st.lists(st.tuples(st.binary(max_size=50), int32, properties), max_size=6))
def test_batches_survive(entries: list[tuple[bytes, int, dict[str, str]]]) -> None:
    messages = []
    for body, flag, held in entries:
        message = Message("t", body, flag=flag)
        message.properties = held
        messages.append(message)
    read = decode_batch(memoryview(encode_batch(messages)), "t")
    assert [(m.body, m.flag, m.properties, m.topic) for m in read] == [(b, f, p, "t") for b, f, p in entries]


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.data())
def test_a_cut_batch_is_an_error(bodies: list[bytes], data: st.DataObject) -> None:
    whole = [encode_batch([Message("t", body)]) for body in bodies]
    ends = {sum(map(len, whole[:count])) for count in range(len(whole) + 1)}
    stream = b"".join(whole)
    end = data.draw(st.integers(0, len(stream)).filter(lambda place: place not in ends))
    with pytest.raises(MessageError):
        decode_batch(stream[:end], "t")


def test_too_many_properties_for_a_batch() -> None:
    message = Message("t", b"", properties={"large": "x" * 40_000})
    with pytest.raises(MessageError, match="may take 32767"):
        encode_batch([message])


def test_lone_surrogates_and_large_flags_are_message_errors() -> None:
    with pytest.raises(MessageError, match="surrogate"):
        encode_batch([Message("t", b"", properties={"a": "\ud800"})])
    with pytest.raises(MessageError, match="32 bits"):
        encode_batch([Message("t", b"", flag=1 << 40)])


@pytest.mark.parametrize(
    ("tag", "code"),
    [("", 0), ("TagA", 2598919), ("a", 97), ("polygenelubricants", -(1 << 31)), ("标签", 857175), ("😀", 1772899)],
)
def test_tag_hash(tag: str, code: int) -> None:
    assert tag_hash(tag) == code


@given(property_text)
def test_tag_hash_is_a_java_int(tag: str) -> None:
    assert -(1 << 31) <= tag_hash(tag) < 1 << 31
