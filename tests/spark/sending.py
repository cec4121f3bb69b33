"""Sending what a read has to find again: every message is remembered by where the broker says it is."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from tests.broker.cluster import Cluster

from rocketfleet.client.config import ClientConfig
from rocketfleet.producer import Producer, ProducerOptions
from rocketfleet.wire.message import Message


class Found(NamedTuple):
    """A message as both sides know it."""

    topic: str
    broker: str
    queue_id: int
    queue_offset: int
    body: bytes
    tags: str | None
    keys: str | None
    msg_id: str


def send(
    cluster: Cluster, messages: Iterable[Message], *, config: ClientConfig | None = None, options: Any = None
) -> list[Found]:
    """Send messages and return where they lie."""

    async def run() -> list[Found]:
        patient = options or ProducerOptions(send_timeout=30.0)
        async with Producer(config or ClientConfig(cluster.name_server, timeout=10.0), "tests", patient) as producer:
            gate = asyncio.Semaphore(16)

            async def one(message: Message) -> Found:
                async with gate:
                    done = await producer.send(message)
                keys = " ".join(message.keys) or None
                return Found(*done.queue, done.queue_offset, message.body, message.tags, keys, done.msg_id)

            return list(await asyncio.gather(*(one(message) for message in messages)))

    return asyncio.run(run())


def numbered(topic: str, count: int, start: int = 0, *, tags: Sequence[str | None] = (None,)) -> list[Message]:
    """Messages that tell themselves apart, with these tags in turn."""
    return [
        Message(topic, f"message {number}".encode(), tags=tags[number % len(tags)], keys=str(number))
        for number in range(start, start + count)
    ]


def rows(frame: DataFrame) -> list[Found]:
    """What was read, in a form to compare."""
    columns = ("topic", "broker", "queueId", "queueOffset", "body", "tags", "keys", "msgId")
    return [
        Found(one.topic, one.broker, one.queueId, one.queueOffset, bytes(one.body), one.tags, one.keys, one.msgId)
        for one in frame.select(*columns).collect()
    ]
