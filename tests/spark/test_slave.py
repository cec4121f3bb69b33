"""A slave that has to do alone, because its master is gone: reads in batches and as a stream find all that was sent."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from tests.broker.cluster import Cluster
from tests.spark.sending import Found, numbered, rows, send
from tests.spark.test_stream_read import Stream
from tests.support.waiting import wait_until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import TopicNotExist
from rocketfleet.client.requests import broker_topics
from rocketfleet.spark.source.errors import sentence_of
from rocketfleet.spark.source.link import close_links


async def _ends(cluster: Cluster, server: str, topic: str) -> dict[int, int]:
    async with Client(ClientConfig(cluster.name_server)) as client:
        try:
            found = await broker_topics.queue_ends(client.remoting, cluster.address_of(server), topic)
        except TopicNotExist:
            return {}
    return {queue: end for queue, (_, end) in found.items()}


def test_two_masters_and_a_slave_that_reads_alone(
    make_cluster: Callable[..., Cluster], spark: SparkSession, tmp_path: Path
) -> None:
    # A slave answers pulls with SYSTEM_BUSY unless it is told to serve them.
    cluster = make_cluster(brokers=2, slave=True, properties=(("slaveReadEnable", "true"),))
    topic = cluster.create_topic(queues=3)
    sent = send(cluster, numbered(topic, 300))
    assert {one.broker for one in sent} == {"broker-a", "broker-b"}
    ends = Counter(one.queue_id for one in sent if one.broker == "broker-a")

    def read() -> list[Found]:
        given = {"topic": topic, "nameServers": cluster.name_server, "group": "readers"}
        return sorted(rows(spark.read.format("rocketmq").options(**given).load()))

    assert read() == sorted(sent)
    # Messages reach a slave at once, the topics only every ten seconds: one that never had them cannot stand in.
    wait_until(
        lambda: asyncio.run(_ends(cluster, "broker-a-slave", topic)) == dict(ends), "the slave to have what is there"
    )
    cluster.kill("broker-a")

    def read_from_slave() -> bool:
        # Until the name server has noticed, a read fails.
        try:
            return read() == sorted(sent)
        except Exception as error:
            if sentence_of(error) is None:
                raise
            return False

    wait_until(read_from_slave, "the slave to serve what its master had", within=180.0)

    stream = Stream(spark, cluster, tmp_path, topic, "streamers")
    query = stream.start()
    try:
        stream.wait_for(sent)
        sent += send(cluster, numbered(topic, 30, 300))  # to the master that is left
        stream.wait_for(sent)
        assert query.exception() is None
    finally:
        query.stop()
    close_links()
