"""A group of Java consumers (engine Container): the same planner, its owners read through the broker.

Java's members hand queues over with a few repetitions; that is theirs. What is asked here is ours: nothing is lost, no
step of an update is taken before the member of the last one is there, and in the end the offsets at the broker are
right, and neither a member nor a lock is left.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene
from tests.broker.java_main import JavaPrograms

from rocketfleet.api.status import ConditionType, Truth

STARTS = 100.0  # JVMs on few cores; and Java's members share queues out by themselves, at the latest after 20 s


@pytest.mark.parametrize("mode", ["Concurrent", "Orderly"])
async def test_java_consumers_are_scaled_rolled_and_drained(
    broker: Cluster, topic: str, java: JavaPrograms, tmp_path: Path, mode: str
) -> None:
    eager = {"handover": "Eager"}
    async with GroupScene(
        broker, topic, tmp_path, engine="Container", worker=None, consumeMode=mode, rebalance=eager
    ) as scene:
        arguments = [
            "$(ROCKETFLEET_NAME_SERVERS)",
            "$(ROCKETFLEET_GROUP)",
            "$(ROCKETFLEET_TOPICS)",
            "$(POD_NAME)-$(POD_UID)",
            f"{scene.record}/$(POD_NAME)-$(POD_UID).jsonl",
            "5",
            str(mode == "Orderly").lower(),
        ]
        scene.container |= {"image": "theirs", "command": java.command("GroupMember.java", arguments)}

        scene.apply(replicas=1)
        await shared_out(scene, [8])
        scene.begin_traffic()
        scene.apply(replicas=3)
        await shared_out(scene, [2, 3, 3])
        assert scene.condition(ConditionType.BALANCED) is Truth.TRUE
        await scene.some_traffic()

        before = {member.uid for member in scene.members}
        async with fewest_members(scene) as fewest:
            scene.environment["RELEASE"] = "2"
            scene.apply()
            await scene.until(lambda: not before & {member.uid for member in scene.members}, "all are new", STARTS)
            await shared_out(scene, [2, 3, 3])
        assert min(fewest) == 2, f"an update takes one member away at a time, there were {min(fewest)}"
        await scene.some_traffic()

        # Members that leave together lock each other's queues on their way out. Such a lock would last for 60 s.
        scene.apply(replicas=1)
        await shared_out(scene, [8], patience=40.0)
        await scene.some_traffic()
        verdict = await scene.verdict()
        print(f"{mode}: {verdict}")
        assert not verdict.lost
        assert mode == "Concurrent" or not verdict.out_of_order

        scene.delete()
        await scene.until(lambda: scene.group is None, "the object is gone")
        assert not scene.members
        assert await scene.at_the_end(), "offsets, or members"
        assert await scene.locked() == []


async def test_a_consumer_that_never_joins_is_not_ready_and_holds_an_update(
    broker: Cluster, topic: str, java: JavaPrograms, tmp_path: Path
) -> None:
    async with GroupScene(broker, topic, tmp_path, engine="Container", worker=None) as scene:
        common = ["$(ROCKETFLEET_TOPICS)", "$(POD_NAME)-$(POD_UID)", f"{scene.record}/$(POD_UID).jsonl", "5", "false"]
        right = java.command("GroupMember.java", ["$(ROCKETFLEET_NAME_SERVERS)", "$(ROCKETFLEET_GROUP)", *common])
        wrong = java.command("GroupMember.java", ["$(ROCKETFLEET_NAME_SERVERS)", f"{scene.name}-not-it", *common])
        scene.container |= {"image": "theirs", "command": right}
        scene.apply(replicas=2)
        await shared_out(scene, [4, 4])
        first = {member.ordinal: member.uid for member in scene.members}

        scene.container |= {"command": wrong}
        scene.apply()

        def waits() -> bool:
            ready = next(one for one in scene.status.conditions or () if one.type is ConditionType.BALANCED)
            return ready.status is Truth.FALSE and ready.reason == "MembersJoining"

        await scene.until(waits, "it is said that a member is missing", STARTS)
        assert scene.condition(ConditionType.READY) is Truth.FALSE
        assert next(member.uid for member in scene.members if member.ordinal == 0) == first[0]

        scene.container |= {"command": right}
        scene.apply()
        await shared_out(scene, [4, 4])
        assert next(member.uid for member in scene.members if member.ordinal == 0) == first[0], "it was right all along"


async def shared_out(scene: GroupScene, shares: list[int], patience: float = STARTS) -> None:
    """Wait until so many members have so many queues each, by what the broker told the operator."""

    def is_so() -> bool:
        found = [member.queues or 0 for member in scene.status.members or () if member.client_id]
        return sorted(found) == shares

    await scene.until(is_so, f"the queues are shared out as {shares}", patience)
    await scene.ready(len(shares))


@contextlib.asynccontextmanager
async def fewest_members(scene: GroupScene) -> AsyncIterator[list[int]]:
    """How many members the broker has seen, again and again."""
    counts: list[int] = []

    async def count() -> None:
        while True:
            counts.append(len(await scene.member_ids()))
            await asyncio.sleep(0.05)

    counting = asyncio.create_task(count())
    try:
        yield counts
    finally:
        counting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await counting
