"""A LastOffset group skips nothing that was stored after it began, and replays nothing that was stored before."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.broker.cluster import Cluster, unique
from tests.broker.consumer.scene import Scene, of_topic, until
from tests.broker.handover.faults import Recorder, cut, for_a_while

from rocketfleet.client.errors import NoRoute
from rocketfleet.client.requests import broker_offsets, broker_topics
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.offset_storage.beginning import mark_queue
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.devbroker.topics import create_topic
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

Topics = Callable[..., str]
LAST = {"consume_from_where": ConsumeFromWhere.LAST_OFFSET}


async def joined(stage: Scene, group: str, topic: Any, recorder: Recorder, name: str, **settings: Any) -> Consumer:
    return await stage.member(
        group, topic, recorder.handler(name), client={"route_refresh": 1.0, "timeout": 5.0}, **{**LAST, **settings}
    )


async def ready(*members: Consumer) -> None:
    await until(lambda: all(member.ready for member in members), "the members are ready")


async def test_a_topic_that_grows(stage: Scene, broker: Cluster, make_topic: Topics, group: str) -> None:
    topic, recorder = make_topic(queues=4), Recorder()
    await stage.send(topic, *(f"old-{n}" for n in range(8)))
    members = [await joined(stage, group, topic, recorder, name) for name in ("m1", "m2")]
    await ready(*members)
    create_topic(broker, topic, 8)
    sent = [f"new-{n}" for n in range(800)]
    for n, body in enumerate(sent):
        await stage.send(topic, body, queue=n % 8)
    await until(
        lambda: not recorder.lost(sent), f"all of {len(sent)} are delivered, missing {len(recorder.lost(sent))}"
    )
    assert set(recorder.bodies) == set(sent), "and nothing of what was there before"
    assert recorder.repeated() == {}


async def test_a_topic_that_grows_while_the_group_is_at_zero(
    stage: Scene, broker: Cluster, make_topic: Topics, group: str
) -> None:
    topic, recorder = make_topic(queues=2), Recorder()
    await stage.send(topic, *(f"old-{n}" for n in range(4)))
    first = await joined(stage, group, topic, recorder, "m1")
    await ready(first)
    await first.stop()
    create_topic(broker, topic, 4)
    sent = [f"new-{n}" for n in range(40)]
    for n, body in enumerate(sent):
        await stage.send(topic, body, queue=n % 4)
    await joined(stage, group, topic, recorder, "m2")
    await until(lambda: not recorder.lost(sent), "all are delivered")
    assert sorted(recorder.bodies) == sorted(sent)


async def test_members_that_start_at_the_same_instant_replay_no_history(
    stage: Scene, make_topic: Topics, group: str
) -> None:
    topic, recorder = make_topic(queues=8), Recorder()
    for n in range(8):
        await stage.fill(topic, n, 50)
    members = await asyncio.gather(*(joined(stage, group, topic, recorder, f"m{n}") for n in range(6)))
    await until(lambda: sum(len(of_topic(member, topic)) for member in members) == 8, "every queue is owned")
    await ready(*members)
    sent = [f"new-{n}" for n in range(80)]
    for n, body in enumerate(sent):
        await stage.send(topic, body, queue=n % 8)
    await until(lambda: not recorder.lost(sent))
    assert sorted(recorder.bodies) == sorted(sent)


@pytest.mark.parametrize("away", [0.2, 3.0])
async def test_a_connection_that_is_away_in_the_first_seconds(
    stage: Scene, make_topic: Topics, group: str, away: float
) -> None:
    # So slow that nothing is finished, and so nothing committed, when the connection breaks.
    topic, recorder = make_topic(queues=1), Recorder(seconds=1.0)
    await stage.send(topic, "old")
    members = [await joined(stage, group, topic, recorder, name, persist_interval=60.0) for name in ("m1", "m2")]
    await ready(*members)
    owner = next(member for member in members if of_topic(member, topic))
    sent = [f"n{n}" for n in range(60)]
    await stage.send(topic, *sent)
    await until(lambda: len(recorder.calls) > 0)
    cut(owner, stage.address, away)
    await until(lambda: not recorder.lost(sent), f"{recorder.lost(sent)} were never handled")
    assert "old" not in recorder.bodies


async def test_a_topic_that_is_created_late(stage: Scene, broker: Cluster, make_topic: Topics, group: str) -> None:
    there, late, recorder = make_topic(queues=2), unique("late"), Recorder()
    subscriptions = (Subscription(there), Subscription(late))
    member = await joined(stage, group, subscriptions, recorder, "m1")
    await ready(member)
    await stage.send(there, "there")
    await until(lambda: recorder.bodies == ["there"], "a topic that is missing keeps no other from being consumed")
    mark = mark_queue(group, late, "broker-a")

    async def begun() -> bool:
        return bool(await broker_offsets.query_offset(stage.client.remoting, stage.address, group, mark))

    await until(begun, "the beginning is stored for a topic that is not there yet, too")
    await member.stop()  # nobody is there when it is created
    create_topic(broker, late, 2)
    sent = [f"late-{n}" for n in range(10)]
    for n, body in enumerate(sent):
        await stage.send(late, body, queue=n % 2)
    await joined(stage, group, subscriptions, recorder, "m2")
    await until(lambda: not recorder.lost(sent))
    assert sorted(recorder.bodies) == sorted([*sent, "there"])


async def test_a_group_begun_by_another_client_has_begun(stage: Scene, make_topic: Topics, group: str) -> None:
    topic, recorder = make_topic(queues=2), Recorder()
    await stage.send(topic, "old", queue=0)
    await stage.commit(group, topic, 1, queue=0)  # as any other client leaves it behind
    await stage.send(topic, "new", queue=1)
    await joined(stage, group, topic, recorder, "m1")
    await until(lambda: recorder.bodies == ["new"])
    await for_a_while(0.5)
    assert recorder.bodies == ["new"]


async def test_a_broker_that_is_added(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(brokers=2)
    topic, group, recorder = unique("topic"), cluster.create_group(), Recorder()
    scene = Scene(cluster)
    await scene.open()
    try:
        config = TopicConfig(topic_name=topic, read_queue_nums=2, write_queue_nums=2)
        await broker_topics.create_topic(scene.client.remoting, scene.address, config)

        async def known() -> bool:
            try:
                await scene.client.routes.refresh(topic)
            except NoRoute:
                return False
            return True

        await until(known)
        await scene.send(topic, "old", queue=0)
        member = await joined(scene, group, topic, recorder, "m1")
        await ready(member)
        await member.stop()
        create_topic(cluster, topic, 2)  # at both now
        await scene.client.routes.refresh(topic)
        for n in range(6):
            await scene.producer.send(Message(topic, f"b{n}".encode()), queue=MessageQueue(topic, "broker-b", n % 2))
        await joined(scene, group, topic, recorder, "m2")
        await until(lambda: len(set(recorder.bodies)) == 6)
        assert sorted(recorder.bodies) == [f"b{n}" for n in range(6)]
    finally:
        await scene.close()
