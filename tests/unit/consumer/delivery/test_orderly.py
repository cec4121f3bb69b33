"""Orderly consumption on windows in memory: one message after the other, whatever happens to them."""

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
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.orderly import OrderlyConsumption, OrderlyTimings
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.results import (
    COMMIT,
    DEAD_LETTER_LEVEL,
    RETRY,
    ROLLBACK,
    SUCCESS,
    SUSPEND,
    Retry,
)
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.message import ReceivedMessage

QUICK = OrderlyTimings(tick=0.002)


class Scene:
    def __init__(self, handler: Callable[[Any], Any], *, timings: OrderlyTimings = QUICK, **settings: Any) -> None:
        self.clock = Clock()
        self.tally = ConsumerCounters()
        self.buried: list[int] = []
        self.refuse: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        given = {"suspend_current_queue_time": 0.01, "consume_mode": ConsumeMode.ORDERLY, **settings}
        self.service = OrderlyConsumption(
            ConsumerSettings("g", (Subscription("t"),), **given),
            inspect_handler(handler),
            self.send_back,
            clock=self.clock,
            tally=self.tally,
            timings=timings,
        )

    async def send_back(self, message: ReceivedMessage, level: int) -> None:
        assert level == DEAD_LETTER_LEVEL
        await self.gate.wait()
        if self.refuse is not None:
            raise self.refuse
        self.buried.append(message.queue_offset)

    def lane(self, count: int, number: int = 0) -> Lane:
        lane = Lane(queue(number), ProcessQueue(0))
        self.service.open(lane)
        self.put(lane, count)
        return lane

    def put(self, lane: Lane, count: int) -> None:
        first = lane.window.next_offset
        lane.window.put(several(first, count, queue_id=lane.queue.queue_id), first + count)
        self.service.offer(lane)

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
    """Answers from a list of answers for an offset, the last of them for good; remembers what it got."""

    def __init__(self, answers: dict[int, list[Any]] | None = None) -> None:
        self.answers = answers or {}
        self.got: list[int] = []
        self.times: list[int] = []

    def __call__(self, message: ReceivedMessage) -> object:
        self.got.append(message.queue_offset)
        self.times.append(message.reconsume_times)
        answers = self.answers.get(message.queue_offset, [None])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class AsyncHandler(Handler):
    async def __call__(self, message: ReceivedMessage) -> object:
        await asyncio.sleep(0)
        return super().__call__(message)


both = pytest.mark.parametrize("kind", [Handler, AsyncHandler])


@both
async def test_messages_come_in_order_and_one_at_a_time(make: Make, kind: type[Handler]) -> None:
    handlers = [kind() for _ in range(4)]

    def dispatch(message: ReceivedMessage) -> object:
        return handlers[message.queue_id](message)

    async def dispatch_async(message: ReceivedMessage) -> object:
        answer = handlers[message.queue_id](message)
        return await answer  # type: ignore[misc]  # asynchronous in this branch

    scene = make(dispatch if kind is Handler else dispatch_async)
    lanes = [scene.lane(0, number) for number in range(4)]
    for _ in range(30):
        for lane in lanes:
            scene.put(lane, 20)
        await asyncio.sleep(0)
    await until(lambda: all(lane.window.committable == 600 and lane.window.idle for lane in lanes))
    assert all(handler.got == list(range(600)) for handler in handlers)
    assert scene.tally.handled == 2400
    assert all((lane.window.count, lane.window.size) == (0, 0) for lane in lanes)


@both
@pytest.mark.parametrize("answer", [False, RETRY, SUSPEND, ROLLBACK, ValueError("no"), "nonsense", Retry(seconds=0.01)])
async def test_a_message_that_fails_comes_again_before_any_other(
    make: Make, kind: type[Handler], answer: object
) -> None:
    handler = kind({1: [answer, answer, None]})
    scene = make(handler)
    lane = scene.lane(4)
    await until(lambda: lane.window.committable == 4)
    assert handler.got == [0, 1, 1, 1, 2, 3]
    if answer is not ROLLBACK:
        assert handler.times == [0, 0, 1, 2, 0, 0], "each try is counted"
    assert scene.tally.failed == 2
    assert scene.buried == []


@pytest.mark.parametrize(
    ("kind", "error"), [(Handler, SystemExit(1)), (AsyncHandler, asyncio.CancelledError()), (Handler, StopIteration())]
)
async def test_what_escapes_a_handler_is_a_failure_like_any_other(
    make: Make, kind: type[Handler], error: BaseException
) -> None:
    handler = kind({0: [error, None]})
    scene = make(handler)
    lane = scene.lane(2)
    await until(lambda: lane.window.committable == 2)
    assert handler.got == [0, 0, 1]


async def test_the_queue_pauses_and_others_do_not(make: Make) -> None:
    handler = Handler({0: [SUSPEND]})
    others = Handler()

    def dispatch(message: ReceivedMessage) -> object:
        return (others if message.queue_id else handler)(message)

    scene = make(dispatch, suspend_current_queue_time=30.0, consume_thread_min=1, consume_thread_max=1)
    suspended = scene.lane(3)
    await until(lambda: handler.got == [0])
    other = scene.lane(50, 1)
    await until(lambda: other.window.committable == 50)
    scene.put(suspended, 5)
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert handler.got == [0], "neither new messages nor the tick end the pause"
    assert suspended.window.committable == 0


@both
async def test_after_all_its_tries_a_message_goes_to_the_dead_letters(make: Make, kind: type[Handler]) -> None:
    handler = kind({1: [RETRY]})
    scene = make(handler, max_reconsume_times=2)
    lane = scene.lane(3)
    await until(lambda: lane.window.committable == 3)
    assert handler.got == [0, 1, 1, 1, 2]
    assert scene.buried == [1]
    assert (lane.window.count, lane.window.size) == (0, 0)


async def test_without_a_limit_it_is_tried_for_ever(make: Make) -> None:
    handler = Handler({0: [RETRY]})
    scene = make(handler)
    scene.lane(1)
    await until(lambda: len(handler.got) >= 25)
    assert scene.buried == []


async def test_dead_letters_that_do_not_take_it_leave_it_in_its_place(make: Make) -> None:
    handler = Handler({0: [RETRY]})
    scene = make(handler, max_reconsume_times=0)
    scene.refuse = ConnectionError("gone")
    lane = scene.lane(2)
    await until(lambda: len(handler.got) >= 3)
    assert set(handler.got) == {0}
    assert lane.window.committable == 0
    scene.refuse = None
    await until(lambda: lane.window.committable == 2)
    assert scene.buried == [0]
    assert handler.got[-1] == 1


async def test_a_handover_waits_for_a_message_on_its_way_to_the_dead_letters(make: Make) -> None:
    """Else it would be buried here and handled again by the next owner."""
    handler = Handler({0: [RETRY]})
    scene = make(handler, max_reconsume_times=0)
    scene.gate.clear()
    lane = scene.lane(2)
    await until(lambda: handler.got == [0] and scene.service._settling)
    await turns()
    scene.drop(lane)
    assert not lane.window.idle
    scene.gate.set()
    await until(lambda: lane.window.idle)
    assert scene.buried == [0]
    assert lane.window.committable == 1


async def test_outside_the_lease_nothing_is_delivered_until_it_is_back(make: Make) -> None:
    handler = Handler()
    scene = make(handler)
    lane = Lane(queue(), ProcessQueue(0))
    lane.window.lease_until = 0.0
    scene.service.open(lane)
    scene.put(lane, 3)
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert handler.got == []
    lane.window.lease_until = float("inf")
    await until(lambda: lane.window.committable == 3)


async def test_a_drop_ends_the_turn_after_the_message_in_hand(make: Make) -> None:
    entered, go = threading.Event(), threading.Event()
    got: list[int] = []

    def handler(message: ReceivedMessage) -> None:
        got.append(message.queue_offset)
        entered.set()
        go.wait()

    scene = make(handler)
    lane = scene.lane(5)
    await until(entered.is_set)
    scene.drop(lane)
    assert not lane.window.idle
    go.set()
    await until(lambda: lane.window.idle)
    assert got == [0]
    assert lane.window.committable == 1


@pytest.mark.parametrize(("kind", "auto_commit"), [("_plain_turn", True), ("_turn", False)])
async def test_a_turn_ends_in_time_and_the_next_goes_on(
    make: Make, monkeypatch: pytest.MonkeyPatch, kind: str, auto_commit: bool
) -> None:
    turn_count = 0
    handler = Handler()
    scene = make(handler, timings=replace(QUICK, turn=5.0), auto_commit=auto_commit)
    turn = getattr(scene.service, kind)

    def counted(*arguments: Any) -> Any:
        nonlocal turn_count
        turn_count += 1
        return turn(*arguments)

    monkeypatch.setattr(scene.service, kind, counted)

    class Slow(Handler):
        def __call__(self, message: ReceivedMessage) -> object:
            super().__call__(message)
            scene.clock.now += 1.0
            return COMMIT

    slow = Slow()
    object.__setattr__(scene.service._handler, "call", slow)
    lane = scene.lane(20)
    await until(lambda: lane.window.committable == 20)
    assert slow.got == list(range(20))
    assert turn_count >= 4


# -- without auto-commit ----------------------------------------------------------------------------------------------


def manual(answers: dict[int, list[Any]], kind: type[Handler] = Handler) -> Handler:
    return kind({offset: answers.get(offset, [SUCCESS]) for offset in range(100)})


@both
async def test_only_a_commit_commits_and_it_commits_all_before_it(make: Make, kind: type[Handler]) -> None:
    handler = manual({2: [COMMIT], 6: [COMMIT]}, kind)
    scene = make(handler, auto_commit=False)
    lane = scene.lane(5)
    await until(lambda: handler.got == [0, 1, 2, 3, 4])
    await turns()
    assert lane.window.committable == 3
    scene.put(lane, 3)
    await until(lambda: handler.got == list(range(8)))
    await until(lambda: lane.window.committable == 7)
    assert not lane.window.idle, "the last one is handled and not committed"


@both
async def test_a_rollback_gives_everything_since_the_last_commit_again(make: Make, kind: type[Handler]) -> None:
    handler = manual({1: [COMMIT], 4: [ROLLBACK, COMMIT]}, kind)
    scene = make(handler, auto_commit=False)
    lane = scene.lane(5)
    await until(lambda: lane.window.committable == 5)
    assert handler.got == [0, 1, 2, 3, 4, 2, 3, 4]


@both
async def test_a_message_that_fails_comes_again_alone(make: Make, kind: type[Handler]) -> None:
    handler = manual({2: [RETRY, RETRY, SUCCESS], 4: [COMMIT]}, kind)
    scene = make(handler, auto_commit=False)
    lane = scene.lane(5)
    await until(lambda: lane.window.committable == 5)
    assert handler.got == [0, 1, 2, 2, 2, 3, 4]
    assert (lane.window.count, lane.window.size) == (0, 0)


async def test_a_dead_letter_among_uncommitted_messages_leaves_them_as_they_are(make: Make) -> None:
    handler = manual({2: [RETRY]})
    scene = make(handler, auto_commit=False, max_reconsume_times=1)
    lane = scene.lane(4)
    await until(lambda: handler.got == [0, 1, 2, 2, 3])
    await turns()
    assert scene.buried == [2]
    assert lane.window.committable == 0
    handler.answers[4] = [COMMIT]
    scene.put(lane, 1)
    await until(lambda: lane.window.committable == 5)
    assert handler.got == [0, 1, 2, 2, 3, 4]


async def test_the_end_of_a_turn_is_not_a_rollback(make: Make) -> None:
    handler = manual({9: [COMMIT]})
    scene = make(handler, timings=replace(QUICK, turn=3.0), auto_commit=False)

    def slow(message: ReceivedMessage) -> object:
        scene.clock.now += 1.0
        return handler(message)

    object.__setattr__(scene.service._handler, "call", slow)
    lane = scene.lane(10)
    await until(lambda: lane.window.committable == 10)
    assert handler.got == list(range(10))


async def test_a_doubtful_lease_is_not_a_rollback(make: Make) -> None:
    handler = manual({3: [COMMIT]})
    scene = make(handler, auto_commit=False)
    lane = scene.lane(2)
    await until(lambda: handler.got == [0, 1] and lane.uncommitted is not None)
    lane.window.lease_until = 0.0
    scene.put(lane, 2)
    for _ in range(10):
        await asyncio.sleep(0.002)
    assert handler.got == [0, 1]
    lane.window.lease_until = float("inf")
    await until(lambda: lane.window.committable == 4)
    assert handler.got == [0, 1, 2, 3]


async def test_what_was_not_committed_belongs_to_the_next_owner(make: Make) -> None:
    handler = manual({1: [COMMIT]})
    scene = make(handler, auto_commit=False)
    lane = scene.lane(4)
    await until(lambda: handler.got == [0, 1, 2, 3] and lane.uncommitted is not None)
    scene.drop(lane)
    await until(lambda: lane.window.idle)
    assert lane.window.committable == 2
    assert lane.window.count == 0


async def test_a_drop_in_the_middle_of_a_turn_commits_only_what_was_committed(make: Make) -> None:
    entered, go = threading.Event(), threading.Event()

    def handler(message: ReceivedMessage) -> object:
        if message.queue_offset == 2:
            entered.set()
            go.wait()
        return COMMIT if message.queue_offset == 0 else SUCCESS

    scene = make(handler, auto_commit=False)
    lane = scene.lane(5)
    await until(entered.is_set)
    scene.drop(lane)
    go.set()
    await until(lambda: lane.window.idle)
    assert lane.window.committable == 1


# -- batches ----------------------------------------------------------------------------------------------------------


async def test_a_batch_succeeds_or_comes_again_as_a_whole(make: Make) -> None:
    got: list[list[int]] = []
    answers: list[object] = [SUCCESS, RETRY, SUCCESS, SUCCESS]

    def handler(messages: list[ReceivedMessage]) -> object:
        got.append([message.queue_offset for message in messages])
        return answers.pop(0)

    scene = make(handler, consume_message_batch_max_size=3)
    lane = scene.lane(7)
    await until(lambda: lane.window.committable == 7)
    assert got == [[0, 1, 2], [3, 4, 5], [3, 4, 5], [6]]


async def test_of_a_batch_out_of_tries_the_messages_are_buried_one_by_one(make: Make) -> None:
    got: list[list[int]] = []

    def handler(messages: list[ReceivedMessage]) -> object:
        got.append([message.queue_offset for message in messages])
        return SUCCESS if got[-1][0] >= 2 else RETRY

    scene = make(handler, consume_message_batch_max_size=2, max_reconsume_times=1)
    lane = scene.lane(4)
    await until(lambda: lane.window.committable == 4)
    assert scene.buried == [0, 1]
    assert got == [[0, 1], [0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize("is_async", [False, True])
async def test_each_message_of_a_batch_may_have_its_own_result(make: Make, is_async: bool) -> None:
    got: list[list[int]] = []
    answers: list[list[object]] = [[SUCCESS, None, RETRY, SUCCESS], [SUCCESS, True]]

    def handler(messages: list[ReceivedMessage]) -> object:
        got.append([message.queue_offset for message in messages])
        return answers.pop(0)

    async def handler_async(messages: list[ReceivedMessage]) -> object:
        return handler(messages)

    scene = make(handler_async if is_async else handler, consume_message_batch_max_size=4)
    lane = scene.lane(4)
    await until(lambda: lane.window.committable == 4)
    assert got == [[0, 1, 2, 3], [2, 3]], "from the first failure on"


# -- a handler that commits where it likes ----------------------------------------------------------------------------


@both
async def test_what_is_committed_makes_room_also_in_the_middle_of_a_run(make: Make, kind: type[Handler]) -> None:
    """Else a handler that commits every so often, but never at the end of what there is, would stop the pulling."""
    handler = kind({offset: [COMMIT if offset % 5 == 3 else SUCCESS] for offset in range(200)})
    scene = make(handler, auto_commit=False)
    lane = scene.lane(0)
    called: list[int] = []
    lane.window.on_progress = lambda: called.append(lane.window.count)
    for handled in range(7, 190, 7):
        scene.put(lane, 7)
        committed = max((handled + 1) // 5 * 5 - 1, 0)
        await until(lambda left=handled - committed: lane.window.count == left)  # type: ignore[misc]  # bound now
        assert handler.got == list(range(handled))
        assert lane.window.committable == committed
        assert lane.window.uncommitted == (lane.window.count, lane.window.size)
    assert called, "whoever waits for room is told"
    scene.drop(lane)
    assert lane.window.idle
    assert (lane.window.count, lane.window.uncommitted) == (0, (0, 0))


async def test_what_is_handled_and_not_committed_is_told_apart(make: Make) -> None:
    handler = manual({30: [COMMIT]})
    scene = make(handler, auto_commit=False)
    lane = scene.lane(30)
    await until(lambda: lane.uncommitted is not None)
    assert lane.window.uncommitted == (30, lane.window.size)
    scene.put(lane, 1)
    await until(lambda: lane.window.committable == 31)
    assert lane.window.uncommitted == (0, 0)
    handler.answers[32] = [ROLLBACK]
    scene.put(lane, 2)
    await until(lambda: handler.got.count(31) > 1)
    assert lane.window.uncommitted[0] <= 1, "a rollback takes it back"


# -- one queue, several ownerships ------------------------------------------------------------------------------------


class Held:
    """A handler that notices when one queue is served twice at once, and lets a message go only when told."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.inside = 0
        self.most = 0
        self.let_go = threading.Semaphore(0)
        self._writing = threading.Lock()

    def __call__(self, message: ReceivedMessage) -> None:
        self.enter(message)
        self.let_go.acquire()
        self.leave()

    def enter(self, message: ReceivedMessage) -> None:
        with self._writing:
            self.got.append(message.queue_offset)
            self.inside += 1
            self.most = max(self.most, self.inside)

    def leave(self) -> None:
        with self._writing:
            self.inside -= 1


class AsyncHeld(Held):
    async def __call__(self, message: ReceivedMessage) -> None:  # type: ignore[override]  # asynchronous here
        self.enter(message)
        await until(lambda: self.let_go.acquire(blocking=False))
        self.leave()


@pytest.mark.parametrize("kind", [Held, AsyncHeld])
@pytest.mark.parametrize("auto_commit", [True, False])
async def test_a_queue_that_is_ours_again_waits_for_the_handler_from_before(
    make: Make, kind: type[Held], auto_commit: bool
) -> None:
    handler = kind()
    scene = make(handler, auto_commit=auto_commit)
    first = scene.lane(3)
    await until(lambda: handler.got == [0])
    lanes = [first]
    for _ in range(3):  # lost and regained, again and again
        scene.drop(lanes[-1])
        scene.service.forget(lanes[-1])
        lanes.append(scene.lane(4))
    other = scene.lane(1, 1)
    await until(lambda: handler.got == [0, 0], "another queue has nothing to do with it")
    for _ in range(20):
        await asyncio.sleep(0.002)
    assert handler.got == [0, 0]
    handler.let_go.release(100)
    await until(lambda: handler.got == [0, 0, 0, 1, 2, 3], "and goes on at once")
    await until(lambda: all(lane.window.idle for lane in lanes[:-1]))
    if auto_commit:
        await until(lambda: other.window.idle and lanes[-1].window.committable == 4)
    assert handler.most == 2


async def test_a_queue_that_is_ours_again_goes_on_without_the_tick(make: Make) -> None:
    handler = Held()
    scene = make(handler, timings=replace(QUICK, tick=3600.0))
    first = scene.lane(1)
    await until(lambda: handler.got == [0])
    scene.drop(first)
    second = scene.lane(2)
    handler.let_go.release(3)
    await until(lambda: second.window.committable == 2)
    assert handler.most == 1


async def test_a_pause_ends_with_the_ownership_it_was_for(make: Make) -> None:
    handler = Handler({0: [SUSPEND, None]})
    scene = make(handler, suspend_current_queue_time=30.0)
    first = scene.lane(2)
    await until(lambda: first in scene.service._pauses)
    scene.drop(first)
    second = scene.lane(2)
    await until(lambda: second.window.committable == 2)
    assert handler.got == [0, 0, 1]


async def test_a_burial_that_does_not_succeed_does_not_hold_up_the_next_ownership(make: Make) -> None:
    handler = Handler({0: [RETRY, None]})
    scene = make(handler, max_reconsume_times=0, suspend_current_queue_time=30.0)
    scene.gate.clear()
    scene.refuse = ConnectionError("gone")
    first = scene.lane(1)
    await until(lambda: scene.service._settling)
    await turns()
    scene.drop(first)
    second = scene.lane(1)
    await turns()
    assert handler.got == [0], "the message is on its way to the dead letters"
    scene.gate.set()
    await until(lambda: second.window.committable == 1)
    assert handler.got == [0, 0]


# -- trouble that no handler made -------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("auto_commit", [True, False])
async def test_a_turn_that_fails_leaves_the_lane_free_and_the_message_comes_again(
    make: Make,
    kind: type[Handler],
    auto_commit: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = kind({offset: [RETRY if offset == 1 else COMMIT, COMMIT] for offset in range(3)})
    scene = make(handler, auto_commit=auto_commit)
    failed, failures = scene.service._failed, iter([SystemExit(1), ValueError("a bug")])

    def broken(*arguments: Any) -> Any:
        for error in failures:
            raise error
        return failed(*arguments)

    monkeypatch.setattr(scene.service, "_failed", broken)
    handler.answers[1] = [RETRY, RETRY, RETRY, COMMIT]
    lane = scene.lane(3)
    await until(lambda: lane.window.committable == 3)
    assert handler.got == [0, 1, 1, 1, 1, 2]
    assert caplog.text.count("this is a bug in the consumer") == 2


@pytest.mark.parametrize("end", ["cancelled from outside", "cancelled from inside", "broken"])
async def test_a_burial_that_ends_in_any_way_leaves_the_message_in_its_place(make: Make, end: str) -> None:
    handler = Handler({0: [RETRY, RETRY, None]})
    scene = make(handler, max_reconsume_times=0)
    once = [True]

    async def send_back(message: ReceivedMessage, level: int) -> None:
        if once and once.pop():
            if end == "broken":
                raise SystemError("odd")
            if end == "cancelled from outside":
                [task] = scene.service._settling
                task.cancel()
                await asyncio.sleep(0)
            raise asyncio.CancelledError
        await scene.send_back(message, level)

    scene.service._send_back = send_back
    lane = scene.lane(2)
    await until(lambda: lane.window.committable == 2 and lane.window.idle)
    assert handler.got == [0, 0, 1]
    assert scene.buried == [0]


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
