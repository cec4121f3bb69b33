"""What is wrong with a message can be said before it is sent, and better than the broker says it.

The rules are the broker's own, so nothing is refused here that a broker with default settings would take, with one
exception that Java makes too: an empty body.
"""

import re
from collections.abc import Sequence

from rocketfleet.producer.errors import InvalidMessage
from rocketfleet.wire.message import Message, properties
from rocketfleet.wire.topics import RETRY_PREFIX

MAX_MESSAGE_SIZE = 4 * 1024 * 1024
MAX_PROPERTIES = 0x7FFF
MAX_TOPIC = 127
MAX_GROUP = 120

_NAME = re.compile(r"[%|a-zA-Z0-9_-]+\Z")
_NOT_FOR_SENDING = frozenset(
    {
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
_SINGLE_ONLY = frozenset(
    {
        properties.DELAY_LEVEL,
        properties.TIMER_DELAY_SECONDS,
        properties.TIMER_DELAY_MILLISECONDS,
        properties.TIMER_DELIVER_AT,
        properties.TRANSACTION_PREPARED,
    }
)
"""What the broker looks at only in messages that come singly."""
_NOT_ACCUMULATED = _SINGLE_ONLY | {properties.PRODUCER_GROUP}
_RESERVED_GROUPS = frozenset({"DEFAULT_PRODUCER"})


def _check_name(kind: str, name: str, longest: int) -> None:
    if not name:
        raise InvalidMessage(f"the {kind} has no name")
    if len(name) > longest:
        raise InvalidMessage(f"{kind} names have at most {longest} characters; this one has {len(name)}: {name[:40]}…")
    if not _NAME.match(name):
        raise InvalidMessage(f"the {kind} name {name!r} may contain only letters, digits and the characters % | _ -")


def check_topic(topic: str) -> None:
    """Refuse a name that no topic can have, and topics that belong to the broker."""
    _check_name("topic", topic, MAX_TOPIC)
    if topic in _NOT_FOR_SENDING:
        raise InvalidMessage(f"{topic} is one of the broker's own topics: messages cannot be sent to it")


def check_group(group: str) -> None:
    """Refuse a name that no producer group can have."""
    _check_name("producer group", group, MAX_GROUP)
    if group in _RESERVED_GROUPS:
        raise InvalidMessage(f"the producer group may not be called {group}: choose a name of your own")


def check_body(body: object, limit: int = MAX_MESSAGE_SIZE) -> None:
    """Refuse what is not bytes, nothing at all, and too much."""
    if not isinstance(body, bytes):
        raise InvalidMessage(f"a message's body must be bytes, not {type(body).__name__}; encode it first")
    if not body:
        raise InvalidMessage("the message's body is empty; RocketMQ takes no empty messages")
    if len(body) > limit:
        raise InvalidMessage(
            f"the message's body has {len(body)} bytes and may have {limit}; split it, "
            "or raise the limit here and at the broker (maxMessageSize)"
        )


def check_properties(text: str) -> None:
    """Refuse properties that are too long for a stored message. `text` is their encoded form."""
    try:
        length = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidMessage(f"a property holds a lone surrogate, which UTF-8 cannot carry: {error}") from error
    if length > MAX_PROPERTIES:
        raise InvalidMessage(
            f"the message's properties take {length} bytes and may take {MAX_PROPERTIES}; "
            "put large values into the body"
        )


def check_batch(messages: Sequence[Message], limit: int = MAX_MESSAGE_SIZE) -> None:
    """Refuse messages that the broker would not keep together, or would store but not treat as asked."""
    if not messages:
        raise InvalidMessage("the batch is empty")
    first = messages[0]
    topic, wait = first.topic, first.properties.get(properties.WAIT_STORE_OK)
    if topic.startswith(RETRY_PREFIX):
        raise InvalidMessage(f"batches cannot be sent to a retry topic such as {topic}; send the messages singly")
    for position, message in enumerate(messages):
        held, body = message.properties, message.body
        if type(body) is not bytes or not 0 < len(body) <= limit:
            check_body(body, limit)
        if message.topic != topic or not _SINGLE_ONLY.isdisjoint(held) or held.get(properties.WAIT_STORE_OK) != wait:
            _check_member(position, message, first)


def _check_member(position: int, message: Message, first: Message) -> None:
    if message.topic != first.topic:
        raise InvalidMessage(
            f"the messages of a batch must have one topic; number 0 goes to {first.topic}, "
            f"number {position} to {message.topic}"
        )
    if message.is_delayed:
        raise InvalidMessage(
            f"message {position} of the batch is delayed; the broker would deliver it at once, so send it singly"
        )
    if properties.TRANSACTION_PREPARED in message.properties:
        raise InvalidMessage(f"message {position} of the batch is transactional; send it singly")
    if message.wait_store_ok != first.wait_store_ok:
        raise InvalidMessage(f"the messages of a batch must agree on wait_store_ok; number {position} differs")


def can_join_batch(message: Message) -> bool:
    """Whether the accumulator may put this message together with others."""
    return _NOT_ACCUMULATED.isdisjoint(message.properties) and not message.topic.startswith(RETRY_PREFIX)
