"""A group from its manifest to its deletion, under traffic: nothing lost, nothing repeated, keys in order."""

from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene

from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.controller.planning.actions import EventReason


async def test_a_group_grows_shrinks_is_updated_suspended_and_deleted(
    broker: Cluster, topic: str, tmp_path: Path
) -> None:
    async with GroupScene(broker, topic, tmp_path, consumeMode="Orderly") as scene:
        scene.begin_traffic()
        scene.apply(replicas=2)
        await scene.ready(2)
        assert scene.status.queues is not None
        assert (scene.status.queues.total, scene.status.queues.owned) == (8, 8)
        await scene.some_traffic()

        scene.apply(replicas=4)
        await scene.ready(4)
        shares = [member.queues or 0 for member in scene.status.members or ()]
        assert sum(shares) == 8
        assert max(shares) <= 3  # there is the retry topic's queue, too
        await scene.some_traffic()

        scene.apply(replicas=1)
        await scene.ready(1)
        assert [member.ordinal for member in scene.members] == [0]
        assert scene.status.last_drain is not None
        assert scene.status.last_drain.verified
        assert scene.reasons().count(EventReason.DRAINED) == 3
        await scene.some_traffic()

        scene.apply(replicas=2, consume={"threads": 3})
        await scene.ready(2)
        assert {member.revision for member in scene.members} == {scene.status.revision}

        scene.apply(suspend=True)
        await scene.until(lambda: not scene.members, "all members are drained")
        await scene.some_traffic(20)
        scene.apply(suspend=False)
        await scene.ready(2)

        verdict = await scene.verdict()
        assert verdict.good, f"{verdict}\n{scene.describe()}"
        scene.delete()
        await scene.until(lambda: scene.group is None, "the object is gone")
        assert scene.members == []
        assert await scene.at_the_end()
        assert not [event for event in scene.events if event.warning], scene.describe()


async def test_edited_code_is_rolled_out_under_traffic_and_missing_code_is_said(
    broker: Cluster, topic: str, tmp_path: Path
) -> None:
    loaded = tmp_path / "loaded"
    loaded.touch()

    def code(version: str) -> dict[tuple[str, str], dict[str, str]]:
        """The demonstration's handler; each process that loads it says which version it got."""
        text = f"""
import os
from rocketfleet.demo.handler import handle
with open(os.environ["LOADED"], "a") as file:
    file.write("{version}\\n")
"""
        return {("default", "code"): {"versioned.py": text}}

    worker = {"handler": "versioned:handle", "codeConfigMap": "code"}
    async with GroupScene(broker, topic, tmp_path, worker=worker) as scene:
        scene.environment["LOADED"] = str(loaded)
        scene.begin_traffic()
        scene.apply()
        await scene.until(lambda: EventReason.CONFIG_MAP_MISSING in scene.reasons(), "the ConfigMap is missed")
        assert scene.members == []
        scene.config_maps = code("one")
        scene.apply()
        await scene.ready(2)
        first = scene.status.code_revision
        await scene.some_traffic()

        scene.config_maps = code("two")
        scene.apply()
        await scene.until(lambda: scene.status.code_revision not in (None, first), "all members have the new code")
        await scene.ready(2)
        assert loaded.read_text().split() == ["one", "one", "two", "two"]
        verdict = await scene.verdict()
        assert verdict.good, f"{verdict}\n{scene.describe()}"


async def test_a_deletion_under_load_drains_first(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path, consumeMode="Concurrent") as scene:
        scene.begin_traffic()
        scene.apply(replicas=2)
        await scene.ready(2)
        await scene.some_traffic()
        scene.delete()
        await scene.until(lambda: scene.group is None, "the object is gone")
        assert scene.reasons().count(EventReason.DRAINED) == 2
        assert scene.judged().repeated == frozenset()

        scene.apply(replicas=1)
        await scene.ready(1)
        verdict = await scene.verdict()
        assert (len(verdict.lost), len(verdict.repeated)) == (0, 0), f"{verdict}\n{scene.describe()}"


async def test_more_members_than_queues_are_not_started(broker: Cluster, tmp_path: Path) -> None:
    topic = broker.create_topic(2)
    async with GroupScene(broker, topic, tmp_path) as scene:
        scene.apply(replicas=5)
        await scene.ready(2)
        assert scene.status.desired_replicas == 2


async def test_a_topic_that_does_not_exist_is_said_and_waited_for(broker: Cluster, tmp_path: Path) -> None:
    async with GroupScene(broker, "no-such-topic", tmp_path) as scene:
        scene.apply(replicas=1)
        await scene.until(lambda: scene.status.state == "TopicNotFound", "it is said")
        assert scene.condition(ConditionType.READY) is Truth.FALSE
        assert scene.condition(ConditionType.BROKER_REACHABLE) is Truth.TRUE, "the name server has answered"
        assert "no-such-topic" in scene.describe()
        assert scene.members == []
