"""A member with no more rights than it needs: to subscribe, and to ask where the queues of its topic end."""

from collections.abc import Callable

from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import until
from tests.broker.handover.faults import Recorder
from tests.support import broker_acl

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.devbroker.topics import create_topic
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue


async def test_a_last_offset_group_of_a_user_with_few_rights(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(acl=True)
    admin = cluster.admin_user
    assert admin is not None
    topic, group, recorder = cluster.create_topic(queues=2), cluster.create_group(), Recorder()
    config = ClientConfig((cluster.name_server,), credentials=Credentials(admin.access_key, admin.secret_key))
    async with Client(config) as client, Producer(client, group="test-producer") as producer:
        address = cluster.broker_address
        await broker_acl.create_user(client.remoting, address, broker_acl.User("reader", "reader-secret", "Normal"))
        rights = [
            broker_acl.PolicyEntry(f"{kind}:{name}", actions)
            for kind, name, actions in (("Topic", topic, ("Sub", "Get")), ("Group", group, ("Sub",)))
        ]
        await broker_acl.create_acl(client.remoting, address, "User:reader", rights)
        await producer.send(Message(topic, b"old"), queue=MessageQueue(topic, "broker-a", 0))

        def member(name: str) -> Consumer:
            mine = ClientConfig((cluster.name_server,), credentials=Credentials("reader", "reader-secret"))
            settings = ConsumerSettings(group, (Subscription(topic),), drain_timeout=5.0)
            return Consumer(mine, settings, recorder.handler(name))

        async with member("m1") as first:
            await until(lambda: first.ready, "it begins")
            await producer.send(Message(topic, b"one"), queue=MessageQueue(topic, "broker-a", 0))
            await until(lambda: recorder.bodies == ["one"])
        create_topic(cluster, topic, 3)
        await client.routes.refresh(topic)
        await producer.send(Message(topic, b"two"), queue=MessageQueue(topic, "broker-a", 2))
        async with member("m2"):
            await until(lambda: recorder.bodies == ["one", "two"], "what came into a new queue is not skipped")
