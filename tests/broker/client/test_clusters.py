"""More than one broker: who is asked, what is told of those that do not answer, and where slaves come in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.broker.client.oracle import oracle_of
from tests.support.waiting import until

from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import GroupNotExist, NoBroker, ResponseError, RocketMQError
from rocketfleet.client.requests import broker_groups, broker_messages, broker_offsets
from rocketfleet.wire.bodies import SubscriptionGroupConfig, TopicConfig
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.broker.cluster import Cluster
    from tests.broker.java_main import JavaPrograms


async def test_two_masters_and_a_slave_of_each(make_cluster: Callable[..., Cluster], java: JavaPrograms) -> None:
    # A slave answers pulls with SYSTEM_BUSY unless it is told to serve them. And resetting is left to the members.
    properties = (("slaveReadEnable", "true"), ("useServerSideResetOffset", "false"))
    cluster = make_cluster(brokers=2, slave=True, auto_create_groups=False, properties=properties)
    masters = cluster.masters
    async with Client(ClientConfig(cluster.name_server, timeout=5)) as client:
        assert await admin.masters(client, "DefaultCluster") == masters
        created = await admin.create_topic(client, TopicConfig("orders", 4, 4))
        assert set(created.all_or_raise()) == set(masters)
        await admin.create_group(client, SubscriptionGroupConfig("group"))
        await until(lambda: _knows(client, "orders", 2), within=30)
        route = await client.routes.refresh("orders")
        assert {data.broker_name: set(data.broker_addrs) for data in route.broker_datas} == {
            "broker-a": {0, 1},
            "broker-b": {0, 1},
        }
        info = await client.publish_info("orders")
        assert info.queues == tuple(MessageQueue("orders", broker, n) for broker in masters for n in range(4))
        with oracle_of(java, cluster.name_server) as oracle:
            assert len(oracle("route", "orders")["queueDatas"]) == 2
            for broker, address in masters.items():
                queue = MessageQueue("orders", broker, 0)
                assert await broker_offsets.update_offset(client.remoting, address, "group", queue, 5)
                assert oracle("offset", address, "group", "orders", 0) == 5
            stats = (await admin.consume_stats(client, "group", "orders")).all_or_raise()
            ours = {
                queue: (one.broker_offset, one.consumer_offset)
                for table in stats.values()
                for queue, one in table.offset_table.items()
            }
            assert len(ours) == 8
            assert {queue.broker: values[1] for queue, values in ours.items() if queue.queue_id == 0} == {
                "broker-a": 5,
                "broker-b": 5,
            }
            await _no_reset_without_members(client, masters)
        await _slaves_serve_reads(client, cluster)
        await _a_broker_less(client, cluster)


async def _no_reset_without_members(client: Client, masters: dict[str, str]) -> None:
    for address in masters.values():
        with pytest.raises(ResponseError):
            await broker_offsets.reset_offsets(client.remoting, address, "group", "orders", 0)


async def _knows(client: Client, topic: str, brokers: int) -> bool:
    try:
        return len((await client.name_servers.route(topic)).broker_datas) == brokers
    except RocketMQError:
        return False


async def _slaves_serve_reads(client: Client, cluster: Cluster) -> None:
    queue = MessageQueue("orders", "broker-a", 1)
    send = broker_messages.send_request(queue, b"hello", group="producers", born_timestamp=1)
    await broker_messages.send(client.remoting, client.master("broker-a"), send)
    slave = client.reader("broker-a", 1)
    assert (slave.address, slave.slave) == (cluster.address_of("broker-a-slave"), True)

    async def copied() -> bool:
        pull = broker_messages.pull_request("group", queue, 0, sys_flag=4, subscription="*")
        try:
            pulled = await broker_messages.pull(client.remoting, slave.address, pull)
        except GroupNotExist:  # slaves copy their master's groups every ten seconds
            return False
        return [message.body for message in pulled.messages()] == [b"hello"]

    await until(copied, within=60)


async def _a_broker_less(client: Client, cluster: Cluster) -> None:
    cluster.kill("broker-b")
    partial = await admin.consume_stats(client, "group", "orders")
    assert "broker-a" in partial.results

    async def noticed() -> bool:
        route = await client.routes.refresh("orders")
        return all(0 not in data.broker_addrs for data in route.broker_datas if data.broker_name == "broker-b")

    await until(noticed, within=60)
    assert {queue.broker for queue in (await client.publish_info("orders")).queues} == {"broker-a"}
    assert {queue.broker for queue in await client.subscribe_queues("orders")} == {"broker-a", "broker-b"}
    with pytest.raises(NoBroker, match="no master now"):
        client.master("broker-b")
    assert client.reader("broker-b").slave
    assert set(await admin.masters(client)) == {"broker-a"}
    # Without the right to create groups, a group deleted is gone, whether or not its offsets stay.
    await broker_groups.delete_group(client.remoting, client.master("broker-a"), "group")
    with pytest.raises(GroupNotExist):
        await broker_groups.group_config(client.remoting, client.master("broker-a"), "group")
    await asyncio.to_thread(cluster.restart, "broker-b")

    async def whole() -> bool:
        await client.routes.refresh("orders")
        return set(client.brokers.masters()) == {"broker-a", "broker-b"}

    await until(whole, within=60)
