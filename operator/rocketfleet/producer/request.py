"""From a message to the request that stores it.

What does not depend on the queue is prepared once, so that a retry on another broker only exchanges a few fields. The
header is version 2, whose names have one letter: it is the shortest the broker understands. A batch carries the ids
of its messages inside, and one of its own, which tells brokers with batch queues that we can read their answer.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rocketfleet.client.requests.broker_messages import AUTO_CREATE_TOPIC, send_request
from rocketfleet.producer import checks
from rocketfleet.producer.errors import InvalidMessage
from rocketfleet.wire.command import Command, HeaderForm
from rocketfleet.wire.errors import WireError
from rocketfleet.wire.message import Message, UniqueIds, encode_batch, encode_properties, properties, sysflag
from rocketfleet.wire.message.compression import DEFAULT_LEVEL, Compression, compress
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX


class SendSettings(NamedTuple):
    """What all requests of a producer have in common."""

    group: str
    max_message_size: int = checks.MAX_MESSAGE_SIZE
    compress_over: int = 4 * 1024
    compression: Compression = Compression.ZLIB
    compression_level: int = DEFAULT_LEVEL
    create_topic_key: str = AUTO_CREATE_TOPIC
    default_queues: int = 4
    form: HeaderForm = HeaderForm.ROCKETMQ


class PreparedSend(NamedTuple):
    """A message or batch, ready but for the queue it goes to."""

    topic: str
    is_batch: bool
    msg_ids: tuple[str, ...]
    body: bytes
    properties: str
    sys_flag: int
    flag: int
    reconsume_times: int = 0
    max_reconsume_times: int | None = None


def prepare(message: Message, settings: SendSettings, ids: UniqueIds) -> PreparedSend:
    """Check one message, give it its id (kept from then on, like Java), and compress its body if it is large."""
    body = message.body
    checks.check_body(body, settings.max_message_size)
    held = message.properties
    msg_id = _identify(message, ids)
    sys_flag = 0
    if len(body) >= settings.compress_over:
        body = compress(body, settings.compression, settings.compression_level)
        sys_flag = settings.compression.flag
    if held.get(properties.TRANSACTION_PREPARED) == "true":
        sys_flag |= sysflag.TRANSACTION_PREPARED
    reconsumed, most = 0, None
    if message.topic.startswith(RETRY_PREFIX):  # there, two of the properties are the header's business
        held = dict(held)
        reconsumed = int(held.pop(properties.RECONSUME_TIME, 0))
        most = int(held.pop(properties.MAX_RECONSUME_TIMES)) if properties.MAX_RECONSUME_TIMES in held else None
    text = _encode(held)
    return PreparedSend(message.topic, False, (msg_id,), body, text, sys_flag, message.flag, reconsumed, most)


def encode_for_batch(message: Message, settings: SendSettings, ids: UniqueIds) -> bytes | None:
    """Check one message, give it its id, and encode it as part of a batch. None if it is to be compressed instead."""
    checks.check_body(message.body, settings.max_message_size)
    if len(message.body) >= settings.compress_over:
        return None
    _identify(message, ids)
    return _encode_batch((message,))


def prepare_batch(messages: Sequence[Message], settings: SendSettings, ids: UniqueIds) -> PreparedSend:
    """Check messages and put them into one body. Batches are not compressed: the flag would be every message's."""
    checks.check_batch(messages, settings.max_message_size)
    for message, new_id in zip(messages, ids.take(len(messages)), strict=True):
        held = message.properties
        if not held.get(properties.UNIQUE_ID):
            held[properties.UNIQUE_ID] = new_id
    return join_batch(messages, (_encode_batch(messages),), settings, ids)


def join_batch(
    messages: Sequence[Message], encoded: Sequence[bytes], settings: SendSettings, ids: UniqueIds
) -> PreparedSend:
    """The batch of messages that are checked and encoded already."""
    body = b"".join(encoded)
    if len(body) > settings.max_message_size:
        raise InvalidMessage(
            f"the batch of {len(messages)} messages takes {len(body)} bytes and may take {settings.max_message_size}; "
            "send it in several batches"
        )
    first = messages[0]
    # Where a topic has batch queues, the broker stores the batch as one message and filters by these.
    outer = {properties.UNIQUE_ID: ids.next()}
    if not first.wait_store_ok:
        outer[properties.WAIT_STORE_OK] = "false"
    tags = first.tags
    if tags is not None and all(message.tags == tags for message in messages):
        outer[properties.TAGS] = tags
    msg_ids = tuple(message.properties[properties.UNIQUE_ID] for message in messages)
    return PreparedSend(first.topic, True, msg_ids, body, encode_properties(outer), 0, 0)


def build(prepared: PreparedSend, queue: MessageQueue, born: int, settings: SendSettings) -> Command:
    """The request that stores the message in this queue. `born` is now, in milliseconds since the epoch."""
    command = send_request(
        queue,
        prepared.body,
        group=settings.group,
        born_timestamp=born,
        properties=prepared.properties,
        sys_flag=prepared.sys_flag,
        flag=prepared.flag,
        reconsume_times=prepared.reconsume_times,
        max_reconsume_times=prepared.max_reconsume_times,
        batch=prepared.is_batch,
        default_topic=settings.create_topic_key,
        default_topic_queues=settings.default_queues,
    )
    command.form = settings.form
    return command


def _identify(message: Message, ids: UniqueIds) -> str:
    held = message.properties
    msg_id = held.get(properties.UNIQUE_ID)
    if not msg_id:
        msg_id = held[properties.UNIQUE_ID] = ids.next()
    return msg_id


def _encode_batch(messages: Sequence[Message]) -> bytes:
    try:
        return encode_batch(messages)
    except WireError as error:
        raise InvalidMessage(f"the message cannot be sent: {error}") from error


def _encode(held: dict[str, str]) -> str:
    try:
        text = encode_properties(held)
        checks.check_properties(text)
    except WireError as error:
        raise InvalidMessage(f"the message cannot be sent: {error}") from error
    return text
