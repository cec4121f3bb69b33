"""Commands survive a round trip in both header forms, and reading a foreign or broken header never surprises."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wire.strategies import commands

from rocketfleet.wire.codes import Language, RequestCode, ResponseCode, request_name, response_name
from rocketfleet.wire.command import VERSION, Command, HeaderForm, decode, encode, reply_to, request
from rocketfleet.wire.errors import CommandError, WireError
from rocketfleet.wire.frame import MAX_FRAME_LENGTH, FrameDecoder


def payload(header: bytes, body: bytes = b"", form: int = 0) -> bytes:
    return struct.pack(">I", form << 24 | len(header)) + header + body


@given(commands())
def test_what_is_encoded_is_decoded(command: Command) -> None:
    (frame,) = FrameDecoder().feed(encode(command))
    assert decode(frame) == command


@given(commands(form=HeaderForm.JSON))
def test_the_json_header_is_standard_json(command: Command) -> None:
    frame = encode(command)
    length = struct.unpack_from(">I", frame, 4)[0]
    header = json.loads(frame[8 : 8 + length])
    assert header.get("extFields") == command.fields
    assert header["code"] == command.code


def test_fields_are_written_as_java_writes_them() -> None:
    command = request(
        RequestCode.PULL_MESSAGE,
        {"a": "x", "b": 5, "c": True, "d": False, "e": None, "f": 1.5, "g": RequestCode.SEND_MESSAGE, "h": -(1 << 63)},
    )
    assert command.fields == {
        "a": "x",
        "b": "5",
        "c": "true",
        "d": "false",
        "f": "1.5",
        "g": "10",
        "h": "-9223372036854775808",
    }
    assert type(command.code) is int


def test_kinds() -> None:
    asked = request(34)
    assert not asked.is_response
    assert not asked.is_oneway
    assert request(34, oneway=True).is_oneway
    asked.opaque = 77
    answer = reply_to(asked, ResponseCode.SYSTEM_BUSY, "later", {"n": 1}, b"body")
    assert (answer.opaque, answer.code, answer.remark, answer.fields, answer.body) == (
        77,
        2,
        "later",
        {"n": "1"},
        b"body",
    )
    assert answer.is_response
    assert answer.language == Language.PYTHON
    assert answer.version == VERSION


def test_a_reply_takes_the_form_of_the_request() -> None:
    assert reply_to(request(34, form=HeaderForm.ROCKETMQ)).form is HeaderForm.ROCKETMQ


def test_a_code_too_large_for_the_binary_form_goes_as_json() -> None:
    command = request(RequestCode.POP_MESSAGE, form=HeaderForm.ROCKETMQ)
    assert command.form is HeaderForm.JSON
    assert decode(encode(command)[4:]).code == 200050
    with pytest.raises(CommandError, match="use JSON"):
        encode(Command(200050, form=HeaderForm.ROCKETMQ))


def test_unknown_codes_and_languages_survive() -> None:
    read = decode(payload(b'{"code":987654,"language":"COBOL","version":1,"opaque":2,"flag":1}'))
    assert read.code == 987654
    assert read.language == Language.OTHER
    assert request_name(read.code) == "987654"
    assert request_name(11) == "PULL_MESSAGE"
    assert response_name(19) == "PULL_NOT_FOUND"
    binary = decode(encode(Command(5, language=99, form=HeaderForm.ROCKETMQ))[4:])
    assert binary.language == 99


@pytest.mark.parametrize("form", HeaderForm)
def test_a_remark_in_another_encoding_is_replaced_not_refused(form: HeaderForm) -> None:
    frame = encode(Command(1, remark="XXXX", form=form))
    broken = frame.replace(b"XXXX", "主题".encode("gbk"))
    remark = decode(broken[4:]).remark
    assert remark is not None
    assert "\N{REPLACEMENT CHARACTER}" in remark


def test_a_remark_with_raw_control_characters_is_read() -> None:
    assert decode(payload(b'{"code":1,"remark":"a\nb\tc"}')).remark == "a\nb\tc"


def test_fields_of_other_types_are_read_as_text() -> None:
    read = decode(payload(b'{"code":1,"extFields":{"a":1,"b":true,"c":null,"d":1.5,"e":"x","f":false}}'))
    assert read.fields == {"a": "1", "b": "true", "d": "1.5", "e": "x", "f": "false"}


def test_missing_parts_have_defaults() -> None:
    read = decode(payload(b"{}", b"body"))
    assert (read.code, read.fields, bytes(read.body), read.opaque, read.flag, read.remark) == (
        0,
        {},
        b"body",
        0,
        0,
        None,
    )


def test_the_body_is_a_view() -> None:
    frame = encode(Command(1, body=b"x" * 1000))
    body = decode(memoryview(frame)[4:]).body
    assert isinstance(body, memoryview)
    assert body.obj is frame


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\0\0\0",
        payload(b"{}")[:-1],
        payload(b""),
        payload(b"[]"),
        payload(b"5"),
        payload(b"{"),
        payload(b"{} x"),
        payload(b"{}", form=2),
        payload(b"{}", form=255),
        payload(b'{"code":"x"}'),
        payload(b'{"code":1.5}'),
        payload(b'{"code":true}'),
        payload(b'{"opaque":null}'),
        payload(b'{"extFields":[]}'),
        payload(b'{"extFields":{"a":{}}}'),
        payload(b'{"extFields":{"a":[]}}'),
        payload(b"[" * 100_000),
        payload(b'{"a":' * 100_000),
        payload(b'{"code":' + b"9" * 10_000 + b"}"),
        payload(b"", form=1),
        payload(bytes(20), form=1),
        payload(struct.pack(">hbhiii", 1, 0, 1, 1, 1, -5) + bytes(30), form=1),
        payload(struct.pack(">hbhiii", 1, 0, 1, 1, 1, 1000), form=1),
        payload(struct.pack(">hbhiiii", 1, 0, 1, 1, 1, 0, 1000), form=1),
        payload(struct.pack(">hbhiiii", 1, 0, 1, 1, 1, 0, -1), form=1),
        payload(struct.pack(">hbhiiiih", 1, 0, 1, 1, 1, 0, 2, -7), form=1),
        payload(struct.pack(">hbhiiiihi", 1, 0, 1, 1, 1, 0, 6, 0, 50), form=1),
        payload(struct.pack(">hbhiiiihi", 1, 0, 1, 1, 1, 0, 6, 0, -50), form=1),
    ],
)
def test_a_broken_header_is_a_command_error(broken: bytes) -> None:
    with pytest.raises(CommandError):
        decode(broken)


@given(st.binary(max_size=80), st.integers(0, 1))
def test_garbage_is_a_wire_error_or_a_command(garbage: bytes, form: int) -> None:
    try:
        decode(payload(garbage, form=form))
    except WireError:
        return


def test_a_command_that_cannot_be_written_says_why() -> None:
    with pytest.raises(CommandError, match="too large"):
        encode(Command(1, body=bytes(MAX_FRAME_LENGTH)))
    with pytest.raises(CommandError, match="too large"):
        encode(Command(1, fields={"a": "x" * (1 << 24)}))
    with pytest.raises(CommandError, match="ROCKETMQ form"):
        encode(Command(1, fields={"x" * 40_000: ""}, form=HeaderForm.ROCKETMQ))
    with pytest.raises(CommandError, match="ROCKETMQ form"):
        encode(Command(1, remark="\ud800", form=HeaderForm.ROCKETMQ))
    wrong: dict[str, str] = {"a": 5}  # type: ignore[dict-item]  # what a caller without a type checker might do
    for form in HeaderForm:
        with pytest.raises(CommandError):
            encode(Command(1, fields=wrong, form=form))


def test_a_repr_tells_neither_values_nor_bodies() -> None:
    shown = repr(request(11, {"AccessKey": "me", "Signature": "c2VjcmV0"}, b"secret body"))
    assert "Signature" in shown
    assert "c2VjcmV0" not in shown
    assert "secret body" not in shown
    assert "code=11" in shown
