"""Typed calls: which answers are values, which are errors, and that a wrong body is never anything else.

What the requests mean to a real broker is checked against one, in tests/broker/client.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED

from rocketfleet.client import requests
from rocketfleet.client.errors import ProtocolError, ResponseError, RocketMQError, SystemBusy
from rocketfleet.client.requests import (
    broker_admin,
    broker_groups,
    broker_locks,
    broker_members,
    broker_messages,
    broker_offsets,
    broker_topics,
)
from rocketfleet.wire.bodies import HeartbeatData, SubscriptionData, SubscriptionGroupConfig, TopicConfig
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, reply_to
from rocketfleet.wire.errors import WireError
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

QUEUE = MessageQueue("T", "broker-a", 3)
PEER = "b:1"


class Caller:
    """Answers every call as the test says and keeps what was asked."""

    def __init__(self, code: int = 0, remark: str | None = None, **rest: Any) -> None:
        self._answer = (code, remark)
        self._rest = rest
        self.asked: list[Command] = []

    async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
        assert address == PEER
        del timeout
        self.asked.append(command)
        return reply_to(command, *self._answer, **self._rest)

    async def oneway(self, address: str, command: Command, timeout: float | None = None) -> None:
        raise AssertionError("no typed call is one way")


def _message() -> Any:
    class Fake:
        topic, commit_log_offset, msg_id, broker = "T", 5, "ID", "broker-a"

    return Fake()


# Every typed call, with arguments that are good enough to be sent.
CALLS: dict[str, Callable[[Caller], Coroutine[Any, Any, Any]]] = {
    "query_offset": lambda c: broker_offsets.query_offset(c, PEER, "G", QUEUE),
    "update_offset": lambda c: broker_offsets.update_offset(c, PEER, "G", QUEUE, 7),
    "max_offset": lambda c: broker_offsets.max_offset(c, PEER, QUEUE),
    "min_offset": lambda c: broker_offsets.min_offset(c, PEER, QUEUE),
    "search_offset": lambda c: broker_offsets.search_offset(c, PEER, QUEUE, 1),
    "earliest_store_time": lambda c: broker_offsets.earliest_store_time(c, PEER, QUEUE),
    "offsets_of_groups": lambda c: broker_offsets.offsets_of_groups(c, PEER, [("T", "G")]),
    "reset_offsets": lambda c: broker_offsets.reset_offsets(c, PEER, "G", "T", 1),
    "reset_queue_offset": lambda c: broker_offsets.reset_queue_offset(c, PEER, "G", QUEUE, 1),
    "create_topic": lambda c: broker_topics.create_topic(c, PEER, TopicConfig("T")),
    "delete_topic": lambda c: broker_topics.delete_topic(c, PEER, "T"),
    "topic_config": lambda c: broker_topics.topic_config(c, PEER, "T"),
    "all_topic_configs": lambda c: broker_topics.all_topic_configs(c, PEER),
    "topic_stats": lambda c: broker_topics.topic_stats(c, PEER, "T"),
    "queue_ends": lambda c: broker_topics.queue_ends(c, PEER, "T"),
    "groups_of_topic": lambda c: broker_topics.groups_of_topic(c, PEER, "T"),
    "system_topics": lambda c: broker_topics.system_topics(c, PEER),
    "create_group": lambda c: broker_groups.create_group(c, PEER, SubscriptionGroupConfig("G")),
    "delete_group": lambda c: broker_groups.delete_group(c, PEER, "G"),
    "group_config": lambda c: broker_groups.group_config(c, PEER, "G"),
    "all_groups": lambda c: broker_groups.all_groups(c, PEER),
    "consume_stats": lambda c: broker_groups.consume_stats(c, PEER, "G"),
    "consume_time_spans": lambda c: broker_groups.consume_time_spans(c, PEER, "G", "T"),
    "heartbeat": lambda c: broker_members.heartbeat(c, PEER, HeartbeatData("me")),
    "unregister": lambda c: broker_members.unregister(c, PEER, "me", consumer_group="G"),
    "check_subscription": lambda c: broker_members.check_subscription(c, PEER, "G", "me", SubscriptionData("T")),
    "consumer_ids": lambda c: broker_members.consumer_ids(c, PEER, "G"),
    "consumer_connections": lambda c: broker_members.consumer_connections(c, PEER, "G"),
    "producer_connections": lambda c: broker_members.producer_connections(c, PEER, "G"),
    "running_info": lambda c: broker_members.running_info(c, PEER, "G", "me"),
    "consumer_status": lambda c: broker_members.consumer_status(c, PEER, "G", "T"),
    "lock": lambda c: broker_locks.lock(c, PEER, "G", "me", [QUEUE]),
    "unlock": lambda c: broker_locks.unlock(c, PEER, "G", "me", [QUEUE]),
    "runtime_info": lambda c: broker_admin.runtime_info(c, PEER),
    "broker_config": lambda c: broker_admin.broker_config(c, PEER),
    "send": lambda c: broker_messages.send(
        c, PEER, broker_messages.send_request(QUEUE, b"x", group="G", born_timestamp=1)
    ),
    "pull": lambda c: broker_messages.pull(c, PEER, broker_messages.pull_request("G", QUEUE, 0)),
    "send_back": lambda c: broker_messages.send_back(c, PEER, "G", _message()),
    "store_time": lambda c: broker_messages.store_time(c, PEER, QUEUE, 5),
    "view_message": lambda c: broker_messages.view_message(c, PEER, 5),
}
# These return nothing, so the broker's word is all there is to check.
NO_BODY = {
    "create_topic", "delete_topic", "create_group", "delete_group", "unregister",
    "check_subscription", "unlock",
    "send_back",
    "update_offset", "heartbeat", "broker_config",
}  # fmt: skip


def test_every_typed_call_is_in_the_table() -> None:
    modules = [
        importlib.import_module(f"{requests.__name__}.{found.name}")
        for found in pkgutil.iter_modules(requests.__path__)
        if found.name.startswith("broker_")
    ]
    assert len(modules) >= 7
    functions = {
        name
        for module in modules
        for name, value in vars(module).items()
        if inspect.iscoroutinefunction(value) and value.__module__ == module.__name__
    }
    assert functions - {"update_first_offset"} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
async def test_a_no_is_raised_with_the_brokers_words(name: str) -> None:
    with pytest.raises(SystemBusy, match=r"to b:1 failed with SYSTEM_BUSY \(2\): not now") as caught:
        await CALLS[name](Caller(ResponseCode.SYSTEM_BUSY, "not now"))
    assert caught.value.request_code > 0


@pytest.mark.parametrize("name", sorted(CALLS.keys() - NO_BODY))
@pytest.mark.parametrize("body", [b"", b"nonsense", b"\xff\x00\x80", b"[1,", b'"text"'])
async def test_a_yes_with_the_wrong_content_is_a_protocol_error(name: str, body: bytes) -> None:
    with pytest.raises((ProtocolError, WireError)) as caught:
        await CALLS[name](Caller(body=body))
    assert isinstance(caught.value, ProtocolError)
    assert caught.value.peer == PEER


@pytest.mark.parametrize("name", CALLS)
@settings(UNTIMED, max_examples=25)
@given(code=st.integers(-2000, 5000), body=st.binary(max_size=50), fields=st.dictionaries(st.text(), st.text()))
async def test_whatever_comes_it_is_a_value_or_an_error_of_ours(
    name: str, code: int, body: bytes, fields: dict[str, str]
) -> None:
    try:
        await CALLS[name](Caller(code, "remark", body=body, fields=fields))
    except RocketMQError as error:
        assert str(error)  # noqa: PT017 - either outcome is right, and only this one has something to check


async def test_offsets() -> None:
    assert await broker_offsets.query_offset(Caller(fields={"offset": 42}), PEER, "G", QUEUE) == 42
    assert await broker_offsets.query_offset(Caller(ResponseCode.QUERY_NOT_FOUND), PEER, "G", QUEUE) is None
    assert await broker_offsets.update_offset(Caller(), PEER, "G", QUEUE, 5)
    dropped = Caller(remark="Offset has been previously reset")
    assert not await broker_offsets.update_offset(dropped, PEER, "G", QUEUE, 5)
    assert await broker_offsets.earliest_store_time(Caller(fields={"timestamp": -1}), PEER, QUEUE) is None
    with pytest.raises(ProtocolError, match="field offset should be a number and is 'x'"):
        await broker_offsets.max_offset(Caller(fields={"offset": "x"}), PEER, QUEUE)


async def test_nobody_online_is_an_answer_and_other_errors_are_not() -> None:
    nobody = Caller(ResponseCode.SYSTEM_ERROR, "no consumer for this group, G")
    assert await broker_members.consumer_ids(nobody, PEER, "G") == ()
    with pytest.raises(ResponseError, match="disk full"):
        await broker_members.consumer_ids(Caller(ResponseCode.SYSTEM_ERROR, "disk full"), PEER, "G")


@pytest.mark.parametrize(
    "code",
    [ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE, ResponseCode.FLUSH_SLAVE_TIMEOUT],
)
async def test_stored_but_less_safely_than_asked_is_a_receipt(code: ResponseCode) -> None:
    receipt = await CALLS["send"](Caller(code, fields={"msgId": "M", "queueId": 3, "queueOffset": 9}))
    assert (receipt.code, receipt.offset_msg_id, receipt.queue_offset) == (code, "M", 9)


def test_send_requests_by_kind() -> None:
    def code(*, batch: bool = False, reply: bool = False) -> int:
        made = broker_messages.send_request(QUEUE, b"x", group="G", born_timestamp=1, batch=batch, reply=reply)
        return made.code

    assert code() == RequestCode.SEND_MESSAGE_V2
    assert code(batch=True) == RequestCode.SEND_BATCH_MESSAGE
    assert code(reply=True) == RequestCode.SEND_REPLY_MESSAGE_V2


async def test_pages_are_put_together_and_begun_again_if_the_table_changes() -> None:
    def page(version: int, names: list[str]) -> bytes:
        table = ",".join(f'"{name}":{{"groupName":"{name}"}}' for name in names)
        return f'{{"subscriptionGroupTable":{{{table}}},"dataVersion":{{"counter":{version}}}}}'.encode()

    class Pages(Caller):
        pages = (page(1, ["a", "b"]), page(2, ["c"]), page(2, ["a", "b"]), page(2, ["c"]))

        async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
            self._rest = {"body": self.pages[len(self.asked)], "fields": {"totalGroupNum": 3}}
            return await super().call(address, command, timeout)

    caller = Pages()
    assert set(await broker_groups.all_groups(caller, PEER)) == {"a", "b", "c"}
    assert [command.fields["groupSeq"] for command in caller.asked] == ["0", "2", "0", "2"]


def test_attributes() -> None:
    changes = {**broker_topics.added({"message.type": "FIFO"}), "-cleanup.policy": ""}
    assert broker_topics.attribute_text(changes) == "+message.type=FIFO,-cleanup.policy"
    for bad in ({"message.type": "FIFO"}, {"+a": "b,c"}, {"+a=b": "c"}):
        with pytest.raises(ValueError, match="attribute"):
            broker_topics.attribute_text(bad)


def test_settings() -> None:
    assert broker_admin.read_settings("a=1\n# no\n\nb=x=y\nnothing\n c = \n") == {"a": "1", "b": "x=y", "c": " "}
