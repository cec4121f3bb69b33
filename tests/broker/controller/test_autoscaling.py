"""A group that is scaled by its lag, on a real broker under live traffic: out, in by drain, to nothing and back."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene

from rocketfleet.client.config import ClientConfig
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.devbroker.topics import create_topic
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

TARGET = 40.0
AUTOSCALING: dict[str, Any] = {
    "minReplicas": 0,
    "maxReplicas": 4,
    "targetSeconds": TARGET,
    "scaleOutAfterSeconds": 3,
    "scaleInAfterSeconds": 15,
    "scaleToZeroAfterSeconds": 15,
    "trialSeconds": 20,
}
SLOW: dict[str, Any] = {"consume": {"threads": 1}}  # one at a time: a member does some forty a second
PATIENCE = 120.0


def scaled(scene: GroupScene, replicas: int) -> bool:
    status = scene.status
    return status.desired_replicas == status.ready_replicas == status.replicas == replicas


async def watch_age(scene: GroupScene, ages: list[float]) -> None:
    """Note how long the oldest message has waited, at every look."""
    last = None
    while True:
        figures = scene.monitor.latest(scene.key)
        if figures is not None and figures is not last and figures.seconds is not None:
            ages.append(figures.seconds)
        last = figures
        await asyncio.sleep(0.2)


async def test_a_load_step_scales_out_in_time_in_by_drain_to_nothing_and_back(
    broker: Cluster, topic: str, tmp_path: Path
) -> None:
    async with GroupScene(broker, topic, tmp_path, replicas=None, autoscaling=AUTOSCALING, **SLOW) as scene:
        scene.environment["ROCKETFLEET_DEMO_HANDLER_SECONDS"] = "0.025"
        scene.apply()
        await scene.until(lambda: scene.status.observed_generation == 1 and scene.status.replicas == 0, "it is there")
        scene.rate = 15
        scene.begin_traffic()
        ages: list[float] = []
        watching = asyncio.create_task(watch_age(scene, ages))
        await scene.until(lambda: scaled(scene, 1), "the first member comes", PATIENCE)
        assert EventReason.SCALED_FROM_ZERO in scene.reasons()

        scene.rate = 110
        await scene.until(lambda: scaled(scene, 4), "it scales out", PATIENCE)
        await scene.until(lambda: (scene.run.lag(scene.key) or 10**6) < 1000, "it catches up", PATIENCE)
        assert max(ages) < TARGET, ages

        scene.rate = 15
        await scene.until(lambda: scaled(scene, 1), "it scales in", PATIENCE)
        drained = scene.reasons().count(EventReason.DRAINED)
        assert drained == 3
        assert scene.status.last_drain is not None
        assert scene.status.last_drain.verified

        scene.rate = 0
        await scene.until(lambda: scaled(scene, 0), "nobody is left", PATIENCE)
        assert EventReason.SCALED_TO_ZERO in scene.reasons()
        scene.rate = 15
        await scene.until(lambda: scaled(scene, 1), "the first is back", PATIENCE)
        await scene.some_traffic(30)
        watching.cancel()
        verdict = await scene.verdict()
        assert not verdict.lost, scene.describe()
        assert not verdict.repeated, f"{verdict}\n{scene.describe()}"
        scaling = scene.status.autoscaling
        assert scaling is not None
        assert scaling.decisions is not None
        assert [one.replicas for one in scaling.decisions][:2] == [1, 0]
        assert all(one.message for one in scaling.decisions)


async def test_with_the_broker_stopped_the_group_stays_as_it_is(broker: Cluster, topic: str, tmp_path: Path) -> None:
    quick = AUTOSCALING | {"scaleInAfterSeconds": 3, "scaleToZeroAfterSeconds": 3, "minReplicas": 0}
    async with GroupScene(broker, topic, tmp_path, replicas=None, autoscaling=quick, **SLOW) as scene:
        scene.environment["ROCKETFLEET_DEMO_HANDLER_SECONDS"] = "0.025"
        scene.rate = 110
        scene.begin_traffic()
        scene.apply()
        await scene.until(lambda: scene.status.desired_replicas >= 2, "it scales out", PATIENCE)
        await scene.until(lambda: scene.status.ready_replicas == scene.status.desired_replicas, "all are there")
        replicas, uids = scene.status.desired_replicas, {member.uid for member in scene.members}
        told = len(scene.events)
        broker.pause()
        scene.run.wake(scene.key)

        def held() -> bool:
            scaling = scene.status.autoscaling
            return scaling is not None and scaling.reason == "NoFigures"

        await scene.until(held, "it is said that there are no figures", PATIENCE)
        since = scene.monitor.swept_at or 0.0
        # Much longer than any window of the policy.
        await scene.until(lambda: (scene.monitor.swept_at or 0.0) > since + 15, "many looks in vain", PATIENCE)
        assert scene.status.desired_replicas == replicas
        assert {member.uid for member in scene.members} == uids
        changes = {
            EventReason.SCALED_IN,
            EventReason.SCALED_OUT,
            EventReason.SCALED_TO_ZERO,
            EventReason.SCALE_OUT_UNDONE,
        }
        assert not changes & {event.reason for event in scene.events[told:]}
        broker.resume()
        verdict = await scene.verdict()
        assert not verdict.lost


async def test_a_topic_that_grows_while_nobody_is_there_wakes_the_group_by_its_new_queues(
    broker: Cluster, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic(queues=1)
    asleep = {"replicas": None, "autoscaling": AUTOSCALING, "consumeFromWhere": "LastOffset"}
    async with GroupScene(broker, topic, tmp_path, **asleep) as scene:
        scene.apply()
        await scene.until(lambda: scene.status.lag is not None and scene.status.lag.messages == 0, "its lag is known")
        create_topic(broker, topic, 2)

        async with Producer(ClientConfig(broker.name_server), scene.name) as producer:
            await producer.send(Message(topic, b"k0:0"), queue=MessageQueue(topic, "broker-a", 1))
        scene.sent.append("k0:0")
        await scene.until(lambda: scaled(scene, 1), "the first member comes", PATIENCE)
        assert EventReason.SCALED_FROM_ZERO in scene.reasons()
        assert not (await scene.verdict()).lost
