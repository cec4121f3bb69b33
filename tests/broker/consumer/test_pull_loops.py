"""A pull loop that has ended, or hangs, is noticed and replaced, on a real broker; nothing is lost or repeated."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Scene, until
from tests.broker.handover.faults import Recorder

from rocketfleet.consumer.handover.holdings import HandoverTimings, Holding
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.consumer.timings import ConsumerTimings
from rocketfleet.wire.queue import MessageQueue


@pytest.fixture
async def scene(broker: Cluster) -> AsyncIterator[Scene]:
    made = Scene(broker)
    await made.open()
    yield made
    await made.close()


def end(holding: Holding) -> None:
    assert holding.work is not None
    holding.work.cancel()


def hang(holding: Holding) -> None:
    end(holding)
    holding.work = asyncio.create_task(asyncio.sleep(3600))


@pytest.mark.parametrize("mode", [ConsumeMode.CONCURRENT, ConsumeMode.ORDERLY])
@pytest.mark.parametrize("break_it", [end, hang])
async def test_a_queue_that_nobody_polls_is_polled_again(
    scene: Scene,
    make_topic: Callable[..., str],
    group: str,
    mode: ConsumeMode,
    break_it: Callable[[Holding], None],
) -> None:
    topic, recorder = make_topic(queues=1), Recorder()
    # Longer than a long poll, so that loops which are well make a turn in that time.
    handover = HandoverTimings(poll_expires=20.0) if break_it is hang else HandoverTimings()
    timings = ConsumerTimings(handover=handover, look_after_pullers=0.2)
    member = await scene.member(group, topic, recorder.handler("m1"), consumer={"timings": timings}, consume_mode=mode)
    await until(lambda: member.ready)
    await scene.send(topic, "before")
    await until(lambda: recorder.bodies == ["before"])
    holding = member.holdings.get(MessageQueue(topic, "broker-a", 0))
    assert holding is not None
    break_it(holding)
    broken = holding.work
    if break_it is end:
        await until(lambda: member.queue_problems() != [] or holding.work is not broken, "the health check knows it")
    await scene.send(topic, "after")
    await until(lambda: recorder.bodies == ["before", "after"], "it is polled again", 60.0)
    assert member.queue_problems() == []
