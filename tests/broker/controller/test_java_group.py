"""A group of Java consumers (engine Container): the same planner, its owners read through the broker."""

from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene
from tests.broker.java_main import JavaPrograms

from rocketfleet.api.status import ConditionType, Truth


async def test_a_group_of_java_consumers_grows_and_shrinks(
    broker: Cluster, topic: str, java: JavaPrograms, tmp_path: Path
) -> None:
    async with GroupScene(broker, topic, tmp_path, engine="Container", worker=None) as scene:
        arguments = [
            "$(ROCKETFLEET_NAME_SERVERS)",
            "$(ROCKETFLEET_GROUP)",
            "$(ROCKETFLEET_TOPICS)",
            "$(POD_NAME)-$(POD_UID)",
            f"{scene.record}/$(POD_NAME)-$(POD_UID).jsonl",
            "5",
            "false",
        ]
        scene.container |= {"image": "theirs", "command": java.command("GroupMember.java", arguments)}

        def shares() -> list[int | None]:
            return [member.queues for member in scene.status.members or () if member.client_id]

        scene.apply(replicas=1)
        await scene.ready(1)
        await scene.until(lambda: shares() == [8], "the one member has all")
        scene.begin_traffic()
        scene.apply(replicas=2)
        await scene.until(lambda: shares() == [4, 4], "two members share")
        await scene.ready(2)
        assert scene.condition(ConditionType.BALANCED) is Truth.TRUE
        await scene.some_traffic()
        scene.apply(replicas=1)
        await scene.until(lambda: shares() == [8], "the one that is left has all")
        await scene.ready(1)
        await scene.some_traffic()
        assert not (await scene.verdict()).lost
