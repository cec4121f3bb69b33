"""A broker that is killed forgets its locks, its members and its last seconds of offsets; a member that is killed gives
nothing back. Real processes, killed for real.
"""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Scene as Stage
from tests.broker.consumer.scene import of_topic, until
from tests.broker.handover.faults import Recorder, cut, for_a_while
from tests.broker.handover.scene import Scene

from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.wire.enums import ConsumeFromWhere

MODES = ["Concurrent", "Orderly"]


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_broker_forgot_is_told_to_it_again(
    broker: Cluster, topic: str, group: str, tmp_path: Path, mode: str
) -> None:
    async with Scene(broker.name_server, topic, group, tmp_path, mode=mode) as stage:
        members = stage.start(), stage.start()
        await stage.settled(*members)
        await stage.some_traffic(300)
        verdict = await stage.verdict()
        assert (len(verdict.lost), len(verdict.repeated)) == (0, 0)
        handled = len([event for event in stage.events if event["event"] == "finish"])
        broker.kill()  # within seconds of the last commit, which it has not saved
        await asyncio.to_thread(broker.restart)
        await stage.settled(*members)

        async def told() -> bool:
            return await stage.committed() == await stage.ends()

        # Nothing is sent any more: without being told again the broker would never know.
        await until(told, "the broker knows every offset again")
        members[0].send(signal.SIGKILL)
        await stage.settled(members[1])
        await for_a_while(2.0)
        assert len([event for event in stage.events if event["event"] == "finish"]) == handled, "nothing comes again"
        await stage.stop_all()


async def test_the_only_member_is_killed_and_another_started(
    broker: Cluster, topic: str, group: str, tmp_path: Path
) -> None:
    async with Scene(broker.name_server, topic, group, tmp_path) as stage:
        first = stage.start()
        await stage.settled(first)
        await stage.some_traffic(50)
        first.send(signal.SIGKILL)
        first.process.wait()
        second = stage.start()
        # Far less than the minute for which the broker keeps the locks.
        await stage.settled(second, patience=25.0)
        verdict = await stage.verdict()
        assert not verdict.lost
        await stage.stop_all()


async def test_a_member_dies_and_another_joins_in_the_same_moment(
    broker: Cluster, topic: str, group: str, tmp_path: Path
) -> None:
    """The survivor knows the dead one but is not given its queues; the newcomer is, and knows nobody."""
    async with Scene(broker.name_server, topic, group, tmp_path, strategy="AVG") as stage:
        members = stage.start(), stage.start()
        await stage.settled(*members)
        newcomer = stage.start()
        await stage.until(lambda: bool(newcomer.events), "it is on its way")
        members[0].send(signal.SIGKILL)
        await stage.settled(members[1], newcomer, patience=25.0)
        verdict = await stage.verdict()
        assert not verdict.lost
        await stage.stop_all()


@pytest.mark.parametrize("where", [ConsumeFromWhere.LAST_OFFSET])
async def test_a_member_is_killed_in_the_first_seconds_of_its_group(
    broker: Cluster, topic: str, group: str, tmp_path: Path, where: ConsumeFromWhere
) -> None:
    async with Scene(broker.name_server, topic, group, tmp_path, where=where, rate=1000.0) as stage:
        await stage.some_traffic(100)
        await stage.stop_traffic()
        members = stage.start(), stage.start()
        await stage.settled(*members)
        history = set(stage.sent)
        stage.resume_traffic()
        await stage.some_traffic(60)
        members[0].send(signal.SIGKILL)
        await stage.some_traffic(60)
        await stage.stop_traffic()
        sent = set(stage.sent) - history

        def finished() -> set[str]:
            return {event["id"] for event in stage.events if event["event"] == "finish"}

        await stage.until(lambda: sent <= finished(), "all that was sent since it began is handled")
        assert not finished() & history, "and nothing of what was there before"


async def joined(stage: Stage, group: str, topic: str, recorder: Recorder, name: str, **settings: Any) -> Consumer:
    client = {"timeout": 5.0, "client_id": f"{group}-{name}"}
    return await stage.member(group, topic, recorder.handler(name), client=client, **settings)


async def test_a_newcomer_at_a_broker_that_has_just_started(
    broker: Cluster, stage: Stage, make_topic: Callable[..., str], group: str
) -> None:
    """The others are not back yet, and their handlers run: it must not take their queues."""
    topic, recorder = make_topic(queues=4), Recorder(seconds=9.0)
    orderly = {"consume_mode": ConsumeMode.ORDERLY, "drain_timeout": 20.0}
    members = [await joined(stage, group, topic, recorder, name, **orderly) for name in ("m1", "m2")]
    await until(lambda: all(member.ready for member in members))
    for queue in range(4):
        await stage.send(topic, f"n{queue}", queue=queue)
    await until(lambda: recorder.running() == 4)
    broker.kill()
    for member in members:
        cut(member, stage.address, 600.0)
    await asyncio.to_thread(broker.restart)
    for member in members:
        cut(member, stage.address, 3.0)
    third = await joined(stage, group, topic, recorder, "m3", **orderly)
    await until(lambda: all(len(of_topic(member, topic)) >= 1 for member in (*members, third)), "all have their share")
    await until(lambda: not recorder.running())
    await for_a_while(1.0)
    assert recorder.overlaps() == []
    assert recorder.repeated() == {}
