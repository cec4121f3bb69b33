"""Engine Spark of a ConsumerGroup on this machine, with a real broker and a real Spark: its life, and its failures."""

import asyncio
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.spark.engine_scene import PATIENCE, EngineScene

from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.wire.message import ReceivedMessage

QUEUES = 3


@pytest.mark.timeout(1800)
async def test_a_spark_group_runs_is_updated_suspended_and_deleted_under_load(broker: Cluster, tmp_path: Path) -> None:
    async with EngineScene(broker, broker.create_topic(QUEUES), tmp_path) as scene:
        scene.begin_traffic()
        scene.apply()
        await scene.runs()
        queues = scene.status.queues
        assert queues is not None
        assert (queues.total, queues.owned) == (QUEUES, QUEUES)
        (member,) = scene.status.members or []
        assert member.queues == QUEUES
        assert await scene.member_ids() == (member.client_id,), "mqadmin sees it too"
        await scene.until(lambda: bool(scene.sunk()), "something is in the sink", PATIENCE)
        await scene.until(lambda: scene.status.lag is not None, "the lag is read")

        scene.change(trigger="1 second")
        await scene.until(
            lambda: scene.reasons().count(EventReason.DRAINED) == 1, "the first driver is drained", PATIENCE
        )
        assert await scene.committed() == scene.stands(), "the broker is told exactly what the sink has"
        await scene.runs()
        assert scene.status.last_drain is not None
        assert scene.status.last_drain.verified
        await scene.some_traffic(300)
        await scene.until(lambda: scene.status.spark is not None, "progress is shown")

        scene.apply(suspend=True)
        await scene.until(lambda: not scene.members, "the driver is drained", PATIENCE)
        assert await scene.committed() == scene.stands()
        assert await scene.member_ids() == ()
        scene.apply(suspend=False)
        await scene.runs()

        await scene.some_traffic(300)
        scene.delete()
        await scene.until(lambda: scene.group is None, "the object is gone", PATIENCE)
        assert await scene.committed() == scene.stands(), "deleted under load, between two batches"
        assert await scene.member_ids() == ()
        assert scene.reasons().count(EventReason.DRAINED) == 3
        assert not scene.troubles(), scene.describe()

        scene.apply()
        await scene.runs()
        await scene.end_traffic()
        await scene.until(scene.sent_is_sunk, "all that was sent is in the sink", PATIENCE)
        sunk = scene.sunk()
        # The traffic ends in the middle of a send: that one may be stored without having been noted as sent.
        assert len(set(sunk) - set(scene.sent)) <= 1
        assert not [one for one, times in sunk.items() if times > 1], "nothing is repeated"
        scene.delete()
        await scene.until(lambda: scene.group is None, "the object is gone", PATIENCE)
        assert await scene.at_the_end()


@pytest.mark.timeout(1800)
async def test_executors_are_processes_of_this_machine_and_can_be_scaled(broker: Cluster, tmp_path: Path) -> None:
    """Master k8s without a cluster: the same manifest, with executors beside the driver."""
    async with EngineScene(broker, broker.create_topic(QUEUES), tmp_path, master="k8s", executors=1) as scene:

        def has_executors(number: int) -> bool:
            return scene.status.spark is not None and scene.status.spark.executors == number

        scene.begin_traffic()
        scene.apply()
        await scene.runs()
        await scene.until(lambda: has_executors(1), "one executor", PATIENCE)
        first = scene.members[0].uid
        scene.change(executors=2)
        await scene.until(lambda: EventReason.DRAINED in scene.reasons(), "the first driver is drained", PATIENCE)
        assert await scene.committed() == scene.stands()
        await scene.runs()
        assert scene.members[0].uid != first
        await scene.until(lambda: has_executors(2), "two executors", PATIENCE)
        await scene.end_traffic()
        await scene.until(scene.sent_is_sunk, "all that was sent is in the sink", PATIENCE)
        assert not [one for one, times in scene.sunk().items() if times > 1], "nothing is repeated"
        scene.delete()
        await scene.until(lambda: scene.group is None, "the object is gone", PATIENCE)
        assert await scene.at_the_end()
        assert not scene.troubles(), scene.describe()


@pytest.mark.timeout(1800)
async def test_what_is_wrong_with_a_pipeline_is_one_sentence_of_the_status(broker: Cluster, tmp_path: Path) -> None:
    async with EngineScene(broker, broker.create_topic(QUEUES), tmp_path) as scene:

        async def says(sentence: str) -> None:
            await scene.until(lambda: sentence in scene.sentence(), f"Ready says: {sentence}", PATIENCE)
            assert "\n" not in scene.sentence()
            assert "Traceback" not in scene.sentence()
            assert "\tat " not in scene.sentence()
            assert next(one.reason for one in scene.status.conditions or () if one.type == "Ready") == "PodTrouble"

        scene.change(pipeline="nowhere_to_be_found:archive")
        await says("there is no module 'nowhere_to_be_found' on the Python path")
        scene.change(pipeline="engine_pipelines:misspelled")
        await says("engine_pipelines has no function misspelled")
        scene.change(pipeline="engine_pipelines:raises")
        await says("raised ValueError: no table for 12 columns")
        scene.change(pipeline="engine_pipelines:returns_nothing")
        await says("returned nothing: return messages")
        scene.begin_traffic()
        scene.change(pipeline="engine_pipelines:breaks_down")
        await says("RuntimeError: cannot digest")
        assert not await scene.committed(), "what the pipeline did not digest is not committed"


@pytest.mark.timeout(1800)
async def test_a_driver_that_is_killed_leaves_no_gap_and_no_repeat(broker: Cluster, tmp_path: Path) -> None:
    async with EngineScene(broker, broker.create_topic(QUEUES), tmp_path) as scene:
        scene.begin_traffic()
        scene.apply()
        await scene.runs()
        await scene.until(lambda: bool(scene.sunk()), "something is in the sink", PATIENCE)
        (member,) = scene.members
        member.kill()
        await scene.until(lambda: not scene.is_ready(), "it is missed")
        await scene.runs()
        await scene.end_traffic()
        await scene.until(scene.sent_is_sunk, "all that was sent is in the sink", PATIENCE)
        assert not [one for one, times in scene.sunk().items() if times > 1], "nothing is repeated"
        scene.delete()
        await scene.until(lambda: scene.group is None, "the object is gone", PATIENCE)
        assert await scene.at_the_end()


@pytest.mark.timeout(1800)
async def test_with_a_long_trigger_the_broker_is_told_at_once_and_sigterm_does_not_wait_for_the_next(
    broker: Cluster, tmp_path: Path
) -> None:
    async with EngineScene(broker, broker.create_topic(QUEUES), tmp_path, trigger="1 hour") as scene:
        scene.begin_traffic()
        await scene.some_traffic(100)
        scene.apply()
        await scene.runs()
        await scene.until(lambda: bool(scene.sunk()), "the one batch of this hour", PATIENCE)
        for _ in range(300):  # far less than an hour
            if await scene.committed() == scene.stands():
                break
            await asyncio.sleep(0.2)
        assert await scene.committed() == scene.stands(), "the broker knows of the batch"
        (member,) = scene.members
        member.terminate()
        await scene.until(lambda: EventReason.REPLACED in scene.reasons(), "it drains and ends by itself", PATIENCE)
        assert not [event for event in scene.events if event.reason is EventReason.REPLACED and event.warning]
        await scene.runs()
        await scene.until(lambda: len(scene.sunk()) > 400, "the next driver's batch", PATIENCE)
        assert not [one for one, times in scene.sunk().items() if times > 1], "nothing is repeated"
        assert not scene.troubles(), scene.describe()


def ignored(message: ReceivedMessage) -> None:
    """A handler that has nothing to do."""


@pytest.mark.timeout(1800)
async def test_a_worker_in_the_same_group_is_noticed(broker: Cluster, tmp_path: Path) -> None:
    topic = broker.create_topic(QUEUES)
    async with EngineScene(broker, topic, tmp_path) as scene:

        def balanced() -> str:
            return next((one.reason for one in scene.status.conditions or () if one.type == "Balanced"), "")

        scene.apply()
        await scene.runs()
        settings = ConsumerSettings(scene.name, (Subscription(topic),))
        config = ClientConfig(broker.name_server, client_id="a-worker-by-mistake")
        async with Consumer(config, settings, ignored):
            await scene.until(lambda: balanced() == "OtherMembers", "the other one is seen", PATIENCE)
            assert "a-worker-by-mistake" in scene.sentence()
        await scene.until(scene.is_ready, "it is alone again", PATIENCE)
