"""The layout of messages that travel in one body: SEND_BATCH_MESSAGE's, and that of an inner batch in the store.

Each message is its length, magic number and CRC (both unused, 0), flag and length of its body (int32 each), the body,
the length of the properties (int16) and the properties. The topic and all the rest are the batch's.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message.properties import (
    MAX_PROPERTIES_LENGTH,
    UNIQUE_ID,
    WAIT_STORE_OK,
    decode_properties,
    encode_properties,
)

_HEAD = struct.Struct(">iiiii")
_PROPERTIES_LENGTH = struct.Struct(">h")
_OVERHEAD: Final = _HEAD.size + _PROPERTIES_LENGTH.size
_USUAL: Final = 100  # characters; a unique id has 32, or 56 with an IPv6 address


def write_batch(entries: Iterable[tuple[int, bytes, Mapping[str, str]]]) -> bytes:
    """The bytes for these flags, bodies and properties."""
    parts: list[bytes] = []
    pack_head, pack_length = _HEAD.pack, _PROPERTIES_LENGTH.pack
    for flag, body, properties in entries:
        raw = properties_bytes(properties)
        length, size = len(body), len(raw)
        try:
            head = pack_head(_OVERHEAD + length + size, 0, 0, flag, length)
        except struct.error as error:
            raise MessageError(f"the flag {flag} of a message does not fit into 32 bits") from error
        parts += (head, body, pack_length(size), raw)
    return b"".join(parts)


def properties_bytes(properties: Mapping[str, str]) -> bytes:
    """Properties as a message on its own holds them, where their length must fit into an int16."""
    if len(properties) == 2 and properties.get(WAIT_STORE_OK) == "true":
        # A message that was given none has these two: nothing can be wrong with them, and most messages are such.
        unique_id = properties.get(UNIQUE_ID)
        if unique_id is not None and len(unique_id) < _USUAL and unique_id.isalnum():
            return f"{WAIT_STORE_OK}\x01true\x02{UNIQUE_ID}\x01{unique_id}\x02".encode()
    try:
        raw = encode_properties(properties).encode()
    except UnicodeEncodeError as error:
        raise MessageError(f"a property holds a lone surrogate, which UTF-8 cannot carry: {error.reason}") from error
    if len(raw) > MAX_PROPERTIES_LENGTH:
        raise MessageError(
            f"the properties of a message take {len(raw)} bytes and may take {MAX_PROPERTIES_LENGTH}; "
            "put large values into the body"
        )
    return raw


def read_batch(data: bytes) -> Iterator[tuple[int, bytes, dict[str, str]]]:
    """The flags, bodies and properties of a batch."""
    position, end = 0, len(data)
    while position < end:
        try:
            length, _, _, flag, body_length = _HEAD.unpack_from(data, position)
            body = position + _HEAD.size
            (properties_length,) = _PROPERTIES_LENGTH.unpack_from(data, body + max(body_length, 0))
        except struct.error as error:
            raise MessageError(f"the message at byte {position} of a batch of {end} ends too soon") from error
        stop = position + length
        if (
            body_length < 0
            or properties_length < 0
            or length != _OVERHEAD + body_length + properties_length
            or stop > end
        ):
            raise MessageError(
                f"the message at byte {position} of a batch of {end} says it has {length} bytes, "
                "but its parts do not add up"
            )
        body_end = body + body_length
        text = data[body_end + _PROPERTIES_LENGTH.size : stop].decode("utf-8", "replace")
        yield flag, data[body:body_end], decode_properties(text)
        position = stop
