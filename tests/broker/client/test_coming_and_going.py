"""Real brokers that go, come back elsewhere, or are not known to their name server for a while."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.waiting import until

from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_offsets
from rocketfleet.devbroker import state
from rocketfleet.devbroker.setup.ports import choose_ports
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.broker.cluster import Cluster

TOPICS = ("orders", "returns")
BOTH = {"broker-a", "broker-b"}


def _client(cluster: Cluster) -> Client:
    """A client for which the routes' own time never comes: what it learns it learns by looking."""
    return Client(ClientConfig(cluster.name_server, route_refresh=3600.0, timeout=5.0))


def start_elsewhere(cluster: Cluster, process: str) -> str:
    """Start a broker that was killed on another port; its new address."""
    found = cluster.known()
    former = found.ports[process]
    while found.ports[process] == former:
        found.ports |= choose_ports([process], given={}, earlier={})
    state.save(cluster.layout.state, found)
    for path, content in cluster._plan(found).files.items():
        state.write_private(path, content)
    cluster.restart(process)
    return cluster.address_of(process)


async def _use(client: Client) -> None:
    """Have business with every broker, as a member of a group has."""
    for topic in TOPICS:
        for queue in await client.subscribe_queues(topic):
            await broker_offsets.max_offset(client.remoting, client.master(queue.broker), queue)
    assert all(map(client.is_connected, BOTH))


def _brokers(client: Client, topic: str) -> set[str]:
    route = client.routes.cached(topic)
    return set() if route is None else {data.broker_name for data in route.broker_datas}


async def test_two_clients_whose_brokers_come_and_go(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(brokers=2)
    async with _client(cluster) as setup:
        for topic in TOPICS:
            await admin.create_topic(setup, TopicConfig(topic, 2, 2), "DefaultCluster")

        async def known() -> bool:
            try:
                routes = [await setup.name_servers.route(topic) for topic in TOPICS]
            except RocketMQError:
                return False
            return all(len(route.broker_datas) == 2 for route in routes)

        await until(known, within=60)
    async with _client(cluster) as one, _client(cluster) as two:
        await _unknown_for_a_while(one)
        await _back_elsewhere(cluster, one, two)


async def _unknown_for_a_while(client: Client) -> None:
    """A name server that does not know a healthy broker, as after its restart."""
    await _use(client)
    queues = await client.subscribe_queues("orders")
    address = client.master("broker-b")
    lost: list[str] = []
    stop = client.remoting.on_disconnect(lambda where, _: lost.append(where))
    unregister = request(
        RequestCode.UNREGISTER_BROKER,
        {"brokerName": "broker-b", "brokerAddr": address, "clusterName": "DefaultCluster", "brokerId": 0},
    )
    await client.name_servers.ask(unregister)
    await client.routes.refresh("orders")
    assert _brokers(client, "orders") == {"broker-a"}
    await until(lambda: _brokers(client, "returns") == {"broker-a"})  # what one topic finds out the other asks about
    assert client.master("broker-b") == address
    assert await client.subscribe_queues("orders") == queues
    assert {queue.broker for queue in (await client.publish_info("orders")).queues} == {"broker-a"}
    assert await broker_offsets.max_offset(client.remoting, address, MessageQueue("orders", "broker-b", 0)) == 0
    # It registers in its turn, every half minute, and is seen at once.
    await until(lambda: all(_brokers(client, topic) == BOTH for topic in TOPICS), within=90)
    assert lost == []
    stop()


async def _back_elsewhere(cluster: Cluster, *clients: Client) -> None:
    former = cluster.address_of("broker-a")
    for client in clients:
        await _use(client)
    cluster.kill("broker-a")
    await until(lambda: all(client._upkeep.lookout.away == {"broker-a"} for client in clients))
    await until(lambda: all(_brokers(client, topic) == {"broker-b"} for client in clients for topic in TOPICS))
    for client in clients:
        assert {queue.broker for queue in await client.subscribe_queues("orders")} == {"broker-b"}
    address = await asyncio.to_thread(start_elsewhere, cluster, "broker-a")
    assert address != former
    # Nobody makes a call: the clients look for it and connect.
    await until(lambda: all(client.is_connected("broker-a") for client in clients), within=30)
    assert {client.master("broker-a") for client in clients} == {address}
    await until(lambda: all(_brokers(client, topic) == BOTH for client in clients for topic in TOPICS), within=30)
    assert not any(client._upkeep.lookout.away for client in clients)
