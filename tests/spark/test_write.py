"""Writes on a real broker: what is in the rows is in the messages, and a repeat can be told from a message."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from tests.broker.cluster import Cluster
from tests.spark.sending import numbered, send
from tests.support.waiting import wait_until

from rocketfleet.spark.repeats import drop_repeats
from rocketfleet.spark.source.sink import BATCH_PROPERTY

COLUMNS = [
    "concat('body ', id) as body",
    "concat('tag', id % 3) as tags",
    "array(concat('key', id), 'common') as keys",
    "concat('shard', id % 5) as shardingKey",
    "map('number', cast(id as string)) as properties",
]


def read(spark: SparkSession, cluster: Cluster, topic: str) -> DataFrame:
    given = {"topic": topic, "nameServers": cluster.name_server, "includeProperties": "true"}
    return spark.read.format("rocketmq").options(**given).load()


def write(frame: DataFrame, cluster: Cluster, **options: str) -> None:
    frame.write.format("rocketmq").options(nameServers=cluster.name_server, **options).mode("append").save()


def test_rows_become_messages(spark: SparkSession, broker: Cluster, topic: str) -> None:
    write(spark.range(500).selectExpr(*COLUMNS), broker, topic=topic)
    found = read(spark, broker, topic).collect()
    assert sorted(bytes(one.body) for one in found) == sorted(f"body {n}".encode() for n in range(500))
    for one in found:
        number = one.properties["number"]
        assert bytes(one.body) == f"body {number}".encode()
        assert one.tags == f"tag{int(number) % 3}"
        assert one["keys"] == f"key{number} common"
    assert len({one.properties[BATCH_PROPERTY] for one in found}) == 1


def test_a_sharding_key_has_one_queue_and_its_order(spark: SparkSession, broker: Cluster, topic: str) -> None:
    write(spark.range(1000).coalesce(1).selectExpr(*COLUMNS), broker, topic=topic)
    found = read(spark, broker, topic).orderBy("queueId", "queueOffset").collect()
    for shard in range(5):
        of_shard = [one for one in found if int(one.properties["number"]) % 5 == shard]
        assert len({one.queueId for one in of_shard}) == 1
        numbers = [int(one.properties["number"]) for one in of_shard]
        assert numbers == sorted(numbers)


def test_topics_by_column_and_large_bodies(
    spark: SparkSession, broker: Cluster, make_topic: Callable[..., str]
) -> None:
    topics = [make_topic(queues=2), make_topic(queues=2)]
    frame = spark.range(40).select(
        f.when(f.col("id") % 2 == 0, topics[0]).otherwise(topics[1]).alias("topic"),
        f.repeat(f.col("id").cast("string"), 5000).cast("binary").alias("body"),
    )
    write(frame, broker)
    for number, topic in enumerate(topics):
        bodies = sorted(bytes(one.body) for one in read(spark, broker, topic).select("body").collect())
        assert bodies == sorted(str(n).encode() * 5000 for n in range(number, 40, 2))


def test_a_delayed_message_comes_later(spark: SparkSession, broker: Cluster, topic: str) -> None:
    write(spark.range(3).selectExpr("cast(id as string) as body", "1 as delayLevel"), broker, topic=topic)

    def arrived() -> list[Row]:
        found = read(spark, broker, topic).collect()
        return found if len(found) == 3 else []

    found = wait_until(arrived, "the delayed messages")
    assert all((one.storeTime - one.bornTime).total_seconds() > 0.5 for one in found)


def test_repeats_can_be_dropped(spark: SparkSession, broker: Cluster, topic: str) -> None:
    rows = spark.range(100).selectExpr("cast(id as string) as body", "cast(id as string) as keys")
    write(rows, broker, topic=topic, batchId="monday")
    write(rows, broker, topic=topic, batchId="monday")  # a job that was run again
    write(rows, broker, topic=topic, batchId="tuesday")
    send(broker, numbered(topic, 10))  # another producer's, with the same keys
    send(broker, numbered(topic, 10))
    messages = read(spark, broker, topic)
    assert messages.count() == 320
    once = drop_repeats(messages)
    assert once.columns == messages.columns
    assert once.count() == 220


def test_what_was_read_can_be_written_again(
    spark: SparkSession, broker: Cluster, topic: str, make_topic: Callable[..., str]
) -> None:
    send(broker, numbered(topic, 50, tags=["a", None]))
    copy = make_topic(queues=2)
    write(read(spark, broker, topic).select("body", "tags", "keys", "properties"), broker, topic=copy)
    wanted = sorted((bytes(one.body), one.tags or "", one["keys"]) for one in read(spark, broker, topic).collect())
    assert (
        sorted((bytes(one.body), one.tags or "", one["keys"]) for one in read(spark, broker, copy).collect()) == wanted
    )


def test_a_stream_from_topic_to_topic(
    spark: SparkSession, broker: Cluster, topic: str, group: str, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    send(broker, numbered(topic, 60))
    copy = make_topic(queues=3)
    given = {"nameServers": broker.name_server, "topic": topic, "group": group, "startingOffsets": "earliest"}
    frame = spark.readStream.format("rocketmq").options(**given, maxOffsetsPerTrigger="25").load()
    writer = frame.select("body", "keys").writeStream.format("rocketmq").trigger(availableNow=True)
    query = (
        writer.option("nameServers", broker.name_server)
        .option("topic", copy)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    assert query.awaitTermination(120)
    found = read(spark, broker, copy).collect()
    assert sorted(int(one["keys"]) for one in found) == list(range(60))
    batches = {one.properties[BATCH_PROPERTY] for one in found}
    assert batches <= {f"{query.id}/{number}" for number in range(10)}
    assert len(batches) >= 3
    assert drop_repeats(read(spark, broker, copy)).count() == 60
