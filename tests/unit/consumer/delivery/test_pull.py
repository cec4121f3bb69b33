"""The pull loop of one queue, against every answer a broker has."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.clock import Clock
from tests.support.waiting import turns, until
from tests.unit.consumer.messages import several, stored
from tests.unit.consumer.model_broker import ADDRESS, ModelBroker, ModelClient, queue

from rocketfleet.client.errors import ClientClosed, ConnectError, ResponseError
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery import pull
from rocketfleet.consumer.delivery.flow import QueueLimits, reason_to_wait
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.process_queue import ProcessQueue, next_batch
from rocketfleet.consumer.delivery.pull import Puller, PullHooks, PullTimings
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command

PULL = RequestCode.PULL_MESSAGE
QUICK = PullTimings(first_pause=0.002, longest_pause=0.01)


class Scene:
    def __init__(
        self,
        start: int = 0,
        subscription: Subscription | None = None,
        timings: PullTimings = QUICK,
        **settings: Any,
    ) -> None:
        self.clock = Clock()
        self.broker = ModelBroker(self.clock)
        self.client = ModelClient(self.broker)
        subscription = subscription or Subscription("t")
        self.lane = Lane(queue(0, subscription.topic), ProcessQueue(start))
        self.window = self.lane.window
        self.offered = 0
        self.restarted: list[int] = []
        self.stale = 0
        self.limits = QueueLimits(count=10)
        self.puller = Puller(
            self.client,  # type: ignore[arg-type]  # a model
            ConsumerSettings("g", (subscription,), **settings),
            subscription,
            self.lane,
            PullHooks(
                offer=self.on_offer,
                restart=self.on_restart,
                stale_subscription=self.on_stale,
                limits=lambda _topic: self.limits,
            ),
            clock=self.clock,
            tally=ConsumerCounters(),
            timings=timings,
        )
        self.task = asyncio.create_task(self.puller.run())

    def on_offer(self, _lane: Lane) -> None:
        self.offered += 1

    def on_restart(self, lane: Lane, offset: int) -> None:
        self.restarted.append(offset)
        lane.window.drop()

    def on_stale(self) -> None:
        self.stale += 1

    def pulls(self) -> list[Command]:
        return [command for _, command in self.broker.asked if command.code == PULL]

    def finish(self, count: int) -> None:
        """A worker handles so many messages."""
        run = self.window.take(count)
        assert run is not None
        run.finished = len(next_batch(run, count))
        self.window.finish(run)

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., Scene]]:
    scenes: list[Scene] = []

    def make_scene(*args: Any, **settings: Any) -> Scene:
        scenes.append(Scene(*args, **settings))
        return scenes[-1]

    yield make_scene
    for scene in scenes:
        await scene.close()


Make = Callable[..., Scene]


async def test_what_is_found_is_buffered_and_offered_and_the_next_pull_goes_on_from_there(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 5)
    await until(lambda: len(scene.pulls()) == 2)
    assert scene.offered == 1
    assert [message.queue_offset for message in scene.window._buffer] == [0, 1, 2, 3, 4]
    assert [command.fields["queueOffset"] for command in scene.pulls()] == ["0", "5"]
    first = scene.pulls()[0].fields
    assert first["subVersion"] == str(scene.puller._subscription.version)
    assert int(first["sysFlag"]) == 2 | 4, "it waits at the broker, and brings its subscription along"
    assert first["subscription"] == "*"
    assert int(first["suspendTimeoutMillis"]) < QUICK.timeout * 1000


async def test_a_pull_brings_its_own_subscription_along(make: Make) -> None:
    """Of a group whose members subscribe differently for a while, each gets what it asked for."""
    scene = make(0, Subscription("t", "a || b"))
    await until(scene.pulls)
    fields = scene.pulls()[0].fields
    assert fields["subscription"] == scene.puller._subscription.data.sub_string
    assert fields["expressionType"] == "TAG"


async def test_what_a_filter_leaves_out_does_not_hold_up_the_offset(make: Make) -> None:
    scene = make(0, Subscription("t", "AaAa"))
    scene.broker.store(queue(), 1, tags="AaAa")
    scene.broker.store(queue(), 3, tags="BBBB")
    await until(lambda: len(scene.pulls()) == 2)
    assert scene.window.buffered == 1
    scene.finish(1)
    assert scene.window.committable == 4


@pytest.mark.parametrize("code", [ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY])
async def test_nothing_for_us_moves_the_window_on(make: Make, code: ResponseCode) -> None:
    scene = make()
    answers = iter([50])
    pulled = scene.broker._pull

    async def none_first(command: Command) -> Command:
        following = next(answers, None)
        if following is None:
            return await pulled(command)
        return scene.broker._pulled(command, queue(), code, following)

    scene.broker.minimum[queue()] = 50
    scene.broker.answers[PULL] = none_first
    await until(lambda: scene.window.next_offset == 50)
    assert scene.window.committable == 50
    assert scene.offered == 0


async def test_a_pull_carries_no_offset_to_commit(make: Make) -> None:
    """It could be stored after a higher one that was confirmed in the meantime."""
    scene = make()
    scene.broker.store(queue(), 3)
    await until(lambda: scene.window.buffered == 3)
    scene.finish(2)
    scene.broker.store(queue(), 1)
    await until(lambda: len(scene.pulls()) == 3)
    assert [int(c.fields["sysFlag"]) & 1 for c in scene.pulls()] == [0, 0, 0]


async def test_past_the_lease_nothing_is_pulled(make: Make) -> None:
    scene = make(5)
    scene.window.lease_until = scene.clock.now - 1
    scene.broker.minimum[queue()] = 5
    for _ in range(5):
        await asyncio.sleep(0.002)
    assert scene.pulls() == []
    scene.window.lease_until = scene.clock.now + 1
    await until(lambda: len(scene.pulls()) == 1)


async def test_a_slave_that_is_suggested_is_followed(make: Make) -> None:
    scene = make(3)
    scene.broker.minimum[queue()] = 3
    scene.client.slaves = {1: "slave:1"}
    pulled = scene.broker._pull

    async def suggest(command: Command) -> Command:
        answer = await pulled(command)
        answer.fields["suggestWhichBrokerId"] = "1"
        return answer

    scene.broker.answers[PULL] = suggest
    scene.broker.store(queue(), 2)
    await until(lambda: len(scene.pulls()) == 2)
    assert [address for address, _ in scene.broker.asked] == [ADDRESS, "slave:1"]


async def test_a_slave_that_fails_is_left_for_the_master(make: Make) -> None:
    scene = make()
    scene.client.slaves = {1: "slave:1"}
    scene.puller._replica = 1
    pulled = scene.broker.call

    async def dead_slave(address: str, command: Command, timeout: float | None = None) -> Command:
        if address == "slave:1":
            scene.broker.asked.append((address, command))
            raise ConnectError(address, "refused")
        return await pulled(address, command, timeout)

    scene.broker.call = dead_slave  # type: ignore[method-assign]  # that is the point
    scene.broker.store(queue(), 1)
    await until(lambda: scene.window.buffered == 1)
    assert [address for address, _ in scene.broker.asked][:2] == ["slave:1", ADDRESS]


# -- offsets that do not exist ----------------------------------------------------------------------------------------


async def test_what_was_deleted_under_us_is_passed_and_what_is_buffered_stays(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 3)
    await until(lambda: len(scene.pulls()) == 2)
    scene.broker.minimum[queue()], scene.broker.messages[queue()] = 10, []
    scene.broker.store(queue(), 2)
    await until(lambda: scene.window.next_offset == 12)
    assert scene.restarted == []
    assert [message.queue_offset for message in scene.window._buffer] == [0, 1, 2, 10, 11]
    assert scene.window.committable == 0


async def test_an_offset_beyond_the_end_starts_the_queue_again(make: Make) -> None:
    scene = make(100)
    scene.broker.store(queue(), 5)
    await until(lambda: scene.restarted)
    assert scene.restarted[0] == 5


async def test_a_reset_starts_the_queue_again_also_forward(make: Make) -> None:
    for target in (2, 8):
        scene = make(5)
        scene.broker.store(queue(), 10)

        def reset(command: Command, scene: Scene = scene, target: int = target) -> Command:
            return scene.broker._pulled(command, queue(), ResponseCode.PULL_OFFSET_MOVED, target)

        scene.broker.answers[PULL] = reset
        await until(lambda scene=scene: scene.restarted)  # type: ignore[misc]  # bound now
        assert scene.restarted == [target]


# -- errors -----------------------------------------------------------------------------------------------------------


async def test_errors_are_waited_out_and_a_stale_subscription_asks_for_a_heartbeat(make: Make) -> None:
    scene = make()
    scene.broker.failures[PULL] = ResponseError(ResponseCode.SUBSCRIPTION_NOT_LATEST, "old", ADDRESS, PULL)
    scene.broker.store(queue(), 1)
    await until(lambda: scene.stale >= 2)
    scene.broker.failures[PULL] = ResponseError(ResponseCode.SYSTEM_ERROR, "no", ADDRESS, PULL)
    before = len(scene.pulls())
    await until(lambda: len(scene.pulls()) > before + 2)
    stale = scene.stale
    del scene.broker.failures[PULL]
    await until(lambda: scene.window.buffered == 1)
    assert scene.stale == stale


async def test_a_body_that_cannot_be_read_is_pulled_again(make: Make) -> None:
    scene = make()
    good = stored(0)
    bodies = iter([good[:-3], good])
    pulled = scene.broker._pull

    async def damaged(command: Command) -> Command:
        body = next(bodies, None)
        if body is None:
            return await pulled(command)
        return scene.broker._pulled(command, queue(), ResponseCode.SUCCESS, 1, body)

    scene.broker.answers[PULL] = damaged
    scene.broker.store(queue(), 1)
    await until(lambda: scene.window.buffered == 1)
    assert [command.fields["queueOffset"] for command in scene.pulls()[:2]] == ["0", "0"]


async def test_a_closed_client_ends_the_loop(make: Make) -> None:
    scene = make()
    scene.broker.failures[PULL] = ClientClosed()
    scene.broker.arrived.set()
    scene.broker.store(queue(), 1)
    await until(scene.task.done)
    assert scene.task.exception() is None


async def test_a_dropped_window_ends_the_loop_and_what_comes_late_is_not_ours(make: Make) -> None:
    scene = make()
    await until(scene.pulls)
    scene.window.drop()
    scene.broker.store(queue(), 1)
    await until(scene.task.done)
    assert (scene.offered, scene.window.buffered) == (0, 0)
    assert scene.window.on_progress is None


# -- flow control -----------------------------------------------------------------------------------------------------


async def test_a_full_window_waits_for_room(make: Make) -> None:
    scene = make(pull_batch_size=4)
    scene.broker.store(queue(), 100)
    await until(lambda: scene.window.count > 10)
    await turns(50)
    assert scene.window.count == 12, "the limit, and one pull more"
    pulls = len(scene.pulls())
    scene.finish(1)
    await turns(50)
    assert len(scene.pulls()) == pulls, "11 are still too many"
    scene.finish(1)
    await until(lambda: scene.window.count > 10)
    assert scene.window.count == 14
    assert len(scene.pulls()) == pulls + 1


async def test_room_that_comes_between_looking_and_waiting_is_not_missed(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker in another thread may finish the last message just after the loop has found the window full."""
    scene = make(timings=replace(QUICK, full_check=3600.0), pull_batch_size=4)
    looked = 0
    judge = reason_to_wait

    def look(*args: Any, **kwargs: Any) -> str | None:
        nonlocal looked
        verdict = judge(*args, **kwargs)
        if verdict is not None:
            looked += 1
            while scene.window.buffered:
                scene.finish(1)
        return verdict

    monkeypatch.setattr(pull, "reason_to_wait", look)
    scene.broker.store(queue(), 40)
    await until(lambda: scene.window.committable == 40 or scene.window.next_offset == 40)
    assert looked >= 1


async def test_the_span_counts_for_concurrent_consumption_only(make: Make) -> None:
    orderly = make(consume_mode=ConsumeMode.ORDERLY, pull_batch_size=1)
    concurrent = make(pull_batch_size=1)
    for scene in (orderly, concurrent):
        scene.limits = QueueLimits(count=1000, span=5)
        scene.broker.store(queue(), 20)
    await until(lambda: orderly.window.next_offset == 20)
    await turns(50)
    assert concurrent.window.next_offset == 6


# -- retry topics -----------------------------------------------------------------------------------------------------


async def test_a_retried_message_bears_the_topic_it_came_from(make: Make) -> None:
    scene = make(0, Subscription("%RETRY%g"))
    where = queue(0, "%RETRY%g")
    scene.broker.store(where, 1, properties={"RETRY_TOPIC": "orders"}, times=2)
    scene.broker.store(where, 1)
    await until(lambda: scene.window.buffered == 2)
    assert [message.topic for message in scene.window._buffer] == ["orders", "%RETRY%g"]
    assert scene.lane.queue == where


async def test_elsewhere_the_property_means_nothing(make: Make) -> None:
    scene = make()
    scene.broker.store(queue(), 1, properties={"RETRY_TOPIC": "orders"})
    await until(lambda: scene.window.buffered == 1)
    assert [message.topic for message in scene.window._buffer] == ["t"]


def test_the_model_is_what_the_wire_says() -> None:
    assert [message.queue_offset for message in several(3, 2)] == [3, 4]
