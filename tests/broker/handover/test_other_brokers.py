"""Trouble at one broker touches only its own queues, and a broker that comes back is used at once.

Two masters, or a master and its slave; brokers are killed for real.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.broker.client.test_coming_and_going import start_elsewhere
from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Scene, until
from tests.broker.handover.faults import Recorder, for_a_while

from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_messages, broker_offsets
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.handover.ownership import OwnershipState
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue


@pytest.fixture
async def two(make_cluster: Callable[..., Cluster]) -> AsyncIterator[Scene]:
    scene = Scene(make_cluster(brokers=2))
    await scene.open()
    yield scene
    await scene.close()


@pytest.fixture
async def replicated(make_cluster: Callable[..., Cluster]) -> AsyncIterator[Scene]:
    scene = Scene(make_cluster(brokers=1, slave=True, properties=(("slaveReadEnable", "true"),)))
    await scene.open()
    yield scene
    await scene.close()


async def joined(scene: Scene, group: str, topic: str, recorder: Recorder, name: str, **settings: Any) -> Consumer:
    client = {"timeout": 3.0, "client_id": f"{group}-{name}"}
    return await scene.member(group, topic, recorder.handler(name), client=client, **settings)


async def settled(*members: Consumer) -> None:
    await until(lambda: all(member.ready for member in members), "the members are ready")


def owners(queue: MessageQueue, members: list[Consumer]) -> list[Consumer]:
    return [member for member in members if queue in member.owned]


def route_has(member: Consumer, topic: str, broker: str) -> bool:
    route = member._client.routes.cached(topic)
    return route is not None and any(data.broker_name == broker for data in route.broker_datas)


async def send(scene: Scene, topic: str, broker: str, queue: int, *bodies: str) -> None:
    for body in bodies:
        await scene.producer.send(Message(topic, body.encode()), queue=MessageQueue(topic, broker, queue))


async def writable(scene: Scene, topic: str, broker: str) -> None:
    """Wait until the producer, too, knows the broker's master again."""

    async def known() -> bool:
        await scene.client.routes.refresh(topic)
        return any(queue.broker == broker for queue in (await scene.client.publish_info(topic)).queues)

    await until(known, f"{broker} can be written")


async def test_queues_of_a_healthy_broker_stay_owned_when_another_dies(two: Scene) -> None:
    cluster: Cluster = two.cluster
    topic, group, recorder = cluster.create_topic(queues=2), cluster.create_group(), Recorder()
    members = [await joined(two, group, topic, recorder, name) for name in ("m1", "m2")]
    await settled(*members)
    healthy = [MessageQueue(topic, "broker-b", n) for n in range(2)]
    unowned_since: dict[MessageQueue, float] = {}
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            now = time.monotonic()
            for queue in healthy:
                if owners(queue, members):
                    unowned_since.pop(queue, None)
                else:
                    longest = max(longest, now - unowned_since.setdefault(queue, now))
            await asyncio.sleep(0.02)

    watching = asyncio.create_task(watch())
    cluster.kill("broker-a")
    sent = [f"n{n}" for n in range(40)]
    for n, body in enumerate(sent):
        await send(two, topic, "broker-b", n % 2, body)
    await until(lambda: not recorder.lost(sent), "what a healthy broker has is delivered")
    await for_a_while(6.0)
    await asyncio.to_thread(cluster.restart, "broker-a")
    back = [MessageQueue(topic, "broker-a", n) for n in range(2)]
    await until(lambda: all(len(owners(queue, members)) == 1 for queue in back), "its queues are owned again", 20.0)
    await settled(*members)
    watching.cancel()
    # Members used to learn of it up to 36 s apart, and a queue was nobody's in between.
    assert longest < 8.0, f"a queue of the healthy broker was nobody's for {longest:.1f} s"
    await writable(two, topic, "broker-a")
    for n in range(2):
        await send(two, topic, "broker-a", n, f"a{n}")
    await until(lambda: not recorder.lost(["a0", "a1"]))
    assert recorder.repeated() == {}


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_whoever_had_the_queues_of_a_broker_goes_on_when_it_is_back(two: Scene, elsewhere: bool) -> None:
    """At the same address or another one: what was handled while it was away is not handled again."""
    cluster: Cluster = two.cluster
    topic, group, recorder = cluster.create_topic(queues=2), cluster.create_group(), Recorder(seconds=3.0)
    members = [await joined(two, group, topic, recorder, name) for name in ("m1", "m2")]
    await settled(*members)
    queues = [MessageQueue(topic, "broker-a", n) for n in range(2)]
    had = {queue: owners(queue, members) for queue in queues}
    for n in range(2):
        await send(two, topic, "broker-a", n, f"n{n}")
    await until(lambda: recorder.running() == 2)
    cluster.kill("broker-a")
    await until(lambda: all(not route_has(member, topic, "broker-a") for member in members), "no route names it")
    await until(lambda: recorder.running() == 0, "both are handled while it is away")
    recorder.seconds = 0.0
    await for_a_while(3.0)
    await asyncio.to_thread(start_elsewhere if elsewhere else Cluster.restart, cluster, "broker-a")
    await until(lambda: {queue: owners(queue, members) for queue in queues} == had, "the same members have them again")

    async def told() -> bool:
        return [await two.committed(group, topic, n) for n in range(2)] == [1, 1]

    await until(told, "and tell it what they have handled")
    await settled(*members)
    assert recorder.repeated() == {}


async def test_a_concurrent_group_goes_on_from_the_slave(replicated: Scene) -> None:
    cluster: Cluster = replicated.cluster
    topic, group, recorder = cluster.create_topic(queues=2), cluster.create_group(), Recorder()
    members = [await joined(replicated, group, topic, recorder, name) for name in ("m1", "m2")]
    await settled(*members)
    slave, remoting = cluster.address_of("broker-a-slave"), replicated.client.remoting

    async def known() -> bool:
        """The slave has messages at once, but topics and groups only every ten seconds, once it knows its master."""
        where = MessageQueue(topic, "broker-a", 0)
        try:
            await broker_messages.pull(
                remoting, slave, broker_messages.pull_request(group, where, 0, sys_flag=4, subscription="*")
            )
        except RocketMQError:
            return False
        return True

    await until(known, "the slave knows topic and group", 150.0)
    recorder.seconds = 0.02
    sent = [f"n{n}" for n in range(400)]
    queues = [MessageQueue(topic, "broker-a", n) for n in range(2)]
    for start in range(0, 400, 100):
        batch = [Message(topic, body.encode()) for body in sent[start : start + 100]]
        await replicated.producer.send_batch(batch, queue=queues[(start // 100) % 2])

    async def copied() -> bool:
        return [await broker_offsets.max_offset(remoting, slave, queue) for queue in queues] == [200, 200]

    await until(copied, "the slave has all messages")
    recorder.seconds = 0.05
    cluster.kill("broker-a")
    handled = len(recorder.calls)
    await until(lambda: not recorder.lost(sent), "the slave serves what the master has stored")
    assert len(recorder.calls) > handled or handled >= 400
    await until(
        lambda: (
            {holding.state for member in members for holding in member.holdings if holding.queue in queues}
            == {OwnershipState.STANDBY}
        ),
        "and it is said so",
    )
    third = await joined(replicated, group, topic, recorder, "m3")
    await until(lambda: third.ready_problems() == [], "a new member becomes ready all the same")
    await asyncio.to_thread(cluster.restart, "broker-a")

    async def told() -> bool:
        return [await replicated.committed(group, topic, n) for n in range(2)] == [200, 200]

    await until(told, "the master is told what was handled meanwhile")
    everybody = [*members, third]
    await until(lambda: all(len(owners(queue, everybody)) == 1 for queue in queues))
    await until(lambda: not any(h.state is OwnershipState.STANDBY for m in everybody for h in m.holdings))
    await writable(replicated, topic, "broker-a")
    for n in range(2):
        await send(replicated, topic, "broker-a", n, f"after{n}")
    await until(lambda: not recorder.lost(["after0", "after1"]))
    assert recorder.repeated() == {}


async def test_an_orderly_group_waits_for_its_master(replicated: Scene) -> None:
    cluster: Cluster = replicated.cluster
    topic, group, recorder = cluster.create_topic(queues=1), cluster.create_group(), Recorder(seconds=0.01)
    member = await joined(replicated, group, topic, recorder, "m1", consume_mode=ConsumeMode.ORDERLY)
    await settled(member)
    await send(replicated, topic, "broker-a", 0, "before")
    await until(lambda: recorder.bodies == ["before"])
    cluster.kill("broker-a")
    queue = MessageQueue(topic, "broker-a", 0)
    await until(lambda: queue not in member.owned, "it is not consumed without its lock")
    await for_a_while(3.0)
    assert [holding.state for holding in member.holdings if holding.queue == queue] == [OwnershipState.OWNED], (
        "but kept"
    )
    assert member.ready_problems() == []
    await asyncio.to_thread(cluster.restart, "broker-a")
    await until(lambda: queue in member.owned, "and goes on when the master is back")
    await writable(replicated, topic, "broker-a")
    await send(replicated, topic, "broker-a", 0, "after")
    await until(lambda: recorder.bodies == ["before", "after"])
