"""Commands: the requests and responses that travel in frames.

The header comes in two forms, and a peer answers in the form it was asked in. JSON is Java's default and here too: the
standard library's C parser reads it faster than Python code reads the binary form. ROCKETMQ is the binary form, cheaper
for the broker. It keeps the code in 16 bits, so requests numbered beyond 32767 (all of pop consuming) cannot use it.

A command's `fields` (Java: extFields) are strings on the wire whatever they mean; `request` takes Python values and
writes them as Java would. Nothing is interpreted on the way in: an unknown code stays an int, an unknown field stays in
the dict, a remark in a foreign encoding is read with replacement characters, and null values are left out.
"""

import json
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from json.encoder import encode_basestring_ascii as _quote
from typing import TYPE_CHECKING, Any, Final

from rocketfleet.wire.codes import Language
from rocketfleet.wire.errors import CommandError
from rocketfleet.wire.frame import MAX_FRAME_LENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    FieldValue = str | int | float | bool | None

VERSION: Final = 513
"""The version this client says it is: V5_5_0. From 401 (V4_9_4) on, name servers answer routes in standard JSON."""

RESPONSE_FLAG: Final = 1
ONEWAY_FLAG: Final = 2


class HeaderForm(IntEnum):
    """How a command's header is written."""

    JSON = 0
    ROCKETMQ = 1


@dataclass(slots=True)
class Command:
    """One request or response. `language` is an int beyond the members of Language if a peer invents one."""

    code: int
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes | memoryview = b""
    opaque: int = 0
    flag: int = 0
    remark: str | None = None
    language: int = Language.PYTHON
    version: int = VERSION
    form: HeaderForm = HeaderForm.JSON

    @property
    def is_response(self) -> bool:
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        return self.flag & ONEWAY_FLAG != 0

    def __repr__(self) -> str:
        # Fields may carry an access key and a signature, and a body may be megabytes: neither belongs in a log line.
        kind = "response" if self.is_response else "oneway" if self.is_oneway else "request"
        remark = f", remark={self.remark!r}" if self.remark else ""
        return (
            f"<{kind} code={self.code} opaque={self.opaque} fields={sorted(self.fields)} body={len(self.body)}{remark}>"
        )


def request(
    code: int,
    fields: "Mapping[str, FieldValue] | None" = None,
    body: bytes | memoryview = b"",
    *,
    oneway: bool = False,
    form: HeaderForm = HeaderForm.JSON,
) -> Command:
    """A request. Field values are written as Java writes them, None is left out; the connection sets the opaque.

    `form` gives way to JSON for a code that the binary form cannot carry.
    """
    return Command(
        code=int(code),
        fields=_java_fields(fields),
        body=body,
        flag=ONEWAY_FLAG if oneway else 0,
        form=form if code <= _MAX_SHORT else HeaderForm.JSON,
    )


def reply_to(
    asked: Command,
    code: int = 0,
    remark: str | None = None,
    fields: "Mapping[str, FieldValue] | None" = None,
    body: bytes | memoryview = b"",
) -> Command:
    """The response to a request: same opaque, same form."""
    return Command(
        code=int(code),
        fields=_java_fields(fields),
        body=body,
        opaque=asked.opaque,
        flag=RESPONSE_FLAG,
        remark=remark,
        form=asked.form,
    )


def _java_fields(fields: "Mapping[str, FieldValue] | None") -> dict[str, str]:
    if not fields:
        return {}
    return {
        name: value if type(value) is str else str(value) if type(value) is int else _java_text(value)
        for name, value in fields.items()
        if value is not None
    }


def _java_text(value: "FieldValue") -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    return int.__repr__(value) if isinstance(value, int) else str(value)  # an IntEnum is its number


# -- encoding ---------------------------------------------------------------------------------------------------------

_WORDS = struct.Struct(">ii")
_BINARY_HEAD = struct.Struct(">hbhii")  # code, language, version, opaque, flag
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_MAX_SHORT: Final = 0x7FFF
_MAX_HEADER_LENGTH: Final = 0xFFFFFF
_LANGUAGE_NAMES = {member.value: member.name for member in Language}
_LANGUAGES = {member.name: member for member in Language}
_OTHER: Final = Language.OTHER


def encode(command: Command) -> bytes:
    """The whole frame, length word included."""
    header = _encode_json(command) if command.form == HeaderForm.JSON else _encode_binary(command)
    length = 4 + len(header) + len(command.body)
    if len(header) > _MAX_HEADER_LENGTH or length + 4 > MAX_FRAME_LENGTH:
        raise CommandError(
            f"the command is too large for one frame: a header of {len(header)} bytes, a body of {len(command.body)}; "
            f"a frame holds {MAX_FRAME_LENGTH} in all. Send less at once."
        )
    return b"".join((_WORDS.pack(length, command.form << 24 | len(header)), header, command.body))


def _encode_json(command: Command) -> bytes:
    # Put together by hand: the json module spends twice the time, most of it on making an encoder for each call.
    language = _LANGUAGE_NAMES.get(command.language, "OTHER")
    try:
        remark = f',"remark":{_quote(command.remark)}' if command.remark is not None else ""
        fields = ",".join([f"{_quote(name)}:{_quote(value)}" for name, value in command.fields.items()])
        return (
            f'{{"code":{command.code:d},"language":"{language}","version":{command.version:d},'
            f'"opaque":{command.opaque:d},"flag":{command.flag:d}{remark},"extFields":{{{fields}}}}}'
        ).encode("ascii")
    except (TypeError, ValueError) as error:
        raise CommandError(f"the command's header cannot be written: {error}") from error


def _encode_binary(command: Command) -> bytes:
    short, integer = _SHORT.pack, _INT.pack
    try:
        remark = command.remark.encode() if command.remark else b""
        parts: list[bytes] = []
        for name, value in command.fields.items():
            raw_name, raw_value = name.encode(), value.encode()
            parts += (short(len(raw_name)), raw_name, integer(len(raw_value)), raw_value)
        raw_fields = b"".join(parts)
        return b"".join(
            (
                _BINARY_HEAD.pack(command.code, command.language, command.version, command.opaque, command.flag),
                integer(len(remark)),
                remark,
                integer(len(raw_fields)),
                raw_fields,
            )
        )
    except (struct.error, AttributeError, ValueError) as error:  # no text; a lone surrogate
        raise CommandError(f"the command's header does not fit the ROCKETMQ form: {error}; use JSON") from error


# -- decoding ---------------------------------------------------------------------------------------------------------

_from_json = json.JSONDecoder(strict=False).raw_decode  # not strict: a remark may hold raw control characters


def decode(payload: bytes | memoryview) -> Command:
    """Read a frame's payload: everything after its length word. The body stays a view of the payload."""
    view = memoryview(payload)
    if len(view) < 4:
        raise CommandError(f"a frame of {len(view)} bytes is too short to hold a header's length")
    word = int.from_bytes(view[:4], "big")
    end = 4 + (word & _MAX_HEADER_LENGTH)
    if end > len(view):
        raise CommandError(f"the header should end at byte {end} of a frame of {len(view)}")
    form = word >> 24
    if form == HeaderForm.JSON:
        command = _decode_json(view[4:end])
    elif form == HeaderForm.ROCKETMQ:
        command = _decode_binary(bytes(view[4:end]))
    else:
        raise CommandError(f"header form {form} is not known; 0 is JSON and 1 is ROCKETMQ")
    command.body = view[end:]
    return command


def _decode_json(header: memoryview) -> Command:
    # Replacing undecodable bytes cannot break the JSON around them: UTF-8 never swallows an ASCII byte.
    text = str(header, "utf-8", "replace")
    try:
        read, end = _from_json(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"the header is not JSON: {error}") from error
    if end != len(text):
        raise CommandError(f"the header goes on after its JSON, at character {end} of {len(text)}")
    if type(read) is not dict:
        raise CommandError(f"the header is a JSON {type(read).__name__}, not an object")
    get = read.get
    fields = get("extFields")
    if fields is None:
        fields = {}
    elif type(fields) is not dict:
        raise CommandError(f"extFields is a JSON {type(fields).__name__}, not an object")
    for value in fields.values():
        if type(value) is not str:
            fields = _text_fields(fields)
            break
    remark = get("remark")
    code, opaque, flag, version = get("code", 0), get("opaque", 0), get("flag", 0), get("version", 0)
    if not (type(code) is type(opaque) is type(flag) is type(version) is int):
        raise CommandError("code, opaque, flag and version must be integers")
    return Command(
        code,
        fields,
        b"",
        opaque,
        flag,
        remark if remark is None or type(remark) is str else str(remark),
        _language(get("language")),
        version,
    )


def _text_fields(fields: dict[str, Any]) -> dict[str, str]:
    """Fields that another client wrote as numbers, booleans or nulls, as Java's map of strings would hold them."""
    text = {}
    for name, value in fields.items():
        if value is None:
            continue
        if isinstance(value, bool):
            text[name] = "true" if value else "false"
        elif isinstance(value, str):
            text[name] = value
        elif isinstance(value, int | float):
            try:
                text[name] = str(value)
            except ValueError as error:  # an integer of thousands of digits
                raise CommandError(f"the field {name} is not readable: {error}") from error
        else:
            raise CommandError(f"the field {name} is a JSON {type(value).__name__}, not a string")
    return text


def _language(value: object) -> int:
    if type(value) is str:
        return _LANGUAGES.get(value, _OTHER)
    return value if type(value) is int and -128 <= value <= 127 else _OTHER


def _decode_binary(header: bytes) -> Command:
    unpack_int, unpack_short = _INT.unpack_from, _SHORT.unpack_from
    try:
        code, language, version, opaque, flag = _BINARY_HEAD.unpack_from(header)
        position = _BINARY_HEAD.size
        (length,) = unpack_int(header, position)
        position += 4
        end = position + length
        if length < 0 or end > len(header):
            raise CommandError(f"a remark of {length} bytes does not fit in a header of {len(header)}")
        remark = header[position:end].decode("utf-8", "replace") if length else None
        (length,) = unpack_int(header, end)
        position = end + 4
        end = position + length
        if length < 0 or end > len(header):
            raise CommandError(f"fields of {length} bytes do not fit in a header of {len(header)}")
        fields: dict[str, str] = {}
        while position < end:
            (length,) = unpack_short(header, position)
            position += 2
            stop = position + length
            name = header[position:stop].decode("utf-8", "replace")
            (length_of_value,) = unpack_int(header, stop)
            position = stop + 4
            stop = position + length_of_value
            if length < 0 or length_of_value < 0 or stop > end:
                raise CommandError(f"a field runs beyond the {len(header)} bytes of its header")
            fields[name] = header[position:stop].decode("utf-8", "replace")
            position = stop
    except struct.error as error:
        raise CommandError(f"the header ends too soon: {error}") from error
    return Command(code, fields, b"", opaque, flag, remark, language, version, HeaderForm.ROCKETMQ)
