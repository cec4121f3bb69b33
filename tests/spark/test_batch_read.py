"""The batch read on a real broker: it gives the messages that were sent, all of them, each once."""

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from tests.broker.cluster import Cluster
from tests.spark.sending import numbered, rows, send
from tests.support.waiting import wait_until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_offsets
from rocketfleet.producer import ProducerOptions
from rocketfleet.wire.message import Message
from rocketfleet.wire.message.compression import Compression


@pytest.fixture
def read(spark: SparkSession, broker: Cluster) -> Callable[..., DataFrame]:
    """read(topic, startingOffsets=…) is a batch read of the broker."""

    def load(topic: str, **options: Any) -> DataFrame:
        given = {"topic": topic, "nameServers": broker.name_server, **options}
        return spark.read.format("rocketmq").options(**given).load()

    return load


def test_every_message_of_every_queue_once(broker: Cluster, topic: str, read: Callable[..., DataFrame]) -> None:
    sent = send(broker, numbered(topic, 1000))
    frame = read(topic)
    assert len({one.queue_id for one in sent}) == 8
    assert sorted(rows(frame)) == sorted(sent)
    assert frame.rdd.getNumPartitions() == 8


def test_several_topics(broker: Cluster, make_topic: Callable[..., str], read: Callable[..., DataFrame]) -> None:
    first, second = make_topic(queues=2), make_topic(queues=3)
    sent = send(broker, [*numbered(first, 20), *numbered(second, 30)])
    assert sorted(rows(read(f"{first},{second}"))) == sorted(sent)


def test_no_messages_are_no_rows(topic: str, read: Callable[..., DataFrame]) -> None:
    assert read(topic).count() == 0


def test_all_columns(broker: Cluster, make_topic: Callable[..., str], read: Callable[..., DataFrame]) -> None:
    topic = make_topic(queues=1)
    before = time.time()
    message = Message(topic, b"\x00\xff", tags="paid", keys=["k1", "k2"], properties={"colour": "blue"})
    (sent,) = send(broker, [message])
    (row,) = read(topic, includeProperties="true").collect()
    assert (row.topic, row.broker, row.queueId, row.queueOffset) == (topic, "broker-a", 0, 0)
    assert (bytes(row.body), row.tags, row.keys, row.msgId) == (b"\x00\xff", "paid", "k1 k2", sent.msg_id)
    assert row.properties["colour"] == "blue"
    assert row.properties["TAGS"] == "paid"
    assert row.reconsumeTimes == 0
    assert before - 1 <= row.bornTime.timestamp() <= row.storeTime.timestamp() + 1
    (bare,) = read(topic).collect()
    assert bare.properties is None


def test_tags_with_one_hash_code_are_told_apart(broker: Cluster, topic: str, read: Callable[..., DataFrame]) -> None:
    sent = send(broker, numbered(topic, 300, tags=["Aa", "BB", None]))  # both hash to 2112
    assert sorted(rows(read(topic, subExpression="Aa"))) == sorted(one for one in sent if one.tags == "Aa")
    assert rows(read(topic, subExpression="none-such")) == []


def test_few_messages_of_a_tag_among_many(
    broker: Cluster, make_topic: Callable[..., str], read: Callable[..., DataFrame]
) -> None:
    topic = make_topic(queues=1)
    sent = send(broker, numbered(topic, 5000, tags=["rare", *["common"] * 499]))
    found = rows(read(topic, subExpression="rare || rarer", minPartitions="3"))
    assert sorted(found) == sorted(one for one in sent if one.tags == "rare")


@pytest.mark.parametrize("compression", list(Compression))
def test_compressed_bodies(
    broker: Cluster, topic: str, read: Callable[..., DataFrame], compression: Compression
) -> None:
    large = [Message(topic, f"{number} ".encode() * 3000, keys=str(number)) for number in range(40)]
    options = ProducerOptions(send_timeout=30.0, compression=compression)
    sent = send(broker, [*large, *numbered(topic, 40, 100)], options=options)
    assert sorted(rows(read(topic))) == sorted(sent)


def test_a_long_queue_is_cut(broker: Cluster, make_topic: Callable[..., str], read: Callable[..., DataFrame]) -> None:
    topic = make_topic(queues=1)
    sent = send(broker, numbered(topic, 333))
    frame = read(topic, minPartitions="7", pullBatchSize="5")
    assert frame.rdd.getNumPartitions() == 7
    assert sorted(rows(frame)) == sorted(sent)


def test_from_offset_to_offset(broker: Cluster, make_topic: Callable[..., str], read: Callable[..., DataFrame]) -> None:
    topic = make_topic(queues=2)
    sent = send(broker, numbered(topic, 200))
    start = json.dumps({topic: {"broker-a": {"0": 10, "1": -2}}})
    end = json.dumps({topic: {"broker-a": {"0": 20}}})
    found = rows(read(topic, startingOffsets=start, endingOffsets=end))
    assert sorted(found) == sorted(one for one in sent if one.queue_id == 1 or 10 <= one.queue_offset < 20)


def test_from_time_to_time(broker: Cluster, topic: str, read: Callable[..., DataFrame]) -> None:
    send(broker, numbered(topic, 50))
    between, after = _pause(), None
    wanted = send(broker, numbered(topic, 60, 50))
    after = _pause()
    send(broker, numbered(topic, 70, 110))
    assert sorted(rows(read(topic, startingTimestamp=str(between), endingTimestamp=str(after)))) == sorted(wanted)
    later = datetime.fromtimestamp(time.time() + 3600, UTC).isoformat()
    assert read(topic, startingTimestamp=later).count() == 0
    assert read(topic, endingTimestamp="1000").count() == 0
    assert read(topic, startingTimestamp="1000", endingTimestamp=later).count() == 180


def _pause() -> int:
    """A moment, in milliseconds, that nothing was sent or will be sent in."""
    moment = int(time.time() * 1000) + 2
    wait_until(lambda: time.time() * 1000 > moment + 2, "the clock to move")
    return moment


def test_from_where_the_group_stands(
    broker: Cluster, make_topic: Callable[..., str], group: str, read: Callable[..., DataFrame]
) -> None:
    topic = make_topic(queues=2)
    sent = send(broker, numbered(topic, 100))

    async def stand() -> None:
        async with Client(ClientConfig(broker.name_server)) as client:
            queue = (await client.subscribe_queues(topic))[0]
            await broker_offsets.update_offset(client.remoting, client.master("broker-a"), group, queue, 30)

    asyncio.run(stand())
    found = rows(read(topic, group=group, startingOffsets="committed"))
    assert sorted(found) == sorted(one for one in sent if one.queue_id == 1 or one.queue_offset >= 30)


def test_filters_choose_queues_offsets_and_times(broker: Cluster, topic: str, read: Callable[..., DataFrame]) -> None:
    sent = send(broker, numbered(topic, 400))
    between = _pause()
    later = send(broker, numbered(topic, 400, 400))

    def pushed() -> DataFrame:
        return read(topic, filterPushdown="true")

    some = pushed().where("queueId in (1, 3) and queueOffset >= 5 and queueOffset < 12")
    assert some.rdd.getNumPartitions() == 2
    assert sorted(rows(some)) == sorted(
        one for one in [*sent, *later] if one.queue_id in {1, 3} and 5 <= one.queue_offset < 12
    )
    moment = f.lit(datetime.fromtimestamp(between / 1000, UTC))
    assert sorted(rows(pushed().where(f.col("storeTime") > moment))) == sorted(later)
    assert sorted(rows(pushed().where(f.col("storeTime") <= moment))) == sorted(sent)
    assert pushed().where("queueId = 99").count() == 0
    assert pushed().where("tags = 'x' or queueId = 1").count() == 0 + sum(one.queue_id == 1 for one in [*sent, *later])


def test_a_dataframe_can_be_asked_twice(broker: Cluster, topic: str, read: Callable[..., DataFrame]) -> None:
    # With filters handed down, Spark 4.3 would answer the second question from what it planned for the first.
    send(broker, numbered(topic, 80))
    frame = read(topic)
    assert 0 < frame.where("queueId = 0").count() < 80
    assert frame.count() == 80


def test_a_group_is_created_where_brokers_create_none(
    make_cluster: Callable[..., Cluster], spark: SparkSession
) -> None:
    cluster = make_cluster(auto_create_groups=False)
    topic = cluster.create_topic(queues=2)
    sent = send(cluster, numbered(topic, 20))
    given = {"topic": topic, "nameServers": cluster.name_server, "group": "nobody-knows-it"}
    assert sorted(rows(spark.read.format("rocketmq").options(**given).load())) == sorted(sent)
