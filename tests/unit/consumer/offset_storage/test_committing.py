"""When offsets are committed: everybody in turn, each broker for itself."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.clock import Clock
from tests.support.waiting import turns, until
from tests.unit.consumer.model_broker import BROKER, OTHER_BROKER, queue

from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.offset_storage.committing import Committer, CommitTimings
from rocketfleet.wire.queue import MessageQueue

INTERVAL = 5.0
TIMINGS = CommitTimings()


class Held(NamedTuple):
    queue: MessageQueue


class Scene:
    """Queues in which messages are finished when a test says so, and brokers that are told of it."""

    def __init__(
        self, queues: Iterable[MessageQueue], interval: float = INTERVAL, timings: CommitTimings = TIMINGS
    ) -> None:
        self.clock = Clock()
        self.all = {one: Lane(one, ProcessQueue(0)) for one in queues}
        self.told: list[tuple[float, MessageQueue]] = []
        self.turns: list[frozenset[MessageQueue]] = []
        self.hung: set[str] = set()
        self.bugs: list[Exception] = []
        self.released = asyncio.Event()
        self.committer = Committer(self, self, interval, clock=self.clock, timings=timings)  # type: ignore[arg-type]  # models of both

    # -- holdings -----------------------------------------------------------------------------------------------------

    @property
    def queues(self) -> frozenset[MessageQueue]:
        return frozenset(self.all)

    def lanes(self) -> list[tuple[Held, Lane]]:
        return [(Held(one), lane) for one, lane in self.all.items()]

    def committable(self, of: Collection[Lane]) -> dict[MessageQueue, int]:
        return {lane.queue: 1 for lane in of}

    # -- offsets ------------------------------------------------------------------------------------------------------

    async def persist(self, offsets: dict[MessageQueue, int], *, again: bool = False) -> None:
        self.turns.append(frozenset(offsets))
        if self.bugs:
            raise self.bugs.pop()
        if {one.broker for one in offsets} & self.hung:
            await self.released.wait()
        self.told += [(self.clock(), one) for one in offsets]

    # -- what tests do ------------------------------------------------------------------------------------------------

    def move(self, *queues: MessageQueue) -> None:
        for one in queues or self.all:
            self.all[one].moved = True

    async def tick(self, seconds: float = TIMINGS.soon) -> None:
        self.clock.now += seconds
        self.committer.tick()
        await turns(4)

    def moments(self) -> dict[MessageQueue, list[float]]:
        found = defaultdict(list)
        for at, one in self.told:
            found[one].append(at)
        return found


def many(count: int, broker: str = BROKER) -> list[MessageQueue]:
    return [queue(number, broker=broker) for number in range(count)]


async def test_what_was_finished_is_committed_soon_and_only_that() -> None:
    scene = Scene(many(5))
    await scene.tick()
    assert scene.turns == []
    scene.move(queue(2), queue(4))
    await scene.tick()
    assert scene.turns == [{queue(2), queue(4)}]
    await scene.tick()
    assert len(scene.turns) == 1
    assert not any(lane.moved for lane in scene.all.values())


async def test_what_is_finished_while_a_commit_is_under_way_comes_next() -> None:
    scene = Scene(many(1))
    scene.hung.add(BROKER)
    scene.move()
    await scene.tick()
    scene.move()
    scene.hung.clear()
    scene.released.set()
    await turns()
    await scene.tick()
    assert len(scene.told) == 2


@pytest.mark.parametrize("count", [120, 300, 1000])
async def test_busy_queues_take_turns_and_none_waits_much_longer_than_others(count: int) -> None:
    scene = Scene(many(count), interval=1e9)
    start = scene.clock.now
    for _ in range(60):
        scene.move()
        await scene.tick()
    assert all(len(turn) <= TIMINGS.at_once for turn in scene.turns)
    assert {one for _, one in scene.told} == scene.queues
    fair = -(-count // TIMINGS.at_once)  # in so many turns everybody can be had once
    for moments in scene.moments().values():
        for earlier, later in pairwise([start, *moments, scene.clock.now + TIMINGS.soon]):
            assert round((later - earlier) / TIMINGS.soon) <= fair


@settings(max_examples=50, deadline=None)
@given(st.lists(st.frozensets(st.integers(0, 19), max_size=20), max_size=30), st.integers(1, 7))
def test_whatever_is_busy_what_was_finished_waits_for_one_round_at_most(busy: list[frozenset[int]], limit: int) -> None:
    async def story() -> None:
        scene = Scene(many(20), interval=1e9, timings=CommitTimings(at_once=limit))
        waiting: dict[MessageQueue, int] = {}
        for now, moved in enumerate(busy):
            for number in moved:
                scene.move(queue(number))
                waiting.setdefault(queue(number), now)
            scene.turns.clear()
            await scene.tick()
            for turn in scene.turns:
                assert len(turn) <= limit
                for one in turn:
                    del waiting[one]
            assert all(now - since <= 20 // limit + 1 for since in waiting.values())

    asyncio.run(story())


async def test_a_broker_that_hangs_holds_up_nobody_else() -> None:
    scene = Scene([*many(60), *many(60, OTHER_BROKER)])
    scene.hung.add(OTHER_BROKER)
    for _ in range(20):
        scene.move()
        await scene.tick()
    commits = Counter(one.broker for _, one in scene.told)
    assert commits == {BROKER: 20 * 60}
    assert sum(any(one.broker == OTHER_BROKER for one in turn) for turn in scene.turns) == 1, "one turn at a time"
    scene.hung.clear()
    scene.released.set()
    await turns()
    await scene.tick()
    assert {one for _, one in scene.told} == scene.queues


async def test_now_and_then_everything_is_committed_also_what_seems_not_to_have_moved() -> None:
    """A filter may have passed over messages, or a commit have failed."""
    scene = Scene([*many(3), *many(300, OTHER_BROKER)])
    await scene.tick()
    await scene.tick(INTERVAL - 0.1)
    assert scene.turns == []
    await scene.tick(0.1)
    assert frozenset().union(*scene.turns) == scene.queues
    assert len(scene.turns) == 2
    await scene.tick(INTERVAL - 0.1)
    assert len(scene.turns) == 2
    await scene.tick(0.1)
    assert len(scene.turns) == 4


async def test_a_bug_in_a_commit_does_not_end_the_commits(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(many(1))
    scene.bugs.append(ValueError("a bug"))
    scene.move()
    await scene.tick()
    assert "offsets were not committed" in caplog.text
    scene.move()
    await scene.tick()
    assert len(scene.told) == 1


async def test_queues_that_are_gone_are_forgotten() -> None:
    scene = Scene(many(10))
    scene.move()
    await scene.tick()
    scene.all = {one: Lane(one, ProcessQueue(0)) for one in many(2, OTHER_BROKER)}
    scene.move()
    await scene.tick()
    assert scene.committer._taken.keys() == scene.queues


async def test_it_runs_until_it_is_cancelled_and_leaves_nothing_running() -> None:
    scene = Scene([*many(2), *many(2, OTHER_BROKER)], timings=CommitTimings(soon=0.001))
    task = asyncio.create_task(scene.committer.run())
    scene.move(*many(2))
    await until(lambda: len(scene.told) == 2)
    scene.hung.add(OTHER_BROKER)
    scene.move(*many(2, OTHER_BROKER))
    await until(lambda: scene.committer._busy)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(lambda: not scene.committer._busy)
