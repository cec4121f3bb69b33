"""Stopping a member: what has begun finishes and is committed, the others are told, and there is an end to waiting."""

import asyncio
import threading
from collections.abc import Callable

import pytest
from tests.broker.consumer.scene import Got, Scene, of_topic, until

from rocketfleet.consumer.shutdown import StopPhase
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

Topics = Callable[..., str]


class Held:
    """A handler that takes what comes and returns when it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.entered: list[int] = []

    def __call__(self, message: ReceivedMessage) -> None:
        self.entered.append(message.queue_offset)
        self.let_go.wait()


async def test_what_has_begun_finishes_and_is_committed(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    handler = Held()
    await scene.fill(topic, 0, 50)
    member = await scene.member(group, topic, handler, consume_thread_min=3, consume_thread_max=3, drain_timeout=30.0)
    await until(lambda: len(handler.entered) == 3)
    stopping = asyncio.create_task(member.stop())
    await until(lambda: member.phase is StopPhase.DRAINING)
    handler.let_go.set()
    final = await stopping
    begun = len(handler.entered)
    assert begun < 50, "what was only buffered is not begun any more"
    offset = final[MessageQueue(topic, "broker-a", 0)]
    assert (offset.offset, offset.confirmed, offset.unfinished) == (begun, True, 0)
    assert await scene.committed(group, topic) == begun
    assert await scene.ids(group) == ()
    assert await member.stop() == final, "asked again, it answers the same"


async def test_there_is_an_end_to_waiting_and_what_hangs_is_not_committed(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    handler = Held()
    await scene.fill(topic, 0, 5)
    member = await scene.member(group, topic, handler, consume_thread_min=1, consume_thread_max=1, drain_timeout=0.1)
    await until(lambda: handler.entered == [0])
    final = (await member.stop())[MessageQueue(topic, "broker-a", 0)]
    assert (final.offset, final.confirmed, final.unfinished) == (0, True, 1)
    handler.let_go.set()
    got = Got()
    await scene.member(group, topic, got)
    await until(lambda: sorted(got.bodies) == list("01234"))


async def test_asked_again_it_waits_no_longer(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    handler = Held()
    await scene.fill(topic, 0, 5)
    member = await scene.member(group, topic, handler, consume_thread_min=1, consume_thread_max=1, drain_timeout=3600.0)
    await until(lambda: handler.entered == [0])
    first = asyncio.create_task(member.stop())
    await until(lambda: member.phase is StopPhase.DRAINING)
    final = (await member.stop())[MessageQueue(topic, "broker-a", 0)]
    await first
    assert (final.offset, final.confirmed, final.unfinished) == (0, True, 1)
    handler.let_go.set()


@pytest.mark.parametrize("hurried", [False, True])
async def test_a_coroutine_that_is_cut_short_is_no_handler_that_finished(
    scene: Scene, make_topic: Topics, group: str, hurried: bool
) -> None:
    """It is cancelled at the end, and then nothing of its queue is in anybody's hands any more."""
    topic = make_topic(queues=1)
    entered: list[int] = []

    async def handle(message: ReceivedMessage) -> None:
        entered.append(message.queue_offset)
        await asyncio.Event().wait()

    await scene.fill(topic, 0, 5)
    member = await scene.member(
        group, topic, handle, consume_thread_min=3, consume_thread_max=3, drain_timeout=3600.0 if hurried else 0.1
    )
    await until(lambda: len(entered) == 3)
    stopping = asyncio.create_task(member.stop())
    await until(lambda: member.phase is StopPhase.DRAINING)
    if hurried:
        await member.stop()
    final = (await stopping)[MessageQueue(topic, "broker-a", 0)]
    assert (final.offset, final.confirmed, final.unfinished) == (0, True, 3)


async def test_the_others_take_over_without_waiting_for_their_timers(scene: Scene, topic: str, group: str) -> None:
    slow = {"rebalance_interval": 3600.0, "heartbeat_interval": 60.0}
    first = await scene.member(group, topic, Got(), **slow)
    second = await scene.member(group, topic, Got(), **slow)
    await until(lambda: len(of_topic(first, topic)) == len(of_topic(second, topic)) == 4)
    await first.stop()
    await until(lambda: of_topic(second, topic) == set(range(8)))


async def test_a_stop_whose_caller_gives_up_goes_on(scene: Scene, topic: str, group: str) -> None:
    member = await scene.member(group, topic, Got())
    await until(lambda: of_topic(member, topic) == set(range(8)))
    stopping = asyncio.create_task(member.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    await until(lambda: member.phase is StopPhase.CLOSED)
    assert all(offset.confirmed for offset in member.final_offsets.values())
