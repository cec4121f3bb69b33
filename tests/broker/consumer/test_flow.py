"""Flow control on a real broker: a slow handler keeps memory bounded, and limits of a topic are shared out."""

import secrets
import threading
from collections.abc import Callable

from tests.broker.consumer.scene import Scene, of_topic, until

from rocketfleet.client.requests import broker_offsets
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.delivery.flow import QueueLimits, TopicLimits, reason_to_wait
from rocketfleet.consumer.delivery.lane import Window
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

Topics = Callable[..., str]
PULL = 8


class Slow:
    """A handler that waits until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.handled = 0

    def __call__(self, _message: ReceivedMessage) -> None:
        self.let_go.wait()
        self.handled += 1


async def full(scene: Scene, member: Consumer, topic: str) -> Window:
    """The window of the member's only queue, once it is full; and the member has had time to pull too much."""
    limits = member.settings.limits

    def is_full(window: Window) -> bool:
        return reason_to_wait(limits, count=window.count, size=window.size, span=window.span) is not None

    def windows() -> list[Window]:
        return [lane.window for h, lane in member.holdings.lanes() if h.queue.topic == topic and is_full(lane.window)]

    await until(windows, "the window is full")
    [window] = windows()
    for _ in range(20):  # over the same connection, so that a pull in between would be answered in between
        await broker_offsets.max_offset(
            member._client.remoting, scene.address, MessageQueue(topic, "broker-a", 0), timeout=10.0
        )
    return window


async def test_a_slow_handler_keeps_memory_bounded_by_the_limit_and_one_pull(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    await scene.fill(topic, 0, 400)
    handler = Slow()
    member = await scene.member(group, topic, handler, pull_batch_size=PULL, limits=QueueLimits(count=40))
    window = await full(scene, member, topic)
    most = window.count
    handler.let_go.set()

    def done() -> bool:
        nonlocal most
        most = max(most, window.count)
        return handler.handled == 400

    await until(done)
    # A run's messages leave the count together, when it ends.
    assert 40 < most <= 40 + PULL


async def test_one_stuck_message_stops_the_queue_at_the_span(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    await scene.fill(topic, 0, 400)
    let_go = threading.Event()

    def handler(message: ReceivedMessage) -> None:
        if message.queue_offset == 0:
            let_go.wait()

    member = await scene.member(group, topic, handler, pull_batch_size=PULL, limits=QueueLimits(span=50))
    window = await full(scene, member, topic)
    try:
        await until(lambda: window.count == 1, "all others are handled")
        assert 50 < window.span <= 50 + PULL
        assert window.committable == 0
    finally:
        let_go.set()
    await until(lambda: window.committable == 400)


async def test_bytes_are_limited_too(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    for _ in range(20):
        await scene.send(topic, secrets.token_hex(128 * 1024))  # of which about half is left when compressed
    handler = Slow()
    member = await scene.member(group, topic, handler, limits=QueueLimits(size_mib=1))
    window = await full(scene, member, topic)
    # The broker ends a pull with the message that exceeds 256 KiB.
    assert 1 << 20 < window.size <= (1 << 20) + 2 * 256 * 1024
    assert window.count < 20
    handler.let_go.set()
    await until(lambda: handler.handled == 20)
    await until(lambda: (window.count, window.size) == (0, 0))


async def test_the_limits_of_a_topic_are_divided_anew_as_queues_change_hands(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=4)
    handler = Slow()
    for queue in range(4):
        await scene.fill(topic, queue, 200)
    settings = {"pull_batch_size": PULL, "topic_limits": TopicLimits(count=80), "handover_timeout": 1.0}
    first = await scene.member(group, topic, handler, **settings)
    await until(lambda: of_topic(first, topic) == {0, 1, 2, 3})

    def counts() -> list[int]:
        return [lane.window.count for holding, lane in first.holdings.lanes() if holding.queue.topic == topic]

    await until(lambda: all(20 < count <= 20 + PULL for count in counts()))
    second = await scene.member(group, topic, handler, **settings)
    await until(lambda: len(of_topic(first, topic)) == len(of_topic(second, topic)) == 2)
    await until(lambda: all(40 < count <= 40 + PULL for count in counts()))
    handler.let_go.set()
