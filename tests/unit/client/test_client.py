"""The client as a whole, and calls to many brokers at once, against peers that play a small cluster."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.support.waiting import until
from tests.unit.client.peer import Channel, Peer

from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import (
    ClientClosed,
    NoBroker,
    PartialFailure,
    RequestTimeout,
    RocketMQError,
)
from rocketfleet.client.fanout import Partial, each
from rocketfleet.wire.bodies import (
    BrokerData,
    ClusterInfo,
    ConsumeStats,
    OffsetWrapper,
    QueueData,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicRouteData,
)
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, request
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Cluster:
    """A name server and brokers that agree with it. Each broker's behaviour can be replaced."""

    def __init__(self) -> None:
        self.name_server = Peer(self._name_server)
        self.brokers: dict[str, Peer] = {}
        self.topics: dict[str, tuple[str, ...]] = {}
        self.deleted: list[str] = []
        self.without_master: set[str] = set()

    def _data(self, name: str) -> BrokerData:
        return BrokerData("c", name, {1 if name in self.without_master else 0: self.brokers[name].address})

    def _name_server(self, channel: Channel, command: Command) -> None:
        topic = command.fields.get("topic", "")
        if command.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            info = ClusterInfo({name: self._data(name) for name in self.brokers}, {"c": tuple(self.brokers)})
            channel.answer(command, body=info.encode())
        elif command.code == RequestCode.DELETE_TOPIC_IN_NAMESRV:
            self.deleted.append(topic)
            channel.answer(command)
        elif topic in self.topics:
            names = self.topics[topic]
            route = TopicRouteData(tuple(QueueData(n, 2, 2, 6) for n in names), tuple(map(self._data, names)))
            channel.answer(command, body=route.encode())
        else:
            channel.answer(command, ResponseCode.TOPIC_NOT_EXIST)


def stats(channel: Channel, command: Command) -> None:
    queue = MessageQueue("T", "broker", channel.writer.get_extra_info("sockname")[1])
    body = ConsumeStats({queue: OffsetWrapper(10, 7)}) if command.code == RequestCode.GET_CONSUME_STATS else None
    channel.answer(command, body=body.encode() if body is not None else b"")


def silent(_channel: Channel, _command: Command) -> None: ...


class ClockAhead:
    """The machine's, and what a test adds to it."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@asynccontextmanager
async def running(
    *names: str, clock: ClockAhead | None = None, timeout: float = 10.0
) -> AsyncIterator[tuple[Cluster, Client]]:
    async with AsyncExitStack() as stack:
        cluster = Cluster()
        await stack.enter_async_context(cluster.name_server)
        for name in names:
            cluster.brokers[name] = await stack.enter_async_context(Peer(stats))
        client = Client(ClientConfig(cluster.name_server.address, timeout=timeout), clock=clock or ClockAhead())
        await stack.enter_async_context(client)
        yield cluster, client


async def test_routes_teach_the_client_its_brokers() -> None:
    async with running("a", "b", "c") as (cluster, client):
        cluster.topics.update(T=("a", "b"), U=("c",))
        with pytest.raises(NoBroker):
            client.master("a")
        assert len((await client.publish_info("T")).queues) == 4
        assert client.master("a") == cluster.brokers["a"].address
        assert client.reader("b", 1).address == cluster.brokers["b"].address
        assert await client.subscribe_queues("U") == (MessageQueue("U", "c", 0), MessageQueue("U", "c", 1))
        cluster.topics["T"] = ("b",)
        await client.routes.refresh("T")
        with pytest.raises(NoBroker):
            client.master("a")  # no route names it any more
        assert set(client.brokers.masters()) == {"b", "c"}


async def test_one_silent_broker_delays_no_other() -> None:
    async with running("a", "b", "c", timeout=1.0) as (cluster, client):
        cluster.topics["T"] = ("a", "b", "c")
        await client.route("T")
        cluster.brokers["b"].script = silent
        order: list[str] = []

        async def call(address: str) -> int:
            try:
                return (await client.remoting.call(address, request(RequestCode.HEART_BEAT))).code
            finally:
                order.append(address)

        outcome = await client.each_replica(call)
        assert outcome.results == {client.master("a"): 0, client.master("c"): 0}
        assert {address: type(error) for address, error in outcome.errors.items()} == {
            client.master("b"): RequestTimeout
        }
        assert order[-1] == client.master("b")


async def test_stats_over_all_brokers_with_a_loss() -> None:
    async with running("a", "b") as (cluster, client):
        cluster.topics["%RETRY%G"] = ("a", "b")
        everything = (await admin.consume_stats(client, "G")).all_or_raise()
        assert set(everything) == {"a", "b"}
        assert [next(iter(one.offset_table.values())).consumer_offset for one in everything.values()] == [7, 7]
        await cluster.brokers["b"].stop()
        partial = await admin.consume_stats(client, "G")
        assert set(partial.some_or_raise()) == {"a"}
        with pytest.raises(RocketMQError):
            partial.all_or_raise()
        await cluster.brokers["b"].listen()


async def test_a_group_that_never_consumed_is_asked_for_everywhere() -> None:
    async with running("a", "b") as (cluster, client):
        assert set((await admin.consume_stats(client, "new")).results) == {"a", "b"}
        cluster.topics["T"] = ("b",)
        assert set((await admin.consume_stats(client, "new", "T")).results) == {"b"}


async def test_topics_and_groups_go_to_all_masters() -> None:
    async with running("a", "b") as (cluster, client):
        assert set((await admin.create_topic(client, TopicConfig("T"), "c")).all_or_raise()) == {"a", "b"}
        await admin.create_group(client, SubscriptionGroupConfig("G"))
        await admin.delete_group(client, "G", remove_offsets=True)
        assert cluster.deleted == [], "retries and dead letters are messages"
        await admin.delete_group(client, "G", remove_offsets=True, remove_topics=True)
        for peer in cluster.brokers.values():
            assert [command.code for command in peer.received] == [17, 200, 207, 207, 215, 215]
        assert cluster.deleted == ["%RETRY%G", "%DLQ%G"]
        with pytest.raises(NoBroker, match="knows no such cluster; it knows: c"):
            await admin.create_topic(client, TopicConfig("T"), "other")


async def test_a_topic_half_deleted_stays_known_to_the_name_servers() -> None:
    async with running("a", "b", timeout=1.0) as (cluster, client):
        cluster.brokers["a"].script = silent
        outcome = await admin.delete_topic(client, "T")
        assert set(outcome.errors) == {"a"}
        assert cluster.deleted == []


async def test_the_outcomes_of_many() -> None:
    async def call(name: str) -> str:
        if name.startswith("bad"):
            raise NoBroker(name, "gone")
        await asyncio.sleep(0)
        return name.upper()

    good = await each(["x", "y", "x"], call)
    assert good == Partial({"x": "X", "y": "Y"}, {})
    assert good.all_or_raise() == good.some_or_raise() == {"x": "X", "y": "Y"}
    with pytest.raises(NoBroker):
        (await each(["x", "bad"], call)).all_or_raise()
    with pytest.raises(PartialFailure, match=r"2 brokers failed: bad1: .*; bad2: "):
        (await each(["bad1", "bad2"], call)).some_or_raise()
    assert (await each([], call)).some_or_raise() == {}

    async def bug(_name: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await each(["x"], bug)


async def test_routes_are_refreshed_in_the_background() -> None:
    async with running("a") as (cluster, _):
        cluster.topics["T"] = ("a",)
        config = ClientConfig(cluster.name_server.address, route_refresh=0.05)
        async with Client(config) as client:
            assert (await client.route("T")).queue_datas[0].read_queue_nums == 2
            cluster.brokers["b"] = cluster.brokers["a"]
            cluster.topics["T"] = ("a", "b")
            await until(lambda: "b" in client.brokers.table)
        with pytest.raises(ClientClosed):
            await client.routes.refresh("T")


async def moved(cluster: Cluster, name: str, stack: AsyncExitStack) -> Peer:
    """Put a broker's successor at another address."""
    successor = await stack.enter_async_context(Peer(stats))
    cluster.brokers[name] = successor
    return successor


def away(client: Client) -> frozenset[str]:
    """The brokers that the client looks for."""
    return client._upkeep.lookout.away


async def in_use(client: Client, *names: str) -> None:
    """Make the calls that make brokers count as used."""
    for name in names:
        await client.remoting.call(client.master(name), request(RequestCode.HEART_BEAT))


async def test_a_broker_that_comes_back_is_connected_again_without_a_call() -> None:
    async with running("a", "b") as (cluster, client):
        cluster.topics.update(T=("a", "b"))
        await client.route("T")
        await in_use(client, "a", "b")
        news: list[str] = []
        client.remoting.on_connect(news.append)
        peer = cluster.brokers["a"]
        await peer.stop()
        await until(lambda: away(client) == {"a"})
        assert not client.is_connected("a")
        assert client.is_connected("b")
        await peer.listen()
        await until(lambda: client.is_connected("a"))
        assert away(client) == frozenset()
        assert peer.address in news


async def test_a_broker_that_comes_back_elsewhere_is_found_without_a_call() -> None:
    async with running("a", "b") as (cluster, client), AsyncExitStack() as stack:
        cluster.topics.update(T=("a", "b"), U=("a", "b"))
        for topic in ("T", "U"):
            await client.route(topic)
        await in_use(client, "a", "b")
        former = cluster.brokers["a"].address
        cluster.topics.update(T=("b",), U=("b",))
        await cluster.brokers["a"].stop()
        # All topics learn that it is gone, long before the routes' own time.
        await until(lambda: all(len(route.broker_datas) == 1 for route in client.routes.routes().values()))
        assert away(client) == {"a"}
        assert client.master("a") == former  # it is remembered
        successor = await moved(cluster, "a", stack)
        cluster.topics.update(T=("a", "b"), U=("a", "b"))
        await until(lambda: client.is_connected("a"))
        assert client.master("a") == successor.address
        await until(lambda: all(len(route.broker_datas) == 2 for route in client.routes.routes().values()))


async def test_a_broker_that_could_not_be_reached_at_first_is_found_too() -> None:
    async with running("a") as (cluster, client), AsyncExitStack() as stack:
        cluster.topics["T"] = ("a",)
        await client.route("T")
        await cluster.brokers["a"].stop()
        with pytest.raises(RocketMQError):
            await in_use(client, "a")
        assert away(client) == {"a"}
        await moved(cluster, "a", stack)
        await until(lambda: client.is_connected("a"))


async def test_a_master_that_is_gone_is_no_master() -> None:
    async with running("a", "b") as (cluster, client):
        cluster.topics["T"] = ("a", "b")
        await client.route("T")
        await in_use(client, "a", "b")
        address = client.master("a")
        cluster.without_master.add("a")
        await client.routes.refresh("T")
        with pytest.raises(NoBroker, match="no master now"):
            client.master("a")
        assert client.brokers.has_only_slaves("a")
        assert not client.is_connected("a")
        assert away(client) == {"a"}
        cluster.without_master.clear()
        await until(lambda: client.is_connected("a"))  # the routes are looked at, though no connection was lost
        assert client.master("a") == address


async def test_a_connected_broker_that_vanishes_from_the_route_keeps_its_address_and_queues() -> None:
    clock = ClockAhead()
    async with running("a", "b", clock=clock) as (cluster, client):
        cluster.topics.update(T=("a", "b"))
        both = await client.subscribe_queues("T")
        await in_use(client, "a", "b")
        address = client.master("b")
        cluster.topics["T"] = ("a",)  # a name server that does not know it yet
        await client.routes.refresh("T")
        assert client.master("b") == address
        assert await client.subscribe_queues("T") == both
        assert {queue.broker for queue in (await client.publish_info("T")).queues} == {"a"}

        async def call(where: str) -> int:
            return (await client.remoting.call(where, request(RequestCode.HEART_BEAT))).code

        assert (await client.each_replica(call)).results == {client.master("a"): 0, address: 0}
        clock.ahead += 61
        assert {queue.broker for queue in await client.subscribe_queues("T")} == {"a"}  # the route was right
        assert client.master("b") == address
        await cluster.brokers["b"].stop()
        await until(lambda: away(client) == {"b"})
        assert set((await client.each_replica(call)).results) == {client.master("a")}
        clock.ahead += 601
        client._upkeep._stirred.set()  # or it would notice in its sleep of some seconds
        await until(lambda: "b" not in client.brokers.table)
        assert away(client) == frozenset()


async def test_queues_go_with_their_broker() -> None:
    async with running("a", "b") as (cluster, client):
        cluster.topics["T"] = ("a", "b")
        await client.subscribe_queues("T")
        await in_use(client, "a", "b")
        cluster.topics["T"] = ("a",)
        await cluster.brokers["b"].stop()

        async def gone() -> bool:
            return {queue.broker for queue in await client.subscribe_queues("T")} == {"a"}

        await until(gone)


async def test_an_address_that_another_broker_has_now_is_not_kept() -> None:
    async with running("a", "b") as (cluster, client):
        cluster.topics["T"] = ("a", "b")
        await client.route("T")
        await in_use(client, "a", "b")
        former = client.master("b")
        cluster.topics["T"] = ("a",)
        await client.routes.refresh("T")
        assert client.master("b") == former
        cluster.brokers["a"] = cluster.brokers["b"]  # another pod got its address
        await client.routes.refresh("T")
        with pytest.raises(NoBroker):
            client.master("b")
        assert {queue.broker for queue in await client.subscribe_queues("T")} == {"a"}


async def test_brokers_are_forgotten_with_the_last_topic_in_use() -> None:
    clock = ClockAhead()
    async with running("a", "b", clock=clock) as (cluster, client):
        cluster.topics.update(T=("a",), U=("b",))
        release = client.routes.watch("U")
        await client.route("T")
        await client.route("U")
        clock.ahead += 700
        await until(lambda: client.routes.topics == ("U",))
        client._upkeep._stirred.set()  # or it would notice in its sleep of some seconds
        await until(lambda: set(client.brokers.table) == {"b"})
        release()


async def test_the_loss_of_a_slave_makes_the_routes_be_asked() -> None:
    async with running("a") as (cluster, client), AsyncExitStack() as stack:
        slave = await stack.enter_async_context(Peer(stats))
        master = cluster.brokers["a"].address
        route = TopicRouteData((QueueData("a", 2, 2, 6),), (BrokerData("c", "a", {0: master, 1: slave.address}),))

        def name_server(channel: Channel, command: Command) -> None:
            channel.answer(command, body=route.encode())

        cluster.name_server.script = name_server
        await client.route("T")
        await client.remoting.call(slave.address, request(RequestCode.HEART_BEAT))
        route = TopicRouteData((QueueData("a", 2, 2, 6),), (BrokerData("c", "a", {0: master}),))
        slave.channels[0].reset()
        await until(lambda: client.brokers.table["a"] == {0: master})
        assert away(client) == frozenset()
