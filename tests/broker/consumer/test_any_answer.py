"""Handlers that misbehave, on a real broker: each message gets a verdict, and no queue stands still for it."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.broker.consumer.scene import Got, Scene, until

from rocketfleet.client.requests import broker_offsets
from rocketfleet.consumer.delivery.flow import QueueLimits
from rocketfleet.consumer.results import COMMIT, SUCCESS, Retry
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

Topics = Callable[..., str]
ORDERLY = ConsumeMode.ORDERLY


class Overlaps:
    """A handler for one queue that notices when it is called while it runs, and can be held."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.inside = 0
        self.overlapped: list[str] = []
        self.hold = threading.Event()
        self._writing = threading.Lock()

    def __call__(self, message: ReceivedMessage) -> None:
        with self._writing:
            self.got.append(message.body.decode())
            self.inside += 1
            if self.inside > 1:
                self.overlapped.append(message.body.decode())
        self.hold.wait(20)
        with self._writing:
            self.inside -= 1


async def test_after_a_reset_a_queue_waits_for_the_handler_that_still_runs(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    """A queue that is started again has a new window; the handler of the old one may still have a message in hand."""
    topic = make_topic(queues=1)
    handler = Overlaps()
    handler.hold.set()
    await scene.send(topic, 0)
    member = await scene.member(group, topic, handler, consume_mode=ORDERLY)
    await until(lambda: handler.got == ["0"])
    handler.hold.clear()
    await scene.send(topic, 1)
    await until(lambda: handler.got == ["0", "1"])
    where = MessageQueue(topic, "broker-a", 0)
    before = member.holdings.get(where)
    assert before is not None
    lane = before.lane
    assert lane is not None

    await broker_offsets.reset_queue_offset(scene.client.remoting, scene.address, group, where, 0)
    await scene.send(topic, 2)  # the reset is told with the next answer to a pull, which this brings about

    def started_again() -> bool:
        holding = member.holdings.get(where)
        now = None if holding is None else holding.lane
        return now is not None and now is not lane and now.window.next_offset == 3

    await until(started_again, "the queue is started again from the offset that it was reset to")
    for _ in range(30):  # so many ticks
        await asyncio.sleep(0.02)
    assert handler.got == ["0", "1"], "the handler has 1 still in hand"
    handler.hold.set()
    await until(lambda: handler.got == ["0", "1", "0", "1", "2"])
    assert handler.overlapped == []


class Unhashable:
    """As disagreeable as a value can be."""

    __hash__ = None  # type: ignore[assignment]  # that is what it is about

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")

    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")

    @property
    def __class__(self) -> type:
        raise RuntimeError("of no class")

    @__class__.setter
    def __class__(self, _kind: type) -> None: ...


async def never() -> None: ...


def misbehave(kind: str) -> Any:
    match kind:
        case "timedelta":
            return Retry(seconds=timedelta(seconds=1))  # type: ignore[arg-type]  # as a user may write it
        case "huge level":
            return Retry(level=1 << 40)
        case "not a number":
            return Retry(seconds=float("nan"))
        case "disagreeable":
            return Unhashable()
        case "coroutine":
            return never()
        case "generator":
            return (number for number in range(3))
        case "exit":
            raise SystemExit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "generator exit":
            raise GeneratorExit
        case "stop":
            raise StopIteration
        case "cancelled":
            raise asyncio.CancelledError
    raise AssertionError(kind)


KINDS = (
    "timedelta",
    "huge level",
    "not a number",
    "disagreeable",
    "coroutine",
    "generator",
    "exit",
    "interrupt",
    "generator exit",
    "stop",
    "cancelled",
)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])
@pytest.mark.parametrize("mode", [ConsumeMode.CONCURRENT, ORDERLY], ids=["concurrent", "orderly"])
async def test_whatever_a_handler_does_its_messages_come_again_and_the_queue_goes_on(
    scene: Scene, make_topic: Topics, group: str, mode: ConsumeMode, is_async: bool
) -> None:
    topic = make_topic(queues=1)
    tries: Counter[str] = Counter()
    done: set[str] = set()
    writing = threading.Lock()

    def handle(message: ReceivedMessage) -> Any:
        body = message.body.decode()
        with writing:
            tries[body] += 1
            first = tries[body] == 1
        if body in KINDS and first:
            return misbehave(body)
        with writing:
            done.add(body)
        return SUCCESS

    async def handle_async(message: ReceivedMessage) -> Any:
        await asyncio.sleep(0)
        return handle(message)

    bodies = [one for pair in zip(KINDS, [f"after {kind}" for kind in KINDS], strict=True) for one in pair]
    await scene.send(topic, *bodies)
    await scene.member(
        group, topic, handle_async if is_async else handle, consume_mode=mode, suspend_current_queue_time=0.02
    )
    if mode is ORDERLY:
        await until(lambda: done == set(bodies), "all messages are handled")
    else:  # the broker's first delay is ten seconds, which this test need not wait for
        await until(lambda: {body for body in bodies if body not in KINDS} <= done, "the queue went on")

    async def all_committed() -> bool:
        return await scene.committed(group, topic) == len(bodies)

    await until(all_committed, "every message has its verdict")
    if mode is not ORDERLY:
        assert len(await scene.delayed(group, 3, len(KINDS))) == len(KINDS), (
            "each comes again, after the broker's delay"
        )


async def test_a_level_beyond_the_brokers_last_is_its_last(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    await scene.send(topic, "late")
    await scene.member(group, topic, Got(lambda _message: Retry(level=(1 << 31) - 1)))
    [message] = await scene.delayed(group, 18, 1)
    assert message.body == b"late"


async def test_a_handler_may_commit_where_no_pull_ends(scene: Scene, make_topic: Topics, group: str) -> None:
    """What is committed makes room, also while the messages after it are handled and not committed."""
    topic = make_topic(queues=1)
    await scene.fill(topic, 0, 3000)

    def answer(message: ReceivedMessage) -> object:
        return COMMIT if message.queue_offset % 37 == 36 else SUCCESS

    got = Got(answer)
    await scene.member(group, topic, got, consume_mode=ORDERLY, auto_commit=False)
    began, before = time.monotonic(), 0
    while len(got) < 3000:  # as long as it goes on
        await asyncio.sleep(0.1)
        if len(got) > before:
            began, before = time.monotonic(), len(got)
        assert time.monotonic() - began < 10, f"it stands still after {before} messages"
    assert [message.queue_offset for message in got.messages] == list(range(3000))

    async def committed() -> bool:
        return await scene.committed(group, topic) == 3000 // 37 * 37

    await until(committed)


async def test_a_handler_may_want_more_than_the_limit_before_it_commits(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    await scene.fill(topic, 0, 1000)
    got = Got(lambda message: COMMIT if message.queue_offset % 250 == 249 else SUCCESS)
    member = await scene.member(
        group, topic, got, consume_mode=ORDERLY, auto_commit=False, pull_batch_size=8, limits=QueueLimits(count=40)
    )
    await until(lambda: len(got) == 1000)

    async def committed() -> bool:
        return await scene.committed(group, topic) == 1000

    await until(committed)
    got.answer = lambda _message: SUCCESS  # it never commits again
    await scene.fill(topic, 0, 1000)
    [window] = [lane.window for h, lane in member.holdings.lanes() if h.queue.topic == topic]
    await until(lambda: window.count > 400, "ten times the limit")
    for _ in range(20):
        await scene.committed(group, topic)
    assert window.count <= 400 + 8, "memory is bounded all the same"
