"""Schedules out of the exploration, carried out by real members on a real broker: it ends as the model says it does.

Each file in `schedules/` is the way on which a broken variant of the protocol does what it must not, or a rare way of
the protocol as it is. `script.py` says how a way becomes a script, `judge.py` what must not happen on it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.replay.choose import USUAL_LIVES
from tests.broker.replay.judge import judge
from tests.broker.replay.schedule import Schedule, kept
from tests.broker.replay.stage import Stage

from rocketfleet.devbroker.setup.config import FleetSpec

SCHEDULES = kept()


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker on which locks do not live for long."""
    cluster = Cluster(tmp_path_factory.mktemp("forgetful"))
    (lives,) = {one.lives for one in SCHEDULES if one.lives != USUAL_LIVES}
    cluster.start(FleetSpec(properties=(("rocketmq.broker.rebalance.lockMaxLiveTime", str(int(lives * 1000))),)))
    try:
        yield cluster
    finally:
        cluster.stop(delete_data=True)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda one: one.name)
async def test_it_ends_as_the_model_says(schedule: Schedule, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    cluster: Cluster = request.getfixturevalue("broker" if schedule.lives == USUAL_LIVES else "forgetful")
    async with Stage(cluster, schedule, tmp_path, schedule.lives) as stage:
        history = await stage.play()
        wrong = judge(history, schedule.prediction)
        assert not wrong, "\n".join([*wrong, stage.describe()])
