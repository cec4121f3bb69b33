"""Rounds of rebalancing on the model broker: when they come, what they ask, and what they do not conclude."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.clock import Clock
from tests.support.waiting import turns, until
from tests.unit.consumer.model_broker import ADDRESS, BROKER, ME, ModelBroker, ModelClient, queue

from rocketfleet.allocation.request import AllocationError, AllocationRequest
from rocketfleet.allocation.strategies import Parameters, Scope, Strategy, build
from rocketfleet.client.errors import ConnectError, NoPermission, RequestTimeout, ResponseError
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.handover.membership import Membership
from rocketfleet.consumer.handover.ownership import OwnershipState
from rocketfleet.consumer.handover.rebalancer import Rebalancer, RebalanceTimings
from rocketfleet.consumer.handover.roster import REJOIN_SECONDS
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import ConsumerList
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command, reply_to
from rocketfleet.wire.enums import MessageModel
from rocketfleet.wire.queue import MessageQueue

INFO = RequestCode.GET_CONSUMER_RUNNING_INFO
LIST = RequestCode.GET_CONSUMER_LIST_BY_GROUP
QUICK = RebalanceTimings(unsettled_every=0.01)


class Table:
    """Holdings that own at once what they want."""

    def __init__(self) -> None:
        self.queues: frozenset[MessageQueue] = frozenset()
        self.stuck: frozenset[MessageQueue] = frozenset()  # wanted and not got

    @property
    def owned(self) -> frozenset[MessageQueue]:
        return self.queues - self.stuck

    def want(self, queues: frozenset[MessageQueue]) -> None:
        self.queues |= queues

    def release(self, queues: frozenset[MessageQueue]) -> None:
        self.queues -= queues

    def lanes(self) -> list[tuple[Any, Lane]]:
        class Held:
            def __init__(self, held: MessageQueue) -> None:
                self.queue = held
                self.state = OwnershipState.OWNED

        return [(Held(held), Lane(held, ProcessQueue(0))) for held in sorted(self.owned)]


class Scene:
    def __init__(
        self,
        strategy: str | Strategy = "AVG",
        topics: tuple[str, ...] = ("t",),
        timings: RebalanceTimings = QUICK,
        **settings: Any,
    ) -> None:
        self.clock = Clock()
        self.broker = ModelBroker(self.clock)
        self.client = ModelClient(self.broker)
        self.client.topics = {"t": tuple(queue(number) for number in range(8))}
        self.settings = ConsumerSettings("g", (Subscription("t"),), **settings)
        self.table = Table()
        self.heartbeats = 0
        self.membership = Membership(
            self.client,  # type: ignore[arg-type]  # a model
            self.settings,
            self.settings.subscriptions,
            clock=self.clock,
        )
        self.tally = ConsumerCounters()
        self.rebalancer = Rebalancer(
            self.client,  # type: ignore[arg-type]  # a model
            self.settings,
            build(strategy) if isinstance(strategy, str) else strategy,
            topics,
            self.membership,
            self.table,  # type: ignore[arg-type]  # a model
            self.heartbeat_soon,
            tally=self.tally,
            timings=timings,
        )
        self.tasks: list[asyncio.Task[None]] = []

    def heartbeat_soon(self) -> None:
        self.heartbeats += 1

    def run(self) -> None:
        self.tasks.append(asyncio.create_task(self.rebalancer.run()))

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


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


async def test_the_share_follows_the_members(make: Make) -> None:
    scene = make()
    scene.broker.members = [ME, "zz"]
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    assert scene.table.queues == {queue(n) for n in range(4)}
    scene.broker.members = ["aa", ME]
    await scene.rebalancer.now()
    assert scene.table.queues == {queue(n) for n in range(4, 8)}
    scene.broker.members = [ME]
    await scene.rebalancer.now()
    assert len(scene.table.queues) == 8


async def test_now_means_a_round_that_began_after_the_call(make: Make) -> None:
    """A round under way has asked already: what changed since is not in it."""
    scene = make()
    gates = [asyncio.Event(), asyncio.Event()]
    lists = iter([[ME], [ME, "zz"]])
    waits = iter(gates)

    async def listed(command: Command) -> Command:
        members = next(lists)
        await next(waits).wait()
        return reply_to(command, body=ConsumerList(consumer_id_list=tuple(members)).encode())

    scene.broker.answers[LIST] = listed
    scene.run()
    await until(lambda: scene.broker.count(LIST) == 1)
    now = asyncio.create_task(scene.rebalancer.now())
    await turns()
    gates[0].set()
    await until(lambda: scene.broker.count(LIST) == 2)
    await turns()
    assert not now.done(), "the round that was under way has looked too early"
    gates[1].set()
    await now
    assert len(scene.table.queues) == 4


async def test_now_returns_when_there_will_be_no_more_rounds(make: Make) -> None:
    scene = make()
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    scene.broker.gates[LIST] = asyncio.Event()
    waiting = asyncio.create_task(scene.rebalancer.now())
    await turns()
    scene.tasks[0].cancel()
    await waiting
    await scene.rebalancer.now()


async def test_rounds_follow_each_other_until_all_is_owned_and_then_rest(make: Make) -> None:
    scene = make()
    scene.table.stuck = frozenset({queue(3)})
    scene.run()
    await until(lambda: scene.tally.rebalances >= 4)
    assert not scene.rebalancer.settled
    scene.table.stuck = frozenset()
    await until(lambda: scene.rebalancer.settled)
    await turns()
    rounds = scene.tally.rebalances
    for _ in range(5):
        await asyncio.sleep(0.01)
    assert scene.tally.rebalances <= rounds + 1


async def test_a_broadcasting_member_takes_everything_asks_nobody_and_settles(make: Make) -> None:
    scene = make(message_model=MessageModel.BROADCASTING)
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    assert len(scene.table.queues) == 8
    assert scene.broker.asked == []


async def test_a_topic_without_a_route_keeps_its_queues(make: Make) -> None:
    scene = make("AVG", ("t", "u"))
    scene.client.topics["u"] = tuple(queue(n, "u") for n in range(2))
    scene.run()
    await until(lambda: len(scene.table.queues) == 10)
    del scene.client.topics["u"]
    scene.broker.members = ["aa", ME]
    await scene.rebalancer.now()
    assert {held.topic for held in scene.table.queues} == {"t", "u"}
    assert len(scene.table.queues) == 4 + 2
    assert scene.rebalancer.settled


async def test_queues_of_a_broker_that_is_away_are_kept_until_it_is_back_or_forgotten(make: Make) -> None:
    scene = make()
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    everything = scene.client.topics["t"]
    scene.client.topics["t"], scene.client.absent["t"] = everything[:4], everything[4:]
    scene.table.queues -= {everything[7]}  # one that we do not have is not taken over
    await scene.rebalancer.now()
    assert scene.table.queues == frozenset(everything[:7])
    assert scene.rebalancer.settled, "there is nothing to wait for"
    assert scene.rebalancer.allocated == frozenset(everything[:4])
    scene.client.absent.clear()
    await scene.rebalancer.now()
    assert scene.table.queues == frozenset(everything[:4]), "the minute is over: others may have them"
    scene.client.topics["t"] = everything
    await scene.rebalancer.now()
    assert scene.table.queues == frozenset(everything)


async def test_a_retry_topic_that_is_about_to_come_is_looked_for_again_soon(make: Make) -> None:
    scene = make("AVG", ("t", "%RETRY%g"))
    scene.run()
    await until(lambda: scene.tally.rebalances >= 3)
    assert scene.rebalancer.settled, "all that is known is owned"
    scene.client.topics["%RETRY%g"] = (queue(0, "%RETRY%g"),)
    await until(lambda: queue(0, "%RETRY%g") in scene.table.queues)


async def test_members_that_are_not_known_change_nothing(make: Make) -> None:
    scene = make()
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    scene.broker.failures[LIST] = ConnectError(ADDRESS, "refused")
    await scene.rebalancer.now()
    assert len(scene.table.queues) == 8


async def test_a_broker_that_does_not_list_us_hears_a_heartbeat_first(make: Make) -> None:
    scene = make()
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    scene.broker.members = ["aa"]
    before = scene.heartbeats
    scene.rebalancer.soon()
    await until(lambda: scene.heartbeats > before)
    assert len(scene.table.queues) == 8, "no conclusion from a list that we are not in"
    scene.broker.members = ["aa", ME]
    await until(lambda: len(scene.table.queues) == 4)


async def test_a_strategy_that_fails_changes_nothing_and_is_named(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    def fails(_request: AllocationRequest) -> list[MessageQueue]:
        raise AllocationError("there is no answer")

    scene = make(Strategy("HOPELESS", Scope.TOPIC, fails))
    scene.table.queues = frozenset({queue(1)})
    scene.run()
    await until(lambda: "HOPELESS failed: there is no answer" in caplog.text)
    assert scene.table.queues == {queue(1)}


async def test_what_a_strategy_names_and_is_not_there_is_left_out(make: Make) -> None:
    named = [queue(1), queue(99), queue(0, "not-subscribed")]
    scene = make(build("CONFIG", Parameters(queues=named)))
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    assert scene.table.queues == {queue(1)}


async def test_a_bug_in_a_round_does_not_end_the_rounds(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    scene = make()
    topics, scene.client.topics = scene.client.topics, None  # type: ignore[assignment]  # that is the bug
    scene.run()
    await until(lambda: "this is a bug in the consumer" in caplog.text)
    scene.client.topics = topics
    await until(lambda: len(scene.table.queues) == 8)


# -- newcomers --------------------------------------------------------------------------------------------------------


async def test_a_newcomer_at_brokers_that_have_just_started_takes_nothing_until_all_could_be_back(make: Make) -> None:
    scene = make()
    scene.broker.up[ADDRESS] = 3.0
    scene.run()
    await until(lambda: scene.broker.count(LIST) >= 3)
    assert scene.table.queues == frozenset()
    assert not scene.rebalancer.has_share
    scene.broker.members = [ME, "zz"]
    scene.clock.now += REJOIN_SECONDS
    await until(lambda: scene.rebalancer.settled)
    assert len(scene.table.queues) == 4


async def test_the_first_member_that_a_group_ever_had_has_nobody_to_wait_for(make: Make) -> None:
    scene = make()
    scene.membership.first_of_its_group = True
    scene.broker.up[ADDRESS] = 3.0
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    assert len(scene.table.queues) == 8


async def test_who_has_its_share_does_not_wait_when_a_broker_restarts(make: Make) -> None:
    scene = make()
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    scene.broker.up[ADDRESS] = 0.0
    scene.broker.members = [ME, "zz"]
    await scene.rebalancer.now()
    assert len(scene.table.queues) == 4


async def test_while_members_are_awaited_rounds_follow_each_other_and_their_queues_stay_theirs(make: Make) -> None:
    scene = make()
    scene.broker.members = [ME, "zz"]
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    scene.membership.interrupted(BROKER)
    scene.broker.members = [ME]
    await scene.rebalancer.now()
    rounds = scene.tally.rebalances
    await until(lambda: scene.tally.rebalances >= rounds + 3)
    assert len(scene.table.queues) == 4
    scene.clock.now += REJOIN_SECONDS
    await until(lambda: len(scene.table.queues) == 8)


# -- Balanced ---------------------------------------------------------------------------------------------------------


async def test_balanced_asks_who_holds_what_and_leaves_it_with_them(make: Make) -> None:
    scene = make("BALANCED")
    scene.broker.members = [ME, "aa", "zz"]
    scene.broker.holdings = {"aa": frozenset(queue(n) for n in (1, 4, 7)), "zz": frozenset(queue(n) for n in (0, 2, 5))}
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    assert scene.table.queues == {queue(3), queue(6)}
    asked = scene.broker.count(INFO)
    await scene.rebalancer.now()
    assert scene.broker.count(INFO) == asked, "nothing changed: nobody is asked"
    scene.broker.members = [ME, "aa"]
    await scene.rebalancer.now()
    assert scene.broker.count(INFO) == asked + 1
    assert {queue(3), queue(6)} <= scene.table.queues


async def test_balanced_without_the_right_to_ask_counts_nobodys_queues(make: Make) -> None:
    scene = make("BALANCED")
    scene.broker.members = [ME, "aa"]
    scene.table.queues = frozenset({queue(7)})
    scene.broker.failures[INFO] = NoPermission(16, "no", ADDRESS, INFO)
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    alone = make("BALANCED")
    alone.broker.members = [ME, "aa"]
    alone.broker.failures[INFO] = NoPermission(16, "no", ADDRESS, INFO)
    alone.run()
    await until(lambda: alone.rebalancer.settled)
    assert scene.table.queues == alone.table.queues, "what one sees alone does not count"


async def test_a_queue_that_only_another_member_sees_makes_us_ask_for_its_route(make: Make) -> None:
    scene = make("BALANCED")
    scene.broker.members = [ME, "zz"]
    scene.broker.holdings = {"zz": frozenset({queue(8), queue(9)})}  # of a broker that is not registered yet
    scene.run()
    await until(lambda: len(scene.client.hurried) >= 3)
    asked = scene.broker.count(INFO)
    await until(lambda: len(scene.client.hurried) >= 6)
    assert set(scene.client.hurried) == {"t"}
    assert scene.broker.count(INFO) <= asked + 1, "members are not asked each time"
    assert len(scene.table.queues) == 4, "as long as we do not see them, we share out what we see"
    scene.client.topics["t"] = tuple(queue(number) for number in range(10))
    await until(lambda: len(scene.table.queues) == 5)
    await until(lambda: not scene.rebalancer._looks_for_queues)
    hurried = len(scene.client.hurried)
    await scene.rebalancer.now()
    assert len(scene.client.hurried) == hurried


async def test_a_queue_that_never_comes_is_looked_for_only_so_long(make: Make) -> None:
    scene = make("BALANCED", timings=replace(QUICK, looks_for_unseen=0.05))
    scene.broker.members = [ME, "zz"]
    scene.broker.holdings = {"zz": frozenset({queue(9)})}
    scene.run()
    await until(lambda: bool(scene.client.hurried))
    await until(lambda: not scene.rebalancer._looks_for_queues)
    await scene.rebalancer.now()
    hurried = len(scene.client.hurried)
    await scene.rebalancer.now()
    assert len(scene.client.hurried) == hurried


@pytest.mark.parametrize("seen", ["away", "of another topic"])
async def test_queues_that_we_know_to_be_away_or_do_not_read_are_not_looked_for(make: Make, seen: str) -> None:
    scene = make("BALANCED")
    scene.broker.members = [ME, "zz"]
    others = queue(9) if seen == "away" else queue(0, "elsewhere")
    scene.broker.holdings = {"zz": frozenset({others})}
    if seen == "away":
        scene.client.absent["t"] = (others,)
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    await scene.rebalancer.now()
    assert scene.client.hurried == []


# -- the eye on another member ----------------------------------------------------------------------------------------


async def watched(make: Make) -> Scene:
    scene = make(timings=replace(QUICK, watch_timeout=0.01, looks=6000, looks_at_suspects=6000))
    scene.broker.members = [ME, "zz"]
    scene.run()
    await until(lambda: scene.rebalancer.settled)
    assert len(scene.table.queues) == 4
    scene.tasks.append(asyncio.create_task(scene.rebalancer.watch()))
    return scene


NOT_SENT = (
    "invoke consumer <g> <zz> Exception: org.apache.rocketmq.remoting.exception.RemotingSendRequestException: send"
)


@pytest.mark.parametrize(
    "error",
    [
        RequestTimeout(ADDRESS, INFO, 1.0),
        ResponseError(207, "timeout", ADDRESS, INFO),
        ResponseError(1, NOT_SENT, ADDRESS, INFO),
    ],
)
async def test_a_silent_member_is_taken_care_of_until_it_answers(make: Make, error: Exception) -> None:
    scene = await watched(make)
    scene.broker.failures[INFO] = error
    await until(lambda: len(scene.table.queues) == 8)
    del scene.broker.failures[INFO]
    await until(lambda: len(scene.table.queues) == 4)


@pytest.mark.parametrize(
    "error",
    [
        NoPermission(16, "no", ADDRESS, INFO),
        ConnectError(ADDRESS, "refused"),
        ResponseError(1, "the broker is in trouble", ADDRESS, INFO),
    ],
)
async def test_an_error_that_says_nothing_about_the_member_makes_it_no_suspect(make: Make, error: Exception) -> None:
    scene = await watched(make)
    scene.broker.failures[INFO] = error
    asked = scene.broker.count(INFO)
    await until(lambda: scene.broker.count(INFO) >= asked + 5)
    assert scene.rebalancer._suspects == ()
    assert len(scene.table.queues) == 4


async def test_a_suspect_that_leaves_the_list_is_a_suspect_no_longer(make: Make) -> None:
    scene = await watched(make)
    scene.broker.failures[INFO] = RequestTimeout(ADDRESS, INFO, 1.0)
    await until(lambda: len(scene.table.queues) == 8)
    scene.broker.members = [ME]
    await scene.rebalancer.now()
    assert scene.rebalancer._suspects == ()
    assert scene.rebalancer.settled


async def of_three(make: Make, errors: dict[str, Exception]) -> Scene:
    """We watch "b", and behind it "a"; each answers as `errors` says."""
    scene = await watched(make)
    answer = scene.broker.answers[INFO]

    def by_member(command: Command) -> Command | Awaitable[Command]:
        if (error := errors.get(command.fields["clientId"])) is not None:
            raise error
        return answer(command)

    scene.broker.answers[INFO] = by_member
    scene.broker.members = ["a", "b", ME]
    await scene.rebalancer.now()
    return scene


SILENCE = RequestTimeout(ADDRESS, INFO, 1.0)


async def test_who_watches_a_silent_member_also_watches_the_one_before_it(make: Make) -> None:
    """For the watcher of that one is silent itself."""
    errors: dict[str, Exception] = {"b": SILENCE, "a": SILENCE}
    scene = await of_three(make, errors)
    await until(lambda: scene.rebalancer._suspects == ("b", "a"))
    await until(lambda: len(scene.table.queues) == 8)
    del errors["b"]
    await until(lambda: scene.rebalancer._suspects == ())


async def test_what_is_not_learnt_of_one_member_does_not_clear_or_hide_another(make: Make) -> None:
    errors: dict[str, Exception] = {"b": SILENCE, "a": ConnectError(ADDRESS, "refused")}
    scene = await of_three(make, errors)
    await until(lambda: scene.rebalancer._suspects == ("b",))
    errors["a"] = SILENCE
    await until(lambda: scene.rebalancer._suspects == ("b", "a"))
    errors["a"] = ConnectError(ADDRESS, "refused")
    asked = scene.broker.count(INFO)
    await until(lambda: scene.broker.count(INFO) >= asked + 4)
    assert scene.rebalancer._suspects == ("b", "a"), "nothing new of it"
