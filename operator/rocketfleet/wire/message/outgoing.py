"""Messages to be sent.

Java keeps tags, keys, delays and all the rest in the message's properties, and so does `Message`: what the constructor
takes beyond topic, body and flag ends up there under the system's names, and the attributes read it back from there.
"""

from collections.abc import Iterable, Mapping

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message import properties as names
from rocketfleet.wire.message.batch import read_batch, write_batch

_NO_DELAY = (None, None, None)


class Message:
    """A message to be sent.

    tags: one tag, by which consumers subscribe. keys: one key or several, by which the message can be looked up.
    properties: the sender's own; names that the system uses are refused. At most one of the delays may be given:
    delay_level (1 is the first of the broker's messageDelayLevel), delay_seconds, delay_milliseconds, or deliver_at
    (milliseconds since the epoch). sharding_key only labels the message; the producer picks its queue by it.
    """

    __slots__ = ("body", "flag", "properties", "topic")

    topic: str
    body: bytes
    flag: int
    properties: dict[str, str]

    def __init__(
        self,
        topic: str,
        body: bytes,
        *,
        tags: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        delay_level: int = 0,
        delay_seconds: int | None = None,
        delay_milliseconds: int | None = None,
        deliver_at: int | None = None,
        sharding_key: str | None = None,
        buyer_id: str | None = None,
        priority: int | None = None,
        wait_store_ok: bool = True,
    ) -> None:
        self.topic = topic
        self.body = body
        self.flag = flag
        held: dict[str, str] = {}
        self.properties = held
        if properties:
            for name, value in properties.items():
                self.put_property(name, value)
        if tags:
            held[names.TAGS] = tags
        joined = keys if isinstance(keys, str) else names.KEY_SEPARATOR.join(keys)
        if joined:
            held[names.KEYS] = joined
        if delay_level or (delay_seconds, delay_milliseconds, deliver_at) != _NO_DELAY:
            held.update(_delay(delay_level, delay_seconds, delay_milliseconds, deliver_at))
        if sharding_key:
            held[names.SHARDING_KEY] = sharding_key
        if buyer_id:
            held[names.BUYER_ID] = buyer_id
        if priority is not None:
            held[names.PRIORITY] = str(priority)
        held[names.WAIT_STORE_OK] = "true" if wait_store_ok else "false"

    def put_property(self, name: str, value: str) -> None:
        """Set a property of the sender's own."""
        if name in names.SYSTEM_PROPERTIES:
            raise MessageError(f"the property name {name!r} is used by RocketMQ itself; choose another")
        if not name.strip() or not value.strip():
            raise MessageError(f"a property's name and value may not be blank: {name!r}={value!r}")
        names.check_property(name, value)
        self.properties[name] = value

    @property
    def tags(self) -> str | None:
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.properties.get(names.KEYS, "").split())

    @property
    def delay_level(self) -> int:
        return int(self.properties.get(names.DELAY_LEVEL, 0))

    @property
    def sharding_key(self) -> str | None:
        return self.properties.get(names.SHARDING_KEY)

    @property
    def unique_id(self) -> str | None:
        """Set by the producer when it sends."""
        return self.properties.get(names.UNIQUE_ID)

    @property
    def wait_store_ok(self) -> bool:
        return self.properties.get(names.WAIT_STORE_OK, "true").lower() == "true"

    @property
    def is_delayed(self) -> bool:
        return any(
            name in self.properties
            for name in (
                names.DELAY_LEVEL,
                names.TIMER_DELAY_SECONDS,
                names.TIMER_DELAY_MILLISECONDS,
                names.TIMER_DELIVER_AT,
            )
        )

    def __repr__(self) -> str:
        return f"<Message topic={self.topic!r} body={len(self.body)} bytes properties={self.properties!r}>"


def _delay(level: int, seconds: int | None, milliseconds: int | None, deliver_at: int | None) -> dict[str, str]:
    """The property of a delay. There are four ways to say one, and a message has one delay at most."""
    delays = {
        names.DELAY_LEVEL: level or None,
        names.TIMER_DELAY_SECONDS: seconds,
        names.TIMER_DELAY_MILLISECONDS: milliseconds,
        names.TIMER_DELIVER_AT: deliver_at,
    }
    given = {name: str(number) for name, number in delays.items() if number is not None}
    if len(given) > 1:
        raise MessageError(f"a message has one delay at most, and this one has {' and '.join(given)}")
    return given


def encode_batch(messages: Iterable[Message]) -> bytes:
    """The body of SEND_BATCH_MESSAGE. That the messages may travel together is the producer's to check."""
    return write_batch([(message.flag, message.body, message.properties) for message in messages])


def decode_batch(body: bytes | memoryview, topic: str) -> list[Message]:
    """Read the body of SEND_BATCH_MESSAGE back."""
    messages: list[Message] = []
    for flag, own_body, properties in read_batch(bytes(body)):
        message = Message(topic, own_body, flag=flag)
        message.properties = properties
        messages.append(message)
    return messages
