"""What is wrong is one sentence on the driver, first thing in the error's message, and no Java stack."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.broker.cluster import Cluster
from tests.spark.sending import numbered, send
from tests.support import broker_acl

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.spark.source.errors import sentence_of
from rocketfleet.wire.acl import Credentials

# Spark's own first lines, after which ours comes.
HEADINGS = ("Job aborted", "terminated with exception", "An exception was thrown from the Python worker:")


def failure(action: Callable[[], object]) -> str:
    """The sentence with which it fails; what a user of plain PySpark sees is checked on the way."""
    with pytest.raises(Exception, match="SourceError") as caught:
        action()
    message = str(caught.value)
    sentence = sentence_of(caught.value)
    assert sentence is not None
    first = message.strip().splitlines()[0]
    assert sentence in first or any(heading in first for heading in HEADINGS), message
    assert "Traceback" not in message
    return sentence


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topik": "x"}, "has no option 'topik': did you mean topic?"),
        ({"startingOffsets": "{x"}, "startingOffsets is neither a keyword nor JSON"),
        ({"startingTimestamp": "2000", "endingTimestamp": "1000"}, "the range is empty"),
        ({"topic": "no-such-topic"}, "topic no-such-topic cannot be read: the name server"),
        ({"nameServers": "127.0.0.1:1"}, "cannot connect to 127.0.0.1:1"),
        ({"minPartitions": "many"}, "minPartitions is 'many'"),
        ({"caFile": "/no/such/file"}, "cannot load the certificate authorities from /no/such/file"),
    ],
)
def test_a_wrong_read(spark: SparkSession, broker: Cluster, topic: str, options: dict[str, str], said: str) -> None:
    given = {"topic": topic, "nameServers": broker.name_server, **options}
    assert said in failure(lambda: spark.read.format("rocketmq").options(**given).load().count())


def test_an_empty_range_of_a_queue_and_offsets_that_are_not_there(
    spark: SparkSession, broker: Cluster, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(queues=1)
    send(broker, numbered(topic, 20))

    def read(start: dict[str, int], end: dict[str, int]) -> Callable[[], object]:
        given = {
            "topic": topic,
            "nameServers": broker.name_server,
            "startingOffsets": json.dumps({topic: {"broker-a": start}}),
            "endingOffsets": json.dumps({topic: {"broker-a": end}}),
        }
        return lambda: spark.read.format("rocketmq").options(**given).load().count()

    assert f"the range of {topic}@broker-a/0 is empty: it begins at offset 10" in failure(read({"0": 10}, {"0": 5}))
    assert f"has 21 for {topic}@broker-a/0, which ends at 20" in failure(read({"0": 0}, {"0": 21}))
    assert f"names the queue {topic}@broker-a/7, which is not there" in failure(read({"7": 0}, {"0": 5}))


def test_a_wrong_schema(spark: SparkSession, broker: Cluster, topic: str) -> None:
    reader = spark.read.format("rocketmq").schema("a INT").option("topic", topic)
    said = failure(lambda: reader.option("nameServers", broker.name_server).load().count())
    assert "the schema of rocketmq is fixed" in said


def test_a_wrong_stream(spark: SparkSession, broker: Cluster, topic: str, tmp_path: Path) -> None:
    def start(**options: str) -> Callable[[], object]:
        given = {"topic": topic, "nameServers": broker.name_server, **options}

        def run() -> object:
            frame = spark.readStream.format("rocketmq").options(**given).load()
            writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
            return writer.start().awaitTermination()

        return run

    assert "a streaming read needs the option group" in failure(start())
    assert "endingOffsets is for batch reads" in failure(start(group="g", endingOffsets="latest"))
    assert "topic no-such-topic cannot be read" in failure(start(group="g", topic="no-such-topic"))


def test_a_wrong_write(spark: SparkSession, broker: Cluster, topic: str) -> None:
    frame = spark.range(3)

    def write(columns: list[str], mode: str = "append", **options: str) -> str:
        given = {"nameServers": broker.name_server, **options}
        selected = frame.selectExpr(*columns)
        return failure(lambda: selected.write.format("rocketmq").options(**given).mode(mode).save())

    assert "a write needs the column body" in write(["'x' as tags"], topic=topic)
    assert "the column id has no meaning in a write" in write(["id", "'x' as body"], topic=topic)
    assert "the column body is bigint: cast it to binary or string" in write(["id as body"], topic=topic)
    assert "give the option topic, or a column" in write(["'x' as body"])
    assert "a topic cannot be overwritten" in write(["'x' as body"], mode="overwrite", topic=topic)
    assert "a row cannot be sent: the message's body is empty" in write(["'' as body"], topic=topic)
    assert "a write of rocketmq has no option 'group'" in write(["'x' as body"], topic=topic, group="g")


async def _make_user(cluster: Cluster, admin: Credentials) -> None:
    async with Client(ClientConfig(cluster.name_server, credentials=admin)) as client:
        for address in cluster.masters.values():
            user = broker_acl.User(username="reader", password="reader-secret", user_type="Normal")
            await broker_acl.create_user(client.remoting, address, user)
            entries = (
                broker_acl.PolicyEntry(resource="Topic:allowed", actions=("Sub", "Pub", "Get")),
                broker_acl.PolicyEntry(resource="Group:mine", actions=("Sub", "Get")),
            )
            await broker_acl.create_acl(client.remoting, address, "User:reader", entries)


def test_no_permission(spark: SparkSession, make_cluster: Callable[..., Cluster]) -> None:
    import asyncio

    from rocketfleet.devbroker.topics import create_group, create_topic

    cluster = make_cluster(acl=True, auto_create_groups=False)
    known = cluster.admin_user
    assert known is not None
    admin = Credentials(known.access_key, known.secret_key)
    for name in ("allowed", "forbidden"):
        create_topic(cluster, name, 2)
    create_group(cluster, "mine")
    asyncio.run(_make_user(cluster, admin))
    config = ClientConfig(cluster.name_server, credentials=admin, timeout=10.0)
    for name in ("allowed", "forbidden"):
        send(cluster, numbered(name, 10), config=config)

    def read(topic: str, group: str = "mine", user: str = "reader", secret: str = "reader-secret") -> int:
        given = {"topic": topic, "group": group, "nameServers": cluster.name_server, "accessKey": user}
        return int(spark.read.format("rocketmq").options(**given, secretKey=secret).load().count())

    assert read("allowed") == 10
    said = [
        failure(lambda: read("forbidden")),
        failure(lambda: read("allowed", secret="wrong-secret")),
        failure(lambda: read("allowed", group="not-mine")),
    ]
    assert "forbidden" in said[0]
    assert all("secret" not in one for one in said)
    assert "not-mine" in said[2]
    written = spark.sql("select 'x' as body").write.format("rocketmq").mode("append")
    given = {"topic": "forbidden", "nameServers": cluster.name_server, "accessKey": "reader"}
    assert "forbidden" in failure(lambda: written.options(**given, secretKey="reader-secret").save())
