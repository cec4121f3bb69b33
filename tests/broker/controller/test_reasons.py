"""Why a group is not ready, on real brokers: a topic that nobody has created, rights that nobody has given."""

from collections.abc import Callable
from pathlib import Path

from tests.broker.cluster import Cluster, unique
from tests.broker.controller.scene import GroupScene

from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.devbroker.topics import create_topic


async def test_a_topic_that_nobody_has_created_is_said_and_waited_for(broker: Cluster, tmp_path: Path) -> None:
    topic = unique("late")
    async with GroupScene(broker, topic, tmp_path) as scene:
        scene.apply(replicas=2)
        await scene.until(lambda: scene.status.state == "TopicNotFound", "it is said that the topic is missing")
        assert scene.condition(ConditionType.BROKER_REACHABLE) is Truth.TRUE
        assert scene.status.ready_summary == "0/2"
        assert EventReason.TOPIC_NOT_FOUND in scene.reasons()
        assert EventReason.UNREACHABLE not in scene.reasons()
        create_topic(broker, topic, 4)
        await scene.ready(2)
        assert scene.status.state == "Ready"


async def test_brokers_that_ask_for_credentials_are_reachable(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(acl=True)
    async with GroupScene(cluster, cluster.create_topic(), tmp_path) as scene:
        scene.apply(replicas=1)
        await scene.until(lambda: scene.status.state == "NoPermission", "it is said that rights are missing")
        assert scene.condition(ConditionType.BROKER_REACHABLE) is Truth.TRUE
        assert EventReason.NO_PERMISSION in scene.reasons()
        assert EventReason.UNREACHABLE not in scene.reasons()
        ready = next(one for one in scene.status.conditions or () if one.type is ConditionType.READY)
        assert "spec.cluster.credentials" in ready.message
