"""How a dataclass becomes the JSON of a RocketMQ body, and back.

A body's class states its fields with their types and defaults, and that is all: the reader and writer of a class are
put together from its type hints the first time it is used. A field's name on the wire is its own in camelCase, unless
`wire_name` says otherwise.

Reading is lenient about what may differ between versions of RocketMQ and strict about the rest. Unknown fields are
ignored; a missing field, or null, gives the default; an integer may be written as a string of digits, as fastjson does
for large ones in its browser mode. Anything else of the wrong shape is a BodyError that says where: one wrong queue in
thousands should be found by reading the message.

Types understood: str, int, float, bool, bytes (base64), `X | None`, tuple[X, ...], frozenset[X], dict[K, V], Any,
MessageQueue and other bodies; as keys: str, int and MessageQueue.
"""

import base64
import binascii
import dataclasses
import json
import types
import typing
from collections.abc import Callable
from typing import Any, Self

from rocketfleet.wire import fastjson
from rocketfleet.wire.errors import BodyError
from rocketfleet.wire.queue import MessageQueue

Reader = Callable[[Any], Any]
Writer = Callable[[Any], str]


class Body:
    """The base of every body. Subclasses are frozen dataclasses."""

    __slots__ = ()

    @classmethod
    def decode(cls, data: bytes | memoryview | str) -> Self:
        """Read the body of a command."""
        return cls.from_json(fastjson.loads(data))

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read what `fastjson.loads` returned."""
        try:
            body: Self = _codec_of(cls)[0](value)
        except _MismatchError as error:
            where = "".join(reversed(error.path)).removeprefix(".")
            raise BodyError(f"{cls.__name__}{f', field {where}' if where else ''}: {error}") from error
        return body

    def to_json(self) -> str:
        """The body's text, in the dialect if it has maps keyed by queues."""
        return _codec_of(type(self))[1](self)

    def encode(self) -> bytes:
        """The body of a command."""
        return self.to_json().encode("ascii")


def wire_name(name: str) -> dict[str, str]:
    """Metadata for a field whose name on the wire is not its own in camelCase."""
    return {"wire_name": name}


class _MismatchError(Exception):
    """A value of the wrong shape. Whoever contains the value adds where it stood."""

    def __init__(self, wanted: str, found: object) -> None:
        super().__init__(f"expected {wanted}, found {_kind(found)}")
        self.path: list[str] = []


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", int: "an integer", float: "a number"}
    kinds |= {bool: "a boolean", type(None): "null", tuple: "an object or array"}
    return kinds.get(type(value), "something else")


# -- classes ----------------------------------------------------------------------------------------------------------


_CODECS: dict[type[Body], tuple[Reader, Writer]] = {}


def _codec_of(cls: type[Body]) -> tuple[Reader, Writer]:
    """The reader and writer of a class, made once."""
    codec = _CODECS.get(cls)
    if codec is None:
        codec = _CODECS[cls] = _make_codec(cls)
    return codec


def _make_codec(cls: type[Body]) -> tuple[Reader, Writer]:
    hints = typing.get_type_hints(cls)
    members: list[tuple[str, str, Reader, Writer]] = []
    for member in dataclasses.fields(cls):  # type: ignore[arg-type]  # every subclass of Body is a dataclass
        name = member.metadata.get("wire_name") or _camel(member.name)
        members.append((member.name, name, *_codec_for(hints[member.name])))

    def read(value: Any) -> Any:
        if type(value) is tuple:  # it stood as a key
            value = _from_key(value)
        if type(value) is not dict:
            raise _MismatchError("an object", value)
        found = {}
        for attribute, name, reader, _ in members:
            item = value.get(name)
            if item is not None:
                try:
                    found[attribute] = reader(item)
                except _MismatchError as error:
                    error.path.append(f".{name}")
                    raise
        return cls(**found)

    def write(body: Any) -> str:
        parts = []
        for attribute, name, _, writer in members:
            value = getattr(body, attribute)
            if value is not None:
                parts.append(f'"{name}":{writer(value)}')
        return "{" + ",".join(parts) + "}"

    return read, write


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _from_key(pairs: tuple[Any, ...]) -> dict[Any, Any]:
    try:
        return dict(pairs)
    except (TypeError, ValueError):
        raise _MismatchError("an object", pairs) from None


# -- types ------------------------------------------------------------------------------------------------------------


def _codec_for(hint: Any) -> tuple[Reader, Writer]:
    """The reader and writer of a type hint."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _codec_for(inner)  # null never gets here: it is the default
    if origin in (tuple, frozenset):
        return _array_codec(origin, *_codec_for(arguments[0]))
    if origin is dict:
        return _map_codec(arguments[0], *_codec_for(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Body):
        return _codec_of(hint)
    raise TypeError(f"a body's field cannot be of type {hint}")


def _array_codec(make: Callable[[list[Any]], Any], reader: Reader, writer: Writer) -> tuple[Reader, Writer]:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise _MismatchError("an array", value)
        items = []
        for item in value:
            if item is None:
                continue
            try:
                items.append(reader(item))
            except _MismatchError as error:
                error.path.append(f"[{len(items)}]")
                raise
        return make(items)

    def write(value: Any) -> str:
        items = sorted(value) if isinstance(value, frozenset) else value  # the same body, the same bytes
        return "[" + ",".join([writer(item) for item in items]) + "]"

    return read, write


def _map_codec(key: Any, reader: Reader, writer: Writer) -> tuple[Reader, Writer]:
    read_key, write_key = _codec_for(key)
    if key is int:  # in quotes every JSON parser reads it, and fastjson too

        def write_key(value: Any) -> str:
            return f'"{int(value)}"'

    def read(value: Any) -> dict[Any, Any]:
        if type(value) is not dict:
            raise _MismatchError("an object", value)
        result = {}
        for name, item in value.items():
            if item is None:
                continue
            try:
                result[read_key(name)] = reader(item)
            except _MismatchError as error:
                error.path.append(f"[{_short(name)}]")
                raise
        return result

    def write(value: Any) -> str:
        return "{" + ",".join([f"{write_key(name)}:{writer(item)}" for name, item in value.items()]) + "}"

    return read, write


def _short(key: object) -> str:
    text = str(dict(key)) if type(key) is tuple and all(type(pair) is tuple for pair in key) else str(key)
    return text if len(text) <= 100 else text[:100] + "…"


def _read_str(value: Any) -> str:
    if type(value) is not str:
        raise _MismatchError("a string", value)
    return value


def _read_int(value: Any) -> int:
    if type(value) is str and len(value) <= 20 and value.isascii() and value.removeprefix("-").isdecimal():
        value = int(value)
    if type(value) is int and -(1 << 63) <= value < 1 << 63:  # a Java long, at most
        return value
    raise _MismatchError("an integer of 64 bits", value)


def _read_float(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int and abs(value) < 1 << 1000:  # beyond, it is no float
        return float(value)
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise _MismatchError("a number", value)


def _read_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise _MismatchError("a boolean", value)
    return value


def _read_bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(_read_str(value), validate=True)
    except (binascii.Error, ValueError):
        raise _MismatchError("base64", value) from None


def _read_queue(value: Any) -> MessageQueue:
    fields = _from_key(value) if type(value) is tuple else value
    if type(fields) is not dict:
        raise _MismatchError("a queue", value)
    for name, reader in (("topic", _read_str), ("brokerName", _read_str), ("queueId", _read_int)):
        try:
            reader(fields.get(name))
        except _MismatchError as error:
            error.path.append(f".{name}")
            raise
    return MessageQueue(fields["topic"], fields["brokerName"], int(fields["queueId"]))


def _write_queue(queue: MessageQueue) -> str:
    topic, broker, queue_id = queue
    return f'{{"brokerName":{json.dumps(broker)},"queueId":{int(queue_id)},"topic":{json.dumps(topic)}}}'


_SCALARS: dict[Any, tuple[Reader, Writer]] = {
    str: (_read_str, json.dumps),
    int: (_read_int, lambda value: str(int(value))),
    float: (_read_float, lambda value: json.dumps(float(value))),
    bool: (_read_bool, lambda value: "true" if value else "false"),
    bytes: (_read_bytes, lambda value: json.dumps(base64.b64encode(value).decode("ascii"))),
    MessageQueue: (_read_queue, _write_queue),
    Any: (lambda value: value, json.dumps),
}
