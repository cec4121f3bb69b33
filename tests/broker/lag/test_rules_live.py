"""The rules on groups that really misbehave. With ROCKETFLEET_RECORD_WINDOWS set, windows are kept for unit tests."""

import os
from collections.abc import Callable

import pytest
from tests.broker.consumer.scene import Got, until
from tests.broker.lag.test_agreement import Stop
from tests.broker.lag.watching import Watch
from tests.unit.lag import recorded

from rocketfleet.lag.judging.rules import LagFinding
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import ReceivedMessage

Topics = Callable[..., str]


def settle(watch: Watch, group: str, name: str) -> LagFinding:
    """The verdict; and the window, for those who keep it."""
    verdict = watch.monitor.verdict(group)
    if os.environ.get("ROCKETFLEET_RECORD_WINDOWS"):
        recorded.save(name, watch.monitor.window(group), verdict.state.value)
    return verdict.state


async def test_a_handler_that_hangs_is_stalled(watch: Watch, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=2)
    watch.follow(group, topic, where=ConsumeFromWhere.FIRST_OFFSET)
    handler = Stop(after=3)
    try:
        member = await watch.member(
            group, topic, handler, consume_thread_min=1, consume_thread_max=1, persist_interval=0.1
        )
        await until(lambda: len(member.owned) >= 2)
        await watch.fill(topic, 0, 10)
        await until(lambda: handler.hung > 0)
        await watch.committed_everywhere(group, topic, 3, 2)
        watch.monitor.note_owners(group, dict.fromkeys(member.owned, member.client_id))
        await watch.look(group)
        assert watch.monitor.verdict(group).state is LagFinding.OK, "nobody is accused on one look"
        for start in (10, 20):
            await watch.fill(topic, 0, 5, first=start)
            await watch.look(group)
        assert settle(watch, group, "handler-hangs") is LagFinding.STALLED
        (verdict,) = watch.monitor.verdict(group).verdicts
        assert verdict.queue is not None
        assert (verdict.queue.topic, verdict.queue.queue_id) == (topic, 0)
        assert member.client_id in verdict.sentence
        watch.monitor.note_reset(group, (await watch.look(group)).observed_at + 1)
        assert watch.monitor.verdict(group).state is LagFinding.OK, "who was reset begins anew"
    finally:
        handler.free.set()
    await watch.committed_everywhere(group, topic, 20, 2)
    await watch.look(group)
    assert settle(watch, group, "handler-goes-on") is LagFinding.OK


class Fails:
    """A handler that raises until it is mended."""

    def __init__(self) -> None:
        self.mended = False
        self.failed = self.well = 0

    def __call__(self, message: ReceivedMessage) -> None:
        if not self.mended:
            self.failed += 1
            raise RuntimeError("as planned")
        self.well += 1


async def test_a_handler_that_fails_every_message_is_failing(watch: Watch, make_topic: Topics, group: str) -> None:
    """Nobody tells the monitor of the handler: it goes by the brokers alone, as for somebody's own consumers."""
    topic = make_topic(queues=2)
    watch.follow(group, topic, where=ConsumeFromWhere.FIRST_OFFSET)
    handler = Fails()
    await watch.member(group, topic, handler, persist_interval=0.1)
    await watch.look(group)
    await watch.fill(topic, 0, 20)
    await watch.committed_everywhere(group, topic, 20, 2)
    seen = await watch.look(group)
    assert (seen.messages, seen.retry) == (0, 0), "all of them wait for their delay, and no lag says so"

    async def is_failing() -> bool:
        await watch.look(group)
        return watch.monitor.verdict(group).state is LagFinding.FAILING

    await until(is_failing, "the first retries come due after ten seconds", 60.0)
    assert settle(watch, group, "handler-fails") is LagFinding.FAILING
    assert "came back to be tried again" in watch.monitor.verdict(group).sentence
    handler.mended = True
    await watch.fill(topic, 1, 200)
    await until(lambda: handler.well >= 200)
    await watch.committed_everywhere(group, topic, 220, 2)
    await watch.look(group)
    assert settle(watch, group, "handler-is-mended") is LagFinding.OK


async def test_messages_that_become_dead_letters_are_told_of(watch: Watch, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    watch.follow(group, topic, where=ConsumeFromWhere.FIRST_OFFSET)
    await watch.member(group, topic, Fails(), persist_interval=0.1, max_reconsume_times=0)
    for _ in range(3):
        assert (await watch.look(group)).dlq == 0
    assert watch.monitor.verdict(group).state is LagFinding.OK
    await watch.fill(topic, 0, 2)

    async def are_dead() -> bool:
        return (await watch.look(group)).dlq == 2

    await until(are_dead)
    assert settle(watch, group, "dead-letters") is LagFinding.FAILING
    assert "given up on 2 messages" in watch.monitor.verdict(group).sentence


async def test_members_that_are_gone_have_stopped(watch: Watch, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=2)
    watch.follow(group, topic, where=ConsumeFromWhere.FIRST_OFFSET)
    got = Got()
    member = await watch.member(group, topic, got, persist_interval=0.1)
    await watch.send(topic, *range(6))
    await until(lambda: len(got) == 6)
    await member.stop()
    await watch.look(group)
    for _ in range(3):
        await watch.send(topic, *range(4))
        await watch.look(group)
        assert watch.monitor.verdict(group).state is LagFinding.OK, "it had caught up not long ago"
    for _ in range(8):  # until the moment at which it had is out of the window
        await watch.look(group)
    assert settle(watch, group, "members-gone") is LagFinding.STOPPED
    assert "12 messages" in watch.monitor.verdict(group).sentence


async def test_one_key_that_takes_most_is_skewed(watch: Watch, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=4)
    watch.follow(group, topic)
    for queue in range(4):
        await watch.commit(group, topic, 0, queue)
        await watch.fill(topic, queue, 40)
    await watch.fill(topic, 2, 360)
    for step in range(1, 5):  # everybody moves on, and one queue gets it all
        for queue in range(4):
            await watch.commit(group, topic, step * 5, queue)
        await watch.look(group)
    assert settle(watch, group, "one-key") is LagFinding.SKEWED
    (verdict,) = watch.monitor.verdict(group).verdicts
    assert verdict.queue is not None
    assert verdict.queue.queue_id == 2


async def test_a_lag_that_grows_is_growing(watch: Watch, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    watch.follow(group, topic)
    await watch.commit(group, topic, 0)
    for step in range(1, 5):
        await watch.fill(topic, 0, 20)
        await watch.commit(group, topic, step * 3)
        seen = await watch.look(group)
    assert settle(watch, group, "growing") is LagFinding.GROWING
    assert seen.consume_rate is not None
    assert seen.produce_rate is not None
    assert seen.produce_rate == pytest.approx(seen.consume_rate * 20 / 3)
    assert seen.drain_seconds == float("inf")


async def test_an_offset_that_goes_back_is_rewound(watch: Watch, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    watch.follow(group, topic)
    await watch.fill(topic, 0, 30)
    for offset in (10, 20, 4, 6):
        await watch.commit(group, topic, offset)
        await watch.look(group)
    assert settle(watch, group, "goes-back") is LagFinding.REWOUND
    assert "from 20 to 4" in watch.monitor.verdict(group).sentence
    await watch.commit(group, topic, 25)
    await watch.look(group)
    assert settle(watch, group, "went-back-and-on") is LagFinding.OK


async def test_a_member_without_a_queue_is_idle(watch: Watch, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    watch.follow(group, topic, where=ConsumeFromWhere.FIRST_OFFSET)
    members = [await watch.member(group, topic, Got()) for _ in range(2)]
    await until(lambda: sum(any(queue.topic == topic for queue in member.owned) for member in members) == 1)
    await until(lambda: all(member.rebalancer.settled for member in members))
    owner = next(member for member in members if any(queue.topic == topic for queue in member.owned))
    watch.monitor.note_owners(group, dict.fromkeys(owner.owned, owner.client_id))
    # Members of a group that keeps up are asked for in turn, so it takes some looks.

    async def is_idle() -> bool:
        await watch.look(group)
        return watch.monitor.verdict(group).state is LagFinding.IDLE_MEMBER

    await until(is_idle)
    (idle,) = (member for member in members if member is not owner)
    assert [verdict.member for verdict in watch.monitor.verdict(group).verdicts] == [idle.client_id]
    settle(watch, group, "idle-member")
