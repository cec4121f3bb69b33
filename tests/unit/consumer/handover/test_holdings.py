"""A queue's life in the shell around the ownership table: started, suspended, resumed, lost, handed over.

The broker is the model, so that its answers come exactly when a test wants them.
"""

import asyncio
import threading
from bisect import insort
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.clock import Clock
from tests.support.waiting import turns, until
from tests.unit.consumer.model_broker import ADDRESS, ME, ModelBroker, ModelClient, queue

from rocketfleet.client.errors import RequestTimeout, SystemBusy
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.concurrent import ConcurrentConsumption, ConcurrentTimings
from rocketfleet.consumer.delivery.pull import PullTimings
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.handover import ownership
from rocketfleet.consumer.handover.holdings import FinalOffset, HandoverTimings, Holding, Holdings
from rocketfleet.consumer.handover.ownership import AWAKE_SECONDS, Effect, Lock, OwnershipState, QueueEvent
from rocketfleet.consumer.handover.roster import GRACE_SECONDS
from rocketfleet.consumer.offset_storage.offsets import BrokerOffsets
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings, Handover
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.control.messages import QueueState
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.snapshot import queue_state

LIVES = 60.0
QUICK = HandoverTimings(first_pause=0.002, longest_pause=0.01)


class Scene:
    """Holdings on a model broker, with a handler that can be made to wait."""

    def __init__(self, timings: HandoverTimings, **settings: Any) -> None:
        self.clock = Clock()
        self.broker = ModelBroker(self.clock)
        self.client = ModelClient(self.broker)
        self.tally = ConsumerCounters()
        self.got: list[int] = []
        self.writing = threading.Lock()
        self.let_go = threading.Event()
        self.let_go.set()
        self.heartbeats = 0
        given = {"consume_from_where": ConsumeFromWhere.FIRST_OFFSET, **settings}
        self.settings = ConsumerSettings("g", (Subscription("t"),), **given)
        self.offsets = BrokerOffsets(self.client, self.settings)  # type: ignore[arg-type]  # a model
        self.consumption = ConcurrentConsumption(
            self.settings,
            inspect_handler(self.handle),
            self.send_back,
            clock=self.clock,
            tally=self.tally,
            timings=ConcurrentTimings(tick=0.002),
        )
        self.holdings = Holdings(
            self.client,  # type: ignore[arg-type]  # a model
            self.settings,
            {"t": self.settings.subscriptions[0]},
            self.offsets,
            self.consumption,
            self.heartbeat_wanted,
            clock=self.clock,
            tally=self.tally,
            timings=timings,
            pull_timings=PullTimings(first_pause=0.002),
        )

    def heartbeat_wanted(self) -> None:
        self.heartbeats += 1

    def handle(self, message: ReceivedMessage) -> None:
        with self.writing:
            insort(self.got, message.queue_offset)  # workers run side by side: in which order says nothing
        self.let_go.wait()

    async def send_back(self, message: ReceivedMessage, level: int) -> None:
        raise AssertionError("nothing fails here")

    async def own(self, which: MessageQueue | None = None) -> Holding:
        """Want a queue and be granted its lock."""
        which = which or queue()
        self.holdings.want([which])
        holding = self.holdings.get(which)
        assert holding is not None
        self.lock(holding)
        await until(lambda: holding.lane is not None)
        return holding

    def lock(self, holding: Holding) -> None:
        self.broker.locks[holding.queue] = (ME, self.clock())
        self.holdings.granted(holding, ADDRESS, self.clock())

    async def settle(self, holding: Holding) -> None:
        """Be granted a doubtful lock twice, and have its offset looked at."""
        for expected in (Lock.CONFIRMED_ONCE, Lock.CHECKING):
            self.lock(holding)
            assert holding.lock is expected
        await until(lambda: holding.lock is not Lock.CHECKING)

    def hold_handlers(self) -> None:
        self.let_go.clear()

    async def gone(self, which: MessageQueue | None = None) -> FinalOffset:
        which = which or queue()
        await until(lambda: which not in self.holdings.queues)
        return self.holdings.final[which]

    async def close(self) -> None:
        self.let_go.set()
        await self.holdings.close()
        await self.consumption.close()


@pytest.fixture
async def make(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Callable[..., Scene]]:
    scenes: list[Scene] = []

    def make_scene(timings: HandoverTimings = QUICK, **settings: Any) -> Scene:
        scenes.append(Scene(timings, **settings))
        return scenes[-1]

    yield make_scene
    for scene in scenes:
        await scene.close()
    said = [record.getMessage() for record in caplog.get_records("call")]
    assert not [line for line in said if "cannot happen to a queue" in line], "every event finds a state for it"


Make = Callable[..., Scene]


def test_every_effect_is_carried_out_by_a_method() -> None:
    assert set(Holdings.EFFECTS) == set(Effect)


async def test_the_last_commit_is_made_because_the_table_says_so(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 3)
    await scene.own()
    await until(lambda: scene.got == [0, 1, 2])
    with patch.dict(
        ownership.TABLE, {(OwnershipState.LEAVING, QueueEvent.SETTLED): (OwnershipState.RELEASING, (Effect.UNLOCK,))}
    ):
        scene.holdings.release([queue()])
        await until(lambda: queue() not in scene.holdings.queues)
    assert scene.holdings.final == {}
    assert scene.broker.offsets[queue()] == 0, "where it started"


async def test_an_event_that_cannot_happen_is_logged_and_changes_nothing(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    scene = make()
    holding = await scene.own()
    scene.holdings.event(holding, QueueEvent.PERSISTED)
    assert "PERSISTED cannot happen to a queue that is OWNED" in caplog.text
    assert holding.is_owned
    assert scene.holdings.owned == {queue()}
    caplog.clear()


async def test_a_queue_is_touched_only_under_its_lock(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 5)
    scene.holdings.want([queue()])
    await turns()
    assert scene.broker.asked == []
    assert scene.holdings.owned == frozenset()
    holding = scene.holdings.get(queue())
    assert holding is not None
    scene.lock(holding)
    await until(lambda: scene.got == [0, 1, 2, 3, 4])
    assert scene.holdings.owned == {queue()}


async def test_it_starts_at_the_stored_offset_and_reading_it_is_tried_until_it_is_known(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 5)
    scene.broker.offsets[queue()] = 3
    scene.broker.failures[RequestCode.QUERY_CONSUMER_OFFSET] = RequestTimeout(ADDRESS, 14, 3.0)
    scene.holdings.want([queue()])
    holding = scene.holdings.get(queue())
    assert holding is not None
    scene.lock(holding)
    await until(lambda: scene.broker.count(RequestCode.QUERY_CONSUMER_OFFSET) >= 3)
    assert scene.got == []
    del scene.broker.failures[RequestCode.QUERY_CONSUMER_OFFSET]
    await until(lambda: scene.got == [3, 4])


async def test_a_handover_finishes_persists_and_unlocks_in_this_order(make: Make) -> None:
    scene = make(consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    holding = await scene.own()
    scene.broker.store(queue(), 10)
    await until(lambda: scene.got == [0])
    scene.broker.asked.clear()
    scene.holdings.release([queue()])
    await turns()
    assert holding.state is OwnershipState.LEAVING
    assert scene.broker.count(RequestCode.UPDATE_CONSUMER_OFFSET) == 0
    scene.let_go.set()
    assert await scene.gone() == FinalOffset(1, confirmed=True, unfinished=0)
    await until(lambda: scene.broker.holder(queue()) is None)
    codes = [command.code for _, command in scene.broker.asked]
    assert codes == [
        RequestCode.QUERY_CONSUMER_OFFSET,  # was the group reset meanwhile?
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.UNLOCK_BATCH_MQ,
    ]
    assert scene.got == [0], "what was only buffered belongs to the next owner"
    assert scene.broker.offsets[queue()] == 1


async def test_what_does_not_finish_in_time_is_not_committed(make: Make) -> None:
    scene = make(handover_timeout=0.05, consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    await scene.own()
    scene.broker.store(queue(), 10)
    await until(lambda: scene.got == [0])
    scene.holdings.release([queue()])
    assert await scene.gone() == FinalOffset(0, confirmed=True, unfinished=1)
    scene.let_go.set()
    await turns()
    assert scene.broker.offsets.get(queue(), 0) == 0


async def test_unfinished_are_those_that_began_and_not_all_of_their_run(make: Make) -> None:
    scene = make(handover_timeout=0.05, consume_thread_min=1, consume_thread_max=1)
    scene.consumption._pace.note(0.0, 1000)  # one run takes all
    await scene.own()
    stuck = threading.Event()

    def handle(message: ReceivedMessage) -> None:
        scene.got.append(message.queue_offset)
        if message.queue_offset == 5:
            stuck.wait()

    object.__setattr__(scene.consumption._handler, "call", handle)
    scene.broker.store(queue(), 10)
    await until(lambda: scene.got == [0, 1, 2, 3, 4, 5])
    scene.holdings.release([queue()])
    assert await scene.gone() == FinalOffset(5, confirmed=True, unfinished=1)
    stuck.set()


async def test_the_final_offset_is_the_one_that_was_confirmed(make: Make) -> None:
    """A handler that ends while the last commit is under way must not make us claim what nobody has stored."""
    scene = make(handover_timeout=0.05, consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    holding = await scene.own()
    scene.broker.store(queue(), 3)
    await until(lambda: scene.got == [0])
    assert holding.lane is not None
    window = holding.lane.window
    scene.broker.asked.clear()
    gate = scene.broker.gates[RequestCode.UPDATE_CONSUMER_OFFSET] = asyncio.Event()
    scene.holdings.release([queue()])
    await until(lambda: scene.broker.count(RequestCode.UPDATE_CONSUMER_OFFSET) == 1)
    scene.let_go.set()
    await until(lambda: window.committable == 1)
    gate.set()
    final = await scene.gone()
    assert final == FinalOffset(0, confirmed=True, unfinished=1)
    assert scene.broker.offsets[queue()] == final.offset


async def test_the_last_commit_is_repeated_until_it_is_confirmed(make: Make) -> None:
    scene = make()
    await scene.own()
    scene.broker.store(queue(), 3)
    await until(lambda: len(scene.got) == 3)
    scene.broker.failures[RequestCode.UPDATE_CONSUMER_OFFSET] = RequestTimeout(ADDRESS, 15, 3.0)
    scene.holdings.release([queue()])
    await until(lambda: scene.broker.count(RequestCode.UPDATE_CONSUMER_OFFSET) >= 3)
    assert scene.broker.holder(queue()) == ME, "no unlock before the offset is safe"
    del scene.broker.failures[RequestCode.UPDATE_CONSUMER_OFFSET]
    assert await scene.gone() == FinalOffset(3, confirmed=True, unfinished=0)


async def test_a_commit_that_is_never_confirmed_is_given_up_and_said(make: Make) -> None:
    scene = make(replace(QUICK, persist_at_least=0.05), handover_timeout=0.05)
    await scene.own()
    scene.broker.store(queue(), 3)
    await until(lambda: len(scene.got) == 3)
    scene.broker.failures[RequestCode.UPDATE_CONSUMER_OFFSET] = RequestTimeout(ADDRESS, 15, 3.0)
    scene.holdings.release([queue()])
    assert await scene.gone() == FinalOffset(3, confirmed=False, unfinished=0)


async def test_a_lost_queue_is_dropped_uncommitted_and_wanted_again(make: Make) -> None:
    scene = make(consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    holding = await scene.own()
    scene.broker.store(queue(), 5)
    await until(lambda: scene.got == [0])
    assert holding.lane is not None
    window = holding.lane.window
    scene.broker.committed.clear()
    scene.holdings.event(holding, QueueEvent.REFUSED)
    assert holding.state is OwnershipState.WANTED
    assert window.dropped
    assert scene.holdings.committable() == {}
    scene.let_go.set()
    await until(lambda: window.idle)
    await turns()
    assert scene.broker.committed == []
    assert scene.got == [0]
    scene.broker.offsets[queue()] = 4  # another owner went on
    scene.lock(holding)
    await until(lambda: scene.got == [0, 4])


DOUBTS = [QueueEvent.INTERRUPTED, QueueEvent.LAPSED]


@pytest.mark.parametrize("event", DOUBTS)
async def test_a_doubtful_lock_neither_begins_nor_commits_and_goes_on_after_two_grants_and_a_look(
    make: Make, event: QueueEvent
) -> None:
    scene = make()
    holding = await scene.own()
    scene.broker.store(queue(), 2)
    await until(lambda: scene.got == [0, 1])
    scene.holdings.event(holding, event)
    assert queue_state(holding) is QueueState.SUSPENDED
    assert scene.holdings.owned == frozenset()
    assert scene.holdings.committable() == {}
    assert scene.holdings.lock_wanted.is_set(), "it is asked for at once"
    committed, lane = len(scene.broker.committed), holding.lane
    scene.broker.store(queue(), 2)
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert scene.got == [0, 1]
    scene.lock(holding)
    await turns()
    gate = scene.broker.gates[RequestCode.QUERY_CONSUMER_OFFSET] = asyncio.Event()
    scene.lock(holding)
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert scene.got == [0, 1], "not before the offset was looked at"
    assert scene.holdings.committable() == {}
    assert len(scene.broker.committed) == committed
    gate.set()
    await until(lambda: scene.got == [0, 1, 2, 3])
    assert (holding.state, holding.lock, queue_state(holding)) == (OwnershipState.OWNED, Lock.HELD, QueueState.OWNED)
    assert holding.lane is lane, "nothing was thrown away, nothing is handled twice"
    assert scene.holdings.committable().keys() == {queue()}


async def test_what_is_at_work_in_a_doubt_counts_when_it_is_settled(make: Make) -> None:
    scene = make(consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    holding = await scene.own()
    scene.broker.store(queue(), 1)
    await until(lambda: scene.got == [0])
    scene.holdings.event(holding, QueueEvent.LAPSED)
    assert holding.lane is not None
    lane = holding.lane
    scene.let_go.set()
    await until(lambda: lane.window.committable == 1)
    lane.moved = False
    await scene.settle(holding)
    assert scene.holdings.committable() == {queue(): 1}
    assert lane.moved, "the broker may have forgotten what it was told"
    assert scene.got == [0]


@pytest.mark.parametrize("event", DOUBTS)
async def test_a_queue_that_somebody_else_had_meanwhile_starts_anew(make: Make, event: QueueEvent) -> None:
    scene = make()
    scene.broker.store(queue(), 5)
    holding = await scene.own()
    await until(lambda: len(scene.got) == 5)
    scene.holdings.event(holding, event)
    scene.broker.store(queue(), 4)
    scene.broker.offsets[queue()] = 7
    lane = holding.lane
    scene.got.clear()
    await scene.settle(holding)
    await until(lambda: scene.got == [7, 8])
    assert holding.lane is not lane
    assert scene.broker.offsets[queue()] == 7


async def test_an_offset_that_the_broker_has_forgotten_is_told_again(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 5)
    holding = await scene.own()
    await until(lambda: scene.holdings.committable() == {queue(): 5})
    await scene.offsets.persist(scene.holdings.committable())
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    scene.broker.offsets[queue()] = 2  # it was killed, and had not written it down
    await scene.settle(holding)
    await scene.offsets.persist(scene.holdings.committable())
    assert scene.broker.offsets[queue()] == 5
    assert len(scene.got) == 5


async def test_a_look_at_the_offset_is_tried_until_it_is_known(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    query = RequestCode.QUERY_CONSUMER_OFFSET
    scene.broker.failures[query] = RequestTimeout(ADDRESS, query, 3.0)
    scene.lock(holding)
    scene.lock(holding)
    before = scene.broker.count(query)
    await until(lambda: scene.broker.count(query) >= before + 3)
    assert holding.lock is Lock.CHECKING
    scene.broker.failures[query] = ValueError("a bug")
    before = scene.broker.count(query)
    await until(lambda: scene.broker.count(query) >= before + 3)
    del scene.broker.failures[query]
    await until(lambda: holding.lock is Lock.HELD)


async def test_a_doubt_that_comes_while_the_offset_is_looked_at_ends_the_look(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    gate = scene.broker.gates[RequestCode.QUERY_CONSUMER_OFFSET] = asyncio.Event()
    scene.lock(holding)
    scene.lock(holding)
    checking = holding.checking
    assert checking is not None
    await turns()
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    gate.set()
    await until(checking.done)
    await turns()
    assert holding.lock is Lock.DOUBTED
    await scene.settle(holding)
    assert scene.holdings.owned == {queue()}


async def test_a_connection_that_breaks_while_the_offset_is_read_suspends_all_the_same(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 3)
    gate = scene.broker.gates[RequestCode.QUERY_CONSUMER_OFFSET] = asyncio.Event()
    scene.holdings.want([queue()])
    holding = scene.holdings.get(queue())
    assert holding is not None
    scene.lock(holding)
    await turns()
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    gate.set()
    await until(lambda: holding.lane is not None)
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert scene.got == []
    assert scene.holdings.committable() == {}
    await scene.settle(holding)
    await until(lambda: scene.got == [0, 1, 2])


async def test_a_doubt_that_is_settled_before_the_offset_was_read_reads_it_again(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 3)
    stuck = scene.broker.failures
    stuck[RequestCode.UPDATE_CONSUMER_OFFSET] = RequestTimeout(ADDRESS, 15, 3.0)
    scene.holdings.want([queue()])
    holding = scene.holdings.get(queue())
    assert holding is not None
    scene.lock(holding)
    await turns()
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    scene.broker.offsets[queue()] = 2  # somebody else has been here
    await scene.settle(holding)
    await until(lambda: scene.got == [2])


async def test_a_doubtful_queue_is_left_when_the_doubt_is_settled(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    scene.broker.store(queue(), 2)
    await until(lambda: len(scene.got) == 2)
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    scene.broker.asked.clear()
    scene.holdings.release([queue()])
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert holding.state is OwnershipState.SETTLING
    assert scene.broker.asked == [], "it may be somebody else's: nothing is committed"
    await scene.settle(holding)
    assert await scene.gone() == FinalOffset(2, confirmed=True, unfinished=0)
    assert scene.broker.offsets[queue()] == 2
    assert scene.broker.holder(queue()) is None


async def test_a_doubtful_queue_that_somebody_else_had_is_left_without_a_commit(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    scene.broker.store(queue(), 2)
    await until(lambda: len(scene.got) == 2)
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    scene.holdings.release([queue()])
    scene.broker.offsets[queue()] = 9
    scene.broker.committed.clear()
    await scene.settle(holding)
    assert await scene.gone() == FinalOffset(2, confirmed=False, unfinished=0)
    assert scene.broker.committed == []
    assert scene.broker.holder(queue()) is None


async def test_a_doubt_that_is_not_settled_in_time_is_left_without_a_commit_and_unlocked(make: Make) -> None:
    scene = make(replace(QUICK, persist_at_least=0.02), handover_timeout=0.02)
    holding = await scene.own()
    scene.broker.store(queue(), 2)
    await until(lambda: len(scene.got) == 2)
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    scene.broker.committed.clear()
    scene.holdings.release([queue()])
    assert await scene.gone() == FinalOffset(2, confirmed=False, unfinished=0)
    assert scene.broker.committed == []
    assert scene.broker.holder(queue()) is None


async def test_a_doubt_while_leaving_throws_away_what_was_not_begun(make: Make) -> None:
    scene = make(consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    holding = await scene.own()
    scene.broker.store(queue(), 5)
    await until(lambda: scene.got == [0])
    scene.holdings.event(holding, QueueEvent.LAPSED)
    scene.holdings.release([queue()])
    await turns()
    assert holding.lane is not None
    assert holding.lane.window.dropped
    scene.let_go.set()
    await scene.settle(holding)
    assert await scene.gone() == FinalOffset(1, confirmed=True, unfinished=0)
    assert scene.got == [0]


# -- giving locks back ------------------------------------------------------------------------------------------------


def requested(scene: Scene) -> Holding:
    """A queue that is wanted, with a request for its lock on its way."""
    scene.holdings.want([queue()])
    holding = scene.holdings.get(queue())
    assert holding is not None
    holding.lock_answered.clear()
    return holding


async def test_a_wish_that_was_never_granted_is_withdrawn_without_a_word(make: Make) -> None:
    scene = make()
    scene.holdings.want([queue()])
    scene.holdings.release([queue()])
    await until(lambda: scene.holdings.queues == frozenset())
    assert scene.broker.asked == []


async def test_a_lock_is_not_given_back_while_a_request_for_it_is_on_its_way(make: Make) -> None:
    """The broker could handle the two in the wrong order."""
    scene = make()
    holding = requested(scene)
    scene.holdings.release([queue()])
    await turns()
    assert holding.state is OwnershipState.RELEASING
    assert scene.broker.asked == []
    holding.lock_answered.set()
    scene.lock(holding)
    await until(lambda: scene.holdings.queues == frozenset())
    assert scene.broker.holder(queue()) is None
    assert scene.broker.count(RequestCode.QUERY_CONSUMER_OFFSET) == 0, "it was never started"


async def test_a_lock_is_given_back_until_the_broker_has_answered(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    unlock = RequestCode.UNLOCK_BATCH_MQ
    scene.broker.failures[unlock] = SystemBusy(2, "too many requests", ADDRESS, unlock)
    scene.holdings.release([queue()])
    await until(lambda: scene.broker.count(unlock) >= 3)
    assert holding.state is OwnershipState.RELEASING
    scene.holdings.want([queue()])
    assert scene.holdings.get(queue()) is holding, "what is being given back is not wanted yet"
    scene.broker.failures[unlock] = RequestTimeout(ADDRESS, unlock, 1.0)
    tried = scene.broker.count(unlock)
    await until(lambda: scene.broker.count(unlock) >= tried + 2)
    del scene.broker.failures[unlock]
    assert (await scene.gone()).confirmed
    assert scene.broker.holder(queue()) is None


async def test_a_lock_that_has_ended_by_itself_needs_not_be_given_back(make: Make) -> None:
    scene = make()
    await scene.own()
    unlock = RequestCode.UNLOCK_BATCH_MQ
    scene.broker.failures[unlock] = RequestTimeout(ADDRESS, unlock, 1.0)
    scene.holdings.release([queue()])
    await until(lambda: scene.broker.count(unlock) >= 2)
    scene.clock.now += LIVES
    await scene.gone()


async def test_who_stops_does_not_try_for_long(make: Make) -> None:
    scene = make()
    await scene.own()
    unlock = RequestCode.UNLOCK_BATCH_MQ
    scene.broker.failures[unlock] = RequestTimeout(ADDRESS, unlock, 1.0)
    scene.holdings.drain()
    await until(lambda: scene.broker.count(unlock) >= 2)
    scene.clock.now += QUICK.unlock_when_stopping
    assert (await scene.gone()).confirmed


async def test_a_request_that_was_never_answered_is_undone_more_than_once(make: Make) -> None:
    """The broker may handle it after the unlock."""
    scene = make(replace(QUICK, strays_after=(0.005, 0.005)))
    holding = requested(scene)
    holding.stray_lock = True
    holding.lock_answered.set()
    scene.holdings.release([queue()])
    await until(lambda: scene.holdings.queues == frozenset())
    assert scene.broker.count(RequestCode.UNLOCK_BATCH_MQ) == 1
    scene.broker.locks[queue()] = (ME, scene.clock())
    await until(lambda: scene.broker.holder(queue()) is None)


async def test_a_queue_that_is_wanted_again_keeps_what_a_late_request_brings(make: Make) -> None:
    scene = make(replace(QUICK, strays_after=(0.005, 0.005)))
    holding = requested(scene)
    holding.stray_lock = True
    holding.lock_answered.set()
    scene.holdings.release([queue()])
    await until(lambda: scene.holdings.queues == frozenset())
    await scene.own()
    await until(lambda: not scene.holdings._strays)
    assert scene.broker.holder(queue()) == ME


async def test_a_lock_granted_after_giving_up_is_given_back(make: Make) -> None:
    scene = make()
    scene.holdings.want([queue()])
    holding = scene.holdings.get(queue())
    assert holding is not None
    scene.holdings.release([queue()])
    await until(lambda: scene.holdings.queues == frozenset())
    scene.lock(holding)  # the answer crossed it
    await until(lambda: scene.broker.holder(queue()) is None)


async def test_a_lock_granted_to_a_former_wish_stays_with_the_present_one(make: Make) -> None:
    scene = make()
    scene.holdings.want([queue()])
    former = scene.holdings.get(queue())
    assert former is not None
    scene.holdings.release([queue()])
    await until(lambda: scene.holdings.queues == frozenset())
    scene.holdings.want([queue()])
    scene.lock(former)
    await turns()
    assert scene.broker.holder(queue()) == ME
    assert scene.holdings.owned == frozenset()


async def test_a_queue_wanted_while_it_leaves_is_left_first(make: Make) -> None:
    scene = make(consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    holding = await scene.own()
    scene.broker.store(queue(), 2)
    await until(lambda: scene.got == [0])
    scene.holdings.release([queue()])
    await turns()
    scene.holdings.want([queue()])
    assert scene.holdings.get(queue()) is holding
    scene.let_go.set()
    await scene.gone()
    scene.holdings.want([queue()])
    assert scene.holdings.get(queue()) is not holding


async def test_a_queue_given_up_before_its_offset_was_read_is_only_unlocked(make: Make) -> None:
    scene = make()
    gate = scene.broker.gates[RequestCode.QUERY_CONSUMER_OFFSET] = asyncio.Event()
    scene.holdings.want([queue()])
    holding = scene.holdings.get(queue())
    assert holding is not None
    scene.lock(holding)
    await turns()
    scene.holdings.release([queue()])
    await until(lambda: scene.broker.holder(queue()) is None)
    gate.set()
    await turns()
    assert scene.broker.count(RequestCode.UPDATE_CONSUMER_OFFSET) == 0
    assert scene.broker.count(RequestCode.PULL_MESSAGE) == 0


# -- resets -----------------------------------------------------------------------------------------------------------


async def test_a_restart_begins_elsewhere_and_what_was_in_flight_does_not_count(make: Make) -> None:
    scene = make(consume_thread_min=2, consume_thread_max=2)
    scene.broker.store(queue(), 20)
    scene.broker.offsets[queue()] = 10
    scene.hold_handlers()
    holding = await scene.own()
    await until(lambda: 10 in scene.got)
    lane = holding.lane
    assert lane is not None
    scene.holdings.restart(lane, 3)
    scene.let_go.set()
    await until(lambda: holding.lane is not None and holding.lane is not lane)
    await until(lambda: 3 in scene.got and 19 in scene.got)
    assert lane.window.dropped
    assert holding.state is OwnershipState.OWNED
    await scene.offsets.persist(scene.holdings.committable())
    assert scene.broker.offsets[queue()] == 20


async def test_a_restart_of_what_is_no_longer_ours_does_nothing(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    lane = holding.lane
    assert lane is not None
    scene.holdings.event(holding, QueueEvent.REFUSED)
    scene.holdings.restart(lane, 3)
    assert holding.start_at is None
    assert holding.lane is None


@pytest.mark.parametrize("event", DOUBTS)
async def test_a_reset_that_comes_while_the_lock_is_in_doubt_is_honoured_when_that_is_settled(
    make: Make, event: QueueEvent
) -> None:
    """The broker says it once."""
    scene = make()
    scene.broker.store(queue(), 6)
    holding = await scene.own()
    await until(lambda: scene.holdings.committable() == {queue(): 6})
    await scene.offsets.persist(scene.holdings.committable())
    scene.holdings.event(holding, event)
    lane = holding.lane
    assert lane is not None
    scene.holdings.restart(lane, 3)
    assert holding.lane is lane
    assert not lane.window.dropped, "it may not be ours to restart"
    scene.got.clear()
    await scene.settle(holding)
    await until(lambda: scene.got == [3, 4, 5])
    await until(lambda: scene.holdings.committable() == {queue(): 6})
    assert lane.window.dropped


async def test_a_reset_keeps_what_was_handled_before_it_from_being_committed(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 6)
    holding = await scene.own()
    await until(lambda: scene.holdings.committable() == {queue(): 6})
    scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    assert holding.lane is not None
    scene.holdings.restart(holding.lane, 3)
    scene.lock(holding)
    scene.lock(holding)
    assert scene.holdings.committable() == {}
    await until(lambda: holding.start_at is None and holding.lock is Lock.HELD)
    assert 6 not in {offset for _, offset in scene.broker.committed}


@pytest.mark.parametrize("doubtful", [False, True])
async def test_a_reset_that_comes_while_the_queue_is_leaving_is_where_it_is_left(make: Make, doubtful: bool) -> None:
    scene = make(consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    scene.broker.store(queue(), 9)
    scene.broker.offsets[queue()] = 5
    holding = await scene.own()
    await until(lambda: scene.got == [5])
    lane = holding.lane
    assert lane is not None
    scene.holdings.release([queue()])
    if doubtful:
        scene.holdings.event(holding, QueueEvent.INTERRUPTED)
    scene.holdings.restart(lane, 3)
    scene.let_go.set()
    if doubtful:
        await scene.settle(holding)
    assert await scene.gone() == FinalOffset(3, confirmed=True, unfinished=0)
    assert scene.broker.offsets[queue()] == 3


async def test_a_queue_that_a_slave_moves_is_delivered_once_a_master_was_asked(make: Make) -> None:
    """A slave that is behind says so too."""
    scene = make()
    scene.broker.store(queue(), 6)
    holding = await scene.own()
    await until(lambda: scene.got == [0, 1, 2, 3, 4, 5])
    scene.holdings.event(holding, QueueEvent.NO_MASTER)
    lane = holding.lane
    assert lane is not None
    scene.got.clear()
    scene.holdings.restart(lane, 3)
    await until(lambda: holding.lane not in (None, lane))
    await turns(50)
    assert scene.got == []
    scene.holdings.event(holding, QueueEvent.MASTER_BACK)
    await scene.settle(holding)
    await until(lambda: scene.got == [3, 4, 5])


async def test_a_restart_that_was_overtaken_by_a_loss_is_forgotten(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 20)
    holding = await scene.own()
    lane = holding.lane
    assert lane is not None
    scene.holdings.restart(lane, 3)
    scene.holdings.event(holding, QueueEvent.REFUSED)
    scene.broker.offsets[queue()] = 15  # somebody else went on from the reset
    scene.got.clear()
    scene.lock(holding)
    await until(lambda: scene.got == [15, 16, 17, 18, 19])


# -- without locks ----------------------------------------------------------------------------------------------------


async def test_without_locks_a_queue_is_owned_when_it_is_wanted_and_gone_at_once(make: Make) -> None:
    scene = make(handover=Handover.EAGER, consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    scene.broker.store(queue(), 3)
    scene.holdings.want([queue()])
    await until(lambda: scene.got == [0])
    assert scene.holdings.owned == {queue()}
    scene.holdings.release([queue()])
    final = await scene.gone()
    assert final == FinalOffset(0, confirmed=True, unfinished=1)
    assert scene.broker.count(RequestCode.UNLOCK_BATCH_MQ) == 0


async def test_without_locks_a_drain_still_waits_for_handlers(make: Make) -> None:
    scene = make(handover=Handover.EAGER, consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    scene.broker.store(queue(), 3)
    scene.holdings.want([queue()])
    await until(lambda: scene.got == [0])
    scene.holdings.drain()
    await turns()
    assert scene.holdings.queues == {queue()}
    scene.let_go.set()
    assert await scene.gone() == FinalOffset(1, confirmed=True, unfinished=0)


async def test_a_drain_that_is_hurried_waits_no_longer_but_commits(make: Make) -> None:
    scene = make(consume_thread_min=1, consume_thread_max=1)
    await scene.own()
    scene.broker.store(queue(), 2)
    await until(lambda: scene.got == [0, 1])
    scene.hold_handlers()
    scene.broker.store(queue(), 2)
    await until(lambda: scene.got == [0, 1, 2])
    scene.holdings.drain()
    await turns()
    assert scene.holdings.queues == {queue()}
    scene.holdings.hurry()
    assert await scene.gone() == FinalOffset(2, confirmed=True, unfinished=1)
    assert scene.holdings._waiting == set()


# -- handlers whose queue was lost ------------------------------------------------------------------------------------


def at_work(scene: Scene) -> int:
    """Messages in the hands of handlers whose queue was lost."""
    return sum(lane.window.unfinished for lane in scene.holdings._orphans)


async def lost_with_a_handler_at_work(make: Make, **settings: Any) -> Scene:
    scene = make(consume_thread_min=1, consume_thread_max=1, **settings)
    scene.hold_handlers()
    holding = await scene.own()
    scene.broker.store(queue(), 3)
    await until(lambda: scene.got == [0])
    scene.holdings.event(holding, QueueEvent.REFUSED)
    scene.holdings.release([queue()])
    await until(lambda: scene.holdings.queues == frozenset())
    assert at_work(scene) == 1
    return scene


async def test_a_drain_waits_for_handlers_whose_queue_was_lost(make: Make) -> None:
    scene = await lost_with_a_handler_at_work(make)
    before = scene.holdings.waits_for_orphans
    scene.holdings.drain()
    assert (before, scene.holdings.waits_for_orphans) == (False, True), "only a drain does"
    scene.holdings.changed.clear()
    committed = len(scene.broker.committed)
    scene.let_go.set()
    await until(lambda: not scene.holdings.waits_for_orphans)
    assert scene.holdings.changed.is_set(), "whoever waits is told"
    assert at_work(scene) == 0
    assert len(scene.broker.committed) == committed, "and nothing is committed"


async def test_a_drain_that_is_hurried_or_out_of_time_waits_for_them_no_longer(make: Make) -> None:
    hurried = await lost_with_a_handler_at_work(make)
    hurried.holdings.drain()
    hurried.holdings.hurry()
    assert not hurried.holdings.waits_for_orphans
    late = await lost_with_a_handler_at_work(make, drain_timeout=0.02)
    late.holdings.drain()
    await until(lambda: not late.holdings.waits_for_orphans)
    assert at_work(late) == 1
    await late.holdings.close()
    assert late.holdings.final[queue()].unfinished == 1, "it is said that one was cut off"


async def test_a_handler_that_outlives_the_handover_of_its_queue_is_waited_for_too(make: Make) -> None:
    scene = make(handover_timeout=0.02, consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    await scene.own()
    scene.broker.store(queue(), 3)
    await until(lambda: scene.got == [0])
    scene.holdings.release([queue()])
    await scene.gone()
    scene.holdings.drain()
    assert scene.holdings.waits_for_orphans
    scene.let_go.set()
    await until(lambda: not scene.holdings.waits_for_orphans)


async def test_a_queue_that_was_leaving_when_the_drain_begins_has_the_drains_time(make: Make) -> None:
    scene = make(handover_timeout=0.1, drain_timeout=60.0, consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    await scene.own()
    scene.broker.store(queue(), 1)
    await until(lambda: scene.got == [0])
    scene.holdings.release([queue()])
    await turns()
    scene.holdings.drain()
    await asyncio.sleep(0.2)  # longer than a handover takes: to see that it goes on
    assert scene.holdings.queues == {queue()}
    scene.let_go.set()
    assert await scene.gone() == FinalOffset(1, confirmed=True, unfinished=0)


async def test_an_orderly_queue_waits_for_its_handler_even_where_handovers_are_quick(make: Make) -> None:
    began = asyncio.get_running_loop().time()
    eager = {"handover": Handover.EAGER, "handover_timeout": 30.0, "drain_timeout": 40.0}
    assert make(**eager).holdings._patience(began) == began
    orderly = make(consume_mode=ConsumeMode.ORDERLY, **eager).holdings
    assert orderly._patience(began) == began + 30.0
    assert make(handover_timeout=30.0).holdings._patience(began) == began + 30.0
    draining = make(**eager).holdings
    draining.drain()
    assert draining._patience(began) >= began + 40.0


# -- pull loops -------------------------------------------------------------------------------------------------------


async def test_a_pull_loop_that_fails_begins_again(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    scene = make()
    pulled = scene.broker.answers[RequestCode.PULL_MESSAGE]
    bugs = iter([ValueError("a bug"), KeyError("another")])

    def answer(command: Command) -> Command | Awaitable[Command]:
        if (bug := next(bugs, None)) is not None:
            raise bug
        return pulled(command)

    scene.broker.answers[RequestCode.PULL_MESSAGE] = answer
    scene.broker.store(queue(), 3)
    await scene.own()
    await until(lambda: scene.got == [0, 1, 2])
    assert "failed and begins again" in caplog.text
    assert scene.holdings.problems() == []


async def test_a_pull_loop_that_is_stuck_is_replaced(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    scene.broker.store(queue(), 2)
    await until(lambda: scene.got == [0, 1])
    stuck = scene.broker.gates[RequestCode.PULL_MESSAGE] = asyncio.Event()
    scene.broker.store(queue(), 1)
    await until(lambda: scene.got == [0, 1, 2])
    puller, work, lane = holding.puller, holding.work, holding.lane
    assert work is not None
    scene.holdings.look_after_pullers()
    assert holding.work is work, "all is well"
    scene.clock.now += 2 * QUICK.poll_expires + 1
    scene.lock(holding)
    assert "was not polled for" in scene.holdings.problems()[0]
    del scene.broker.gates[RequestCode.PULL_MESSAGE]
    scene.holdings.look_after_pullers()
    await until(work.done)
    scene.broker.store(queue(), 2)
    await until(lambda: scene.got == [0, 1, 2, 3, 4])
    stuck.set()
    await turns()
    assert holding.puller is not puller
    assert holding.lane is lane
    assert scene.got == [0, 1, 2, 3, 4], "each once"
    assert scene.holdings.problems() == []


async def test_a_pull_loop_that_has_ended_is_a_problem(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    assert holding.work is not None
    holding.work.cancel()
    await until(holding.work.done)
    assert "its pull loop has ended" in scene.holdings.problems()[0]


# -- without a master -------------------------------------------------------------------------------------------------


async def test_without_a_master_it_is_handled_and_not_committed_until_there_is_one(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    scene.clock.now += LIVES  # however long that takes
    scene.holdings.event(holding, QueueEvent.NO_MASTER)
    assert scene.holdings.owned == {queue()}
    scene.broker.store(queue(), 3)
    await until(lambda: scene.got == [0, 1, 2])
    assert scene.holdings.committable() == {}
    scene.holdings.release([queue()])
    assert holding.state is OwnershipState.STANDBY, "nobody else could have it"
    scene.holdings.event(holding, QueueEvent.MASTER_BACK)
    assert scene.holdings.owned == frozenset()
    await scene.settle(holding)
    await until(lambda: scene.holdings.committable() == {queue(): 3})
    scene.holdings.release([queue()])
    assert await scene.gone() == FinalOffset(3, confirmed=True, unfinished=0)


# -- the end ----------------------------------------------------------------------------------------------------------


async def test_what_may_be_committed_can_be_asked_of_some_lanes(make: Make) -> None:
    scene = make()
    first, second = await scene.own(queue(0)), await scene.own(queue(1))
    assert first.lane is not None
    assert scene.holdings.committable({first.lane}).keys() == {queue(0)}
    assert scene.holdings.committable().keys() == {queue(0), queue(1)}
    scene.holdings.event(second, QueueEvent.LAPSED)
    assert scene.holdings.committable().keys() == {queue(0)}
    scene.clock.now += LIVES  # nobody has looked at the lease yet
    assert scene.holdings.committable() == {}


async def test_closing_commits_nothing_and_leaves_nothing_running(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    work = holding.work
    assert work is not None
    scene.broker.committed.clear()
    await scene.holdings.close()
    await until(work.done)
    assert scene.holdings.queues == frozenset()
    assert scene.broker.committed == []


async def test_a_topics_limits_are_divided_anew_when_queues_come_and_go(make: Make) -> None:
    from rocketfleet.consumer.delivery.flow import TopicLimits

    scene = make(topic_limits=TopicLimits(count=100))
    await scene.own(queue(0))
    assert scene.holdings._limits("t").count == 100
    await scene.own(queue(1))
    assert scene.holdings._limits("t").count == 50
    scene.holdings.release([queue(0)])
    await scene.gone(queue(0))
    assert scene.holdings._limits("t").count == 100


# -- a process that was not running -----------------------------------------------------------------------------------


async def test_a_loop_that_was_away_puts_its_locks_in_doubt(make: Make) -> None:
    """Its connections may have broken meanwhile, and others have waited long enough to release its locks."""
    scene = make()
    scene.broker.store(queue(), 3)
    holding = await scene.own()
    scene.clock.now += AWAKE_SECONDS - 0.1
    scene.holdings.stay_awake()
    assert holding.lock is Lock.HELD
    scene.clock.now += AWAKE_SECONDS + 0.1
    assert holding.lane is not None
    assert not holding.lane.window.may_begin(scene.clock()), "before the loop has even looked"
    assert scene.holdings.committable() == {}
    scene.holdings.stay_awake()
    lock: Lock = holding.lock
    assert lock is Lock.DOUBTED
    await scene.settle(holding)
    assert holding.is_owned


def test_a_lock_is_believed_for_less_than_others_wait() -> None:
    assert AWAKE_SECONDS < GRACE_SECONDS
