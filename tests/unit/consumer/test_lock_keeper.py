"""When locks are asked for, and what is done with the answers."""

import asyncio
from typing import Any

import pytest
from tests.unit.consumer.model_broker import ADDRESS, LOCK_LIVES, ME, Clock, ModelBroker, ModelClient, queue
from tests.unit.consumer.waiting import turns, until

from rocketfleet.client.errors import RequestTimeout
from rocketfleet.consumer.holdings import Holding
from rocketfleet.consumer.lane import Lane
from rocketfleet.consumer.lock_keeper import LockKeeper, due
from rocketfleet.consumer.ownership import CONFIRM_APART, Event, State
from rocketfleet.consumer.process_queue import ProcessQueue
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.codes import RequestCode

SETTINGS = ConsumerSettings("g", (Subscription("t"),))


class Table:
    """What the keeper sees of Holdings, writing down what it is told."""

    def __init__(self) -> None:
        self.all: list[Holding] = []
        self.told: list[tuple[object, ...]] = []

    def __iter__(self) -> Any:
        return iter(list(self.all))

    def locked(self, holding: Holding, requested_at: float, lock_lives: float) -> None:
        holding.locked_at = requested_at
        self.told.append((holding.queue.queue_id, "locked", requested_at))

    def event(self, holding: Holding, event: Event) -> None:
        self.told.append((holding.queue.queue_id, event.name.lower()))


class Scene:
    def __init__(self) -> None:
        self.clock = Clock()
        self.broker = ModelBroker(self.clock)
        self.client = ModelClient(self.broker)
        self.table = Table()
        self.gone: frozenset[str] = frozenset()
        self.keeper = LockKeeper(
            self.client,  # type: ignore[arg-type]  # a model
            SETTINGS,
            self.table,  # type: ignore[arg-type]  # a model
            self.departed,
            clock=self.clock,
        )

    async def departed(self, _broker: str) -> frozenset[str]:
        self.clock.now += 3.0  # the broker is slow today
        return self.gone

    def hold(self, number: int, state: State, *, lease: float = 1e9, locked_at: float = 0.0) -> Holding:
        holding = Holding(queue(number), state, lease=lease, locked_at=locked_at)
        self.table.all.append(holding)
        return holding

    async def tick(self) -> list[tuple[object, ...]]:
        self.table.told.clear()
        self.keeper.tick()
        await until(lambda: not self.keeper._asking)
        return sorted(self.table.told, key=str)


@pytest.fixture
async def scene() -> Scene:
    return Scene()


def holding(state: State, locked_at: float = 0.0, *, on_hold: bool = False) -> Holding:
    made = Holding(queue(), state, locked_at=locked_at)
    made.lane = Lane(queue(), ProcessQueue(0))
    if on_hold:
        made.lane.window.lease_until = 0.0
    return made


@pytest.mark.parametrize("state", [State.WANTED, State.SUSPENDED])
def test_what_is_wanted_or_doubtful_is_always_due(state: State) -> None:
    assert due(holding(state, locked_at=100.0), 100.0, 20.0)


def test_the_second_confirmation_is_asked_for_a_moment_later() -> None:
    assert not due(holding(State.CONFIRMED_ONCE, 100.0), 100.0 + CONFIRM_APART - 0.01, 20.0)
    assert due(holding(State.CONFIRMED_ONCE, 100.0), 100.0 + CONFIRM_APART, 20.0)


@pytest.mark.parametrize("state", [State.OWNED, State.LEAVING, State.SETTLING])
def test_a_lock_that_is_held_is_renewed_in_time_and_at_once_when_it_was_put_on_hold(state: State) -> None:
    assert not due(holding(state, 100.0), 119.9, 20.0)
    assert due(holding(state, 100.0), 120.0, 20.0)
    assert due(holding(state, 100.0, on_hold=True), 100.1, 20.0)


def test_what_is_gone_is_never_asked_for() -> None:
    assert not due(holding(State.GONE), 1e9, 20.0)


async def test_one_request_carries_all_queues_of_a_broker(scene: Scene) -> None:
    scene.hold(0, State.WANTED)
    scene.hold(1, State.OWNED, locked_at=scene.clock.now)
    scene.hold(2, State.WANTED)
    scene.broker.locks[queue(2)] = ("other", scene.clock.now)
    asked_at = scene.clock.now
    assert await scene.tick() == [(0, "locked", asked_at), (2, "refused")]
    assert scene.broker.count(RequestCode.LOCK_BATCH_MQ) == 1
    assert scene.broker.holder(queue(0)) == ME


async def test_a_slow_broker_is_asked_once_and_the_answer_counts_from_the_question(scene: Scene) -> None:
    scene.hold(0, State.WANTED)
    gate = scene.broker.gates[RequestCode.LOCK_BATCH_MQ] = asyncio.Event()
    asked_at = scene.clock.now
    for _ in range(5):
        scene.keeper.tick()
        await turns()
        scene.clock.now += 1.0
    assert scene.broker.count(RequestCode.LOCK_BATCH_MQ) == 1
    gate.set()
    await until(lambda: scene.table.told)
    assert scene.table.told == [(0, "locked", asked_at)]


async def test_a_lease_that_is_out_lapses_before_anything_is_asked(scene: Scene) -> None:
    scene.hold(0, State.OWNED, lease=scene.clock.now, locked_at=scene.clock.now)
    scene.hold(1, State.OWNED, lease=scene.clock.now + 1, locked_at=scene.clock.now)
    scene.hold(2, State.LEAVING, lease=scene.clock.now - 1, locked_at=scene.clock.now)
    scene.keeper.tick()
    assert scene.table.told == [(0, "lapsed"), (2, "lapsed")]


async def test_an_error_tells_nothing_about_any_lock(scene: Scene) -> None:
    scene.hold(0, State.OWNED)
    scene.broker.failures[RequestCode.LOCK_BATCH_MQ] = RequestTimeout(ADDRESS, 41, 1.0)
    assert await scene.tick() == []
    del scene.broker.failures[RequestCode.LOCK_BATCH_MQ]
    scene.client.known.clear()
    assert await scene.tick() == [], "nor does a broker that is not known now"


async def test_the_locks_of_members_that_have_left_are_taken_over(scene: Scene) -> None:
    for number, member in enumerate(["dead", "alive", "dead"]):
        scene.hold(number, State.WANTED)
        scene.broker.locks[queue(number)] = (member, scene.clock.now)
    scene.gone = frozenset({"dead"})
    told = await scene.tick()
    assert [entry[:2] for entry in told] == [(0, "locked"), (1, "refused"), (2, "locked")]
    assert scene.broker.holder(queue(1)) == "alive"


async def test_what_was_granted_first_counts_from_the_first_question(scene: Scene) -> None:
    """Else a lease would outlive its lock by as long as it took to free the others."""
    scene.hold(0, State.OWNED)
    scene.hold(1, State.WANTED)
    scene.broker.locks[queue(1)] = ("dead", scene.clock.now)
    scene.gone = frozenset({"dead"})
    first = scene.clock.now
    assert await scene.tick() == [(0, "locked", first), (1, "locked", first + 3.0)]


async def test_a_renewal_counts_even_if_freeing_other_locks_fails(scene: Scene) -> None:
    scene.hold(0, State.OWNED)
    scene.hold(1, State.WANTED)
    scene.broker.locks[queue(1)] = ("dead", scene.clock.now)
    scene.gone = frozenset({"dead"})
    scene.broker.failures[RequestCode.UNLOCK_BATCH_MQ] = RequestTimeout(ADDRESS, 42, 1.0)
    assert await scene.tick() == [(0, "locked", scene.clock.now - 3.0), (1, "refused")]


def test_a_lease_sees_two_renewals_whatever_the_settings_say() -> None:
    clock = Clock()
    long = ConsumerSettings("g", (Subscription("t"),), lock_interval=1000.0)
    keeper = LockKeeper(None, long, None, None, clock=clock)  # type: ignore[arg-type]  # not asked
    assert keeper._renew_every <= LOCK_LIVES / 3
