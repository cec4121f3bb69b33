"""Engine Spark of a ConsumerGroup on this machine, with a real broker and a real Spark: its life, and its failures."""

from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.spark.engine_scene import PATIENCE, EngineScene

from rocketfleet.controller.actions import Reason

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
        await scene.until(lambda: scene.reasons().count(Reason.DRAINED) == 1, "the first driver is drained", PATIENCE)
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
        assert scene.reasons().count(Reason.DRAINED) == 3
        assert not scene.troubles(), scene.describe()

        scene.apply()
        await scene.runs()
        await scene.end_traffic()
        await scene.until(lambda: len(scene.sunk()) >= len(scene.sent), "all that was sent is in the sink", PATIENCE)
        sunk = scene.sunk()
        assert set(sunk) == set(scene.sent)
        assert not [one for one, times in sunk.items() if times > 1], "nothing is repeated"
        scene.delete()
        await scene.until(lambda: scene.group is None, "the object is gone", PATIENCE)
        assert await scene.at_the_end()
