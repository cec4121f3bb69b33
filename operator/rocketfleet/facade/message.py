"""`Message` and `ReceivedMessage` as rocketmq-client-python has them, over those of `rocketfleet.wire`.

The original hands every text to C as a string that ends at its first NUL, and reads bodies back the same way. Text
may be str or bytes; what is received is bytes, and absent is empty, never None. That much is kept. What is not kept:

- A body is sent whole, whatever bytes it has. The original cuts it at the first NUL, on sending and on receiving.
- A text that is neither str nor bytes is a TypeError at once. The original raises ctypes' own error, and None ends
  the process.
- A property that contains one of the two characters that separate properties on the wire is refused when it is sent.
  The original sends it, and the receiver sees other properties than were set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rocketfleet.facade.consts import MessageProperty
from rocketfleet.wire import message as wire
from rocketfleet.wire.message import properties as names

if TYPE_CHECKING:
    from collections.abc import Mapping

Text = str | bytes


def text_of(value: Text, what: str) -> str:
    """The text of a str or of UTF-8 bytes."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{what} must be UTF-8: {error}; only a body may hold any bytes") from error
    raise TypeError(f"{what} must be str or bytes, not {type(value).__name__}")


def number_of(value: int, what: str) -> int:
    """An int, and nothing that merely looks like one."""
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"{what} must be an int, not {type(value).__name__}")


class Message:
    """A message to be sent. It may be sent any number of times and gets a new id each time."""

    def __init__(self, topic: Text) -> None:
        self._topic = text_of(topic, "a topic")
        self._body = b""
        self._properties: dict[str, str] = {names.WAIT_STORE_OK: "true"}

    def set_keys(self, keys: Text) -> None:
        """One key, or several separated by blanks."""
        self._properties[names.KEYS] = text_of(keys, "keys")

    def set_tags(self, tags: Text) -> None:
        """The message's tag."""
        self._properties[names.TAGS] = text_of(tags, "tags")

    def set_body(self, body: Text) -> None:
        """The body: str goes out as UTF-8, bytes as they are."""
        if isinstance(body, str):
            body = body.encode("utf-8")
        elif not isinstance(body, bytes):
            raise TypeError(f"a body must be str or bytes, not {type(body).__name__}")
        self._body = body

    def set_property(self, key: Text, value: Text) -> None:
        """A property. As in the original, the system's own names are not refused: `KEYS` is what `set_keys` sets."""
        self._properties[text_of(key, "a property's name")] = text_of(value, "a property's value")

    def set_delay_time_level(self, delay_time_level: int) -> None:
        """Deliver later: 1 is the first of the broker's delay levels (1s 5s 10s 30s 1m …)."""
        self._properties[names.DELAY_LEVEL] = str(number_of(delay_time_level, "a delay time level"))

    def to_wire(self) -> wire.Message:
        """A message for the producer underneath; a fresh one each time, because sending writes an id into it."""
        message = wire.Message(self._topic, self._body)
        message.properties = dict(self._properties)
        return message

    def __repr__(self) -> str:
        return f"<Message topic={self._topic!r} body={len(self._body)} bytes>"


class Readable(Protocol):
    """What `ReceivedMessage` reads: a message from a broker, or one that is about to go there."""

    @property
    def topic(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def msg_id(self) -> str: ...
    @property
    def queue_id(self) -> int: ...
    @property
    def queue_offset(self) -> int: ...
    @property
    def commit_log_offset(self) -> int: ...
    @property
    def prepared_transaction_offset(self) -> int: ...
    @property
    def reconsume_times(self) -> int: ...
    @property
    def store_size(self) -> int: ...
    @property
    def born_timestamp(self) -> int: ...
    @property
    def store_timestamp(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An own message, for callbacks that take a `ReceivedMessage`: a queue selector, a local transaction.

    What only a stored message has is 0. The original reads foreign memory there.
    """

    topic: str
    body: bytes
    properties: Mapping[str, str]
    queue_id: int = 0
    queue_offset: int = 0
    commit_log_offset: int = 0
    prepared_transaction_offset: int = 0
    reconsume_times: int = 0
    store_size: int = 0
    born_timestamp: int = 0
    store_timestamp: int = 0

    @property
    def msg_id(self) -> str:
        return self.properties.get(names.UNIQUE_ID, "")


def outgoing(message: wire.Message) -> ReceivedMessage:
    """An own message as callbacks see it."""
    return ReceivedMessage(Outgoing(message.topic, message.body, message.properties))


class ReceivedMessage:
    """A message that came from a broker, or an own one in a callback before it is stored."""

    def __init__(self, message: Readable) -> None:
        self._message = message

    @property
    def _properties(self) -> Mapping[str, str]:
        return self._message.properties

    @property
    def topic(self) -> str:
        return self._message.topic

    @property
    def tags(self) -> bytes:
        return self.get_property(names.TAGS)

    @property
    def keys(self) -> bytes:
        return self.get_property(names.KEYS)

    @property
    def body(self) -> bytes:
        return self._message.body

    @property
    def id(self) -> str:
        return self._message.msg_id

    @property
    def delay_time_level(self) -> int:
        level = self._properties.get(names.DELAY_LEVEL, "0")
        return int(level) if level.isascii() and level.isdigit() else 0

    @property
    def queue_id(self) -> int:
        return self._message.queue_id

    @property
    def reconsume_times(self) -> int:
        return self._message.reconsume_times

    @property
    def store_size(self) -> int:
        return self._message.store_size

    @property
    def born_timestamp(self) -> int:
        return self._message.born_timestamp

    @property
    def store_timestamp(self) -> int:
        return self._message.store_timestamp

    @property
    def queue_offset(self) -> int:
        return self._message.queue_offset

    @property
    def commit_log_offset(self) -> int:
        return self._message.commit_log_offset

    @property
    def prepared_transaction_offset(self) -> int:
        return self._message.prepared_transaction_offset

    def get_property(self, prop: Text | MessageProperty) -> bytes:
        """A property's value, or empty if there is none of that name."""
        name = prop.value if isinstance(prop, MessageProperty) else text_of(prop, "a property's name")
        return self._properties.get(name, "").encode("utf-8")

    def __getitem__(self, key: Text | MessageProperty) -> bytes:
        return self.get_property(key)

    def __str__(self) -> str:
        return self.body.decode("utf-8")

    def __bytes__(self) -> bytes:
        return self.body

    def __repr__(self) -> str:
        return f"<{type(self).__name__} topic={self.topic!r} id={self.id!r} body={self.body!r}>"
