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
from tests.support.waiting import TookTooLongError

from rocketfleet.devbroker.setup.config import FleetSpec


def needs(schedule: Schedule) -> tuple[bool, bool]:
    """What costs time: a broker that restarts, and then one that has been up for long."""
    done = {action.do for action in schedule.actions}
    return schedule.restarted or "restart" in done, "join" in done


SCHEDULES = sorted(kept(), key=needs)

BROKEN = {
    "a queue is unlocked before what has begun is finished": "is begun 2 times",
    "a lost connection is no reason to doubt": "though the group is at",
    "one grant settles a doubt": "two owners",
    "the stored offset is not read after a doubt": "though the group is at",
    "a member has departed when it is not listed": "is taken from",
    "nobody is awaited after an interruption": "is taken from",
    "a group that is new is taken for one that others began": "history",
}
"""Mutants that real members can be made of, and part of what is found.

Not all: what a mutant does is visible only until the next rule comes to the rescue, and sometimes that is at once.
"""

BROKEN_PATIENCE = 6.0
PLAYS = 4


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


def cluster_of(schedule: Schedule, request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue("broker" if schedule.lives == USUAL_LIVES else "forgetful")
    return found


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda one: one.name)
async def test_it_ends_as_the_model_says(schedule: Schedule, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    async with Stage(cluster_of(schedule, request), schedule, tmp_path) as stage:
        history = await stage.play()
        wrong = judge(history, schedule.prediction)
        assert not wrong, "\n".join([*wrong, stage.describe()])


@pytest.mark.parametrize("schedule", [one for one in SCHEDULES if one.mutant in BROKEN], ids=lambda one: one.name)
async def test_broken_members_are_found_out(schedule: Schedule, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Somewhere in a few plays: what is broken is a race, and a script does not decide who wins it."""
    seen: list[str] = []
    for number in range(PLAYS):
        (directory := tmp_path / str(number)).mkdir()
        async with Stage(
            cluster_of(schedule, request), schedule, directory, mutant=schedule.mutant, patience=BROKEN_PATIENCE
        ) as stage:
            try:
                history = await stage.play()
            except TookTooLongError:
                history = stage.so_far()  # it does not do what was expected
            wrong = judge(history, schedule.prediction)
            if any(BROKEN[schedule.mutant] in one for one in wrong):
                return
            seen += [*wrong, stage.describe()]
    pytest.fail("\n".join(seen))
