"""The broker itself: numbers and settings; and messages by their ids."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.support.broker_settings import update_broker_config

from rocketfleet.client.errors import ResponseError
from rocketfleet.client.requests import broker_admin, broker_messages
from rocketfleet.wire.message import encode_properties
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from tests.broker.client.oracle import Oracle

    from rocketfleet.client.client import Client


async def test_numbers(client: Client, oracle: Oracle, address: str) -> None:
    ours, theirs = await broker_admin.runtime_info(client.remoting, address), oracle("runtimeInfo", address)
    assert ours.keys() == theirs.keys()
    assert ours["brokerVersionDesc"] == theirs["brokerVersionDesc"]
    assert ours["bootTimestamp"] == theirs["bootTimestamp"]


async def test_settings(client: Client, oracle: Oracle, address: str) -> None:
    ours, theirs = await broker_admin.broker_config(client.remoting, address), oracle("brokerConfig", address)
    assert {name: value.strip() for name, value in ours.items()} == {name: str(v).strip() for name, v in theirs.items()}
    assert ours["brokerName"] == "broker-a"
    before = ours["maxTransferCountOnMessageInMemory"]
    try:
        await update_broker_config(client.remoting, address, {"maxTransferCountOnMessageInMemory": "48"})
        assert oracle("brokerConfig", address)["maxTransferCountOnMessageInMemory"] == "48"
        oracle("updateBrokerConfig", address, "maxTransferCountOnMessageInMemory", "64")
        changed = await broker_admin.broker_config(client.remoting, address)
        assert changed["maxTransferCountOnMessageInMemory"] == "64"
        same = {"messageDelayLevel": ours["messageDelayLevel"]}  # a value with blanks in it
        await update_broker_config(client.remoting, address, same)
        assert oracle("brokerConfig", address)["messageDelayLevel"] == ours["messageDelayLevel"]
    finally:
        await update_broker_config(client.remoting, address, {"maxTransferCountOnMessageInMemory": before})


async def test_messages_that_java_sends(client: Client, oracle: Oracle, address: str, topic: str) -> None:
    message_id, offset, _ = oracle("send", "client-numbers", topic, 2, "grüße", "tag-a")
    commit_log_offset = int(message_id[16:], 16)
    message = await broker_messages.view_message(client.remoting, address, commit_log_offset, topic=topic)
    assert (message.topic, message.body.decode(), message.tags) == (topic, "grüße", "tag-a")
    assert (message.queue_id, message.queue_offset, message.offset_msg_id) == (2, offset, message_id)
    pull = broker_messages.pull_request("g", MessageQueue(topic, "broker-a", 2), 0, sys_flag=4, subscription="*")
    pulled = await broker_messages.pull(client.remoting, address, pull)
    assert (pulled.code, pulled.next_begin_offset, pulled.max_offset, pulled.suggest_broker_id) == (0, 1, 1, 0)
    assert [one.body for one in pulled.messages("broker-a")] == ["grüße".encode()]
    empty = broker_messages.pull_request("g", MessageQueue(topic, "broker-a", 2), 1, sys_flag=4, subscription="*")
    assert (await broker_messages.pull(client.remoting, address, empty)).code == 19
    beyond = broker_messages.pull_request("g", MessageQueue(topic, "broker-a", 2), 99, sys_flag=4, subscription="*")
    assert (await broker_messages.pull(client.remoting, address, beyond)).code == 21
    other = broker_messages.pull_request("g", MessageQueue(topic, "broker-a", 2), 0, sys_flag=4, subscription="tag-b")
    assert (await broker_messages.pull(client.remoting, address, other)).code == 20


async def test_messages_that_we_send(client: Client, oracle: Oracle, address: str, topic: str) -> None:
    command = broker_messages.send_request(
        MessageQueue(topic, "broker-a", 1),
        "grüße".encode(),
        group="client-numbers",
        born_timestamp=int(time.time() * 1000),
        properties=encode_properties({"TAGS": "tag-a"}),
    )
    receipt = await broker_messages.send(client.remoting, address, command)
    assert (receipt.code, receipt.queue_id, receipt.queue_offset) == (0, 1, 0)
    seen = oracle("message", topic, receipt.offset_msg_id)
    assert (seen["topic"], seen["body"], seen["queue"], seen["offset"], seen["tags"]) == (topic, "grüße", 1, 0, "tag-a")


async def test_a_message_that_is_not_there(client: Client, address: str) -> None:
    with pytest.raises(ResponseError, match="VIEW_MESSAGE_BY_ID"):
        await broker_messages.view_message(client.remoting, address, 10**15)
