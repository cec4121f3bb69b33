"""A group that is prepared stays so whatever becomes of its brokers: what one of them lacks is written, and only that.

None of the brokers here creates groups by itself, as usual in production.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.broker.cluster import Cluster, unique
from tests.broker.consumer.scene import until
from tests.broker.controller.test_prepare import access_to, ends, group_of, offsets, send

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import GroupNotExist, NoRoute
from rocketfleet.client.requests import broker_groups, broker_offsets, broker_topics
from rocketfleet.controller.planning.preparation import Preparation
from rocketfleet.controller.rocketmq.brokers import BrokerClients, GroupBrokers
from rocketfleet.controller.rocketmq.fence import TermOver, fenced_client
from rocketfleet.controller.rocketmq.group_preparation import Prepared
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.devbroker.topics import create_topic
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

NOW = 1_000_000.0
A, B = "broker-a", "broker-b"


@pytest.fixture(scope="module")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("two"))
    cluster.start(FleetSpec(brokers=2, auto_create_groups=False, auto_create_topics=False))
    yield cluster
    cluster.stop(delete_data=True)


@pytest.fixture
def two(one_cluster: Cluster) -> Iterator[Cluster]:
    """Two masters, whole again after each test."""
    yield one_cluster
    one_cluster.settle()


@pytest.fixture
async def brokers() -> AsyncIterator[BrokerClients]:
    pool = BrokerClients()
    yield pool
    await pool.close()


@dataclass
class Follower:
    """Does with a group's brokers what the controller does in its passes."""

    access: GroupBrokers
    known: Preparation = field(default_factory=Preparation)

    async def follow(self) -> Prepared | None:
        """Look, write what is missing, and look whether it is there. None: nothing was missing."""
        standing = await self.access.standing(self.known, NOW, nobody=True)
        if not standing.lacking:
            assert standing.prepared
            return None
        done = await self.access.prepare()
        self.known.looks.clear()
        standing = await self.access.standing(self.known, NOW, nobody=True)
        assert standing.prepared
        assert not standing.lacking
        return done

    async def settings_at(self, broker: str) -> bool:
        client = self.access.client
        try:
            await broker_groups.group_config(client.remoting, client.master(broker), self.access._name)
        except GroupNotExist:
            return False
        return True


async def topic_at(client: Client, address: str, queues: int = 2) -> str:
    """A topic that only one broker has."""
    topic = unique("topic")
    config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
    await broker_topics.create_topic(client.remoting, address, config)

    async def known() -> bool:
        try:
            await client.routes.refresh(topic)
        except NoRoute:
            return False
        return True

    await until(known, "the name server knows the topic")
    return topic


async def send_to(cluster: Cluster, queue: MessageQueue, count: int) -> None:
    async with Producer(ClientConfig(cluster.name_server), group=unique("producer")) as producer:
        for number in range(count):
            await producer.send(Message(queue.topic, str(number).encode()), queue=queue)


async def test_a_group_that_is_moved_to_another_rocketmq(
    broker: Cluster, topic: str, two: Cluster, brokers: BrokerClients
) -> None:
    name = unique("cg")
    here = Follower(await access_to(brokers, group_of(broker, topic, name)))
    done = await here.follow()
    assert done is not None
    assert done.started == 8
    create_topic(two, topic, 4)
    await send(two, topic, 20)
    there = Follower(await access_to(brokers, group_of(two, topic, name)), here.known)
    done = await there.follow()
    assert done is not None
    assert done.changed == (A, B)
    assert done.started == 8
    start = await offsets(there.access, topic)
    assert start == await ends(there.access.client, topic)
    assert sum(start.values()) == 20


async def test_a_broker_that_is_added(two: Cluster, brokers: BrokerClients) -> None:
    async with Client(ClientConfig(two.name_server)) as client:
        topic = await topic_at(client, two.address_of(A))
    group = Follower(await access_to(brokers, group_of(two, topic, unique("cg"))))
    done = await group.follow()
    assert done is not None
    assert done.changed == (A,)
    asked = _counted(group.access.client)
    assert await group.follow() is None
    assert asked == [], "what was read is believed"
    create_topic(two, topic, 2)  # at both now
    await send_to(two, MessageQueue(topic, B, 1), 3)
    await group.access.client.routes.refresh(topic)
    done = await group.follow()
    assert done is not None
    assert (done.changed, done.started) == ((B,), 2)
    assert {queue: at for queue, at in (await offsets(group.access, topic)).items() if queue.broker == B} == {
        MessageQueue(topic, B, number): 0 for number in range(2)
    }, "nothing that was stored since the group began is skipped"


@pytest.mark.parametrize("where", ["LastOffset", "FirstOffset"])
async def test_a_broker_that_has_lost_its_groups(two: Cluster, brokers: BrokerClients, where: str) -> None:
    """Its topics are there, as from a template, and it is back at the same address: no route has changed."""
    topic = two.create_topic(2)
    group = Follower(await access_to(brokers, group_of(two, topic, unique("cg"), consumeFromWhere=where)))
    await group.follow()
    start = await offsets(group.access, topic)
    await send(two, topic, 12)
    two.kill(B)
    for file in ("subscriptionGroup.json", "consumerOffset.json"):
        for path in (two.directory / "data" / B / "config").glob(f"{file}*"):
            path.unlink()
    await asyncio.to_thread(two.restart, B)
    await _is_back(group.access, topic, B)
    assert not await group.settings_at(B)
    done = await group.follow()
    assert done is not None
    assert done.changed == (B,)
    assert await group.settings_at(B)
    assert await offsets(group.access, topic) == start, "when it began is known from the other broker"


async def test_a_broker_that_has_lost_its_disk(two: Cluster, brokers: BrokerClients) -> None:
    topic = two.create_topic(2)
    group = Follower(await access_to(brokers, group_of(two, topic, unique("cg"))))
    await group.follow()
    two.kill(B)
    shutil.rmtree(two.directory / "data" / B)
    await asyncio.to_thread(two.restart, B)
    create_topic(two, topic, 2)  # somebody has made it again
    await _is_back(group.access, topic, B)
    await send_to(two, MessageQueue(topic, B, 0), 3)
    done = await group.follow()
    assert done is not None
    assert done.changed == (B,)
    assert {at for queue, at in (await offsets(group.access, topic)).items() if queue.broker == B} == {0}


async def test_a_topic_that_grows_while_the_group_is_at_zero(two: Cluster, brokers: BrokerClients) -> None:
    topic = two.create_topic(2)
    await send(two, topic, 8)
    group = Follower(await access_to(brokers, group_of(two, topic, unique("cg"))))
    await group.follow()
    before = await offsets(group.access, topic)
    create_topic(two, topic, 3)
    new = [MessageQueue(topic, broker, 2) for broker in (A, B)]
    await send_to(two, new[0], 5)
    await group.access.client.routes.refresh(topic)
    done = await group.follow()
    assert done is not None
    assert (done.changed, done.started) == ((), 2)
    # With an offset its lag is known, and the group is woken by what is in the new queues.
    assert await offsets(group.access, topic) == {**before, **dict.fromkeys(new, 0)}


async def test_a_dead_broker_elsewhere_blocks_nobody(two: Cluster, brokers: BrokerClients) -> None:
    async with Client(ClientConfig(two.name_server)) as client:
        topic = await topic_at(client, two.address_of(A))
        elsewhere = await topic_at(client, two.address_of(B))
    # The client is shared by all groups of a RocketMQ, and knows that broker from another one.
    other = await access_to(brokers, group_of(two, elsewhere, unique("cg")))
    await other.queues()
    two.pause(B)  # worse than dead: it takes connections, and does not answer
    group = Follower(await access_to(brokers, group_of(two, topic, unique("cg"))))
    asked = _counted(group.access.client)
    async with asyncio.timeout(3.0):
        done = await group.follow()
    assert done == Prepared((A,), 2)
    assert {address for address, _ in asked} <= {two.address_of(A), two.name_server}


async def test_a_dead_broker_of_its_own_blocks_only_itself(two: Cluster, brokers: BrokerClients) -> None:
    topic = two.create_topic(2)
    group = Follower(await access_to(brokers, group_of(two, topic, unique("cg"), consumeFromWhere="FirstOffset")))
    await group.access.queues()
    two.kill(B)
    done = await group.follow()
    assert done is not None
    assert (done.changed, done.started) == ((A,), 2)
    assert await group.follow() is None, "the other one is not waited for"
    await asyncio.to_thread(two.restart, B)
    await _is_back(group.access, topic, B)
    assert await group.follow() == Prepared((B,), 2)


async def test_nothing_is_written_by_who_no_longer_leads(two: Cluster) -> None:
    class Leading:
        over = False

        def may_act(self) -> bool:
            return not self.over

        def seconds_left(self) -> float:
            return 10.0

    term = Leading()
    topic = two.create_topic(2)
    pool = BrokerClients(lambda config: fenced_client(config, term))
    try:
        access = await access_to(pool, group_of(two, topic, two.create_group(), consumeFromWhere="FirstOffset"))
        assert (await access.standing(Preparation(), NOW, nobody=True)).lacking
        term.over = True  # frozen; meanwhile another one leads, and its pods consume
        with pytest.raises(TermOver):
            await access.prepare()
        assert await offsets(access, topic) == {}
        with pytest.raises(TermOver):
            await access.release_locks({"somebody"})
    finally:
        await pool.close()


def _counted(client: Client) -> list[tuple[str, int]]:
    """The requests that a client makes from here on."""
    made: list[tuple[str, int]] = []
    call = client.remoting.call

    async def counted(address: str, command: Any, timeout: float | None = None) -> Any:
        made.append((address, command.code))
        return await call(address, command, timeout)

    client.remoting.call = counted  # type: ignore[method-assign]
    return made


async def _is_back(access: GroupBrokers, topic: str, broker: str) -> None:
    """The client has found the broker again."""

    async def back() -> bool:
        await access.client.routes.refresh(topic)
        queues = [queue for queue in await access.queues() if queue.broker == broker]
        return bool(queues) and access.client.is_connected(broker)

    await until(back, f"{broker} is back", 40.0)
    queue = MessageQueue(topic, broker, 0)
    await broker_offsets.max_offset(access.client.remoting, access.client.master(broker), queue)
