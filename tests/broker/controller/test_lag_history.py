"""The operator's history of lag, in a topic of a real broker."""

from tests.broker.cluster import Cluster

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_offsets
from rocketfleet.lag.figures import GroupLag, QueueLag
from rocketfleet.lag.samples.sinks import HistoryOptions, LagHistory
from rocketfleet.lag.target import Target
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.queue import MessageQueue


async def test_samples_arrive_in_the_topic_that_the_operator_was_told(broker: Cluster, topic: str) -> None:
    config = ClientConfig(broker.name_server)
    history = LagHistory(HistoryOptions(every=0.0, topic=topic, cluster=config))
    async with Client(config) as client:
        target = Target(client, "orders", ("orders",), ConsumeFromWhere.LAST_OFFSET, cluster="c")
        row = QueueLag(MessageQueue("orders", "a", 3), 0, 10, 4, 6, 1.5, "orders-0", 100.0)
        for at in (100.0, 101.0):
            await history.keep([(target, GroupLag("orders", at, (row,), messages=6))])
        await history.close()
        arrived = 0
        for queue in await client.subscribe_queues(topic):
            arrived += await broker_offsets.max_offset(client.remoting, client.master(queue.broker), queue)
    assert arrived == 1  # the second look had nothing new of the queue
