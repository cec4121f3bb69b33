"""The write: rows become messages, sent in batches by the tasks.

At least once: a task that fails is run again by Spark from its first row, and sends what it had sent already once more.
Every message says of which batch it is (`BATCH_PROPERTY`): the query and the number of its micro-batch, or for a batch
write an id that the driver draws or the user gives. A row that is sent again has the same batch and the same keys, so a
reader that wants each row once drops what has both in common (`repeats.drop_repeats`).

Messages travel together that go to the same queue. Rows with a sharding key go to the queue of that key, in their
order; others wherever the producer sends them. What is delayed cannot travel in a batch, and what is large is
compressed on its own.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from rocketfleet.client.errors import NoPermission, NoRoute, RocketMQError
from rocketfleet.producer import InvalidMessage, Producer, ProducerError, SendFailed
from rocketfleet.producer.queues.sharding import by_hash
from rocketfleet.spark.source.errors import SourceError, in_one_sentence
from rocketfleet.spark.source.link import link
from rocketfleet.wire.errors import WireError
from rocketfleet.wire.message import Message
from rocketfleet.wire.message.properties import SYSTEM_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from rocketfleet.client.client import Client
    from rocketfleet.spark.source.options import WriteOptions
    from rocketfleet.wire.queue import MessageQueue

BATCH_PROPERTY: Final = "rocketfleet_batch"
COLUMNS: Final = {
    "body": ("binary", "string"),
    "topic": ("string",),
    "tags": ("string",),
    "keys": ("string", "array<string>"),
    "shardingKey": ("string",),
    "delayLevel": ("int", "tinyint", "smallint", "bigint"),
    "properties": ("map<string,string>",),
}
_BATCH_BYTES: Final = 512 * 1024
_AT_ONCE: Final = 8
_SEND_TRIES, _PAUSE = 5, 0.2
_QUERY_ID, _BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


def check_columns(schema: StructType, options: WriteOptions) -> None:
    """Refuse a DataFrame that does not say what is to be sent, or says what nobody would hear."""
    given = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name, kind in given.items():
        if name not in COLUMNS:
            raise SourceError(f"the column {name} has no meaning in a write: there are {', '.join(COLUMNS)}")
        if kind not in COLUMNS[name]:
            raise SourceError(f"the column {name} is {kind}: cast it to {' or '.join(COLUMNS[name])}")
    if "body" not in given:
        raise SourceError("a write needs the column body")
    if "topic" not in given and options.topic is None:
        raise SourceError("nothing says where to send to: give the option topic, or a column of that name")


@dataclass
class Sent(WriterCommitMessage):
    """What a task tells the driver."""

    messages: int


class _Writing:
    """What both writers do in a task."""

    def __init__(self, options: WriteOptions, batch_id: str) -> None:
        self._options = options
        self._batch_id = batch_id

    @in_one_sentence
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        made = link(self._options.connection)
        producer = made.call(_producer(made.client, self._options))
        sent = 0
        try:
            for batch in iterator:
                messages = list(_messages(batch, self._options.topic, self._stamp()))
                made.call(send_all(producer, messages, self._options.send_batch_size))
                sent += len(messages)
        except (InvalidMessage, WireError) as error:
            raise SourceError(f"a row cannot be sent: {error}") from None
        finally:
            made.call(producer.close())
        return Sent(sent)

    def _stamp(self) -> str:
        return self._batch_id


class BatchWriter(_Writing, DataSourceArrowWriter):
    """`df.write`. Made on the driver: all tasks, and their repetitions, share its id."""

    def __init__(self, options: WriteOptions) -> None:
        super().__init__(options, options.batch_id or uuid.uuid4().hex)


class StreamWriter(_Writing, DataSourceStreamArrowWriter):
    """`df.writeStream`. The id is that of the query, and the number of the micro-batch."""

    def __init__(self, options: WriteOptions) -> None:
        super().__init__(options, options.batch_id or "")

    def _stamp(self) -> str:
        context = TaskContext.get()
        assert context is not None, "a write runs in a task"
        query = self._batch_id or context.getLocalProperty(_QUERY_ID)
        return f"{query}/{context.getLocalProperty(_BATCH_ID)}"


async def _producer(client: Client, options: WriteOptions) -> Producer:
    try:
        producer = Producer(client, options.producer_group)
    except ProducerError as error:
        raise SourceError(f"producerGroup: {error}") from None
    await producer.start()
    return producer


def _messages(batch: pa.RecordBatch, topic: str | None, stamp: str) -> Iterator[Message]:
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    nothing: list[Any] = [None] * batch.num_rows
    get = columns.get
    for body, to, tags, keys, sharding_key, delay, properties in zip(
        get("body", nothing),
        get("topic", nothing),
        get("tags", nothing),
        get("keys", nothing),
        get("shardingKey", nothing),
        get("delayLevel", nothing),
        get("properties", nothing),
        strict=True,
    ):
        # System names come along when what was read is written again; the broker sets them anew.
        own = {name: value for name, value in properties or () if name not in SYSTEM_PROPERTIES and value is not None}
        message = Message(
            to or topic or "",
            body.encode() if isinstance(body, str) else body or b"",
            tags=tags,
            keys=keys or (),
            sharding_key=sharding_key,
            delay_level=delay or 0,
            properties=own,
        )
        message.properties[BATCH_PROPERTY] = stamp
        yield message


async def send_all(producer: Producer, messages: Iterable[Message], most: int) -> None:
    """Send all, or raise. Messages of one sharding key stay in their order."""
    lanes: dict[tuple[str, MessageQueue | None], list[Message]] = defaultdict(list)
    for message in messages:
        queue = None
        if message.sharding_key is not None:
            queue = by_hash(await producer.queues(message.topic), message.sharding_key)
        lanes[message.topic, queue].append(message)
    gate = asyncio.Semaphore(_AT_ONCE)
    compressed_from = producer.options.compress_over

    async def send(piece: list[Message], queue: MessageQueue | None) -> None:
        async with gate:
            await _insist(producer, piece, queue)

    async def in_order(pieces: list[list[Message]], queue: MessageQueue | None) -> None:
        for piece in pieces:
            await send(piece, queue)

    tasks: list[asyncio.Task[None]] = []
    for (_, queue), lane in lanes.items():
        pieces = list(_pieces(lane, most, compressed_from))
        if queue is not None:
            tasks.append(asyncio.create_task(in_order(pieces, queue)))
        else:
            tasks += [asyncio.create_task(send(piece, None)) for piece in pieces]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _pieces(lane: list[Message], most: int, compressed_from: int) -> Iterator[list[Message]]:
    """Runs of messages that may travel together."""
    piece: list[Message] = []
    size = 0
    for message in lane:
        alone = message.is_delayed or len(message.body) >= compressed_from
        if piece and (alone or len(piece) >= most or size + len(message.body) > _BATCH_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(message)
        size += len(message.body)
        if alone:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


async def _insist(producer: Producer, piece: list[Message], queue: MessageQueue | None) -> None:
    """Send, and again if the broker is away for a moment: the producer does so only where it may choose the queue."""
    for attempt in range(1, _SEND_TRIES + 1):
        try:
            if len(piece) == 1:
                await producer.send(piece[0], queue=queue)
            else:
                await producer.send_batch(piece, queue=queue)
        except (InvalidMessage, NoPermission, NoRoute):
            raise
        except RocketMQError as error:
            if attempt == _SEND_TRIES or (isinstance(error, SendFailed) and isinstance(error.__cause__, NoPermission)):
                raise
            await asyncio.sleep(_PAUSE * attempt)
        else:
            return
