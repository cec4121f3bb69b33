"""The client as a whole, and calls to many brokers at once, against peers that play a small cluster."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.unit.client.patience import until
from tests.unit.client.peer import Channel, Peer

from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import (
    ClientClosed,
    ConsumerNotOnline,
    NoBroker,
    PartialFailure,
    RequestTimeout,
    RocketMQError,
)
from rocketfleet.client.fanout import Partial, each
from rocketfleet.wire.bodies import (
    BrokerData,
    ClusterInfo,
    ConsumerRunningInfo,
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

    def _data(self, name: str) -> BrokerData:
        return BrokerData("c", name, {0: self.brokers[name].address})

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


@asynccontextmanager
async def running(*names: str) -> AsyncIterator[tuple[Cluster, Client]]:
    async with AsyncExitStack() as stack:
        cluster = Cluster()
        await stack.enter_async_context(cluster.name_server)
        for name in names:
            cluster.brokers[name] = await stack.enter_async_context(Peer(stats))
        client = Client(ClientConfig(cluster.name_server.address, timeout=0.3))
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
    async with running("a", "b", "c") as (cluster, client):
        cluster.topics["T"] = ("a", "b", "c")
        await client.route("T")
        cluster.brokers["b"].script = silent
        order: list[str] = []

        async def call(address: str) -> int:
            try:
                return (await client.remoting.call(address, request(RequestCode.HEART_BEAT))).code
            finally:
                order.append(address)

        outcome = await client.each_master(call)
        assert outcome.results == {"a": 0, "c": 0}
        assert {name: type(error) for name, error in outcome.errors.items()} == {"b": RequestTimeout}
        assert order[-1] == cluster.brokers["b"].address
        assert set((await client.each_replica(call)).results) == {client.master("a"), client.master("c")}


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
        for peer in cluster.brokers.values():
            assert [command.code for command in peer.received] == [17, 200, 207, 215, 215]
        assert cluster.deleted == ["%RETRY%G", "%DLQ%G"]
        with pytest.raises(NoBroker, match="knows no such cluster; it knows: c"):
            await admin.create_topic(client, TopicConfig("T"), "other")


async def test_a_topic_half_deleted_stays_known_to_the_name_servers() -> None:
    async with running("a", "b") as (cluster, client):
        cluster.brokers["a"].script = silent
        outcome = await admin.delete_topic(client, "T")
        assert set(outcome.errors) == {"a"}
        assert cluster.deleted == []


async def test_running_info_comes_from_the_broker_that_reaches_the_member() -> None:
    def offline(channel: Channel, command: Command) -> None:
        channel.answer(command, ResponseCode.CONSUMER_NOT_ONLINE, "not here")

    def online(channel: Channel, command: Command) -> None:
        channel.answer(command, body=ConsumerRunningInfo({"PROP": "x"}).encode())

    async with running("a", "b") as (cluster, client):
        cluster.brokers["a"].script = offline
        cluster.brokers["b"].script = online
        assert (await admin.running_info(client, "G", "me")).properties == {"PROP": "x"}
        cluster.brokers["b"].script = offline
        with pytest.raises(ConsumerNotOnline):
            await admin.running_info(client, "G", "me")
        cluster.brokers["a"].script = silent
        with pytest.raises(RequestTimeout):
            await admin.running_info(client, "G", "me")


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
