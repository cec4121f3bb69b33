"""Offsets: what we do, Java sees; what Java does, we see. And what the broker does with offsets it should refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.waiting import until

from rocketfleet.client.errors import GroupNotExist, ResponseError, TopicNotExist
from rocketfleet.client.requests import broker_messages, broker_offsets
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from tests.broker.client.oracle import Oracle

    from rocketfleet.client.client import Client


def queue(topic: str, queue_id: int = 0) -> MessageQueue:
    return MessageQueue(topic, "broker-a", queue_id)


async def test_storing_and_reading(client: Client, oracle: Oracle, address: str, topic: str, group: str) -> None:
    assert await broker_offsets.update_offset(client.remoting, address, group, queue(topic, 2), 11)
    assert oracle("offset", address, group, topic, 2) == 11
    oracle("commit", address, group, topic, 3, 12)
    assert await broker_offsets.query_offset(client.remoting, address, group, queue(topic, 3)) == 12


async def test_no_offset_is_none_only_if_the_broker_is_told_to_say_so(
    client: Client, oracle: Oracle, address: str, topic: str, group: str
) -> None:
    async def query(zero: bool | None) -> int | None:
        return await broker_offsets.query_offset(client.remoting, address, group, queue(topic), zero_if_not_found=zero)

    assert [await query(zero) for zero in (False, None, True)] == [None, None, None]
    oracle("send", "client-numbers", topic, 0, "body", "tag")

    async def dispatched() -> bool:
        """A message is acknowledged a moment before its queue has it."""
        return await broker_offsets.max_offset(client.remoting, address, queue(topic)) == 1

    await until(dispatched)
    assert [await query(zero) for zero in (False, None, True)] == [None, 0, 0]


async def test_the_broker_guards_nothing(client: Client, address: str, topic: str, group: str) -> None:
    for where, offset in ((queue(topic), 10**12), (queue(topic), 3), (queue(topic, 4711), 5)):
        assert await broker_offsets.update_offset(client.remoting, address, group, where, offset)
        assert await broker_offsets.query_offset(client.remoting, address, group, where) == offset
    assert await broker_offsets.max_offset(client.remoting, address, queue(topic, 4711)) == 0
    with pytest.raises(TopicNotExist):
        await broker_offsets.update_offset(client.remoting, address, group, queue("client-no-such-topic"), 1)


async def test_the_ends_of_a_queue(client: Client, oracle: Oracle, address: str, topic: str) -> None:
    where = queue(topic, 1)
    assert await broker_offsets.earliest_store_time(client.remoting, address, where) is None
    for _ in range(3):
        oracle("send", "client-numbers", topic, 1, "body", "tag")
    ours = [
        await broker_offsets.min_offset(client.remoting, address, where),
        await broker_offsets.max_offset(client.remoting, address, where),
        await broker_offsets.earliest_store_time(client.remoting, address, where),
    ]
    assert ours == oracle("bounds", topic, "broker-a", 1)
    assert ours[:2] == [0, 3]
    assert await broker_offsets.max_offset(client.remoting, address, where, committed=False) == 3


async def test_offsets_by_time(client: Client, oracle: Oracle, address: str, topic: str) -> None:
    where = queue(topic)
    times = []
    for number in range(5):
        oracle("send", "client-numbers", topic, 0, f"body {number}", "tag")
    pulled = await broker_messages.pull(
        client.remoting, address, broker_messages.pull_request("g", where, 0, sys_flag=4, subscription="*")
    )
    times = [message.store_timestamp for message in pulled.messages()]
    assert len(times) == 5
    for timestamp in {0, times[0] - 1, *times, times[-1] + 1, times[-1] + 10_000}:
        for boundary in ("LOWER", "UPPER"):
            ours = await broker_offsets.search_offset(client.remoting, address, where, timestamp, boundary=boundary)
            assert ours == oracle("search", topic, "broker-a", 0, timestamp, boundary, address), (timestamp, boundary)
        first = await broker_offsets.search_offset(client.remoting, address, where, timestamp)
        assert first == sum(time < timestamp for time in times)


async def test_a_reset_by_time(client: Client, oracle: Oracle, address: str, topic: str, group: str) -> None:
    for queue_id in (0, 0, 1):
        oracle("send", "client-numbers", topic, queue_id, "body", "tag")
    for queue_id in range(8):
        oracle("commit", address, group, topic, queue_id, 0)
    ours = await broker_offsets.reset_offsets(client.remoting, address, group, topic, broker_offsets.NOW)
    assert {where.queue_id: offset for where, offset in ours.items()} == {0: 2, 1: 1, **dict.fromkeys(range(2, 8), 0)}
    assert oracle("offset", address, group, topic, 0) == 2
    theirs = oracle.rows("resetOffsets", group, topic, 0)
    assert {where.queue_id: values[0] for where, values in theirs.items()} == dict.fromkeys(range(8), 0)
    assert await broker_offsets.query_offset(client.remoting, address, group, queue(topic)) == 0


async def test_after_a_reset_the_broker_drops_updates_until_the_next_pull(
    client: Client, oracle: Oracle, address: str, topic: str, group: str
) -> None:
    for _ in range(4):
        oracle("send", "client-numbers", topic, 0, "body", "tag")
    where = queue(topic)
    assert await broker_offsets.update_offset(client.remoting, address, group, where, 1)
    assert await broker_offsets.reset_queue_offset(client.remoting, address, group, where, 3) == {where: 3}
    assert not await broker_offsets.update_offset(client.remoting, address, group, where, 2)
    assert oracle("offset", address, group, topic, 0) == 3
    pull = broker_messages.pull_request(group, where, 1, sys_flag=4, subscription="*")
    answer = await broker_messages.pull(client.remoting, address, pull)
    assert (answer.code, answer.next_begin_offset) == (21, 3)  # the puller is sent to the new place
    assert await broker_offsets.update_offset(client.remoting, address, group, where, 4)
    assert oracle("offset", address, group, topic, 0) == 4


async def test_a_reset_must_make_sense(client: Client, address: str, topic: str, group: str) -> None:
    with pytest.raises(ResponseError, match="not in consume queue range"):
        await broker_offsets.reset_queue_offset(client.remoting, address, group, queue(topic), 99)
    with pytest.raises(TopicNotExist):
        await broker_offsets.reset_offsets(client.remoting, address, group, "client-no-such-topic", 0)
    with pytest.raises(GroupNotExist):
        await broker_offsets.reset_offsets(client.remoting, address, "client-no-such-group", topic, 0)
