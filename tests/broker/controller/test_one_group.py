"""Who else is in a group: members that subscribe to something else are named, and of two objects one has the group."""

from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene

from rocketfleet.api.checking import read_object
from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.api.names import API_VERSION, KIND
from rocketfleet.api.status import Condition, ConditionType, Truth
from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.controller.local.manifests import DesiredObjects
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.wire.message import ReceivedMessage


def handle(message: ReceivedMessage) -> None:
    """It does not matter here."""


def consistent(scene: GroupScene) -> Condition | None:
    kind = ConditionType.SUBSCRIPTIONS_CONSISTENT
    return next((one for one in scene.status.conditions or () if one.type is kind), None)


def is_now(scene: GroupScene, status: Truth) -> bool:
    found = consistent(scene)
    return found is not None and found.status is status


async def test_a_guest_that_subscribes_to_something_else_is_named(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path, replicas=1) as scene:
        scene.apply()
        await scene.ready(1)
        await scene.until(lambda: is_now(scene, Truth.TRUE), "all agree")
        settings = ConsumerSettings(scene.name, (Subscription(topic, "paid"),), drain_timeout=1.0)
        async with Consumer(ClientConfig(broker.name_server, client_id="the-guest"), settings, handle):
            await scene.until(lambda: is_now(scene, Truth.FALSE), "it is said")
            await scene.until(
                lambda: f"the-guest wants paid of {topic}, the manifest says *" in str(consistent(scene)), "it is named"
            )
            assert EventReason.SUBSCRIPTIONS_DIFFER in scene.reasons()
        scene.apply(consume={"threads": 2})  # until a member subscribes anew the broker has the guest's word
        await scene.until(lambda: is_now(scene, Truth.TRUE), "all agree again")


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
async def test_of_two_objects_the_older_has_the_group_and_then_the_other(
    broker: Cluster, topic: str, tmp_path: Path, policy: str
) -> None:
    async with GroupScene(broker, topic, tmp_path, replicas=2) as scene:
        scene.begin_traffic()
        scene.apply()
        await scene.ready(2)
        first = scene.group
        assert first is not None
        spec = first.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        spec |= {"groupName": scene.name, "replicas": 1, "deletionPolicy": policy}
        raw = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "second"}, "spec": spec}
        second, key = read_object(raw), GroupKey("default", "second")
        scene.run.apply(DesiredObjects({scene.key: (first, tmp_path), key: (second, tmp_path)}))

        def says_taken() -> bool:
            held = scene.run.backend.objects.get(key)
            status = None if held is None else held.group.status
            return status is not None and any(one.reason == "GroupTaken" for one in status.conditions or ())

        await scene.until(says_taken, "the younger one says so")
        await scene.some_traffic()
        assert {member.name for member in scene.members} == {f"{scene.name}-0", f"{scene.name}-1"}
        scene.run.apply(DesiredObjects({scene.key: (first, tmp_path)}))
        await scene.until(lambda: scene.run.backend.objects.get(key) is None, "the younger one is gone")
        await scene.some_traffic()
        assert scene.condition(ConditionType.READY) is Truth.TRUE

        scene.run.apply(DesiredObjects({scene.key: (first, tmp_path), key: (second, tmp_path)}))
        await scene.until(says_taken, "the younger one says so")
        scene.run.apply(DesiredObjects({key: (second, tmp_path)}))
        await scene.until(lambda: scene.group is None, "the older one is gone")
        await scene.until(
            lambda: [member.name for member in scene.members if member.ready] == ["second-0"], "the other takes over"
        )
        verdict = await scene.verdict()
        assert (len(verdict.lost), len(verdict.repeated)) == (0, 0), f"{verdict}\n{scene.describe()}"
