"""What goes with a ConsumerGroup at a real broker: no more than its deletionPolicy says, in no cluster but its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster, unique
from tests.broker.consumer.scene import until
from tests.broker.controller.scene import GroupScene
from tests.broker.controller.test_prepare import access_to, group_of, join, offsets

from rocketfleet.api.status import ConditionType
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import NoRoute, RocketMQError
from rocketfleet.client.requests import broker_groups, broker_offsets, broker_topics
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.controller.rocketmq.brokers import BrokerClients, GroupBrokers
from rocketfleet.controller.rocketmq.fence import TermOver, fenced_client
from rocketfleet.controller.rocketmq.group_removal import Leftovers
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

RETRIES, HANDLED, DEAD = 5, 2, 3
LEFT = Leftovers(RETRIES - HANDLED, DEAD)


class Leading:
    def __init__(self) -> None:
        self.over = False

    def may_act(self) -> bool:
        return not self.over

    def seconds_left(self) -> float:
        return 10.0


@pytest.fixture
async def brokers() -> AsyncIterator[BrokerClients]:
    pool = BrokerClients()
    yield pool
    await pool.close()


async def consumed_group(brokers: BrokerClients, broker: Cluster, topic: str, name: str) -> GroupBrokers:
    """A group that has offsets, messages that wait for a retry, and dead letters, at broker-a."""
    access = await access_to(brokers, group_of(broker, topic, name))
    await access.prepare()
    client, address = access.client, access.client.master("broker-a")
    letters = TopicConfig(topic_name=f"%DLQ%{name}", read_queue_nums=1, write_queue_nums=1)
    await broker_topics.create_topic(client.remoting, address, letters)
    for kind, count in (("%RETRY%", RETRIES), ("%DLQ%", DEAD)):
        await _known(client, kind + name)
        async with Producer(ClientConfig(broker.name_server), group=unique("producer")) as producer:
            for number in range(count):
                queue = MessageQueue(kind + name, "broker-a", 0)
                await producer.send(Message(kind + name, str(number).encode()), queue=queue)
    retry = MessageQueue(f"%RETRY%{name}", "broker-a", 0)
    await broker_offsets.update_offset(client.remoting, address, name, retry, HANDLED)
    return access


async def _known(client: Client, topic: str) -> None:
    async def known() -> bool:
        try:
            await client.routes.refresh(topic)
        except NoRoute:
            return False
        return True

    await until(known, f"the name server knows {topic}")


async def messages_in(client: Client, topic: str, broker: str = "broker-a") -> int | None:
    """None: there is no such topic."""
    if topic not in await broker_topics.all_topic_configs(client.remoting, client.master(broker)):
        return None
    ends = await broker_topics.queue_ends(client.remoting, client.master(broker), topic)
    return sum(end - first for first, end in ends.values())


async def is_there(client: Client, group: str, broker: str = "broker-a") -> bool:
    """By the list of all: to ask for it alone might create it."""
    return group in await broker_groups.all_groups(client.remoting, client.master(broker))


@pytest.mark.parametrize("topics_too", [False, True], ids=["DeleteOffsets", "DeleteAll"])
async def test_what_goes_and_what_stays(broker: Cluster, topic: str, brokers: BrokerClients, topics_too: bool) -> None:
    name = unique("cg")
    access = await consumed_group(brokers, broker, topic, name)
    told: list[Leftovers] = []

    async def confirm(left: Leftovers) -> None:
        assert await is_there(access.client, name), "it is told before anything is removed"
        told.append(left)

    await access.delete_group(confirm, topics_too=topics_too)
    assert told == [LEFT]
    assert await offsets(access, topic) == {}
    assert not await is_there(access.client, name)
    retry, letters = f"%RETRY%{name}", f"%DLQ%{name}"
    expected = (None, None) if topics_too else (RETRIES, DEAD)
    assert (await messages_in(access.client, retry), await messages_in(access.client, letters)) == expected
    await access.delete_group(_yes, topics_too=topics_too)  # as after a pass whose answer was lost


async def _yes(left: Leftovers) -> None: ...


async def test_a_member_that_came_in_the_last_moment_keeps_its_group(
    broker: Cluster, topic: str, brokers: BrokerClients
) -> None:
    name = unique("cg")
    access = await consumed_group(brokers, broker, topic, name)
    async with Client(ClientConfig(broker.name_server)) as member:
        await member.subscribe_queues(topic)

        async def confirm(left: Leftovers) -> None:
            await join(member, name, topic, member.master("broker-a"))

        with pytest.raises(RocketMQError, match="1 member is in the group"):
            await access.delete_group(confirm, topics_too=True)
    assert len(await offsets(access, topic)) == 8
    assert await messages_in(access.client, f"%DLQ%{name}") == DEAD


async def test_a_term_that_ends_while_it_is_confirmed_removes_nothing(broker: Cluster, topic: str) -> None:
    term, name = Leading(), unique("cg")
    pool = BrokerClients(lambda config: fenced_client(config, term))
    try:
        access = await consumed_group(pool, broker, topic, name)

        async def confirm(left: Leftovers) -> None:
            term.over = True

        with pytest.raises(TermOver):
            await access.delete_group(confirm, topics_too=True)
        assert len(await offsets(access, topic)) == 8
        assert await messages_in(access.client, f"%DLQ%{name}") == DEAD
    finally:
        await pool.close()


async def test_a_group_of_the_same_name_in_another_cluster_stays(
    make_cluster: Callable[..., Cluster], brokers: BrokerClients
) -> None:
    cluster = make_cluster(brokers=2)
    cluster.kill("broker-b")
    file = cluster.directory / "conf" / "broker-b.properties"
    file.write_text(file.read_text().replace("DefaultCluster", "Elsewhere"))
    await asyncio.to_thread(cluster.restart, "broker-b")
    name, topic, theirs = unique("cg"), unique("topic"), unique("topic")
    for at, where in ((topic, "broker-a"), (theirs, "broker-b")):
        async with Client(ClientConfig(cluster.name_server)) as client:
            config = TopicConfig(topic_name=at, read_queue_nums=2, write_queue_nums=2)
            await broker_topics.create_topic(client.remoting, cluster.address_of(where), config)
            await _known(client, at)
    access = await consumed_group(brokers, cluster, topic, name)
    other = await access_to(brokers, group_of(cluster, theirs, name))
    await other.prepare()
    assert access.client.brokers.clusters == {"broker-a": "DefaultCluster", "broker-b": "Elsewhere"}
    await access.delete_group(_yes, topics_too=True)
    assert not await is_there(access.client, name)
    assert await is_there(other.client, name, "broker-b")
    assert len(await offsets(other, theirs)) == 2
    assert await messages_in(other.client, f"%RETRY%{name}", "broker-b") == 0


async def test_a_deletion_that_waits_says_for_whom(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path, deletionPolicy="DeleteAll") as scene:
        scene.apply(replicas=0)
        await scene.ready(0)
        async with Client(ClientConfig(broker.name_server)) as guest:
            await guest.subscribe_queues(topic)
            await join(guest, scene.name, topic, guest.master("broker-a"))
            scene.delete()
            await scene.until(lambda: EventReason.DELETION_WAITS in scene.reasons(), "it is told")
            (told,) = [event.message for event in scene.events if event.reason is EventReason.DELETION_WAITS]
            assert guest.client_id in told
            assert "deletionPolicy" in told

            def shown() -> bool:
                ready = [one for one in scene.status.conditions or () if one.type is ConditionType.READY]
                return bool(ready) and ready[0].reason == "DeletionWaits" and guest.client_id in ready[0].message

            await scene.until(shown, "and shown")
            assert scene.group is not None
        await scene.until(lambda: scene.group is None, "nobody is left, and it goes")
        assert EventReason.GROUP_REMOVED in scene.reasons()
        await scene.client.subscribe_queues(topic)
        assert not await is_there(scene.client, scene.name)
