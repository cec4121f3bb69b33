"""Messages that the broker deletes before they are read: an error that names them, or a count, as the user wishes."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.broker.cluster import Cluster
from tests.spark.sending import rows, send
from tests.spark.test_stream_read import Stream
from tests.support.waiting import wait_until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_offsets
from rocketfleet.producer import ProducerOptions
from rocketfleet.spark.source.errors import sentence_of
from rocketfleet.spark.source.options import read_options
from rocketfleet.spark.source.tasks.ranges import QueueRange
from rocketfleet.spark.source.tasks.reading import read_range
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

# Small files, kept for no time at all: what is in a file that is full is gone within seconds, once it may be deleted.
FORGETFUL = (
    ("mappedFileSizeCommitLog", str(256 * 1024)),
    ("mappedFileSizeConsumeQueue", str(20 * 100)),
    ("fileReservedTime", "0"),
    ("cleanResourceInterval", "500"),
    ("deleteCommitLogFilesInterval", "1"),
    ("deleteConsumeQueueFilesInterval", "1"),
    ("destroyMapedFileIntervalForcibly", "100"),
)
ALWAYS = ";".join(f"{hour:02}" for hour in range(24))


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    """A broker that deletes nothing until it is told to, and then everything but the newest."""
    return make_cluster(properties=(*FORGETFUL, ("deleteWhen", "99")))


def forget(cluster: Cluster, queue: MessageQueue) -> int:
    """Let retention do its work, and return where the queue begins now."""
    cluster.admin("updateBrokerConfig", "-b", cluster.broker_address, "-k", "deleteWhen", "-v", ALWAYS)

    async def begin() -> int:
        async with Client(ClientConfig(cluster.name_server, timeout=10.0)) as client:
            await client.route(queue.topic)
            return await broker_offsets.min_offset(client.remoting, client.master(queue.broker), queue)

    found: int = wait_until(lambda: max(0, asyncio.run(begin())), "retention to delete something")
    cluster.admin("updateBrokerConfig", "-b", cluster.broker_address, "-k", "deleteWhen", "-v", "99")
    return found


def large(topic: str, count: int) -> list[Message]:
    return [Message(topic, bytes([n % 256]) * 2000, keys=str(n)) for n in range(count)]


def begins(cluster: Cluster, queue: MessageQueue) -> int:
    async def ask() -> int:
        async with Client(ClientConfig(cluster.name_server, timeout=10.0)) as client:
            await client.route(queue.topic)
            return await broker_offsets.min_offset(client.remoting, client.master(queue.broker), queue)

    return asyncio.run(ask())


@pytest.mark.timeout(600)
def test_what_retention_deleted_is_an_error_that_names_it_or_is_counted(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, said_by_spark: Callable[[], str]
) -> None:
    topic, group = cluster.create_topic(queues=1), cluster.create_group()
    queue = MessageQueue(topic, "broker-a", 0)
    stream = Stream(spark, cluster, tmp_path, topic, group)
    seen = send(cluster, large(topic, 10))
    assert stream.start(available_now=True).awaitTermination(120)
    stream.wait_for(seen)

    sent = send(cluster, large(topic, 1500), options=ProducerOptions(send_timeout=30.0, compress_over=1 << 20))
    forget(cluster, queue)
    begin = begins(cluster, queue)
    assert 10 < begin < 1510
    gone = f"offsets 10 to {begin - 1} of {queue} are gone ({begin - 10} messages)"
    left = [one for one in sent if one.queue_offset >= begin]

    def read(**options: str) -> DataFrame:
        start = json.dumps({topic: {"broker-a": {"0": 10}}})
        given = {"topic": topic, "nameServers": cluster.name_server, "startingOffsets": start, **options}
        return spark.read.format("rocketmq").options(**given).load()

    # A batch read of a range that is there no longer.
    with pytest.raises(Exception, match="SourceError") as caught:
        read().count()
    assert gone in str(sentence_of(caught.value))
    assert sorted(rows(read(failOnDataLoss="false"))) == sorted(left)
    assert f"{begin - 10} messages are gone and are left out" in said_by_spark()

    # The same for a query whose checkpoint is there.
    failed = stream.start(available_now=True)
    with pytest.raises(Exception, match="SourceError") as caught:
        failed.awaitTermination(120)
    assert gone in str(sentence_of(caught.value))
    going_on = stream.start(available_now=True, failOnDataLoss="false")
    assert going_on.awaitTermination(120)
    stream.queries.remove(failed)
    stream.wait_for(seen + left)
    end = going_on.lastProgress["sources"][0]["endOffset"]
    assert (json.loads(end) if isinstance(end, str) else end)["lost"] == begin - 10

    # A task that finds it gone after its range was planned.
    def task(fail: str) -> int:
        options = {"topic": topic, "nameServers": cluster.name_server, "failOnDataLoss": fail}
        planned = QueueRange(queue, begin - 5, begin + 7)
        batches = read_range(read_options(options, streaming=False), planned)
        return sum(batch.num_rows for batch in batches)

    with pytest.raises(Exception, match="5 messages"):
        task("true")
    assert task("false") == 7
