"""A group at a real broker before its first member: settings, and start offsets that are written once."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.broker.cluster import Cluster, unique

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_groups, broker_locks, broker_members, broker_offsets
from rocketfleet.controller.rocketmq.brokers import BrokerClients, GroupBrokers
from rocketfleet.controller.rocketmq.group_preparation import Prepared
from rocketfleet.controller.rocketmq.group_removal import Leftovers
from rocketfleet.devbroker.topics import create_topic
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.bodies import ConsumerData, ConsumeType, HeartbeatData, SubscriptionData, SubscriptionGroupConfig
from rocketfleet.wire.enums import MessageModel
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue


def group_of(broker: Cluster, topic: str, name: str, **spec: Any) -> ConsumerGroup:
    given = {
        "cluster": {"nameServers": [broker.name_server]},
        "subscriptions": [{"topic": topic}],
        "worker": {"handler": "a:b"},
        **spec,
    }
    return ConsumerGroup.model_validate({"metadata": {"name": name}, "spec": given})


@pytest.fixture
async def brokers() -> AsyncIterator[BrokerClients]:
    pool = BrokerClients()
    yield pool
    await pool.close()


async def access_to(brokers: BrokerClients, group: ConsumerGroup) -> GroupBrokers:
    return await brokers.of(group, ClientConfig(tuple(group.spec.cluster.name_servers)))


async def send(broker: Cluster, topic: str, count: int) -> None:
    async with Producer(ClientConfig(broker.name_server), group=unique("producer")) as producer:
        for number in range(count):
            await producer.send(Message(topic, str(number).encode()), sharding_key=str(number))


async def offsets(access: GroupBrokers, topic: str) -> dict[MessageQueue, int]:
    return await access.committed(await access.client.subscribe_queues(topic))


async def ends(client: Client, topic: str) -> dict[MessageQueue, int]:
    return {
        queue: await broker_offsets.max_offset(client.remoting, client.master(queue.broker), queue)
        for queue in await client.subscribe_queues(topic)
    }


async def test_last_offset_is_the_end_at_the_time_of_preparing(
    broker: Cluster, topic: str, brokers: BrokerClients
) -> None:
    await send(broker, topic, 20)
    access = await access_to(brokers, group_of(broker, topic, unique("cg")))
    assert (await access.prepare()).started == 8
    start = await offsets(access, topic)
    assert start == await ends(access.client, topic)
    assert sum(start.values()) == 20
    await send(broker, topic, 10)
    assert await access.prepare() == Prepared()
    assert await offsets(access, topic) == start


async def test_an_offset_that_is_there_is_never_moved(broker: Cluster, topic: str, brokers: BrokerClients) -> None:
    await send(broker, topic, 20)
    group = group_of(broker, topic, broker.create_group())
    access = await access_to(brokers, group)
    queue = (await access.client.subscribe_queues(topic))[3]
    address = access.client.master(queue.broker)
    await broker_offsets.update_offset(access.client.remoting, address, group.group_name, queue, 1)
    # It has begun, by whatever left that offset behind: what has none is new, and starts where it begins.
    assert (await access.prepare()).started == 7
    others = [other for other in await access.queues() if other != queue]
    assert await offsets(access, topic) == {queue: 1, **dict.fromkeys(others, 0)}


async def test_a_topic_that_grew_while_nobody_was_there_is_not_begun_again(
    broker: Cluster, topic: str, brokers: BrokerClients
) -> None:
    group = group_of(broker, topic, unique("cg"))
    access = await access_to(brokers, group)
    assert (await access.prepare()).started == 8
    before = await offsets(access, topic)
    create_topic(broker, topic, 12)
    await access.client.routes.refresh(topic)
    await send(broker, topic, 24)
    other = await access_to(BrokerClients(), group)  # as after a restart: nothing is remembered
    try:
        assert (await other.prepare()).started == 4
        new = [queue for queue in await other.queues() if queue.queue_id >= 8]
        now = await offsets(other, topic)
        assert now == {**before, **dict.fromkeys(new, 0)}, "what was stored since it began would be skipped"
    finally:
        await other.client.close()


async def a_moment() -> None:
    """So long that the broker's milliseconds differ before and after."""
    over = time.time() + 0.01
    while time.time() < over:  # noqa: ASYNC110 - it is the clock that is waited for
        await asyncio.sleep(0.002)


async def test_first_offset_timestamp_and_native(broker: Cluster, topic: str, brokers: BrokerClients) -> None:
    await send(broker, topic, 16)
    await a_moment()
    between = datetime.now(UTC).isoformat()
    await a_moment()
    first = await access_to(brokers, group_of(broker, topic, unique("cg"), consumeFromWhere="FirstOffset"))
    middle = await ends(first.client, topic)
    await send(broker, topic, 16)
    await first.prepare()
    assert set((await offsets(first, topic)).values()) == {0}
    spec = {"consumeFromWhere": "Timestamp", "consumeTimestamp": between}
    timed = await access_to(brokers, group_of(broker, topic, unique("cg"), **spec))
    await timed.prepare()
    assert await offsets(timed, topic) == middle
    native = await access_to(brokers, group_of(broker, topic, unique("cg"), initialOffset="Native"))
    assert (await native.prepare()).started == 0
    assert await offsets(native, topic) == {}
    assert len(brokers) == 1  # one connection for all of them


async def test_settings_of_others_stay_as_they_are(broker: Cluster, topic: str, brokers: BrokerClients) -> None:
    name = unique("cg")
    access = await access_to(
        brokers, group_of(broker, topic, name, consumeMode="Orderly", consume={"maxReconsumeTimes": 5})
    )
    client = access.client
    theirs = SubscriptionGroupConfig(group_name=name, retry_queue_nums=3, consume_timeout_minute=7)
    (await admin.create_group(client, theirs)).all_or_raise()
    assert (await access.prepare()).changed
    (address,) = (await admin.masters(client)).values()
    now = await broker_groups.group_config(client.remoting, address, name)
    assert (now.retry_queue_nums, now.consume_timeout_minute) == (3, 7)
    assert (now.retry_max_times, now.consume_message_orderly) == (5, True)
    assert (await access.prepare()).changed == ()


async def test_topics_of_members_that_are_there_are_left_to_them(
    broker: Cluster, topic: str, brokers: BrokerClients
) -> None:
    group = group_of(broker, topic, unique("cg"))
    access = await access_to(brokers, group)
    async with Client(ClientConfig(broker.name_server)) as member:
        queues = await member.subscribe_queues(topic)
        await join(member, group.group_name, topic, member.master(queues[0].broker))
        assert (await access.prepare()).started == 0
        members = await access.members(with_hosts=True)
        assert members.ids == {member.client_id}
        assert members.hosts[member.client_id] == {"127.0.0.1"}
    assert await offsets(access, topic) == {}


async def join(member: Client, group: str, topic: str, address: str) -> None:
    data = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.PUSH,
        message_model=MessageModel.CLUSTERING.wire,
        subscription_data_set=(SubscriptionData(topic=topic, sub_string="*"),),
    )
    beat = HeartbeatData(client_id=member.client_id, consumer_data_set=(data,))
    await broker_members.heartbeat(member.remoting, address, beat)


async def test_locks_are_released_of_those_who_are_gone_only(
    broker: Cluster, topic: str, brokers: BrokerClients
) -> None:
    group = group_of(broker, topic, unique("cg"))
    access = await access_to(brokers, group)
    async with Client(ClientConfig(broker.name_server)) as member:
        queues = await member.subscribe_queues(topic)
        address = member.master(queues[0].broker)
        await join(member, group.group_name, topic, address)
        await broker_locks.lock(member.remoting, address, group.group_name, member.client_id, queues[:4])
        await broker_locks.lock(member.remoting, address, group.group_name, "dead", queues[4:])
        assert await access.release_locks({member.client_id, "dead"}) == {"dead"}
        free = await broker_locks.lock(member.remoting, address, group.group_name, "next", queues)
        assert free == frozenset(queues[4:])


async def test_a_group_that_is_deleted_leaves_no_offset(broker: Cluster, topic: str, brokers: BrokerClients) -> None:
    access = await access_to(brokers, group_of(broker, topic, unique("cg")))
    await access.prepare()
    assert len(await offsets(access, topic)) == 8

    async def confirm(left: Leftovers) -> None:
        assert left == Leftovers()

    await access.delete_group(confirm, topics_too=False)
    assert await offsets(access, topic) == {}
