"""A master that dies is replaced by an election, and the group goes on at the new one.

Two replicas of one broker under RocketMQ's controller; the master is killed for real, under traffic. What is promised:

- Nothing is lost of what was acknowledged with the replica in step. The brokers here answer a send when every replica
  in step has it (`allAckInSyncStateSet`), so that is every message that was acknowledged at all.
- The members keep what they have begun and go on with it: the new master knows neither locks nor members, and its
  offsets are up to ten seconds old, yet nothing is delivered twice, not even to a member that joins meanwhile.
- Each queue has exactly one owner again, and the offsets reach the ends of the queues at the new master.
- An orderly group stays in order, and no queue is ever worked on by two.
- The old master comes back as a slave; that changes nothing for the group, and it can be elected in its turn.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Scene, until
from tests.broker.handover.faults import Recorder, cut
from tests.broker.handover.test_other_brokers import joined, owners, settled

from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_offsets
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

BROKER = "broker-a"
GET_ALL_SUBSCRIPTION_GROUPS = 201
CONTROLLER_GET_SYNC_STATE_DATA = 1006
PATIENCE = 90.0

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def elected(make_cluster: Callable[..., Cluster]) -> AsyncIterator[Scene]:
    acknowledged_by_all = (("allAckInSyncStateSet", "true"),)
    scene = Scene(make_cluster(brokers=1, slave=True, controller=True, properties=acknowledged_by_all))
    await scene.open()
    yield scene
    await scene.close()


class Traffic:
    """Messages to each queue in turn, each with a body of its own. What was not acknowledged may be there or not."""

    def __init__(self, scene: Scene, queues: list[MessageQueue]) -> None:
        self._scene = scene
        self._queues = queues
        self._tried = 0
        self.acknowledged: list[str] = []

    async def send(self, count: int) -> None:
        """So many more that are acknowledged."""
        wanted = len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            queue, body = self._queues[self._tried % len(self._queues)], f"n{self._tried}"
            self._tried += 1
            try:
                await self._scene.producer.send(Message(queue.topic, body.encode()), queue=queue, timeout=3.0)
            except RocketMQError:
                await asyncio.sleep(0.05)  # between two masters
            else:
                self.acknowledged.append(body)

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Messages all the while."""

        async def flow() -> None:
            while True:
                await self.send(1)
                await asyncio.sleep(0.005)

        task = asyncio.create_task(flow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def replica_beside(cluster: Cluster, master: str) -> str:
    (other,) = set(cluster.known().spec.broker_processes) - {master}
    return other


async def in_step(scene: Scene, topic: str, group: str) -> None:
    """Wait until the slave can stand in: it has the messages, the topic and the group, and the controller knows."""
    cluster: Cluster = scene.cluster
    master = cluster.master_of(BROKER)
    slave, probe = cluster.address_of(replica_beside(cluster, master)), cluster.probe()
    queues = await scene.client.subscribe_queues(topic)

    async def holds() -> bool:
        body = json.dumps([BROKER]).encode()
        state = probe.call(cluster.address_of("controller"), CONTROLLER_GET_SYNC_STATE_DATA, body=body)
        groups = probe.call(slave, GET_ALL_SUBSCRIPTION_GROUPS)
        in_sync = bytes(state.body).partition(b'"notInSyncReplicas"')[0]
        if slave.encode() not in in_sync or group.encode() not in bytes(groups.body):
            return False
        ends = [await ends_at(scene, address, list(queues)) for address in (cluster.address_of(master), slave)]
        return ends[0] == ends[1]

    await until(holds, "the slave is in step", PATIENCE)


async def ends_at(scene: Scene, address: str, queues: list[MessageQueue]) -> list[int] | None:
    try:
        return [await broker_offsets.max_offset(scene.client.remoting, address, queue) for queue in queues]
    except RocketMQError:
        return None  # it does not know the topic yet


async def kill_master(scene: Scene) -> str:
    """Kill the master, without a word; returns which it was."""
    cluster: Cluster = scene.cluster
    master = cluster.master_of(BROKER)
    await asyncio.to_thread(cluster.kill, master)
    return master


async def another_than(scene: Scene, dead: str) -> None:
    """Wait until the other replica is the master."""
    cluster: Cluster = scene.cluster

    def holds() -> bool:
        try:
            return cluster.master_of(BROKER) != dead
        except DevBrokerError:
            return False  # there is none now

    await until(holds, "the other replica is elected", PATIENCE)


async def whole(members: list[Consumer], queues: list[MessageQueue]) -> None:
    """Wait until every queue has exactly one owner, and every member is ready."""
    await settled(*members)
    await until(lambda: all(len(owners(queue, members)) == 1 for queue in queues), "each queue has one owner")


async def all_committed(scene: Scene, group: str, queues: list[MessageQueue]) -> None:
    """Wait until the offsets are at the ends of the queues, at whoever is the master."""

    async def holds() -> bool:
        ends = await ends_at(scene, scene.address, queues)
        return ends == [await scene.committed(group, queue.topic, queue.queue_id) for queue in queues]

    await until(holds, "the offsets reach the ends", PATIENCE)


async def test_a_concurrent_group_goes_on_at_the_master_that_was_elected(elected: Scene) -> None:
    cluster: Cluster = elected.cluster
    topic, group, recorder = cluster.create_topic(queues=4), cluster.create_group(), Recorder(seconds=0.03)
    queues = [MessageQueue(topic, BROKER, n) for n in range(4)]
    members = [await joined(elected, group, topic, recorder, name) for name in ("m1", "m2")]
    await settled(*members)
    traffic = Traffic(elected, queues)
    await traffic.send(20)
    await in_step(elected, topic, group)
    async with traffic.flowing():
        await traffic.send(200)
        dead = await kill_master(elected)
        members.append(await joined(elected, group, topic, recorder, "m3"))
        await another_than(elected, dead)
        await traffic.send(200)
        await whole(members, queues)
    await until(lambda: not recorder.lost(traffic.acknowledged), "all that was acknowledged is delivered")
    await all_committed(elected, group, queues)
    assert recorder.repeated() == {}
    await asyncio.to_thread(cluster.restart, dead)
    assert cluster.master_of(BROKER) != dead
    await in_step(elected, topic, group)
    # And back again: the old master, which was behind, is elected in its turn.
    async with traffic.flowing():
        await traffic.send(200)
        dead = await kill_master(elected)
        await another_than(elected, dead)
        await traffic.send(200)
        await whole(members, queues)
    await until(lambda: not recorder.lost(traffic.acknowledged), "all that was acknowledged is delivered")
    await all_committed(elected, group, queues)
    assert recorder.repeated() == {}


async def test_a_member_that_joins_at_an_election_leaves_the_owners_time_to_come_back(elected: Scene) -> None:
    cluster: Cluster = elected.cluster
    topic, group, recorder = cluster.create_topic(queues=4), cluster.create_group(), Recorder()
    queues = [MessageQueue(topic, BROKER, n) for n in range(4)]
    members = [await joined(elected, group, topic, recorder, name) for name in ("m1", "m2")]
    await settled(*members)
    traffic = Traffic(elected, queues)
    await traffic.send(20)
    await in_step(elected, topic, group)
    await traffic.send(200)
    await until(lambda: not recorder.lost(traffic.acknowledged))
    replica = cluster.address_of(replica_beside(cluster, cluster.master_of(BROKER)))
    for member in members:
        cut(member, replica, 3.0)  # so it is the newcomer that finds the new master first
    dead = await kill_master(elected)
    await another_than(elected, dead)
    members.append(await joined(elected, group, topic, recorder, "m3"))
    await traffic.send(200)
    await whole(members, queues)
    await until(lambda: not recorder.lost(traffic.acknowledged), "all that was acknowledged is delivered")
    await all_committed(elected, group, queues)
    assert recorder.repeated() == {}


async def test_an_orderly_group_goes_on_in_order_at_the_master_that_was_elected(elected: Scene) -> None:
    cluster: Cluster = elected.cluster
    topic, group, recorder = cluster.create_topic(queues=4), cluster.create_group(), Recorder(seconds=0.005)
    queues = [MessageQueue(topic, BROKER, n) for n in range(4)]
    orderly = {"consume_mode": ConsumeMode.ORDERLY}
    members = [await joined(elected, group, topic, recorder, name, **orderly) for name in ("m1", "m2")]
    await settled(*members)
    traffic = Traffic(elected, queues)
    await traffic.send(20)
    await in_step(elected, topic, group)
    async with traffic.flowing():
        await traffic.send(200)
        dead = await kill_master(elected)
        await another_than(elected, dead)
        await traffic.send(200)
        await whole(members, queues)
        members.append(await joined(elected, group, topic, recorder, "m3", **orderly))
        await whole(members, queues)
        await asyncio.to_thread(cluster.restart, dead)
        await traffic.send(200)
        await whole(members, queues)
    await until(lambda: not recorder.lost(traffic.acknowledged), "all that was acknowledged is delivered")
    await all_committed(elected, group, queues)
    assert cluster.master_of(BROKER) != dead
    assert recorder.overlaps() == []
    for queue in queues:
        offsets = [call.offset for call in recorder.calls if call.queue == str(queue)]
        assert offsets == sorted(set(offsets)), f"{queue} was not worked on in order"
