"""Connections that break, answers that fail, resets and stops at the wrong moment: one owner, nothing repeated.

All members live in this process, each with a client of its own; `faults.py` breaks their connections.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Scene, of_topic, until
from tests.broker.handover.faults import Recorder, cut, for_a_while

from rocketfleet.client.errors import SystemBusy
from rocketfleet.client.requests import broker_members, broker_offsets
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.handover.roster import GRACE_SECONDS
from rocketfleet.consumer.settings import ConsumeMode, Handover
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

Topics = Callable[..., str]


async def joined(scene: Scene, group: str, topic: str, recorder: Recorder, name: str, **settings: Any) -> Consumer:
    client = {"timeout": 5.0, "client_id": f"{group}-{name}"}
    return await scene.member(group, topic, recorder.handler(name), client=client, **settings)


async def settled(*members: Consumer) -> None:
    await until(lambda: all(member.ready for member in members), "the members are ready")


def owner_of(topic: str, *members: Consumer) -> Consumer:
    return next(member for member in members if of_topic(member, topic))


@pytest.mark.parametrize("mode", [ConsumeMode.ORDERLY, ConsumeMode.CONCURRENT])
@pytest.mark.parametrize("away", [0.0, 0.15, 0.5, 1.2])
async def test_a_live_member_whose_connection_hiccups_loses_nothing(
    stage: Scene, make_topic: Topics, group: str, mode: ConsumeMode, away: float
) -> None:
    topic, recorder = make_topic(queues=1), Recorder(seconds=2.5)
    members = [await joined(stage, group, topic, recorder, name, consume_mode=mode) for name in ("m1", "m2")]
    await settled(*members)
    owner = owner_of(topic, *members)
    await stage.send(topic, "a", "b", queue=0)
    await until(lambda: len(recorder.calls) >= 1)
    assert away < GRACE_SECONDS
    cut(owner, stage.address, away)
    await until(lambda: len(recorder.calls) >= 2 and not recorder.running(), "both are handled")
    await until(lambda: owner.ready, "the owner has its queue again")
    await for_a_while(1.0)
    assert recorder.repeated() == {}
    if mode is ConsumeMode.ORDERLY:
        assert recorder.overlaps() == []
    assert {call.member for call in recorder.calls} == {owner.client_id.rpartition("-")[2]}


async def test_a_member_that_was_replaced_does_not_go_on_with_a_stale_window(
    make_cluster: Callable[..., Cluster],
) -> None:
    """Both connections break; the broker that lists the members is back first, the one that has the queue later."""
    cluster = make_cluster(brokers=2)
    topic, group = cluster.create_topic(queues=2), cluster.create_group()
    scene, recorder = Scene(cluster), Recorder(seconds=0.02)
    await scene.open()
    try:
        one = {"consume_thread_min": 1, "consume_thread_max": 1, "consumer": {"strategy": "AVG_BY_CIRCLE"}}
        members = [await joined(scene, group, topic, recorder, name, **one) for name in ("m1", "m2")]
        await settled(*members)
        queue = MessageQueue(topic, "broker-b", 1)
        owner = next(member for member in members if queue in member.owned)
        other = next(member for member in members if member is not owner)
        address = cluster.address_of("broker-b")
        stored: list[int] = []

        async def watch() -> None:
            while True:
                offset = await broker_offsets.query_offset(
                    scene.client.remoting, address, group, queue, zero_if_not_found=False
                )
                stored.append(-1 if offset is None else offset)
                await asyncio.sleep(0.02)

        sent = [f"n{n}" for n in range(600)]
        watching = asyncio.create_task(watch())
        for start in range(0, len(sent), 100):
            await scene.producer.send_batch(
                [Message(topic, body.encode()) for body in sent[start : start + 100]], queue=queue
            )
        await until(lambda: len(recorder.calls) > 50)
        before = {call.body for call in recorder.calls}
        cut(owner, cluster.address_of("broker-a"), 3.0)
        cut(owner, address, 8.0)
        await until(lambda: queue in other.owned, "another has it meanwhile")
        await until(lambda: not recorder.lost(sent), "all is handled")
        await settled(*members)
        await for_a_while(2.0)
        watching.cancel()
        # What was in the owner's hands, or handled and not yet committed, when its connection broke comes again.
        again = set(recorder.repeated())
        assert len(again) <= 10, f"{len(again)} were handled twice"
        assert again <= before | {f"n{n}" for n in range(len(before), len(before) + 10)}
        assert stored == sorted(stored), "a committed offset never goes back"
    finally:
        await scene.close()


async def test_an_orderly_queue_waits_for_its_handler_in_an_eager_group_too(
    stage: Scene, make_topic: Topics, group: str
) -> None:
    topic, recorder = make_topic(queues=2), Recorder(seconds=1.5)
    orderly = {"consume_mode": ConsumeMode.ORDERLY, "handover": Handover.EAGER}
    first = await joined(stage, group, topic, recorder, "m1", **orderly)
    await settled(first)
    for queue in (0, 1):
        await stage.send(topic, f"{queue}-a", f"{queue}-b", queue=queue)
    await until(lambda: len(recorder.calls) == 2)
    await joined(stage, group, topic, recorder, "m2", **orderly)
    await until(lambda: len(recorder.calls) >= 4 and not recorder.running())
    assert recorder.overlaps() == []
    assert recorder.repeated() == {}


async def test_a_stop_while_the_broker_is_away_waits_for_handlers(stage: Scene, make_topic: Topics, group: str) -> None:
    topic, recorder = make_topic(queues=3), Recorder(seconds=3.0)
    member = await joined(stage, group, topic, recorder, "m1", drain_timeout=30.0)
    await settled(member)
    for queue in range(3):
        await stage.send(topic, f"n{queue}", queue=queue)
    await until(lambda: recorder.running() == 3)
    cut(member, stage.address, 1.0)
    final = await member.stop()
    assert recorder.running() == 0, "no handler was cut short"
    assert {queue.queue_id: (end.offset, end.confirmed) for queue, end in final.items() if queue.topic == topic} == {
        0: (1, True),
        1: (1, True),
        2: (1, True),
    }, "what was finished is committed once the broker is back"


async def test_a_member_that_drains_stays_a_member(stage: Scene, make_topic: Topics, group: str) -> None:
    topic, recorder = make_topic(queues=1), Recorder(seconds=4.0)
    orderly = {"consume_mode": ConsumeMode.ORDERLY, "drain_timeout": 30.0}
    members = [await joined(stage, group, topic, recorder, name, **orderly) for name in ("m1", "m2")]
    await settled(*members)
    owner = owner_of(topic, *members)
    await stage.send(topic, "a")
    await until(lambda: recorder.running() == 1)
    stopping = asyncio.create_task(owner.stop())
    cut(owner, stage.address, 0.2)

    async def listed() -> bool:
        return owner.client_id in await stage.ids(group)

    await until(listed, "it is listed again while its handler runs")
    assert recorder.running() == 1
    await stopping
    await for_a_while(1.0)
    assert recorder.repeated() == {}
    assert await stage.committed(group, topic) == 1


async def test_an_unlock_that_is_refused_is_repeated(stage: Scene, make_topic: Topics, group: str) -> None:
    topic, recorder = make_topic(queues=2), Recorder()
    first = await joined(stage, group, topic, recorder, "m1")
    await settled(first)
    call, refused = first._client.remoting.call, list[str]()

    async def busy(address: str, command: Command, timeout: float | None = None) -> Command:
        if command.code == RequestCode.UNLOCK_BATCH_MQ and len(refused) < 2:
            refused.append(address)
            raise SystemBusy(2, "[REJECTREQUEST]system busy", address, command.code)
        return await call(address, command, timeout)

    first._client.remoting.call = busy  # type: ignore[method-assign]
    second = await joined(stage, group, topic, recorder, "m2")
    await until(lambda: len(of_topic(second, topic)) == 1, "the queue is handed over all the same", 15.0)
    assert len(refused) == 2


async def test_a_reset_while_it_stops_is_what_the_broker_keeps(stage: Scene, make_topic: Topics, group: str) -> None:
    topic, recorder = make_topic(queues=1), Recorder()
    member = await joined(stage, group, topic, recorder, "m1")
    await settled(member)
    await stage.fill(topic, 0, 10)
    await until(lambda: len(recorder.calls) == 10)
    await member.persist()
    queue = MessageQueue(topic, "broker-a", 0)
    # Stop at once: the pull that is under way does not take the reset up before a message comes, or it is over.
    await broker_offsets.reset_queue_offset(stage.client.remoting, stage.address, group, queue, 3)
    final = (await member.stop())[queue]
    stored = await stage.committed(group, topic)
    assert final.confirmed
    assert final.offset == stored, "what is called confirmed is what is stored"


async def test_many_busy_queues_are_committed_in_turn(stage: Scene, make_topic: Topics, group: str) -> None:
    # Far more queues move between two commits than one commit takes, and there is work for long enough that a slow
    # machine, too, sees all queues committed before they come to rest.
    queues, each = 400, 200
    topic, recorder = make_topic(queues=queues), Recorder(seconds=0.005)
    for queue in range(queues):
        await stage.fill(topic, queue, each)
    # Only what is committed soon counts here, not what is committed every now and then.
    await joined(stage, group, topic, recorder, "m1", persist_interval=3600.0)

    async def all_have_had_their_turn() -> bool:
        return all([bool(await stage.committed(group, topic, queue)) for queue in range(queues)])

    await until(all_have_had_their_turn, "every queue is committed")
    # Not only when the others have come to rest.
    assert len(recorder.calls) < queues * each, "while all of them are busy"


async def test_two_members_that_are_frozen_side_by_side_are_both_watched(
    stage: Scene, make_topic: Topics, group: str
) -> None:
    topic, recorder = make_topic(queues=3), Recorder()
    quick = {"lock_lives": 9.0, "lock_interval": 3.0, "heartbeat_interval": 9.0}
    members = [await joined(stage, group, topic, recorder, f"m{n}", **quick) for n in range(3)]
    await settled(*members)

    def silent(member: Consumer) -> None:
        """It renews no lock and answers nobody, as if it were stopped; its connection stays."""
        for task in member._timers._timers.values():
            task.cancel()
        member._parts.answers.close()

        async def never(_peer: str, _command: Command) -> Command | None:
            await asyncio.sleep(3600)
            return None

        member._cleanups.append(member._client.remoting.on_request(RequestCode.GET_CONSUMER_RUNNING_INFO, never))

    for member in members[:2]:
        silent(member)
    await until(lambda: len(of_topic(members[2], topic)) == 3, "the third takes care of both", 90.0)
    ids = await broker_members.consumer_ids(stage.client.remoting, stage.address, group)
    assert len(ids) == 3, "the broker still lists them all"
