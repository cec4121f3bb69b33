"""The streaming read on a real broker: nothing missing, nothing twice, and the broker knows how far it is."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from tests.broker.cluster import Cluster
from tests.spark.sending import Found, numbered, rows, send
from tests.support.waiting import wait_until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_members, broker_offsets
from rocketfleet.devbroker.topics import create_topic
from rocketfleet.wire.queue import MessageQueue


class Stream:
    """A query from a topic into Parquet files, with a checkpoint, that can be stopped and started."""

    def __init__(self, spark: SparkSession, cluster: Cluster, directory: Path, topic: str, group: str) -> None:
        self._spark = spark
        self._given = {
            "nameServers": cluster.name_server,
            "topic": topic,
            "group": group,
            "startingOffsets": "earliest",
        }
        self.sink, self.checkpoint = directory / "sink", directory / "checkpoint"
        self.queries: list[StreamingQuery] = []

    def start(self, *, available_now: bool = False, **options: str) -> StreamingQuery:
        frame = self._spark.readStream.format("rocketmq").options(**{**self._given, **options}).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        trigger: dict[str, Any] = {"availableNow": True} if available_now else {"processingTime": "0 seconds"}
        query = writer.trigger(**trigger).start(str(self.sink))
        self.queries.append(query)
        return query

    def found(self) -> list[Found]:
        """What the sink has; nothing before its first file."""
        if not (self.sink / "_spark_metadata").exists():
            return []
        try:
            return sorted(rows(self._frame()))
        except AnalysisException as error:
            if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":  # the sink is there, and no file is
                raise
            return []

    def _frame(self) -> DataFrame:
        return self._spark.read.parquet(str(self.sink))

    def wait_for(self, wanted: list[Found]) -> None:
        """Wait until the sink has as much as is wanted, then compare."""

        def enough() -> bool:
            for query in self.queries:
                if query.exception() is not None:
                    raise AssertionError(str(query.exception()))
            return len(self.found()) >= len(wanted)

        wait_until(enough, f"{len(wanted)} messages in the sink")
        assert self.found() == sorted(wanted)


@pytest.fixture
def stream(spark: SparkSession, broker: Cluster, tmp_path: Path, topic: str, group: str) -> Iterator[Stream]:
    made = Stream(spark, broker, tmp_path, topic, group)
    yield made
    for query in made.queries:
        query.stop()


def offsets(cluster: Cluster, group: str, topic: str) -> dict[MessageQueue, tuple[int | None, int]]:
    """Where a group stands in each queue, and where the queue ends, as the broker says."""

    async def ask() -> dict[MessageQueue, tuple[int | None, int]]:
        async with Client(ClientConfig(cluster.name_server, timeout=10.0)) as client:
            found = {}
            for queue in await client.subscribe_queues(topic):
                address = client.master(queue.broker)
                stored = await broker_offsets.query_offset(
                    client.remoting, address, group, queue, zero_if_not_found=False
                )
                found[queue] = stored, await broker_offsets.max_offset(client.remoting, address, queue)
            return found

    return asyncio.run(ask())


def caught_up(cluster: Cluster, group: str, topic: str) -> bool:
    return all(stored == end for stored, end in offsets(cluster, group, topic).values())


def test_messages_arrive_once_and_mqadmin_sees_the_lag_go_to_0(
    broker: Cluster, topic: str, group: str, stream: Stream
) -> None:
    sent = send(broker, numbered(topic, 500))
    query = stream.start()
    stream.wait_for(sent)
    for number in range(3):
        sent += send(broker, numbered(topic, 200, 1000 + 200 * number))
        stream.wait_for(sent)
    # Nothing more comes, and yet the last batch is written back.
    wait_until(lambda: caught_up(broker, group, topic), "the group's offsets at the broker")
    progress = broker.admin("consumerProgress", "-g", group)
    lag = re.search(r"Consume Diff Total: *(-?\d+)", progress) or re.search(r"Diff Total: *(-?\d+)", progress)
    assert lag is not None, progress
    assert int(lag[1]) == 0
    assert topic in progress
    assert query.exception() is None


def test_a_restart_goes_on_where_the_checkpoint_is(broker: Cluster, topic: str, stream: Stream) -> None:
    sent = send(broker, numbered(topic, 300))
    first = stream.start()
    stream.wait_for(sent)
    first.stop()
    sent += send(broker, numbered(topic, 300, 300))
    stream.start()
    stream.wait_for(sent)


def test_the_limit_of_a_batch_holds(broker: Cluster, topic: str, stream: Stream) -> None:
    sent = send(broker, numbered(topic, 100))
    query = stream.start(maxOffsetsPerTrigger="30", available_now=True)
    assert query.awaitTermination(120)
    stream.wait_for(sent)
    batches = [one["numInputRows"] for one in query.recentProgress]
    assert max(batches) == 30
    assert sum(batches) == 100


def test_available_now_ends_and_writes_its_last_batch_back(
    broker: Cluster, topic: str, group: str, stream: Stream
) -> None:
    sent = send(broker, numbered(topic, 100))
    assert stream.start(available_now=True).awaitTermination(120)
    stream.wait_for(sent)
    assert caught_up(broker, group, topic)
    sent += send(broker, numbered(topic, 10, 100))
    assert stream.start(available_now=True).awaitTermination(120)
    stream.wait_for(sent)
    assert caught_up(broker, group, topic)


def test_queues_that_appear_are_read_from_their_beginning(
    spark: SparkSession, broker: Cluster, make_topic: Callable[..., str], group: str, tmp_path: Path
) -> None:
    topic = make_topic(queues=2)
    stream = Stream(spark, broker, tmp_path, topic, group)
    sent = send(broker, numbered(topic, 50))
    query = stream.start()
    try:
        stream.wait_for(sent)
        create_topic(broker, topic, 5)
        more = wait_until(lambda: _sent_to_new_queues(broker, topic), "messages in the new queues")
        stream.wait_for(sent + more)
        wait_until(lambda: caught_up(broker, group, topic), "the offsets of the new queues at the broker")
    finally:
        query.stop()


def _sent_to_new_queues(broker: Cluster, topic: str) -> list[Found]:
    """Send once the name server has told of the new queues."""

    async def count() -> int:
        async with Client(ClientConfig(broker.name_server)) as client:
            return len(await client.subscribe_queues(topic))

    if asyncio.run(count()) < 5:
        return []
    sent = send(broker, numbered(topic, 100, 1000))
    assert {one.queue_id for one in sent} == {0, 1, 2, 3, 4}
    return sent


def test_the_checkpoint_wins_over_the_broker_and_that_is_said(
    broker: Cluster, topic: str, group: str, stream: Stream, said_by_spark: Callable[[], str]
) -> None:
    sent = send(broker, numbered(topic, 80))
    assert stream.start(available_now=True).awaitTermination(120)
    stream.wait_for(sent)
    broker.admin("resetOffsetByTime", "-g", group, "-t", topic, "-s", "0")
    wait_until(lambda: not caught_up(broker, group, topic), "the reset at the broker")
    sent += send(broker, numbered(topic, 3, 80))
    assert stream.start(available_now=True).awaitTermination(120)
    stream.wait_for(sent)
    assert "the checkpoint wins" in said_by_spark()
    assert caught_up(broker, group, topic), "the group is where the checkpoint is, in queues without news too"


def test_a_stream_begins_at_the_end_unless_told_otherwise(
    spark: SparkSession, broker: Cluster, topic: str, group: str, tmp_path: Path
) -> None:
    send(broker, numbered(topic, 50))
    stream = Stream(spark, broker, tmp_path, topic, group)
    query = stream.start(startingOffsets="latest")
    try:
        wait_until(lambda: caught_up(broker, group, topic), "the start to be written to the broker")
        sent = send(broker, numbered(topic, 30, 50))
        stream.wait_for(sent)
    finally:
        query.stop()


def test_the_checkpoint_holds_offsets_that_startingoffsets_takes(
    spark: SparkSession, broker: Cluster, topic: str, stream: Stream
) -> None:
    send(broker, numbered(topic, 40))
    query = stream.start(available_now=True)
    assert query.awaitTermination(120)
    end = query.lastProgress["sources"][0]["endOffset"]
    held = (json.loads(end) if isinstance(end, str) else end)["offsets"]
    later = send(broker, numbered(topic, 7, 40))
    given = {"nameServers": broker.name_server, "topic": topic, "startingOffsets": json.dumps(held)}
    assert sorted(rows(spark.read.format("rocketmq").options(**given).load())) == sorted(later)


def test_tags_in_a_stream(broker: Cluster, topic: str, stream: Stream) -> None:
    sent = send(broker, numbered(topic, 200, tags=["Aa", "BB"]))
    assert stream.start(subExpression="BB", available_now=True).awaitTermination(120)
    stream.wait_for([one for one in sent if one.tags == "BB"])


def test_two_masters_one_of_them_down_for_a_while(
    spark: SparkSession, make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(brokers=2, slave=True)
    topic, group = cluster.create_topic(queues=2), cluster.create_group()
    stream = Stream(spark, cluster, tmp_path, topic, group)
    sent = send(cluster, numbered(topic, 100))
    query = stream.start()
    try:
        stream.wait_for(sent)
        cluster.kill("broker-b")
        sent += send(cluster, numbered(topic, 50, 100))
        stream.wait_for(sent)
        cluster.mend()
        sent += send(cluster, numbered(topic, 50, 150))
        stream.wait_for(sent)
        wait_until(lambda: caught_up(cluster, group, topic), "the offsets at both brokers")
        assert query.exception() is None
    finally:
        query.stop()


async def _members(cluster: Cluster, group: str) -> set[str]:
    async with Client(ClientConfig(cluster.name_server)) as client:
        return set(await broker_members.consumer_ids(client.remoting, cluster.broker_address, group))


def test_a_spark_group_has_no_members_that_others_would_share_queues_with(
    broker: Cluster, topic: str, group: str, stream: Stream
) -> None:
    sent = send(broker, numbered(topic, 10))
    stream.start()
    stream.wait_for(sent)
    assert asyncio.run(_members(broker, group)) == set()
