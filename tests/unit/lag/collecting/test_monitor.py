"""The monitor over brokers that are slow, dead, or refuse: fakes stand in for the wire, everything above it is real."""

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.clock import Clock

from rocketfleet.client import fanout
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConnectionLost, PartialFailure
from rocketfleet.client.routing.routes import Brokers
from rocketfleet.lag.collecting.monitor import LagMonitor, Target
from rocketfleet.lag.judging.rules import LagFinding
from rocketfleet.lag.look import look
from rocketfleet.wire.bodies import BrokerData, QueueData, TopicRouteData
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Broker:
    """Two queues of each topic, offsets by group, and the mood of the day."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.ends = (0, 10)
        self.delay = 4000
        self.asked: list[int] = []
        self.mood: Callable[[int], Awaitable[None]] | None = None
        self.refuses: set[int] = set()
        self.under_way = self.most_under_way = 0

    async def answer(self, command: Command) -> Command:
        self.asked.append(command.code)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(0)
            if self.mood is not None:
                await self.mood(command.code)
            if command.code in self.refuses:
                return Command(int(ResponseCode.NO_PERMISSION), {}, b"")
            return self._said(command)
        finally:
            self.under_way -= 1

    def _said(self, command: Command) -> Command:
        fields = command.fields
        if command.code == RequestCode.GET_ALL_CONSUMER_OFFSET:
            table: dict[str, dict[int, int]] = {}
            for (group, topic, number), offset in self.offsets.items():
                table.setdefault(f"{topic}@{group}", {})[number] = offset
            rows = ",".join(
                f'"{key}":{{{",".join(f"{number}:{at}" for number, at in them.items())}}}'
                for key, them in table.items()
            )
            return Command(0, {}, f'{{"offsetTable":{{{rows}}}}}'.encode())
        if command.code == RequestCode.QUERY_CONSUMER_OFFSET:
            found = self.offsets.get((fields["consumerGroup"], fields["topic"], int(fields["queueId"])))
            return Command(int(ResponseCode.QUERY_NOT_FOUND) if found is None else 0, {"offset": str(found)}, b"")
        if command.code == RequestCode.GET_TOPIC_STATS_INFO:
            rows = ",".join(
                f'{{"brokerName":"{self.name}","queueId":{number},"topic":"{fields["topic"]}"}}:'
                f'{{"lastUpdateTimestamp":1,"maxOffset":{self.ends[1]},"minOffset":{self.ends[0]}}}'
                for number in range(2)
            )
            return Command(0, {}, f'{{"offsetTable":{{{rows}}}}}'.encode())
        if command.code == RequestCode.QUERY_CONSUME_TIME_SPAN:
            rows = ",".join(
                f'{{"messageQueue":{{"brokerName":"{self.name}","queueId":{number},"topic":"{fields["topic"]}"}},'
                f'"minTimeStamp":500,"delayTime":{self.delay}}}'
                for number in range(2)
            )
            return Command(0, {}, f'{{"consumeTimeSpanSet":[{rows}]}}'.encode())
        assert command.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP
        return Command(0, {}, b'{"consumerIdList":["one","two"]}')


class Cluster:
    """A client as far as the monitor needs one: routes at hand, and brokers behind addresses that are their names."""

    def __init__(self, topics: dict[str, tuple[str, ...]], names: tuple[str, ...] = ()) -> None:
        self.parts = {name: Broker(name) for brokers in topics.values() for name in brokers}
        self._routes = {
            topic: TopicRouteData(
                queue_datas=tuple(QueueData(name, 2, 2, 6) for name in brokers),
                broker_datas=tuple(BrokerData("c", name, {0: name}) for name in brokers),
            )
            for topic, brokers in topics.items()
        }
        self.brokers = Brokers.of(self._routes.values())
        self.master = self.brokers.master
        self.routes = SimpleNamespace(cached=self._routes.get)
        listed = SimpleNamespace(topic_list=(*topics, *names))
        self.name_servers = SimpleNamespace(topics=lambda _timeout: _given(listed))
        self.remoting = self
        self.config = ClientConfig("127.0.0.1:1")

    async def route(self, topic: str) -> TopicRouteData:
        assert topic in self._routes, f"the route of {topic} is not at hand"
        return self._routes[topic]

    async def call(self, address: str, command: Command, _timeout: float | None = None) -> Command:
        return await self.parts[address].answer(command)


async def _given(value: Any) -> Any:
    return value


def watch(cluster: Cluster, *groups: tuple[str, str], **settings: Any) -> tuple[LagMonitor, Clock]:
    clock = Clock()
    monitor = LagMonitor(clock=clock, **settings)
    for group, topic in groups:
        monitor.follow(group, target(cluster, group, topic))
    return monitor, clock


def target(cluster: Cluster, group: str, topic: str) -> Target:
    return Target(cluster, group, (topic,), ConsumeFromWhere.LAST_OFFSET, cluster="c", name=group)  # type: ignore[arg-type]


def commit(broker: Broker, group: str, topic: str, *offsets: int) -> None:
    for number, offset in enumerate(offsets):
        broker.offsets[group, topic, number] = offset


async def test_a_dead_broker_leaves_its_queues_with_their_old_figures() -> None:
    cluster = Cluster({"t": ("a", "b"), "only-a": ("a",)})
    for name in ("a", "b"):
        commit(cluster.parts[name], "g", "t", 4, 10)
    commit(cluster.parts["a"], "h", "only-a", 10, 10)
    monitor, clock = watch(cluster, ("g", "t"), ("h", "only-a"))
    await monitor.sweep()
    first = monitor.latest("g")
    assert first is not None
    assert (first.messages, first.unknown, first.members) == (12, 0, 2)

    async def dead(_code: int) -> None:
        raise ConnectionLost("b", "it is gone")

    cluster.parts["b"].mood = dead
    cluster.parts["a"].ends = (0, 20)
    clock.now += 30
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert (seen.messages, seen.unknown, seen.at_least) == (None, 2, 26)
    assert {(row.queue.broker, row.observed_at, row.max_offset) for row in seen.queues} == {
        ("a", 1030.0, 20), ("b", 1000.0, 10)
    }  # fmt: skip
    other = monitor.latest("h")
    assert other is not None
    assert (other.messages, other.unknown) == (20, 0), "nobody else is touched"
    assert len(cluster.parts["b"].asked) <= 4 + 1 + 1 + 1 + fanout.AT_ONCE, "a dead broker is not asked on and on"
    clock.now += 30
    await monitor.sweep()
    assert monitor.verdict("g").state is LagFinding.UNKNOWN
    assert "broker b" in monitor.verdict("g").sentence


async def test_a_slow_broker_delays_only_its_own_groups() -> None:
    cluster = Cluster({"slow": ("a",), "quick": ("b",)})
    commit(cluster.parts["a"], "g", "slow", 1, 1)
    commit(cluster.parts["b"], "h", "quick", 1, 1)
    monitor, _ = watch(cluster, ("g", "slow"), ("h", "quick"), patience=60.0)
    gate, seen = asyncio.Event(), asyncio.Event()
    monitor.follow("h", target(cluster, "h", "quick"), seen.set)

    async def waits(_code: int) -> None:
        await gate.wait()

    cluster.parts["a"].mood = waits
    sweep = asyncio.create_task(monitor.sweep())
    async with asyncio.timeout(30):
        await seen.wait()
    assert monitor.latest("h") is not None
    assert monitor.latest("g") is None
    assert not sweep.done()
    gate.set()
    await sweep
    assert monitor.latest("g") is not None


async def test_whoever_is_too_slow_is_cut_off_and_what_it_said_is_used() -> None:
    cluster = Cluster({"t": ("a",)})
    commit(cluster.parts["a"], "g", "t", 4, 4)
    monitor, _ = watch(cluster, ("g", "t"), patience=0.05)

    async def hangs(code: int) -> None:
        if code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            await asyncio.Event().wait()

    cluster.parts["a"].mood = hangs
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert (seen.messages, seen.members) == (12, None)


async def test_offsets_are_read_before_ends() -> None:
    cluster = Cluster({"t": ("a",)})
    commit(cluster.parts["a"], "g", "t", 4, 4)
    monitor, _ = watch(cluster, ("g", "t"))
    await monitor.sweep()
    asked = cluster.parts["a"].asked
    ends = asked.index(RequestCode.GET_TOPIC_STATS_INFO)
    assert asked[:ends] == [RequestCode.QUERY_CONSUMER_OFFSET] * 2
    assert RequestCode.QUERY_CONSUMER_OFFSET not in asked[ends:]


@pytest.mark.parametrize("refuses", [False, True])
async def test_many_queues_are_read_by_one_call_if_the_broker_lets_us(refuses: bool) -> None:
    groups = [(f"g{number}", "t") for number in range(200)]
    cluster = Cluster({"t": ("a",)})
    broker = cluster.parts["a"]
    for group, topic in groups:
        commit(broker, group, topic, 4, 9)
    if refuses:
        broker.refuses.add(RequestCode.GET_ALL_CONSUMER_OFFSET)
    monitor, _ = watch(cluster, *groups)
    await monitor.sweep()
    await monitor.sweep()
    assert {moment.messages for group, _ in groups if (moment := monitor.latest(group)) is not None} == {7}
    assert broker.asked.count(RequestCode.GET_ALL_CONSUMER_OFFSET) == (1 if refuses else 2), "a refusal is remembered"
    assert broker.asked.count(RequestCode.QUERY_CONSUMER_OFFSET) == (800 if refuses else 0)
    assert broker.asked.count(RequestCode.GET_TOPIC_STATS_INFO) == 2, "however many groups share a topic"
    assert broker.most_under_way <= fanout.AT_ONCE


@pytest.mark.parametrize(("offset", "delay"), [(4, 10**15), (1, 4000), (None, 4000)])
async def test_where_the_next_message_is_gone_the_oldest_one_there_counts(offset: int | None, delay: int) -> None:
    """The broker reckons from a message that it did not find as if it were of 1970."""
    cluster = Cluster({"t": ("a",)})
    broker = cluster.parts["a"]
    broker.ends, broker.delay = (2, 10), delay
    commit(broker, "g", "t", 10, 10)
    if offset is None:
        del broker.offsets["g", "t", 0]
    else:
        commit(broker, "g", "t", offset)
    monitor, _ = watch(cluster, ("g", "t"))
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert [row.seconds for row in seen.queues] == [999.5, 0.0], "it was stored half a second after the epoch"


async def test_one_look_sees_what_a_sweep_sees_and_says_who_did_not_answer() -> None:
    cluster = Cluster({"t": ("a", "b"), "%RETRY%g": ("a",), "%RETRY%g_t": ("a",)})
    for name in ("a", "b"):
        commit(cluster.parts[name], "g", "t", 4, 10)
    del cluster.parts["b"].offsets["g", "t", 1]  # it has one elsewhere in the topic: the queue is new
    commit(cluster.parts["a"], "g", "%RETRY%g", 7)
    monitor, clock = watch(cluster, ("g", "t"))
    await monitor.sweep()
    target = Target(cluster, "g", ("t",), ConsumeFromWhere.LAST_OFFSET)  # type: ignore[arg-type]
    seen = await look(target, clock=clock)
    latest = monitor.latest("g")
    assert latest is not None
    assert (latest.messages, latest.retry) == (22, 13)
    assert (seen.moment.queues, seen.moment.messages, seen.moment.retry) == (latest.queues, 22, 13)
    assert [(row.queue.topic, row.queue.queue_id, row.consumer_offset, row.lag) for row in seen.retries] == [
        ("%RETRY%g", 0, 7, 3),
        ("%RETRY%g", 1, None, 10),
    ], "a retry topic in which the group never was is another's"
    assert seen.errors == {}

    async def dead(_code: int) -> None:
        raise ConnectionLost("b", "it is gone")

    cluster.parts["b"].mood = dead
    seen = await look(target, clock=clock)
    assert (seen.moment.messages, seen.moment.at_least, set(seen.errors)) == (None, 6, {"b"})
    cluster.parts["a"].mood = dead
    with pytest.raises(PartialFailure):
        await look(target, clock=clock)


async def test_ages_are_asked_for_only_when_the_offset_has_moved() -> None:
    cluster = Cluster({"t": ("a",)})
    broker = cluster.parts["a"]
    commit(broker, "g", "t", 4, 10)
    monitor, clock = watch(cluster, ("g", "t"))
    for expected in (4.0, 34.0, 64.0):
        await monitor.sweep()
        seen = monitor.latest("g")
        assert seen is not None
        assert seen.seconds == expected
        clock.now += 30
    assert broker.asked.count(RequestCode.QUERY_CONSUME_TIME_SPAN) == 1
    commit(broker, "g", "t", 5, 10)
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert seen.seconds == 4.0
    assert broker.asked.count(RequestCode.QUERY_CONSUME_TIME_SPAN) == 2
    commit(broker, "g", "t", 10, 10)
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert seen.seconds == 0.0


async def test_ages_of_what_was_deleted_are_those_of_the_oldest_left() -> None:
    cluster = Cluster({"t": ("a",)})
    broker = cluster.parts["a"]
    broker.ends = (6, 10)
    commit(broker, "g", "t", 2, 10)
    monitor, _ = watch(cluster, ("g", "t"))
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert (seen.messages, seen.seconds) == (4, 999.5)


async def test_what_a_broker_refuses_is_unknown_and_the_rest_is_not() -> None:
    cluster = Cluster({"t": ("a",)})
    broker = cluster.parts["a"]
    commit(broker, "g", "t", 4, 10)
    broker.refuses |= {RequestCode.QUERY_CONSUME_TIME_SPAN, RequestCode.GET_CONSUMER_LIST_BY_GROUP}
    monitor, _ = watch(cluster, ("g", "t"))
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert (seen.messages, seen.seconds, seen.members) == (6, None, None)


async def test_retries_and_dead_letters_stand_apart() -> None:
    cluster = Cluster({"t": ("a",), "%RETRY%g": ("a",), "%DLQ%g": ("a",), "%RETRY%g_t": ("a",)})
    broker = cluster.parts["a"]
    commit(broker, "g", "t", 10, 10)
    commit(broker, "g", "%RETRY%g", 7)
    monitor, _ = watch(cluster, ("g", "t"))
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert (seen.messages, seen.retry, seen.dlq) == (0, 13, 20), "%RETRY%g_t may be another group's"
    commit(broker, "g", "%RETRY%g_t", 9)
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert seen.retry == 14


async def test_a_group_that_is_forgotten_is_gone_and_one_that_is_followed_anew_begins_anew() -> None:
    cluster = Cluster({"t": ("a",), "u": ("a",)})
    commit(cluster.parts["a"], "g", "t", 4, 4)
    monitor, _ = watch(cluster, ("g", "t"))
    await monitor.sweep()
    again = Target(cluster, "g", ("t", "u"), ConsumeFromWhere.FIRST_OFFSET)  # type: ignore[arg-type]
    monitor.follow("g", again)
    assert len(monitor.window("g").moments) == 1, "another spec of the same group"
    monitor.follow("g", Target(cluster, "other", ("t",), ConsumeFromWhere.LAST_OFFSET))  # type: ignore[arg-type]
    assert monitor.latest("g") is None
    monitor.forget("g")
    assert (len(monitor), monitor.verdict("g").state) == (0, LagFinding.UNKNOWN)
    await monitor.sweep()


async def test_owners_are_shown_as_they_are_noted() -> None:
    cluster = Cluster({"t": ("a",)})
    commit(cluster.parts["a"], "g", "t", 4, 4)
    monitor, _ = watch(cluster, ("g", "t"))
    monitor.note_owners("g", {MessageQueue("t", "a", 0): "one"})
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert [row.owner for row in seen.queues] == ["one", None]


async def test_a_topic_that_is_not_there_makes_the_lag_unknown() -> None:
    cluster = Cluster({"t": ("a",)})
    commit(cluster.parts["a"], "g", "t", 4, 4)
    monitor, _ = watch(cluster)
    gone = Target(cluster, "g", ("t", "gone"), ConsumeFromWhere.LAST_OFFSET)  # type: ignore[arg-type]

    async def no_route(topic: str) -> TopicRouteData:
        from rocketfleet.client.errors import NoRoute

        raise NoRoute(topic, "nobody has it")

    cluster.route = no_route  # type: ignore[method-assign]
    monitor.follow("g", gone)
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert (seen.messages, seen.unknown, seen.at_least) == (None, 1, 12)


async def test_the_keeper_gets_what_this_sweep_saw() -> None:
    class Keeper:
        kept: list[Any] = []  # noqa: RUF012

        async def keep(self, seen: list[Any]) -> None:
            self.kept.append([(target.group, moment.messages) for target, moment in seen])

    cluster = Cluster({"t": ("a",)})
    commit(cluster.parts["a"], "g", "t", 4, 4)
    keeper = Keeper()
    monitor, _ = watch(cluster, ("g", "t"), keeper=keeper)
    await monitor.sweep()
    assert keeper.kept == [[("g", 12)]]


async def test_new_queues_count_once_the_group_has_begun_with_their_topic() -> None:
    """A topic that was expanded while nobody was there: the group will read the new queue from its beginning."""
    cluster = Cluster({"t": ("a", "b")})
    commit(cluster.parts["a"], "g", "t", 10)  # and none in queue 1, which is new; b was added later
    monitor, _ = watch(cluster, ("g", "t"), ("fresh", "t"))
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert [(row.queue.broker, row.queue.queue_id, row.lag) for row in seen.queues] == [
        ("a", 0, 0), ("a", 1, 10), ("b", 0, 10), ("b", 1, 10)
    ]  # fmt: skip
    assert (seen.messages, seen.unknown) == (30, 0)
    assert {row.seconds for row in seen.queues if row.queue == MessageQueue("t", "a", 1)} != {None}
    fresh = monitor.latest("fresh")
    assert fresh is not None
    assert (fresh.messages, fresh.unknown) == (None, 4), "where it will begin is not known yet"


async def test_a_group_has_begun_also_while_the_broker_that_shows_it_is_away() -> None:
    cluster = Cluster({"t": ("a", "b")})
    commit(cluster.parts["a"], "g", "t", 10, 10)
    monitor, clock = watch(cluster, ("g", "t"))
    await monitor.sweep()

    async def dead(_code: int) -> None:
        raise ConnectionLost("a", "it is gone")

    cluster.parts["a"].mood = dead
    clock.now += 15
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert (seen.messages, seen.at_least) == (None, 20), "what waits at b is known"


async def test_retries_that_are_known_count_though_a_broker_is_away() -> None:
    cluster = Cluster({"t": ("a", "b"), "%RETRY%g": ("a", "b")})
    for name in ("a", "b"):
        commit(cluster.parts[name], "g", "t", 10, 10)
        commit(cluster.parts[name], "g", "%RETRY%g", 7, 10)
    cluster.parts["b"].refuses.add(RequestCode.GET_TOPIC_STATS_INFO)
    monitor, _ = watch(cluster, ("g", "t"))
    await monitor.sweep()
    seen = monitor.latest("g")
    assert seen is not None
    assert (seen.retry, seen.retry_at_least) == (None, 3)


async def test_a_group_at_rest_is_not_judged_and_begins_anew_afterwards() -> None:
    cluster = Cluster({"t": ("a",)})
    commit(cluster.parts["a"], "g", "t", 4, 4)
    monitor, clock = watch(cluster, ("g", "t"))

    async def nobody(command: Command) -> Command:
        if command.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            return Command(0, {}, b'{"consumerIdList":[]}')
        return await Broker.answer(cluster.parts["a"], command)

    cluster.parts["a"].answer = nobody  # type: ignore[method-assign]
    monitor.note_rest("g", True)
    for _ in range(8):
        await monitor.sweep()
        clock.now += 15
    assert monitor.verdict("g").state is LagFinding.UNKNOWN
    assert "suspended" in monitor.verdict("g").sentence
    monitor.note_rest("g", False)
    assert monitor.verdict("g").state is LagFinding.STOPPED, "if nobody says that it goes on, it is what it looks like"
    monitor.note_reset("g", clock.now)
    assert monitor.verdict("g").early
    for _ in range(4):
        await monitor.sweep()
        clock.now += 15
        assert monitor.verdict("g").state is LagFinding.OK
    await monitor.sweep()
    assert monitor.verdict("g").state is LagFinding.STOPPED, "after five looks with nobody there it has stopped indeed"


async def test_a_sweep_that_began_before_a_group_went_on_is_not_held_against_it() -> None:
    cluster = Cluster({"t": ("a",)})
    commit(cluster.parts["a"], "g", "t", 4, 4)
    monitor, clock = watch(cluster, ("g", "t"))
    for _ in range(8):
        await monitor.sweep()
        clock.now += 15
    assert monitor.verdict("g").state is LagFinding.STALLED
    gate = asyncio.Event()

    async def waits(_code: int) -> None:
        await gate.wait()

    cluster.parts["a"].mood = waits
    sweep = asyncio.create_task(monitor.sweep())
    await asyncio.sleep(0)
    clock.now += 5
    monitor.note_reset("g", clock.now)
    gate.set()
    await sweep
    assert monitor.verdict("g").early
