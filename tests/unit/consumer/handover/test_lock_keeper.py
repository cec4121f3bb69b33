"""When locks are asked for, what is done with the answers, and what becomes of the locks of those who have left."""

import asyncio
import math
from typing import Any

import pytest
from tests.support.clock import Clock
from tests.support.waiting import turns, until
from tests.unit.consumer.model_broker import (
    ADDRESS,
    BROKER,
    LOCK_LIVES,
    ME,
    OTHER_ADDRESS,
    OTHER_BROKER,
    ModelBroker,
    ModelClient,
    queue,
)

from rocketfleet.client.errors import ConnectionLost, RequestTimeout, SystemBusy
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.handover.holdings import Holding
from rocketfleet.consumer.handover.lock_keeper import LOOK_HOLDS, OWNERS_FIRST, RECENTLY, RELEASE_AGAIN, LockKeeper, due
from rocketfleet.consumer.handover.ownership import CONFIRM_APART, Lock, OwnershipState, QueueEvent
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import LockBatchRequest, UnlockBatchRequest
from rocketfleet.wire.codes import RequestCode

SETTINGS = ConsumerSettings("g", (Subscription("t"),))
LOCK, UNLOCK = RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ


class Table:
    """What the keeper sees of Holdings, writing down what it is told."""

    def __init__(self) -> None:
        self.all: list[Holding] = []
        self.told: list[tuple[object, ...]] = []
        self.lock_wanted = asyncio.Event()

    def __iter__(self) -> Any:
        return iter(list(self.all))

    def stay_awake(self) -> None:
        """The holdings' own business."""

    def granted(self, holding: Holding, address: str, requested_at: float) -> None:
        holding.locked_at = requested_at
        holding.lock_address = address
        self.told.append((holding.queue.queue_id, "granted", requested_at))

    def event(self, holding: Holding, event: QueueEvent) -> None:
        self.told.append((holding.queue.queue_id, event.name.lower()))


class Group:
    """What the keeper sees of Membership."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.gone: frozenset[str] = frozenset()
        self.mine = True  # it falls to us to release them
        self.look_takes = 0.0
        self.looks = 0
        self.done: list[tuple[str, str]] = []
        self.queues = tuple(queue(number) for number in range(8))
        self.brokers: tuple[str, ...] = (BROKER,)
        self.office: dict[str, float] = {}

    def took_office(self, broker: str) -> float:
        return self.office.get(broker, -math.inf)

    @property
    def has_departed(self) -> bool:
        return bool(self.gone)

    async def departed(self, _broker: str) -> frozenset[str]:
        self.looks += 1
        self._clock.now += self.look_takes
        await asyncio.sleep(0)
        return self.gone

    async def to_release(self, broker: str) -> frozenset[str]:
        gone = await self.departed(broker)
        return frozenset(one for one in gone if self.mine and (one, broker) not in self.done)

    def released(self, member: str, broker: str) -> None:
        self.done.append((member, broker))


class Scene:
    def __init__(self, settings: ConsumerSettings = SETTINGS) -> None:
        self.clock = Clock()
        self.broker = ModelBroker(self.clock)
        self.client = ModelClient(self.broker)
        self.table = Table()
        self.group = Group(self.clock)
        self.keeper = LockKeeper(
            self.client,  # type: ignore[arg-type]  # a model
            settings,
            self.table,  # type: ignore[arg-type]  # a model
            self.group,  # type: ignore[arg-type]  # a model
            clock=self.clock,
        )

    def want(self, number: int) -> Holding:
        return self.hold(number, OwnershipState.WANTED, Lock.NONE)

    def hold(
        self,
        number: int,
        state: OwnershipState = OwnershipState.OWNED,
        lock: Lock = Lock.HELD,
        *,
        lease: float = 1e9,
        locked_at: float = 0.0,
    ) -> Holding:
        holding = Holding(queue(number), state, lock, lease=lease, locked_at=locked_at)
        if lock is not Lock.NONE:
            holding.lane = Lane(holding.queue, ProcessQueue(0))
            holding.lock_address = ADDRESS
        self.table.all.append(holding)
        return holding

    def holds(self, member: str, *numbers: int) -> None:
        for number in numbers:
            self.broker.locks[queue(number)] = (member, self.clock.now)

    async def tick(self) -> list[tuple[object, ...]]:
        self.table.told.clear()
        self.keeper.tick()
        await until(lambda: not self.keeper._asking and not self.keeper._releasing)
        return sorted(self.table.told, key=str)

    def unlocks(self) -> list[tuple[str, list[int]]]:
        bodies = [UnlockBatchRequest.decode(bytes(c.body)) for _, c in self.broker.asked if c.code == UNLOCK]
        return [(body.client_id, sorted(one.queue_id for one in body.mq_set)) for body in bodies]


@pytest.fixture
async def scene() -> Scene:
    return Scene()


def holding(state: OwnershipState, lock: Lock, locked_at: float = 0.0) -> Holding:
    return Holding(queue(), state, lock, locked_at=locked_at)


HOLDING = [OwnershipState.OWNED, OwnershipState.LEAVING, OwnershipState.SETTLING]


def test_what_is_wanted_is_always_due() -> None:
    assert due(holding(OwnershipState.WANTED, Lock.NONE, 100.0), 100.0, 20.0)


@pytest.mark.parametrize("state", HOLDING)
def test_what_is_in_doubt_is_always_due(state: OwnershipState) -> None:
    assert due(holding(state, Lock.DOUBTED, 100.0), 100.0, 20.0)


@pytest.mark.parametrize("state", HOLDING)
def test_the_second_confirmation_is_asked_for_a_moment_later(state: OwnershipState) -> None:
    assert not due(holding(state, Lock.CONFIRMED_ONCE, 100.0), 100.0 + CONFIRM_APART - 0.01, 20.0)
    assert due(holding(state, Lock.CONFIRMED_ONCE, 100.0), 100.0 + CONFIRM_APART, 20.0)


@pytest.mark.parametrize("lock", [Lock.HELD, Lock.CHECKING])
@pytest.mark.parametrize("state", HOLDING)
def test_a_lock_that_is_held_is_renewed_in_time(state: OwnershipState, lock: Lock) -> None:
    assert not due(holding(state, lock, 100.0), 119.9, 20.0)
    assert due(holding(state, lock, 100.0), 120.0, 20.0)


def test_a_lock_is_renewed_often_for_a_while_after_a_doubt() -> None:
    one = holding(OwnershipState.OWNED, Lock.HELD, 100.0)
    one.recovered_at = 100.0
    assert not due(one, 100.9, 20.0)
    assert due(one, 101.0, 20.0)
    assert not due(one, 100.0 + RECENTLY, 20.0)


@pytest.mark.parametrize("state", [OwnershipState.RELEASING, OwnershipState.GONE, OwnershipState.STANDBY])
@pytest.mark.parametrize("lock", list(Lock))
def test_what_is_given_back_or_has_no_master_is_never_asked_for(state: OwnershipState, lock: Lock) -> None:
    assert not due(holding(state, lock), 1e9, 20.0)


async def test_one_request_carries_all_queues_of_a_broker(scene: Scene) -> None:
    scene.want(0)
    scene.hold(1, locked_at=scene.clock.now)
    scene.want(2)
    scene.holds("other", 2)
    asked_at = scene.clock.now
    assert await scene.tick() == [(0, "granted", asked_at), (2, "refused")]
    assert scene.broker.count(LOCK) == 1
    assert scene.broker.holder(queue(0)) == ME


async def test_a_slow_broker_is_asked_once_and_the_answer_counts_from_the_question(scene: Scene) -> None:
    scene.want(0)
    gate = scene.broker.gates[LOCK] = asyncio.Event()
    asked_at = scene.clock.now
    for _ in range(5):
        scene.keeper.tick()
        await turns()
        scene.clock.now += 1.0
    assert scene.broker.count(LOCK) == 1
    gate.set()
    await until(lambda: scene.table.told)
    assert scene.table.told == [(0, "granted", asked_at)]


async def test_a_slow_broker_holds_up_no_other(scene: Scene) -> None:
    scene.client.known[OTHER_BROKER] = OTHER_ADDRESS
    scene.broker.hung.add(ADDRESS)
    scene.want(0)
    scene.table.all.append(Holding(queue(1, broker=OTHER_BROKER)))
    scene.keeper.tick()
    await until(lambda: scene.table.told)
    assert scene.table.told == [(1, "granted", scene.clock.now)]
    for task in scene.keeper._asking.values():
        task.cancel()


async def test_a_lease_that_is_out_lapses_before_anything_is_asked(scene: Scene) -> None:
    now = scene.clock.now
    scene.hold(0, lease=now, locked_at=now)
    scene.hold(1, lease=now + 1, locked_at=now)
    scene.hold(2, OwnershipState.LEAVING, lease=now - 1, locked_at=now)
    scene.hold(3, lock=Lock.CHECKING, lease=now, locked_at=now)
    scene.hold(4, lock=Lock.DOUBTED, lease=now, locked_at=now)
    scene.want(5).lease = now
    scene.keeper.tick()
    assert scene.table.told == [(0, "lapsed"), (2, "lapsed"), (3, "lapsed")]


async def test_an_error_tells_nothing_about_any_lock(scene: Scene) -> None:
    scene.hold(0)
    scene.broker.failures[LOCK] = RequestTimeout(ADDRESS, 41, 1.0)
    assert await scene.tick() == []
    del scene.broker.failures[LOCK]
    scene.client.known.clear()
    assert await scene.tick() == [], "nor does a broker that is not known now"


async def test_another_master_knows_nothing_of_the_old_ones_locks(scene: Scene) -> None:
    scene.hold(0).lock_address = "old:1"
    scene.hold(1)
    scene.want(2)
    assert await scene.tick() == [
        (0, "granted", scene.clock.now),
        (0, "interrupted"),
        (1, "granted", scene.clock.now),
        (2, "granted", scene.clock.now),
    ]


# -- requests on their way --------------------------------------------------------------------------------------------


async def test_nothing_is_unlocked_while_a_request_for_it_is_on_its_way(scene: Scene) -> None:
    one = scene.want(0)
    assert one.lock_answered.is_set()
    gate = scene.broker.gates[LOCK] = asyncio.Event()
    scene.keeper.tick()
    await until(lambda: scene.broker.count(LOCK) == 1)
    assert not one.lock_answered.is_set()
    gate.set()
    await until(one.lock_answered.is_set)
    assert not one.stray_lock


@pytest.mark.parametrize(
    ("error", "stray"),
    [
        (RequestTimeout(ADDRESS, 41, 1.0), True),
        (ConnectionLost(ADDRESS, "in between"), True),
        (SystemBusy(2, "busy", ADDRESS, 41), False),
    ],
)
async def test_a_request_without_an_answer_may_have_been_handled_all_the_same(
    scene: Scene, error: Exception, stray: bool
) -> None:
    one = scene.want(0)
    scene.broker.failures[LOCK] = error
    await scene.tick()
    assert one.lock_answered.is_set()
    assert one.stray_lock == stray


async def test_a_queue_that_is_given_up_before_the_request_is_sent_is_not_asked_for(scene: Scene) -> None:
    """Its unlock may be on its way, and the broker could handle that first."""
    first, second = scene.want(0), scene.want(1)
    scene.keeper.tick()
    first.state, second.state = OwnershipState.RELEASING, OwnershipState.GONE
    await until(lambda: not scene.keeper._asking)
    assert scene.broker.asked == []


async def test_a_queue_that_is_given_up_while_dead_members_are_released_is_not_asked_for_again(scene: Scene) -> None:
    first, _ = scene.want(0), scene.want(1)
    scene.holds("dead", 0, 1)
    scene.group.gone = frozenset({"dead"})
    scene.group.mine = False
    gate = scene.broker.gates[UNLOCK] = asyncio.Event()
    scene.keeper.tick()
    await until(lambda: scene.broker.count(UNLOCK) == 1)
    first.state = OwnershipState.RELEASING
    gate.set()
    await until(lambda: scene.table.told)
    asked = [LockBatchRequest.decode(bytes(c.body)).mq_set for _, c in scene.broker.asked if c.code == LOCK]
    assert [len(queues) for queues in asked] == [2, 1]
    assert scene.broker.holder(queue(0)) is None


# -- those who have left ----------------------------------------------------------------------------------------------


async def test_the_locks_of_members_that_have_left_are_taken_over(scene: Scene) -> None:
    for number, member in enumerate(["dead", "alive", "dead"]):
        scene.want(number)
        scene.holds(member, number)
    scene.group.gone = frozenset({"dead"})
    told = await scene.tick()
    assert [entry[:2] for entry in told] == [(0, "granted"), (1, "refused"), (2, "granted")]
    assert scene.broker.holder(queue(1)) == "alive"


async def test_who_is_refused_releases_even_if_it_falls_to_others(scene: Scene) -> None:
    """They may be members in other languages, which do no such thing."""
    scene.group.mine = False
    scene.want(0)
    scene.holds("dead", 0, 1)
    scene.group.gone = frozenset({"dead"})
    assert await scene.tick() == [(0, "granted", scene.clock.now)]
    assert scene.unlocks() == [("dead", [0])], "only what it was refused"
    assert scene.broker.holder(queue(1)) == "dead"


async def test_what_was_granted_first_counts_from_the_first_question(scene: Scene) -> None:
    """Else a lease would outlive its lock by as long as it took to free the others."""
    scene.hold(0)
    scene.want(1)
    scene.holds("dead", 1)
    scene.group.gone = frozenset({"dead"})
    scene.group.mine = False
    scene.group.look_takes = LOOK_HOLDS / 2
    first = scene.clock.now
    told = await scene.tick()
    assert told == [(0, "granted", first), (1, "granted", told[1][2])]
    assert isinstance(told[1][2], float)
    assert told[1][2] >= first + LOOK_HOLDS / 2


async def test_a_renewal_counts_even_if_freeing_other_locks_fails(scene: Scene) -> None:
    scene.hold(0)
    scene.want(1)
    scene.holds("dead", 1)
    scene.group.gone = frozenset({"dead"})
    scene.broker.failures[UNLOCK] = RequestTimeout(ADDRESS, 42, 1.0)
    assert await scene.tick() == [(0, "granted", scene.clock.now), (1, "refused")]


async def test_a_look_that_took_too_long_is_not_acted_upon(scene: Scene) -> None:
    """A member that has come back meanwhile may have confirmed its lock twice."""
    scene.want(0)
    scene.holds("dead", 0)
    scene.group.gone = frozenset({"dead"})
    scene.group.look_takes = LOOK_HOLDS * 1.5
    assert await scene.tick() == [(0, "refused")]
    assert scene.unlocks() == []
    assert scene.group.done == []


async def test_who_is_refused_again_and_again_releases_now_and_then(scene: Scene) -> None:
    scene.group.mine = False
    scene.want(0)
    scene.holds("alive", 0)
    scene.group.gone = frozenset({"dead"})
    for _ in range(5):
        assert await scene.tick() == [(0, "refused")]
        scene.clock.now += RELEASE_AGAIN / 10
    assert len(scene.unlocks()) == 1
    scene.clock.now += RELEASE_AGAIN
    await scene.tick()
    assert len(scene.unlocks()) == 2


async def test_a_survivor_releases_all_that_a_departed_member_held_whoever_it_is_allocated_to(scene: Scene) -> None:
    scene.holds("dead", 0, 1, 2)
    scene.holds("alive", 3)
    scene.group.gone = frozenset({"dead"})
    await scene.tick()
    assert [scene.broker.holder(queue(number)) for number in range(4)] == [None, None, None, "alive"]
    assert scene.group.done == [("dead", BROKER)]
    await scene.tick()
    assert len(scene.unlocks()) == 1, "once"


async def test_a_survivor_leaves_to_others_what_falls_to_them(scene: Scene) -> None:
    scene.holds("dead", 0)
    scene.group.gone = frozenset({"dead"})
    scene.group.mine = False
    await scene.tick()
    assert scene.broker.holder(queue(0)) == "dead"


async def test_a_survivor_releases_at_every_broker_and_tries_again_where_it_failed(scene: Scene) -> None:
    scene.client.known[OTHER_BROKER] = OTHER_ADDRESS
    there = queue(0, broker=OTHER_BROKER)
    scene.group.brokers, scene.group.queues = (BROKER, OTHER_BROKER), (queue(0), there)
    scene.holds("dead", 0)
    scene.broker.locks[there] = ("dead", scene.clock.now)
    scene.broker.down.add(OTHER_ADDRESS)
    scene.group.gone = frozenset({"dead"})
    await scene.tick()
    assert scene.group.done == [("dead", BROKER)]
    scene.broker.down.clear()
    await scene.tick()
    assert scene.group.done == [("dead", BROKER), ("dead", OTHER_BROKER)]
    assert scene.broker.holder(there) is None


# -- a broker without a master ----------------------------------------------------------------------------------------


def lose_master(scene: Scene) -> None:
    scene.client.known.clear()
    scene.client.slaves = {1: "slave:1"}


def find_master(scene: Scene) -> None:
    scene.client.known[BROKER] = ADDRESS
    scene.client.slaves = {}


async def test_without_a_master_a_concurrent_group_goes_on_and_its_owners_ask_first_afterwards(scene: Scene) -> None:
    now = scene.clock.now
    scene.hold(0, locked_at=now)
    scene.hold(1, OwnershipState.LEAVING, locked_at=now)
    scene.hold(2, lock=Lock.DOUBTED)
    starting = scene.hold(3, locked_at=now)
    starting.lane = None  # there is nothing to go on with
    wanted = scene.want(4)
    lose_master(scene)
    assert await scene.tick() == [(0, "no_master"), (2, "no_master")]
    find_master(scene)
    scene.table.all = [scene.hold(0, OwnershipState.STANDBY, Lock.DOUBTED), scene.hold(1, lock=Lock.DOUBTED), wanted]
    told = await scene.tick()
    assert [one[:2] for one in told] == [(0, "master_back"), (1, "granted")], "who is new there waits"
    scene.clock.now += OWNERS_FIRST
    scene.table.all = [wanted]
    assert await scene.tick() == [(4, "granted", scene.clock.now)]


async def test_at_another_master_its_owners_ask_first(scene: Scene) -> None:
    held, wanted = scene.hold(0, lock=Lock.DOUBTED), scene.want(1)
    scene.table.all = [held]
    await scene.tick()
    scene.table.all = [held, wanted]
    scene.client.known[BROKER] = OTHER_ADDRESS  # from one look to the next: nobody has seen it without a master
    assert {one[0] for one in await scene.tick()} == {0}, "who is new there waits"
    scene.clock.now += OWNERS_FIRST
    scene.table.all = [wanted]
    assert await scene.tick() == [(1, "granted", scene.clock.now)]


async def test_a_newcomer_leaves_the_owners_time_at_a_master_that_is_new(scene: Scene) -> None:
    scene.want(0)
    scene.group.office[BROKER] = scene.clock.now - 1.0
    assert await scene.tick() == []
    scene.clock.now += OWNERS_FIRST - 1.0
    assert await scene.tick() == [(0, "granted", scene.clock.now)]


async def test_without_a_master_an_orderly_group_stops() -> None:
    scene = Scene(ConsumerSettings("g", (Subscription("t"),), consume_mode=ConsumeMode.ORDERLY))
    scene.hold(0)
    lose_master(scene)
    assert await scene.tick() == []


async def test_a_broker_that_is_simply_not_known_has_not_lost_its_master(scene: Scene) -> None:
    scene.hold(0)
    scene.client.known.clear()
    assert await scene.tick() == []


# -- the timer --------------------------------------------------------------------------------------------------------


async def test_who_is_in_a_hurry_is_seen_to_at_once(scene: Scene) -> None:
    one = scene.hold(0, locked_at=scene.clock.now)
    task = asyncio.create_task(scene.keeper.run())
    await turns()
    assert scene.broker.asked == []
    one.lock = Lock.DOUBTED
    scene.table.lock_wanted.set()
    await until(lambda: scene.table.told)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_lease_sees_two_renewals_whatever_the_settings_say() -> None:
    clock = Clock()
    long = ConsumerSettings("g", (Subscription("t"),), lock_interval=1000.0)
    keeper = LockKeeper(None, long, None, None, clock=clock)  # type: ignore[arg-type]  # not asked
    assert keeper._renew_every <= LOCK_LIVES / 3


def test_the_times_fit_together() -> None:
    """Between a look and a release, nobody who is back confirms its lock twice."""
    assert LOOK_HOLDS < CONFIRM_APART
