"""A window that was dropped while handlers run: it is idle when the last of them has ended, and whoever waits is told.

Whoever gives a queue up waits for exactly this before letting go of its lock.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from tests.support.clock import Clock
from tests.support.waiting import until
from tests.unit.consumer.messages import several
from tests.unit.consumer.model_broker import queue

from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.concurrent import ConcurrentConsumption, ConcurrentTimings
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.orderly import OrderlyConsumption, OrderlyTimings
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.results import COMMIT, RETRY, SUCCESS
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.message import ReceivedMessage

TIMEOUT = 900.0


class Scene:
    """A service whose handler waits until it is let go, and then answers as told, or raises."""

    def __init__(self, mode: ConsumeMode, *, is_async: bool, batch: bool = False, **settings: Any) -> None:
        self.clock = Clock()
        self.tally = ConsumerCounters()
        self.entered = 0
        self.let_go = threading.Event()
        self.answer: Any = None
        self.sent_back: list[int] = []

        def one(_message: ReceivedMessage) -> Any:
            return self.handle()

        def several_at_once(messages: list[ReceivedMessage]) -> Any:
            return self.handle()

        async def one_async(_message: ReceivedMessage) -> Any:
            return await self.handle_async()

        async def several_async(messages: list[ReceivedMessage]) -> Any:
            return await self.handle_async()

        handlers: dict[tuple[bool, bool], Callable[[Any], Any]] = {
            (False, False): one,
            (False, True): several_at_once,
            (True, False): one_async,
            (True, True): several_async,
        }
        given = {"consume_message_batch_max_size": 4 if batch else 1, "consume_timeout": TIMEOUT, **settings}
        service: Callable[..., OrderlyConsumption | ConcurrentConsumption] = (
            partial(OrderlyConsumption, timings=OrderlyTimings(tick=0.002))
            if mode is ConsumeMode.ORDERLY
            else partial(ConcurrentConsumption, timings=ConcurrentTimings(tick=0.002))
        )
        self.service = service(
            ConsumerSettings("g", (Subscription("t"),), consume_mode=mode, **given),
            inspect_handler(handlers[is_async, batch]),
            self.send_back,
            clock=self.clock,
            tally=self.tally,
        )
        self.lane = Lane(queue(), ProcessQueue(0))
        self.told: list[bool] = []  # whether the window was idle, each time that whoever waits was called
        self.lane.window.on_progress = lambda: self.told.append(self.lane.window.idle)

    async def send_back(self, message: ReceivedMessage, _level: int) -> None:
        self.sent_back.append(message.queue_offset)

    def handle(self) -> Any:
        self.entered += 1
        self.let_go.wait()
        return self.result()

    async def handle_async(self) -> Any:
        self.entered += 1
        await until(self.let_go.is_set)
        return self.result()

    def result(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def begin(self, count: int = 20) -> None:
        self.service.open(self.lane)
        self.lane.window.put(several(0, count), count)
        self.service.offer(self.lane)

    def abandon(self) -> None:
        """As is done with a queue that was lost."""
        self.lane.window.drop()
        self.lane.window.lease_until = 0.0
        self.service.dropped(self.lane)
        self.service.forget(self.lane)

    async def becomes_idle(self) -> None:
        await until(lambda: self.told[-1:] == [True], "whoever waits is told of the end")
        window = self.lane.window
        assert window.idle
        assert (window.count, window.size, window.unfinished, window.uncommitted) == (0, 0, 0, (0, 0))


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., Scene]]:
    scenes: list[Scene] = []

    def make_scene(*args: Any, **kwargs: Any) -> Scene:
        scenes.append(Scene(*args, **kwargs))
        return scenes[-1]

    yield make_scene
    for scene in scenes:
        scene.let_go.set()
        await scene.service.close()


Make = Callable[..., Scene]
modes = pytest.mark.parametrize("mode", list(ConsumeMode), ids=lambda mode: mode.name.lower())
pools = pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])
sizes = pytest.mark.parametrize("batch", [False, True], ids=["single", "batch"])
answers = pytest.mark.parametrize("answer", [None, RETRY, ValueError("no"), "nonsense"], ids=str)


@modes
@pools
@sizes
@answers
async def test_it_is_idle_when_its_last_handler_has_ended(
    make: Make, mode: ConsumeMode, is_async: bool, batch: bool, answer: Any
) -> None:
    scene = make(mode, is_async=is_async, batch=batch)
    scene.begin()
    await until(lambda: scene.entered)
    scene.abandon()
    await asyncio.sleep(0.01)
    begun = scene.entered
    assert not scene.lane.window.idle
    assert scene.lane.window.unfinished
    scene.answer = answer
    scene.let_go.set()
    await scene.becomes_idle()
    assert scene.entered == begun, "nothing more was begun"
    assert scene.sent_back == [], "it is another's by now"


@pools
@sizes
@pytest.mark.parametrize("answer", [SUCCESS, COMMIT, RETRY, ValueError("no")], ids=str)
async def test_also_where_the_handler_commits(make: Make, is_async: bool, batch: bool, answer: Any) -> None:
    scene = make(ConsumeMode.ORDERLY, is_async=is_async, batch=batch, auto_commit=False)
    scene.let_go.set()
    scene.begin(8)
    await until(lambda: scene.lane.uncommitted is not None, "some are handled, and none is committed")
    scene.let_go.clear()
    before = scene.entered
    scene.lane.window.put(several(8, 8), 16)
    scene.service.offer(scene.lane)
    await until(lambda: scene.entered > before)
    scene.abandon()
    await asyncio.sleep(0.01)
    assert not scene.lane.window.idle
    scene.answer = answer
    scene.let_go.set()
    await scene.becomes_idle()


async def test_what_was_only_not_committed_is_let_go_of_at_once(make: Make) -> None:
    scene = make(ConsumeMode.ORDERLY, is_async=False, auto_commit=False)
    scene.let_go.set()
    scene.begin(3)
    await until(lambda: scene.lane.uncommitted is not None)
    scene.abandon()
    assert scene.told[-1]
    assert scene.lane.window.idle


@pools
@sizes
@pytest.mark.parametrize("first", ["dropped", "written off"])
async def test_a_handler_that_hangs_for_longer_than_it_may_is_not_waited_for(
    make: Make, is_async: bool, batch: bool, first: str
) -> None:
    """Before the queue is lost, or only after it; its pool does without the worker in both cases."""
    scene = make(ConsumeMode.CONCURRENT, is_async=is_async, batch=batch, consume_thread_min=1, consume_thread_max=1)
    scene.begin(1)
    await until(lambda: scene.entered)
    if first == "dropped":
        scene.abandon()
        assert not scene.lane.window.idle
        scene.clock.now += TIMEOUT + 1
        await scene.becomes_idle()
        assert scene.sent_back == []
    else:
        scene.clock.now += TIMEOUT + 1
        await until(lambda: scene.sent_back == [0])
        scene.abandon()
        await scene.becomes_idle()
    assert scene.tally.expired == 1
    other = Lane(queue(1), ProcessQueue(0))
    scene.service.open(other)
    other.window.put(several(0, 1), 1)
    scene.service.offer(other)
    await until(lambda: scene.entered == 2, "another worker took its place")
    told = len(scene.told)
    scene.let_go.set()
    await until(lambda: other.window.idle)
    assert scene.lane.window.idle
    assert all(scene.told[told:]), "when it comes back after all, nothing changes"


async def test_a_window_that_is_idle_is_not_looked_after_any_more(make: Make) -> None:
    scene = make(ConsumeMode.CONCURRENT, is_async=False)
    assert isinstance(scene.service, ConcurrentConsumption)
    scene.begin(1)
    await until(lambda: scene.entered)
    scene.abandon()
    assert scene.lane in scene.service._left
    scene.let_go.set()
    await scene.becomes_idle()
    service = scene.service
    await until(lambda: not service._left)
