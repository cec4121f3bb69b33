"""A queue's life in the shell around the ownership table: started, suspended, resumed, lost, handed over.

The broker is the model, so that its answers come exactly when a test wants them.
"""

import asyncio
import threading
from bisect import insort
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.unit.consumer.model_broker import ADDRESS, ME, Clock, ModelBroker, ModelClient, queue
from tests.unit.consumer.waiting import turns, until

from rocketfleet.client.errors import RequestTimeout
from rocketfleet.consumer import concurrent, holdings, pull
from rocketfleet.consumer.concurrent import ConcurrentConsumption
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.holdings import FinalOffset, Holding, Holdings
from rocketfleet.consumer.offsets import BrokerOffsets
from rocketfleet.consumer.ownership import Event, State
from rocketfleet.consumer.settings import ConsumerSettings, Handover
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.consumer.tally import Tally
from rocketfleet.wire.bodies import ConsumeFromWhere
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

LIVES = 60.0


class Scene:
    """Holdings on a model broker, with a handler that can be made to wait."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock()
        self.broker = ModelBroker(self.clock)
        self.client = ModelClient(self.broker)
        self.tally = Tally()
        self.got: list[int] = []
        self.writing = threading.Lock()
        self.let_go = threading.Event()
        self.let_go.set()
        self.heartbeats = 0
        given = {"consume_from_where": ConsumeFromWhere.FIRST_OFFSET, **settings}
        self.settings = ConsumerSettings("g", (Subscription("t"),), **given)
        self.offsets = BrokerOffsets(self.client, self.settings)  # type: ignore[arg-type]  # a model
        self.consumption = ConcurrentConsumption(
            self.settings, inspect_handler(self.handle), self.send_back, clock=self.clock, tally=self.tally
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
        self.holdings.locked(holding, self.clock(), LIVES)

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
async def make(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Scene]]:
    monkeypatch.setattr(concurrent, "TICK", 0.002)
    monkeypatch.setattr(pull, "FIRST_PAUSE", 0.002)
    monkeypatch.setattr(holdings, "_FIRST_PAUSE", 0.002)
    scenes: list[Scene] = []

    def make_scene(**settings: Any) -> Scene:
        scenes.append(Scene(**settings))
        return scenes[-1]

    yield make_scene
    for scene in scenes:
        await scene.close()


Make = Callable[..., Scene]


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
    assert holding.state is State.LEAVING
    assert scene.broker.count(RequestCode.UPDATE_CONSUMER_OFFSET) == 0
    scene.let_go.set()
    assert await scene.gone() == FinalOffset(1, confirmed=True, unfinished=0)
    await until(lambda: scene.broker.holder(queue()) is None)
    codes = [command.code for _, command in scene.broker.asked]
    # The group's first offset in the queue is read back, before the queue is let go.
    assert codes == [
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.QUERY_CONSUMER_OFFSET,
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


async def test_a_commit_that_is_never_confirmed_is_given_up_and_said(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "_PERSIST_AT_LEAST", 0.05)
    scene = make(handover_timeout=0.05)
    await scene.own()
    scene.broker.store(queue(), 3)
    await until(lambda: len(scene.got) == 3)
    scene.broker.failures[RequestCode.UPDATE_CONSUMER_OFFSET] = RequestTimeout(ADDRESS, 15, 3.0)
    scene.holdings.release([queue()])
    assert await scene.gone() == FinalOffset(3, confirmed=False, unfinished=0)


@pytest.mark.parametrize("event", [Event.REFUSED, Event.LAPSED])
async def test_a_lost_queue_is_dropped_uncommitted_and_wanted_again(make: Make, event: Event) -> None:
    scene = make(consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    holding = await scene.own()
    scene.broker.store(queue(), 5)
    await until(lambda: scene.got == [0])
    assert holding.lane is not None
    window = holding.lane.window
    scene.broker.committed.clear()
    scene.holdings.event(holding, event)
    assert holding.state is State.WANTED
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


async def test_a_doubtful_lease_neither_begins_nor_commits_and_goes_on_after_two_confirmations(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    scene.broker.store(queue(), 2)
    await until(lambda: scene.got == [0, 1])
    scene.holdings.event(holding, Event.DISCONNECTED)
    assert scene.holdings.owned == frozenset()
    assert scene.holdings.committable() == {}
    committed = len(scene.broker.committed)
    scene.broker.store(queue(), 2)
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert scene.got == [0, 1]
    scene.lock(holding)
    await turns()
    assert scene.got == [0, 1]
    assert len(scene.broker.committed) == committed
    scene.lock(holding)
    assert holding.state is State.OWNED
    await until(lambda: scene.got == [0, 1, 2, 3])
    assert scene.holdings.committable().keys() == {queue()}


async def test_a_connection_that_breaks_while_the_offset_is_read_suspends_all_the_same(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 3)
    gate = scene.broker.gates[RequestCode.QUERY_CONSUMER_OFFSET] = asyncio.Event()
    scene.holdings.want([queue()])
    holding = scene.holdings.get(queue())
    assert holding is not None
    scene.lock(holding)
    await turns()
    scene.holdings.event(holding, Event.DISCONNECTED)
    gate.set()
    await until(lambda: holding.lane is not None)
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert scene.got == []
    assert scene.holdings.committable() == {}
    scene.lock(holding)
    scene.lock(holding)
    await until(lambda: scene.got == [0, 1, 2])


async def test_a_doubtful_queue_is_left_without_a_commit_and_unlocked(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    scene.broker.store(queue(), 2)
    await until(lambda: len(scene.got) == 2)
    scene.holdings.event(holding, Event.DISCONNECTED)
    scene.broker.asked.clear()
    scene.holdings.release([queue()])
    assert scene.holdings.queues == frozenset()
    await until(lambda: scene.broker.holder(queue()) is None)
    assert scene.broker.count(RequestCode.UPDATE_CONSUMER_OFFSET) == 0


async def test_a_lock_granted_after_giving_up_is_given_back(make: Make) -> None:
    scene = make()
    scene.holdings.want([queue()])
    holding = scene.holdings.get(queue())
    assert holding is not None
    scene.holdings.release([queue()])
    await until(lambda: scene.broker.count(RequestCode.UNLOCK_BATCH_MQ) == 1)
    scene.lock(holding)  # the answer crossed it
    await until(lambda: scene.broker.holder(queue()) is None)


async def test_a_lock_granted_to_a_former_wish_stays_with_the_present_one(make: Make) -> None:
    scene = make()
    scene.holdings.want([queue()])
    former = scene.holdings.get(queue())
    assert former is not None
    scene.holdings.release([queue()])
    await until(lambda: scene.broker.count(RequestCode.UNLOCK_BATCH_MQ) == 1)
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


# -- resets


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
    assert holding.state is State.OWNED
    await scene.offsets.persist(scene.holdings.committable())
    assert scene.broker.offsets[queue()] == 20


async def test_a_restart_of_what_is_no_longer_ours_does_nothing(make: Make) -> None:
    scene = make()
    holding = await scene.own()
    lane = holding.lane
    assert lane is not None
    scene.holdings.event(holding, Event.DISCONNECTED)
    scene.holdings.restart(lane, 3)
    assert holding.lane is lane
    assert not lane.window.dropped


async def test_a_restart_that_was_overtaken_by_a_loss_is_forgotten(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 20)
    holding = await scene.own()
    lane = holding.lane
    assert lane is not None
    scene.holdings.restart(lane, 3)
    scene.holdings.event(holding, Event.LAPSED)
    scene.broker.offsets[queue()] = 15  # somebody else went on from the reset
    scene.got.clear()
    scene.lock(holding)
    await until(lambda: scene.got == [15, 16, 17, 18, 19])


# -- without locks


async def test_without_locks_a_queue_is_owned_when_it_is_wanted_and_gone_at_once(make: Make) -> None:
    scene = make(handover=Handover.EAGER, consume_thread_min=1, consume_thread_max=1)
    scene.hold_handlers()
    scene.broker.store(queue(), 3)
    scene.holdings.want([queue()])
    assert scene.holdings.owned == {queue()}
    await until(lambda: scene.got == [0])
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
    from rocketfleet.consumer.flow import TopicLimits

    scene = make(topic_limits=TopicLimits(count=100))
    await scene.own(queue(0))
    assert scene.holdings._limits["t"].count == 100
    await scene.own(queue(1))
    assert scene.holdings._limits["t"].count == 50
    scene.holdings.release([queue(0)])
    await scene.gone(queue(0))
    assert scene.holdings._limits["t"].count == 100
