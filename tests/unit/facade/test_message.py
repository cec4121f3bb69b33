"""The facade's messages: text in either form, bodies whole, bytes out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.facade.consts import MessageProperty
from rocketfleet.facade.message import Message, outgoing


def message() -> Message:
    return Message("orders")


@given(st.text(), st.text(), st.binary())
def test_str_and_its_utf8_bytes_are_the_same(keys: str, tags: str, body: bytes) -> None:
    as_text, as_bytes = Message("订单"), Message("订单".encode())
    as_text.set_keys(keys)
    as_bytes.set_keys(keys.encode("utf-8", "surrogatepass") if keys.isascii() else keys)
    as_text.set_tags(tags)
    as_bytes.set_tags(tags)
    as_text.set_property("p", keys)
    as_bytes.set_property(b"p", keys)
    for one in (as_text, as_bytes):
        one.set_body(body)
    first, second = as_text.to_wire(), as_bytes.to_wire()
    assert (first.topic, first.body, first.properties) == (second.topic, second.body, second.properties)


@given(st.binary())
def test_a_body_is_whole_whatever_is_in_it(body: bytes) -> None:
    one = message()
    one.set_body(body + b"\0" + body)
    assert one.to_wire().body == body + b"\0" + body


def test_text_bodies_are_utf8() -> None:
    one = message()
    one.set_body("grün")
    assert one.to_wire().body == "grün".encode()


def test_each_sending_gets_a_message_of_its_own() -> None:
    one = message()
    one.to_wire().properties["UNIQ_KEY"] = "x"
    assert "UNIQ_KEY" not in one.to_wire().properties


def test_the_systems_names_can_be_set_as_in_the_original() -> None:
    one = message()
    one.set_property("KEYS", "a b")
    one.set_delay_time_level(3)
    wire = one.to_wire()
    assert wire.keys == ("a", "b")
    assert wire.delay_level == 3
    assert wire.wait_store_ok


@pytest.mark.parametrize("wrong", [None, 1, 1.5, bytearray(b"x"), ["x"]])
def test_neither_str_nor_bytes_is_refused_at_once(wrong: Any) -> None:
    for call in (
        message().set_keys,
        message().set_tags,
        message().set_body,
        Message,
        lambda value: message().set_property("k", value),
        lambda value: message().set_property(value, "v"),
    ):
        with pytest.raises(TypeError, match="str or bytes"):
            call(wrong)


def test_bytes_that_are_not_utf8_belong_into_the_body() -> None:
    with pytest.raises(ValueError, match="UTF-8"):
        message().set_keys(b"\xff")


def test_a_delay_level_is_a_number() -> None:
    with pytest.raises(TypeError, match="must be an int"):
        message().set_delay_time_level("3")  # type: ignore[arg-type] # what the test is about


def test_an_own_message_reads_like_a_received_one() -> None:
    one = message()
    one.set_tags("paid")
    one.set_keys("k1 k2")
    one.set_property("shop", "köln")
    one.set_body("grün")
    seen = outgoing(one.to_wire())
    assert (seen.topic, seen.tags, seen.keys, seen.body) == ("orders", b"paid", b"k1 k2", "grün".encode())
    assert seen.get_property("shop") == seen[b"shop"] == "köln".encode()
    assert seen[MessageProperty.TAGS] == b"paid"
    assert seen["absent"] == b""
    assert (str(seen), bytes(seen)) == ("grün", "grün".encode())
    assert (seen.id, seen.queue_id, seen.queue_offset, seen.delay_time_level) == ("", 0, 0, 0)
    assert repr(seen) == f"<ReceivedMessage topic='orders' id='' body={'grün'.encode()!r}>"


@pytest.mark.parametrize(("property_value", "level"), [("3", 3), ("", 0), ("x", 0), ("-1", 0)])
def test_a_delay_level_that_is_no_number_is_none(property_value: str, level: int) -> None:
    one = message()
    one.set_property("DELAY", property_value)
    assert outgoing(one.to_wire()).delay_time_level == level
