"""What the rules say of live groups: a handler that hangs, one key with most of the traffic, members that are gone."""

from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene

from rocketfleet.api.status import Condition, ConditionType, Truth
from rocketfleet.controller.planning.actions import EventReason

PATIENCE = 90.0


def health(scene: GroupScene) -> Condition | None:
    return next((one for one in scene.status.conditions or () if one.type is ConditionType.LAG_HEALTHY), None)


async def state(scene: GroupScene, reason: str) -> Condition:
    def is_so() -> bool:
        found = health(scene)
        return found is not None and found.reason == reason

    await scene.until(is_so, f"LagHealthy says {reason}", PATIENCE)
    found = health(scene)
    assert found is not None
    return found


async def test_a_handler_that_hangs_is_stalled_and_recovers(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path, shutdown={"drainTimeoutSeconds": 1}) as scene:
        scene.environment["ROCKETFLEET_DEMO_HANDLER_SECONDS"] = "3600"
        scene.begin_traffic()
        scene.apply(replicas=2)
        found = await state(scene, "Stalled")
        assert found.status is Truth.FALSE
        assert "stood still" in found.message
        assert EventReason.LAG_STALLED in scene.reasons()
        assert scene.status.lag is not None
        assert scene.status.lag.state == "STALLED"
        scene.rate = 0
        scene.environment["ROCKETFLEET_DEMO_HANDLER_SECONDS"] = "0"
        scene.apply()
        assert (await state(scene, "Consuming")).status is Truth.TRUE
        assert EventReason.LAG_RECOVERED in scene.reasons()


FAILING = """\
import os

def handle(message):
    if os.environ["BROKEN"] == "yes":
        raise RuntimeError("as planned")
"""


async def test_a_handler_that_fails_every_message_is_failing_and_recovers(
    broker: Cluster, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    async with GroupScene(broker, topic, tmp_path, worker={"handler": "failing:handle"}) as scene:
        scene.environment["BROKEN"] = "yes"
        scene.apply(replicas=2)
        await scene.ready(2)
        scene.rate = 20
        scene.begin_traffic()
        found = await state(scene, "Failing")
        assert found.status is Truth.FALSE
        assert "the handlers failed in" in found.message.lower()
        assert EventReason.LAG_FAILING in scene.reasons()
        scene.rate = 0
        lag = scene.status.lag
        assert lag is not None
        assert (lag.state, lag.failed_per_minute) == ("FAILING", lag.tried_per_minute)
        assert scene.status.state == "Failing"
        delayed = lambda: scene.status.lag is not None and (scene.status.lag.delayed or 0) > 0  # noqa: E731 - short
        await scene.until(delayed, "it is said how many wait for their next try", PATIENCE)
        scene.environment["BROKEN"] = "no"
        scene.apply()
        scene.rate = 20
        assert (await state(scene, "Consuming")).status is Truth.TRUE
        assert EventReason.LAG_RECOVERED in scene.reasons()
        await scene.until(lambda: scene.status.state == "Ready", "it is ready, and all is well")


async def test_one_key_with_most_of_the_traffic_is_skewed(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path, consume={"threads": 1}) as scene:
        scene.environment["ROCKETFLEET_DEMO_HANDLER_SECONDS"] = "0.05"
        scene.hot, scene.rate = 0.9, 100
        scene.apply(replicas=2)
        await scene.ready(2)
        scene.begin_traffic()
        await scene.until(
            lambda: EventReason.LAG_SKEWED in scene.reasons(), "it is said, while the lag grows", PATIENCE
        )
        await scene.until(lambda: (scene.run.lag(scene.key) or 0) > 600, "much waits", PATIENCE)
        scene.rate = 2
        assert (await state(scene, "Skewed")).status is Truth.TRUE  # it is consumed, only unevenly
        event = next(one for one in scene.events if one.reason is EventReason.LAG_SKEWED)
        assert topic in event.message


async def test_members_that_are_gone_leave_the_group_stopped(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path) as scene:
        scene.apply(replicas=1)
        await scene.ready(1)
        scene.begin_traffic()
        await scene.some_traffic()
        scene.apply(worker={"handler": "rocketfleet.demo.handler:gone"})
        found = await state(scene, "Stopped")
        assert found.status is Truth.FALSE
        assert "no member" in found.message
        assert EventReason.LAG_STOPPED in scene.reasons()
        scene.rate = 0
        scene.apply(worker={"handler": "rocketfleet.demo.handler:handle"})
        assert (await state(scene, "Consuming")).status is Truth.TRUE
        verdict = await scene.verdict()
        assert not verdict.lost
        assert not verdict.repeated
