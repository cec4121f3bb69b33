"""Java and Python members in one group (Eager): one owner a queue after join, leave and kill, and nothing lost."""

import signal
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.handover.scene import HANDLER_SECONDS, Member, Scene
from tests.broker.java_main import JavaPrograms


def start_java(
    stage: Scene, java: JavaPrograms, broker: Cluster, topic: str, directory: Path, name: str, mode: str
) -> Member:
    arguments = [
        broker.name_server,
        stage.group,
        topic,
        name,
        str(directory / f"{name}.jsonl"),
        str(int(HANDLER_SECONDS * 1000)),
        str(mode == "Orderly").lower(),
    ]
    return stage.start_java(java.command("GroupMember.java", arguments), name)


@pytest.mark.parametrize("mode", ["Concurrent", "Orderly"])
async def test_a_group_of_java_and_python_members(
    broker: Cluster, topic: str, group: str, java: JavaPrograms, tmp_path: Path, mode: str
) -> None:
    async with Scene(broker.name_server, topic, group, tmp_path, mode=mode, handover="Eager", rate=100.0) as stage:
        ours = stage.start()
        await stage.settled(ours)
        theirs = start_java(stage, java, broker, topic, tmp_path, "java-1", mode)
        await stage.each_queue_has_one_owner(members=2)
        await stage.some_traffic(100)

        second = stage.start()
        await stage.each_queue_has_one_owner(members=3)
        await stage.some_traffic(100)
        second.send(signal.SIGTERM)
        await stage.each_queue_has_one_owner(members=2)

        # Java's dead lock is ours to release, and ours is not Java's: it waits for its locks to end.
        theirs.send(signal.SIGKILL)
        await stage.each_queue_has_one_owner(members=1)
        await stage.some_traffic(100)
        another = start_java(stage, java, broker, topic, tmp_path, "java-2", mode)
        await stage.each_queue_has_one_owner(members=2)
        another.send(signal.SIGTERM)
        await stage.each_queue_has_one_owner(members=1)
        verdict = await stage.verdict()
        assert not verdict.lost
