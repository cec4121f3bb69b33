"""Members of groups: Java's seen by us, ours seen by Java; and locks between the two."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.broker.client.oracle import Oracle, OracleError
from tests.support.waiting import until

from rocketfleet.client.errors import ConsumerNotOnline, ResponseError
from rocketfleet.client.requests import broker_locks, broker_members
from rocketfleet.wire.bodies import (
    ConsumerData,
    ConsumerRunningInfo,
    HeartbeatData,
    ProcessQueueInfo,
    ProducerData,
    SubscriptionData,
)
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command, reply_to
from rocketfleet.wire.enums import ExpressionType
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from rocketfleet.client.client import Client

    Join = Callable[[str, str, str], AbstractContextManager[str]]


async def _is(read: Callable[[], Awaitable[object]], expected: object) -> bool:
    return await read() == expected


def _locks(oracle: Oracle, group: str, member: str) -> tuple[int, int]:
    """How many queues Java says that a member has, and how many of them locked."""
    try:
        rows = oracle.rows("runningInfo", group, member).values()
    except OracleError:  # not known to the broker yet
        return 0, 0
    return len(rows), sum(row[0] for row in rows)


async def test_java_members_as_we_see_them(
    client: Client, oracle: Oracle, address: str, topic: str, group: str, join: Join
) -> None:
    remoting = client.remoting

    async def members() -> tuple[str, ...]:
        return await broker_members.consumer_ids(remoting, address, group)

    with join(group, topic, "concurrent") as member:
        await until(lambda: _is(members, (member,)), within=60)
        await until(lambda: _locks(oracle, group, member)[0] >= 8, within=60)  # registered wholly, and settled
        connections = await broker_members.consumer_connections(remoting, address, group)
        assert {(one.client_id, one.language) for one in connections.connection_set} == {(member, "JAVA")}
        seen = oracle("consumers", group)
        assert {name: data.sub_string for name, data in connections.subscription_table.items()} == seen["subscriptions"]
        assert (connections.consume_type, connections.message_model) == (seen["type"], seen["model"])
        info = await broker_members.running_info(remoting, address, group, member, stacks=True)
        assert {queue for queue in info.mq_table if queue.topic == topic} == {
            MessageQueue(topic, "broker-a", number) for number in range(8)
        }
        assert "ConsumeMessageThread" in (info.jstack or "") or "Thread" in (info.jstack or "")
        assert {data.topic for data in info.subscription_set} == {topic, f"%RETRY%{group}"}
        status = await broker_members.consumer_status(remoting, address, group, topic)
        theirs = {
            one: {MessageQueue(*row[:3]): row[3] for row in rows}
            for one, rows in oracle("consumerStatus", topic, group).items()
        }
        assert status == theirs
        assert set(status) == {member}
        assert await broker_members.consumer_status(remoting, address, group, topic, client_id="nobody") == {}
        with pytest.raises(ResponseError, match="not online"):
            await broker_members.running_info(remoting, address, group, "nobody")
    # A killed process closes its socket, and the broker forgets it at once: first the member, then the group.
    await until(lambda: _is(members, ()), within=60)

    async def forgotten() -> bool:
        try:
            await broker_members.consumer_connections(remoting, address, group)
        except ConsumerNotOnline:
            return True
        return False

    await until(forgotten, within=60)


async def test_we_as_java_sees_us(client: Client, oracle: Oracle, address: str, topic: str, group: str) -> None:
    me = client.client_id
    notified: list[str] = []
    client.remoting.on_request(
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, lambda _peer, command: notified.append(command.fields["consumerGroup"])
    )
    queue = MessageQueue(topic, "broker-a", 3)

    async def info(_peer: str, command: Command) -> Command:
        assert command.fields["clientId"] == me
        return reply_to(command, body=ConsumerRunningInfo(mq_table={queue: ProcessQueueInfo(locked=True)}).encode())

    client.remoting.on_request(RequestCode.GET_CONSUMER_RUNNING_INFO, info)
    data = HeartbeatData(
        me,
        (ProducerData("client-producers"),),
        (ConsumerData(group, subscription_data_set=(SubscriptionData.of(topic, "a || b", version=1),)),),
    )
    answer = await broker_members.heartbeat(client.remoting, address, data)
    assert answer.version > 500
    await until(lambda: notified == [group])
    seen = oracle("consumers", group)
    assert seen["ids"] == [f"{me} PYTHON"]
    assert seen["subscriptions"] == {topic: "a || b"}
    assert (seen["type"], seen["model"]) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert oracle("producers", "client-producers", topic) == [me]
    ours = await broker_members.producer_connections(client.remoting, address, "client-producers")
    assert [one.client_id for one in ours.connection_set] == [me]
    # In a thread, because answering what it asks needs this one.
    assert await asyncio.to_thread(oracle.rows, "runningInfo", group, me) == {queue: (1,)}
    again = await broker_members.heartbeat(client.remoting, address, data)
    assert again.version == answer.version
    await broker_members.unregister(client.remoting, address, me, consumer_group=group)
    with pytest.raises(OracleError) as gone:
        oracle("consumers", group)
    assert gone.value.code == 206
    assert oracle("producers", "client-producers", topic) == [me]
    await broker_members.unregister(client.remoting, address, me, producer_group="client-producers")
    with pytest.raises(ResponseError):
        await broker_members.producer_connections(client.remoting, address, "client-producers")


async def test_java_producers_as_we_see_them(client: Client, oracle: Oracle, address: str, topic: str) -> None:
    oracle("send", "client-java-producers", topic, 0, "body", "tag")

    expected = {oracle("producerId", "client-java-producers")}

    async def seen() -> bool:
        try:
            found = await broker_members.producer_connections(client.remoting, address, "client-java-producers")
        except ResponseError:
            return False
        return {one.client_id for one in found.connection_set} == expected

    await until(seen, within=60)  # Java's heartbeat comes when it comes


async def test_each_joining_and_leaving_notifies_the_others(
    client: Client, address: str, topic: str, group: str, join: Join
) -> None:
    notified: list[str] = []
    client.remoting.on_request(
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, lambda _peer, command: notified.append(command.fields["consumerGroup"])
    )
    data = HeartbeatData(
        client.client_id,
        (),
        (ConsumerData(group, subscription_data_set=(SubscriptionData.of(topic, "*", version=1),)),),
    )
    await broker_members.heartbeat(client.remoting, address, data)
    await until(lambda: len(notified) == 1)
    with join(group, topic, "concurrent") as member:
        await until(lambda: len(notified) >= 2, within=60)
        ids = await broker_members.consumer_ids(client.remoting, address, group)
        assert set(ids) == {client.client_id, member}
        before = len(notified)
    await until(lambda: len(notified) > before, within=60)
    await broker_members.unregister(client.remoting, address, client.client_id, consumer_group=group)


async def test_subscriptions_are_checked(client: Client, address: str, topic: str, group: str) -> None:
    def subscription(expression: str) -> SubscriptionData:
        return SubscriptionData.of(topic, expression, ExpressionType.SQL92, version=1)

    async def check(expression: str) -> None:
        await broker_members.check_subscription(client.remoting, address, group, "me", subscription(expression))

    await check("a > 5")
    with pytest.raises(ResponseError, match=r"CHECK_CLIENT_CONFIG .* SUBSCRIPTION_PARSE_FAILED"):
        await check("a >")
    tags = SubscriptionData.of(topic, "a || b", version=1)
    await broker_members.check_subscription(client.remoting, address, group, "me", tags)


async def test_locks_between_us_and_java(client: Client, oracle: Oracle, address: str, topic: str, group: str) -> None:
    remoting = client.remoting
    queues = [MessageQueue(topic, "broker-a", number) for number in range(3)]
    assert await broker_locks.lock(remoting, address, group, "me", queues) == set(queues)
    assert await broker_locks.lock(remoting, address, group, "me", queues) == set(queues)  # renewed
    assert oracle("lock", address, group, "java", topic, "broker-a", 0) == 0
    assert await broker_locks.lock(remoting, address, group, "other", queues) == frozenset()
    await broker_locks.unlock(remoting, address, group, "other", queues)  # not theirs: nothing happens
    assert oracle("lock", address, group, "java", topic, "broker-a", 0) == 0
    await broker_locks.unlock(remoting, address, group, "me", queues[:1])
    assert oracle("lock", address, group, "java", topic, "broker-a", 0) == 1
    assert await broker_locks.lock(remoting, address, group, "me", queues) == set(queues[1:])
    await broker_locks.unlock(remoting, address, group, "java", queues)  # in another's name
    assert await broker_locks.lock(remoting, address, group, "me", queues) == set(queues)
    oracle("unlock", address, group, "me", topic, "broker-a", 2)
    assert oracle("lock", address, group, "java", topic, "broker-a", 2) == 1
    # Another group's locks are another matter.
    assert await broker_locks.lock(remoting, address, "client-other-group", "x", queues) == set(queues)


async def test_an_orderly_java_member_holds_its_locks(
    client: Client, oracle: Oracle, address: str, topic: str, group: str, join: Join
) -> None:
    queues = [MessageQueue(topic, "broker-a", number) for number in range(8)]
    with join(group, topic, "orderly") as member:
        await until(lambda: _locks(oracle, group, member)[1] >= 8, within=120)
        assert await broker_locks.lock(client.remoting, address, group, "me", queues) == frozenset()
        info = await broker_members.running_info(client.remoting, address, group, member)
        assert all(info.mq_table[queue].locked for queue in queues)
        await broker_locks.unlock(client.remoting, address, group, member, queues[:1])
        assert await broker_locks.lock(client.remoting, address, group, "me", queues) == set(queues[:1])
