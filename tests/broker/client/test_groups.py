"""Consumer groups: what we do, Java sees; what Java does, we see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rocketfleet.client import admin
from rocketfleet.client.requests import broker_groups, broker_offsets
from rocketfleet.wire.bodies import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    SubscriptionGroupConfig,
)
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from tests.broker.client.oracle import Oracle

    from rocketfleet.client.client import Client


async def test_a_group_that_we_create_and_change(client: Client, oracle: Oracle, address: str) -> None:
    name = "client-group-by-us"
    ours = SubscriptionGroupConfig(
        name,
        consume_message_orderly=True,
        consume_broadcast_enable=False,
        retry_queue_nums=2,
        retry_max_times=3,
        consume_timeout_minute=7,
        group_retry_policy=GroupRetryPolicy(
            "EXPONENTIAL", exponential_retry_policy=ExponentialRetryPolicy(100, 1000, 3)
        ),
    )
    await broker_groups.create_group(client.remoting, address, ours)
    seen = oracle("group", address, name)
    assert seen["consumeMessageOrderly"] is True
    assert seen["consumeBroadcastEnable"] is False
    assert seen["consumeFromMinEnable"] is True
    assert (seen["retryQueueNums"], seen["retryMaxTimes"], seen["consumeTimeoutMinute"]) == (2, 3, 7)
    assert seen["groupRetryPolicy"]["type"] == "EXPONENTIAL"
    assert seen["groupRetryPolicy"]["exponentialRetryPolicy"] == {"initial": 100, "max": 1000, "multiplier": 3}
    policy = GroupRetryPolicy("CUSTOMIZED", customized_retry_policy=CustomizedRetryPolicy((5, 50)))
    changed = SubscriptionGroupConfig(name, consume_enable=False, group_retry_policy=policy)
    await broker_groups.create_group(client.remoting, address, changed)
    seen = oracle("group", address, name)
    assert seen["consumeEnable"] is False
    assert seen["groupRetryPolicy"]["customizedRetryPolicy"]["next"] == [5, 50]
    assert await broker_groups.group_config(client.remoting, address, name) == changed


async def test_a_group_that_java_creates(client: Client, oracle: Oracle, address: str) -> None:
    name = "client-group-by-java"
    oracle("createGroup", address, json.dumps({"groupName": name, "retryMaxTimes": 5, "consumeEnable": False}))
    config = await broker_groups.group_config(client.remoting, address, name)
    assert (config.group_name, config.retry_max_times, config.consume_enable) == (name, 5, False)
    everything = await broker_groups.all_groups(client.remoting, address)
    assert everything[name] == config
    assert set(everything) == set(oracle("groups", address))


async def test_the_pages_of_many_groups(
    client: Client, oracle: Oracle, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        config = SubscriptionGroupConfig(f"client-page-{number}")
        await broker_groups.create_group(client.remoting, address, config)
    monkeypatch.setattr(broker_groups, "_PAGE", 5)
    everything = await broker_groups.all_groups(client.remoting, address)
    assert set(everything) == set(oracle("groups", address))
    assert {f"client-page-{number}" for number in range(12)} <= set(everything)


@pytest.mark.parametrize("remove_offsets", [False, True])
async def test_deleting(
    client: Client, oracle: Oracle, address: str, topic: str, group: str, remove_offsets: bool
) -> None:
    oracle("commit", address, group, topic, 0, 7)
    await broker_groups.delete_group(client.remoting, address, group, remove_offsets=remove_offsets)
    # Broker 5.5.0 looks the group up after deleting it, if its offsets stay, and so creates it again where it may.
    assert (group in oracle("groups", address)) is not remove_offsets
    offset = await broker_offsets.query_offset(client.remoting, address, group, MessageQueue(topic, "broker-a", 0))
    assert (offset == 7) is not remove_offsets


async def test_a_group_that_java_deletes(client: Client, oracle: Oracle, address: str, group: str) -> None:
    assert group in await broker_groups.all_groups(client.remoting, address)
    oracle("deleteGroup", address, group, "true")
    assert group not in await broker_groups.all_groups(client.remoting, address)


async def test_groups_on_all_masters(client: Client, oracle: Oracle, address: str) -> None:
    name = "client-group-everywhere"
    await admin.create_group(client, SubscriptionGroupConfig(name), "DefaultCluster")
    assert name in oracle("groups", address)
    outcome = await admin.delete_group(client, name, "DefaultCluster", remove_offsets=True)
    assert outcome.errors == {}
    assert name not in oracle("groups", address)


async def test_how_far_a_group_is(client: Client, oracle: Oracle, address: str, topic: str, group: str) -> None:
    for queue_id in (0, 0, 0, 1):
        oracle("send", "client-numbers", topic, queue_id, "body", "tag")
    oracle("commit", address, group, topic, 0, 2)
    stats = await broker_groups.consume_stats(client.remoting, address, group, topic=topic)
    ours = {
        queue: (one.broker_offset, one.consumer_offset, one.pull_offset, one.last_timestamp)
        for queue, one in stats.offset_table.items()
    }
    assert ours == oracle.rows("consumeStats", group, topic)
    by_queue = {queue.queue_id: values[:2] for queue, values in ours.items()}
    assert by_queue[0] == (3, 2)
    some = await broker_groups.consume_stats(client.remoting, address, group, topics=[topic])
    assert some.offset_table == stats.offset_table
    everywhere = (await admin.consume_stats(client, group, topic)).all_or_raise()
    assert everywhere["broker-a"].offset_table == stats.offset_table


async def test_a_group_that_does_not_exist_looks_like_one_that_has_consumed_nothing(
    client: Client, oracle: Oracle, address: str, topic: str
) -> None:
    oracle("send", "client-numbers", topic, 0, "body", "tag")
    stats = await broker_groups.consume_stats(client.remoting, address, "client-no-such-group", topic=topic)
    assert {one.consumer_offset for one in stats.offset_table.values()} == {0}
    stats = await broker_groups.consume_stats(client.remoting, address, "client-no-such-group")
    assert stats.offset_table == {}


async def test_the_times_of_a_group(client: Client, oracle: Oracle, address: str, topic: str, group: str) -> None:
    for queue_id in (0, 0):
        oracle("send", "client-numbers", topic, queue_id, "body", "tag")
    oracle("commit", address, group, topic, 0, 1)
    spans = await broker_groups.consume_time_spans(client.remoting, address, group, topic)
    ours = {span.message_queue: (span.min_time_stamp, span.max_time_stamp, span.consume_time_stamp) for span in spans}
    theirs = {queue: values[:3] for queue, values in oracle.rows("timeSpans", topic, group).items()}
    assert ours == theirs  # the fourth, the delay, grows while we look
    assert len(ours) == 8
