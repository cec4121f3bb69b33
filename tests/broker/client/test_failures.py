"""A real broker that is killed, frozen and restarted under the client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.support.waiting import until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConnectError, ConnectionLost, RequestTimeout, RocketMQError
from rocketfleet.client.requests import broker_offsets
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from tests.broker.cluster import Cluster


async def test_a_killed_broker_fails_calls_at_once_and_is_found_again(broker: Cluster, topic: str) -> None:
    queue = MessageQueue(topic, "broker-a", 0)
    async with Client(ClientConfig(broker.name_server)) as client:
        await client.route(topic)
        address = client.master("broker-a")
        lost: list[str] = []
        client.remoting.on_disconnect(lambda where, _: lost.append(where))
        assert await broker_offsets.max_offset(client.remoting, address, queue) == 0
        broker.kill()
        await until(lambda: address in lost)

        async def refused() -> bool:
            # The dying process's socket may still take a connection, and reset it.
            with pytest.raises((ConnectError, ConnectionLost)) as caught:
                await broker_offsets.max_offset(client.remoting, address, queue)
            return "Connection refused" in str(caught.value)

        await until(refused, within=30)
        await asyncio.to_thread(broker.restart)

        async def back() -> bool:
            try:
                return await broker_offsets.max_offset(client.remoting, address, queue) == 0
            except ConnectError:
                return False

        await until(back, within=30)


async def test_a_frozen_broker_times_out_and_answers_late(broker: Cluster, topic: str) -> None:
    queue = MessageQueue(topic, "broker-a", 0)
    async with Client(ClientConfig(broker.name_server)) as client:
        await client.route(topic)
        address = client.master("broker-a")
        assert await broker_offsets.max_offset(client.remoting, address, queue) == 0
        broker.pause()
        with pytest.raises(RequestTimeout, match="GET_MAX_OFFSET"):
            await broker_offsets.max_offset(client.remoting, address, queue, timeout=0.3)
        broker.resume()
        # The late answer belongs to nobody; the connection is the same as before.
        assert await broker_offsets.max_offset(client.remoting, address, queue, timeout=10) == 0
        assert client.remoting.connected.count(address) == 1


async def test_calls_under_way_end_with_their_broker(broker: Cluster, topic: str) -> None:
    queue = MessageQueue(topic, "broker-a", 0)
    async with Client(ClientConfig(broker.name_server, timeout=30)) as client:
        await client.route(topic)
        address = client.master("broker-a")
        await client.remoting.connect(address)
        broker.pause()  # so that the calls are certainly under way
        calls = [asyncio.create_task(broker_offsets.max_offset(client.remoting, address, queue)) for _ in range(100)]
        await until(lambda: len(client.remoting._connections[address]._pending) == 100)
        broker.kill()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(outcome, ConnectionLost) for outcome in outcomes)


async def test_routes_outlive_the_name_server(broker: Cluster, topic: str) -> None:
    async with Client(ClientConfig(broker.name_server, route_refresh=0.1)) as client:
        route = await client.route(topic)
        broker.kill("name-server")
        with pytest.raises(RocketMQError):
            await client.routes.refresh(topic)
        assert await client.route(topic) == route
        queue = MessageQueue(topic, "broker-a", 0)
        assert await broker_offsets.max_offset(client.remoting, client.master("broker-a"), queue) == 0
        await asyncio.to_thread(broker.restart, "name-server")

        async def fresh() -> bool:
            try:
                return await client.routes.refresh(topic) == route
            except RocketMQError:  # brokers register with a new name server within half a minute
                return False

        await until(fresh, within=60)
