"""Concurrent consumption on windows in memory: what becomes of messages that succeed, fail, hang or lose their lease.

Handlers run in the real pools. The clock is the test's own: it decides what is late.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.clock import Clock
from tests.support.waiting import turns, until
from tests.unit.consumer.messages import several
from tests.unit.consumer.model_broker import queue

from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.concurrent import EXPIRED_LEVEL, ConcurrentConsumption, ConcurrentTimings
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.results import COMMIT, RETRY, ROLLBACK, SUCCESS, SUSPEND, Retry
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import MessageModel
from rocketfleet.wire.message import ReceivedMessage

QUICK = ConcurrentTimings(tick=0.002, retry_locally_after=0.01)


class Scene:
    """A service, its lanes, and a broker that takes messages back or does not."""

    def __init__(self, handler: Callable[[Any], Any], *, timings: ConcurrentTimings = QUICK, **settings: Any) -> None:
        self.clock = Clock()
        self.tally = ConsumerCounters()
        self.sent_back: list[tuple[int, int]] = []
        self.refuse: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.service = ConcurrentConsumption(
            ConsumerSettings("g", (Subscription("t"),), **settings),
            inspect_handler(handler),
            self.send_back,
            clock=self.clock,
            tally=self.tally,
            timings=timings,
        )

    async def send_back(self, message: ReceivedMessage, level: int) -> None:
        await self.gate.wait()
        if self.refuse is not None:
            raise self.refuse
        self.sent_back.append((message.queue_offset, level))

    def lane(self, count: int, number: int = 0) -> Lane:
        lane = Lane(queue(number), ProcessQueue(0))
        self.service.open(lane)
        lane.window.put(several(0, count, queue_id=number), count)
        self.service.offer(lane)
        return lane

    def drop(self, lane: Lane) -> None:
        lane.window.drop()
        self.service.dropped(lane)


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., Scene]]:
    scenes: list[Scene] = []

    def make_scene(handler: Callable[[Any], Any], **settings: Any) -> Scene:
        scenes.append(Scene(handler, **settings))
        return scenes[-1]

    yield make_scene
    for scene in scenes:
        await scene.service.close()


Make = Callable[..., Scene]


class Handler:
    """Answers as told for an offset; remembers what it got."""

    def __init__(self, answers: dict[int, Any] | None = None) -> None:
        self.answers = answers or {}
        self.got: list[int] = []
        self.times: list[int] = []

    def __call__(self, message: ReceivedMessage) -> object:
        self.got.append(message.queue_offset)
        self.times.append(message.reconsume_times)
        answer = self.answers.get(message.queue_offset)
        if isinstance(answer, BaseException):
            raise answer
        return answer


class AsyncHandler(Handler):
    async def __call__(self, message: ReceivedMessage) -> object:
        await asyncio.sleep(0)
        return super().__call__(message)


both = pytest.mark.parametrize("kind", [Handler, AsyncHandler])


@both
async def test_every_message_is_handled_once_and_all_may_be_committed(make: Make, kind: type[Handler]) -> None:
    handler = kind()
    scene = make(handler)
    lanes = [scene.lane(500, number) for number in range(3)]
    await until(lambda: all(lane.window.committable == 500 and lane.window.idle for lane in lanes))
    assert sorted(handler.got) == sorted(list(range(500)) * 3)
    assert scene.tally.handled == 1500
    assert all((lane.window.count, lane.window.size) == (0, 0) for lane in lanes)
    assert all(lane.moved for lane in lanes)
    assert all(lane.consumed_at == scene.clock.now for lane in lanes)


@both
@pytest.mark.parametrize("answer", [None, True, SUCCESS, COMMIT])
async def test_success_in_all_its_forms(make: Make, kind: type[Handler], answer: object) -> None:
    scene = make(kind({0: answer}))
    lane = scene.lane(1)
    await until(lambda: lane.window.committable == 1)
    assert scene.sent_back == []


@both
@pytest.mark.parametrize(
    ("answer", "level"),
    [
        (False, 0),
        (RETRY, 0),
        (SUSPEND, 0),
        (ROLLBACK, 0),
        (Retry(level=4), 4),
        (Retry(level=-1), -1),
        (ValueError("no"), 0),
        (asyncio.CancelledError(), 0),
        ("nonsense", 0),
    ],
)
async def test_a_failure_is_sent_back_and_the_queue_goes_on(
    make: Make, kind: type[Handler], answer: object, level: int
) -> None:
    scene = make(kind({1: answer}))
    scene.gate.clear()
    lane = scene.lane(3)
    await until(lambda: lane.window.held and len(lane.window._open) == 0)
    assert lane.window.committable == 1, "held until the broker has it"
    scene.gate.set()
    await until(lambda: lane.window.committable == 3)
    assert scene.sent_back == [(1, level)]
    assert scene.tally.failed == 1
    assert (lane.window.count, lane.window.size) == (0, 0)


async def test_a_handler_that_exits_has_failed_and_its_thread_lives(make: Make) -> None:
    """In a task it ends the event loop, as in any asyncio program; in a thread it must not pass for success."""
    scene = make(Handler({0: SystemExit(3)}), consume_thread_min=1, consume_thread_max=1)
    lane = scene.lane(2)
    await until(lambda: lane.window.committable == 2)
    assert scene.sent_back == [(0, 0)]
    assert scene.service.workers == 1


@both
async def test_what_the_broker_does_not_take_back_is_tried_again_here(make: Make, kind: type[Handler]) -> None:
    handler = kind({1: RETRY})
    scene = make(handler)
    scene.refuse = ConnectionError("gone")
    lane = scene.lane(3)
    await until(lambda: handler.got.count(1) == 3)
    assert lane.window.committable == 1
    handler.answers[1] = SUCCESS
    await until(lambda: lane.window.committable == 3)
    assert scene.sent_back == []
    tries = [times for offset, times in zip(handler.got, handler.times, strict=True) if offset == 1]
    assert tries == list(range(len(tries))), "each try is counted"
    assert scene.tally.send_back_failed == len(tries) - 1
    assert (lane.window.count, lane.window.size) == (0, 0)


async def test_what_is_tried_again_here_may_be_sent_back_later(make: Make) -> None:
    handler = Handler({0: RETRY})
    scene = make(handler)
    scene.refuse = ConnectionError("gone")
    lane = scene.lane(1)
    await until(lambda: handler.got.count(0) == 2)
    scene.refuse = None
    await until(lambda: lane.window.committable == 1)
    assert scene.sent_back == [(0, 0)]


async def test_a_drop_does_not_wait_for_local_retries(make: Make) -> None:
    handler = Handler({1: RETRY})
    scene = make(handler, timings=replace(QUICK, retry_locally_after=3600.0))
    scene.refuse = ConnectionError("gone")
    lane = scene.lane(3)
    await until(lambda: lane.again)
    scene.drop(lane)
    await until(lambda: lane.window.idle)  # another message may still be with the handler
    assert lane.window.committable == 1, "the next owner gets it"
    assert (lane.window.count, lane.again) == (0, {})


async def test_what_fails_while_the_lease_is_doubtful_is_neither_sent_back_nor_forgotten(make: Make) -> None:
    """A broken connection puts the lease on hold; the same failure must be settled when it is trusted again."""
    entered, go = threading.Event(), threading.Event()
    answers: list[object] = [RETRY, SUCCESS]

    def handler(message: ReceivedMessage) -> object:
        if message.queue_offset:
            return SUCCESS
        entered.set()
        go.wait()
        return answers.pop(0)

    scene = make(handler)
    lane = scene.lane(1)
    await until(entered.is_set)
    lane.window.lease_until = 0.0  # HOLD
    go.set()
    await until(lambda: scene.tally.failed == 1)
    await turns(50)
    assert scene.sent_back == []
    assert lane.window.committable == 0
    lane.window.lease_until = float("inf")  # RESUME
    scene.service.offer(lane)
    await until(lambda: lane.window.committable == 1 and lane.window.idle)
    lane.window.put(several(1, 2), 3)
    scene.service.offer(lane)
    await until(lambda: lane.window.committable == 3)
    assert answers == []


@both
async def test_outside_its_lease_a_lane_is_left_alone_and_costs_nothing(make: Make, kind: type[Handler]) -> None:
    handler = kind()
    scene = make(handler)
    lane = Lane(queue(), ProcessQueue(0))
    lane.window.lease_until = 0.0
    scene.service.open(lane)
    lane.window.put(several(0, 10), 10)
    served = 0
    take = lane.window.take

    class Watched(ProcessQueue[ReceivedMessage]):
        __slots__ = ()

        def take(self, limit: int) -> Any:
            nonlocal served
            served += 1
            return take(limit)

    lane.window.__class__ = Watched
    scene.service.offer(lane)
    for _ in range(20):
        await asyncio.sleep(0.002)
    assert handler.got == []
    assert served == 0, "workers must not turn in circles while a lease is doubtful"
    lane.window.lease_until = float("inf")  # extended without a word to the service: the tick finds it
    await until(lambda: lane.window.committable == 10)


@both
async def test_a_lease_that_runs_out_in_the_middle_of_a_run_ends_it(make: Make, kind: type[Handler]) -> None:
    scene = make(kind())
    scene.service._pace.note(0.0, 1000)  # quick: one run takes all
    lane = Lane(queue(), ProcessQueue(0))
    lane.window.lease_until = scene.clock.now + 1.0

    got: list[int] = []

    def late(message: ReceivedMessage) -> None:
        got.append(message.queue_offset)
        if message.queue_offset == 4:
            scene.clock.now += 2.0

    async def async_late(message: ReceivedMessage) -> None:
        late(message)

    object.__setattr__(scene.service._handler, "call", late if kind is Handler else async_late)
    scene.service.open(lane)
    lane.window.put(several(0, 10), 10)
    scene.service.offer(lane)
    await until(lambda: lane.window.committable == 5 and not lane.window._open)
    await turns(20)
    assert got == [0, 1, 2, 3, 4]
    assert lane.window.buffered == 5


async def test_a_failure_after_the_queue_was_lost_is_not_sent_back(make: Make) -> None:
    entered, go = threading.Event(), threading.Event()

    def handler(_message: ReceivedMessage) -> object:
        entered.set()
        go.wait()
        return RETRY

    scene = make(handler)
    lane = scene.lane(2)
    await until(entered.is_set)
    scene.drop(lane)
    lane.window.lease_until = 0.0  # abandoned
    go.set()
    await until(lambda: lane.window.idle)
    await turns()
    assert scene.sent_back == []
    assert lane.window.committable == 0


async def test_a_failure_while_leaving_is_still_sent_back(make: Make) -> None:
    entered, go = threading.Event(), threading.Event()

    def handler(_message: ReceivedMessage) -> object:
        entered.set()
        go.wait()
        return RETRY

    scene = make(handler)
    lane = scene.lane(1)
    await until(entered.is_set)
    scene.drop(lane)
    assert not lane.window.idle
    go.set()
    await until(lambda: lane.window.idle)
    assert scene.sent_back == [(0, 0)]
    assert lane.window.committable == 1


# -- batches ----------------------------------------------------------------------------------------------------------


def batches_of(answers: Callable[[list[int]], object], got: list[list[int]]) -> Callable[..., object]:
    def handler(messages: list[ReceivedMessage]) -> object:
        got.append([message.queue_offset for message in messages])
        return answers(got[-1])

    return handler


def async_batches_of(answers: Callable[[list[int]], object], got: list[list[int]]) -> Callable[..., object]:
    async def handler(messages: list[ReceivedMessage]) -> object:
        got.append([message.queue_offset for message in messages])
        return answers(got[-1])

    return handler


batch_kinds = pytest.mark.parametrize("kind", [batches_of, async_batches_of])


@batch_kinds
async def test_a_batch_holds_at_most_as_many_as_the_settings_say(make: Make, kind: Any) -> None:
    got: list[list[int]] = []
    scene = make(kind(lambda _offsets: None, got), consume_message_batch_max_size=4)
    lane = scene.lane(10)
    await until(lambda: lane.window.committable == 10)
    assert sorted(offset for batch in got for offset in batch) == list(range(10))
    assert max(map(len, got)) <= 4
    assert all(batch == list(range(batch[0], batch[0] + len(batch))) for batch in got)


@batch_kinds
async def test_each_message_of_a_batch_may_have_its_own_result(make: Make, kind: Any) -> None:
    got: list[list[int]] = []

    def answers(offsets: list[int]) -> object:
        return [RETRY if offset == 1 else Retry(level=5) if offset == 3 else None for offset in offsets]

    scene = make(kind(answers, got), consume_message_batch_max_size=4)
    lane = scene.lane(4)
    await until(lambda: lane.window.committable == 4)
    assert sorted(scene.sent_back) == [(1, 0), (3, 5)]
    assert (lane.window.count, lane.window.size) == (0, 0)


@batch_kinds
@pytest.mark.parametrize("answer", [RETRY, [RETRY, None, None], []])
async def test_one_result_is_for_all_and_a_wrong_number_of_results_is_a_failure_of_all(
    make: Make, kind: Any, answer: object
) -> None:
    got: list[list[int]] = []
    scene = make(kind(lambda _offsets: answer, got), consume_message_batch_max_size=4)
    lane = scene.lane(4)
    await until(lambda: lane.window.committable == 4)
    assert sorted(scene.sent_back) == [(0, 0), (1, 0), (2, 0), (3, 0)]


@batch_kinds
async def test_a_batch_that_raises_comes_again_as_a_whole(make: Make, kind: Any) -> None:
    got: list[list[int]] = []

    def raises(_offsets: list[int]) -> object:
        raise ValueError("no")

    scene = make(kind(raises, got), consume_message_batch_max_size=2)
    lane = scene.lane(2)
    await until(lambda: lane.window.committable == 2)
    assert sorted(scene.sent_back) == [(0, 0), (1, 0)]


# -- slow and hanging handlers ----------------------------------------------------------------------------------------


async def test_what_a_slow_message_keeps_others_from_is_taken_over(make: Make) -> None:
    go = threading.Event()
    done: list[int] = []

    def handler(message: ReceivedMessage) -> None:
        if message.queue_offset == 0:
            go.wait()
        done.append(message.queue_offset)

    scene = make(handler)
    scene.service._pace.note(0.0, 1000)  # thought to be quick: one run takes everything
    lane = scene.lane(20)
    await until(lambda: lane.window._open)
    scene.clock.now += 1.0
    await until(lambda: len(done) == 19)
    assert lane.window.committable == 0
    go.set()
    await until(lambda: lane.window.committable == 20)
    assert sorted(done) == list(range(20))


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_handler_that_hangs_loses_its_message_to_the_broker(make: Make, is_async: bool) -> None:
    go, entered = threading.Event(), threading.Event()
    async_go = asyncio.Event()

    def hangs(message: ReceivedMessage) -> object:
        if message.queue_offset == 1:
            entered.set()
            go.wait()
            return RETRY
        return SUCCESS

    async def async_hangs(message: ReceivedMessage) -> object:
        if message.queue_offset == 1:
            entered.set()
            await async_go.wait()
            return RETRY
        return SUCCESS

    scene = make(async_hangs if is_async else hangs, consume_timeout=60.0)
    lane = scene.lane(3)
    await until(entered.is_set)
    scene.clock.now += 59.0
    await until(lambda: lane.window.count == 1, "the others are done")
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert scene.sent_back == []
    scene.clock.now += 2.0
    await until(lambda: lane.window.committable == 3)
    assert scene.sent_back == [(1, EXPIRED_LEVEL)]
    assert scene.tally.expired == 1
    go.set()
    async_go.set()
    await until(lambda: scene.tally.failed == 1)
    await turns()
    assert scene.sent_back == [(1, EXPIRED_LEVEL)], "what it answers in the end no longer counts"
    assert (lane.window.count, lane.window.size) == (0, 0)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_queue_goes_on_even_if_every_worker_hangs(make: Make, is_async: bool) -> None:
    go, async_go, done = threading.Event(), asyncio.Event(), list[int]()

    def hangs(message: ReceivedMessage) -> None:
        if message.queue_offset < 2:
            go.wait()
        done.append(message.queue_offset)

    async def async_hangs(message: ReceivedMessage) -> None:
        if message.queue_offset < 2:
            await async_go.wait()
        done.append(message.queue_offset)

    handler = async_hangs if is_async else hangs
    scene = make(handler, consume_timeout=1.0, consume_thread_min=2, consume_thread_max=2)
    lane = scene.lane(6)
    await until(lambda: len(lane.window._open) == 2)
    scene.clock.now += 2.0
    await until(lambda: lane.window.committable == 6)
    assert sorted(done) == [2, 3, 4, 5]
    assert sorted(scene.sent_back) == [(0, EXPIRED_LEVEL), (1, EXPIRED_LEVEL)]
    go.set()
    async_go.set()
    await until(lambda: len(done) == 6)


# -- broadcasting -----------------------------------------------------------------------------------------------------


@both
async def test_broadcasting_drops_failures_and_says_so(
    make: Make, kind: type[Handler], caplog: pytest.LogCaptureFixture
) -> None:
    scene = make(kind({1: RETRY, 2: ValueError("no")}), message_model=MessageModel.BROADCASTING)
    lane = scene.lane(4)
    await until(lambda: lane.window.committable == 4)
    assert scene.sent_back == []
    assert "broadcasting does not retry" in caplog.text
    assert (lane.window.count, scene.tally.failed) == (0, 2)


async def test_broadcasting_lets_go_of_what_hangs(make: Make) -> None:
    go, entered = threading.Event(), threading.Event()

    def hangs(_message: ReceivedMessage) -> None:
        entered.set()
        go.wait()

    scene = make(hangs, message_model=MessageModel.BROADCASTING, consume_timeout=1.0)
    lane = scene.lane(1)
    await until(entered.is_set)
    scene.clock.now += 2.0
    await until(lambda: lane.window.committable == 1)
    assert scene.sent_back == []
    go.set()


# -- how many at once -------------------------------------------------------------------------------------------------


async def test_slow_messages_are_handled_side_by_side(make: Make) -> None:
    inside, most = 0, 0
    lock, go = threading.Lock(), threading.Event()

    def handler(_message: ReceivedMessage) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        go.wait()
        with lock:
            inside -= 1

    scene = make(handler, consume_thread_min=5, consume_thread_max=5)
    lane = scene.lane(50)
    await until(lambda: inside == 5)
    assert scene.service.workers == 5
    go.set()
    await until(lambda: lane.window.committable == 50)
    assert most == 5


async def test_asynchronous_handlers_run_side_by_side_up_to_the_maximum(make: Make) -> None:
    inside, most, go = 0, 0, asyncio.Event()

    async def handler(_message: ReceivedMessage) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await go.wait()
        inside -= 1

    scene = make(handler, consume_thread_min=1, consume_thread_max=7)
    lane = scene.lane(50)
    await until(lambda: inside == 7)
    await turns()
    assert most == 7
    go.set()
    await until(lambda: lane.window.committable == 50)
    assert most == 7


async def test_closing_leaves_a_handler_that_hangs_behind(make: Make) -> None:
    go, entered = threading.Event(), threading.Event()

    def hangs(_message: ReceivedMessage) -> None:
        entered.set()
        go.wait()

    scene = make(hangs)
    lane = scene.lane(1)
    await until(entered.is_set)
    await scene.service.close()
    go.set()
    await until(lambda: scene.service.workers == 0)
    assert lane.window.committable == 1


# -- trouble that no handler made -------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["cancelled from outside", "cancelled from inside", "cancelled before it began"])
async def test_a_message_that_could_not_be_settled_is_not_held_for_ever(
    make: Make, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    handler = Handler({0: RETRY})
    scene = make(handler)
    once = [True]

    async def send_back(message: ReceivedMessage, level: int) -> None:
        if once and once.pop():
            if end == "cancelled from outside":
                [task] = scene.service._settling
                task.cancel()
                await asyncio.sleep(0)
            raise asyncio.CancelledError
        await scene.send_back(message, level)

    scene.service._send_back = send_back
    if end == "cancelled before it began":
        settle = scene.service._settle

        def cancelled(*arguments: Any) -> None:
            settle(*arguments)
            if once and once.pop():
                [task] = scene.service._settling
                task.cancel()

        monkeypatch.setattr(scene.service, "_settle", cancelled)
    lane = scene.lane(2)
    await until(lambda: lane.window.committable == 2 and lane.window.idle)
    assert handler.got.count(0) == 2
    assert scene.sent_back == [(0, 0)]


async def test_a_message_that_cannot_be_read_comes_again_and_its_run_goes_on(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even its id can be named in the log."""

    def unreadable(_message: ReceivedMessage) -> str:
        raise ValueError("the properties cannot be read")

    def handler(message: ReceivedMessage) -> object:
        return message.msg_id

    monkeypatch.setattr(ReceivedMessage, "msg_id", property(unreadable))
    scene = make(handler)
    lane = scene.lane(3)
    await until(lambda: lane.window.committable == 3 and lane.window.idle)
    assert sorted(scene.sent_back) == [(0, 0), (1, 0), (2, 0)]


async def test_a_look_that_fails_is_survived(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = make(Handler())
    looked = []
    nudge = scene.service._workers.nudge

    def broken() -> None:
        looked.append(1)
        if len(looked) == 1:
            raise RuntimeError("odd")
        nudge()

    monkeypatch.setattr(scene.service._workers, "nudge", broken)
    await until(lambda: len(looked) > 2)


async def test_a_run_that_fails_outside_its_handler_is_given_back(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    handler = Handler({0: RETRY})
    scene = make(handler)
    judge, failures = scene.service._judge, iter([SystemExit(1), ValueError("a bug")])

    def broken(*arguments: Any) -> None:
        for error in failures:
            raise error
        judge(*arguments)

    monkeypatch.setattr(scene.service, "_judge", broken)
    lane = scene.lane(3)
    await until(lambda: lane.window.committable == 3 and lane.window.idle)
    assert handler.got.count(0) == 3
    await until(lambda: caplog.text.count("this is a bug in the consumer") == 2)


# -- cancellations of all sorts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [False, True])
async def test_a_handler_that_cancels_its_task_has_failed_and_another_task_goes_on(make: Make, batch: bool) -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def handle() -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        if len(tasks) == 1:
            task.cancel()
            await asyncio.sleep(0)

    async def one(_message: ReceivedMessage) -> None:
        await handle()

    async def several_at_once(messages: list[ReceivedMessage]) -> None:
        await handle()

    scene = make(several_at_once if batch else one, consume_thread_max=1, consume_thread_min=1)
    lane = scene.lane(5)
    await until(lambda: lane.window.committable == 5 and lane.window.idle)
    assert scene.sent_back == [(0, 0)]
    assert len(tasks) == 5
    assert tasks[0] not in tasks[1:]


def test_who_ends_the_loop_without_stopping_waits_for_one_handler_at_most() -> None:
    got: list[int] = []

    async def handler(message: ReceivedMessage) -> None:
        got.append(message.queue_offset)
        await asyncio.sleep(3600)

    async def main() -> None:
        scene = Scene(handler, consume_thread_max=2, consume_thread_min=1)
        scene.lane(50)
        await until(lambda: len(got) == 2)

    asyncio.run(main())  # which cancels what is left, and waits for it
    assert len(got) == 2
