"""Brokers are written only while we lead, and no longer than that."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import pytest
from tests.unit.client.peer import Channel, Peer
from tests.unit.controller.stage import Stage, StageBackend, group_of

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import GroupNotExist, RequestTimeout
from rocketfleet.client.requests import broker_groups, broker_locks, broker_offsets, broker_topics
from rocketfleet.controller.operator.metrics import Metrics
from rocketfleet.controller.operator.term import LagOptions, Term
from rocketfleet.controller.resources.pod import Defaults
from rocketfleet.controller.rocketmq.fence import READS, FencedRemoting, TermOver, fenced_client
from rocketfleet.wire.bodies import SubscriptionGroupConfig, TopicConfig
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, request
from rocketfleet.wire.queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 0)


@dataclass
class Leading:
    """A leadership that is over when the test says so."""

    over: bool = False
    left: float = 60.0

    def may_act(self) -> bool:
        return not self.over

    def seconds_left(self) -> float:
        return 0.0 if self.over else self.left


class Broker(Peer):
    """A broker that has no offset and answers all else with success. A question after an offset may end the term."""

    def __init__(self, term: Leading) -> None:
        super().__init__(self._answer)
        self.ends_the_term = False
        self._leading = term

    def _answer(self, channel: Channel, command: Command) -> None:
        if command.code == RequestCode.QUERY_CONSUMER_OFFSET:
            self._leading.over = self._leading.over or self.ends_the_term
            channel.answer(command, ResponseCode.QUERY_NOT_FOUND)
        elif command.code == RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG:
            channel.answer(command, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST)
        else:
            channel.answer(command, fields={"offset": "7"})

    @property
    def codes(self) -> list[int]:
        return [command.code for command in self.received]


WRITES: dict[str, Any] = {
    "a group": lambda client, at: broker_groups.create_group(client.remoting, at, SubscriptionGroupConfig("g")),
    "an offset": lambda client, at: broker_offsets.update_offset(client.remoting, at, "g", QUEUE, 1),
    "one way": lambda client, at: client.remoting.oneway(at, request(RequestCode.UPDATE_CONSUMER_OFFSET)),
    "a lock": lambda client, at: broker_locks.lock(client.remoting, at, "g", "me", [QUEUE]),
    "an unlock": lambda client, at: broker_locks.unlock(client.remoting, at, "g", "me", [QUEUE]),
    "a topic": lambda client, at: broker_topics.create_topic(client.remoting, at, TopicConfig("t")),
    "no topic": lambda client, at: broker_topics.delete_topic(client.remoting, at, "t"),
    "no topic at a name server": lambda client, at: client.name_servers.delete_topic(at, "t"),
    "no group": lambda client, at: broker_groups.delete_group(client.remoting, at, "g", remove_offsets=True),
    "a reset": lambda client, at: broker_offsets.reset_offsets(client.remoting, at, "g", "t", 1),
    "settings, which may create them": lambda client, at: broker_groups.group_config(client.remoting, at, "g"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_nothing_is_written_when_the_term_is_over(write: Any) -> None:
    term = Leading(over=True)
    async with Broker(term) as broker, fenced_client(ClientConfig(broker.address), term) as client:
        with pytest.raises(TermOver):
            await write(client, broker.address)
        assert await broker_offsets.max_offset(client.remoting, broker.address, QUEUE) == 7  # reading is free
        assert broker.codes == [RequestCode.GET_MAX_OFFSET]


async def test_while_it_leads_everything_is_written() -> None:
    term = Leading()
    async with Broker(term) as broker, fenced_client(ClientConfig(broker.address), term) as client:
        await broker_offsets.update_offset(client.remoting, broker.address, "g", QUEUE, 1)
        with pytest.raises(GroupNotExist):
            await broker_groups.group_config(client.remoting, broker.address, "g")
        assert len(broker.codes) == 2


async def test_a_term_that_ends_between_a_look_and_a_write() -> None:
    """As after a freeze: what was seen is no longer so, and the group has moved on under another leader."""
    term = Leading()
    async with Broker(term) as broker, fenced_client(ClientConfig(broker.address), term) as client:
        broker.ends_the_term = True
        seen = await broker_offsets.query_offset(client.remoting, broker.address, "g", QUEUE, zero_if_not_found=False)
        assert seen is None
        with pytest.raises(TermOver):
            await broker_offsets.update_first_offset(client.remoting, broker.address, "g", QUEUE, 3)
        assert RequestCode.UPDATE_CONSUMER_OFFSET not in broker.codes


async def test_a_write_is_given_up_before_the_term_ends() -> None:
    term = Leading(left=0.2)
    async with Broker(term) as broker, fenced_client(ClientConfig(broker.address, timeout=30.0), term) as client:
        broker.script = lambda channel, command: None  # it does not answer
        began = time.monotonic()
        with pytest.raises(RequestTimeout):
            await broker_offsets.update_offset(client.remoting, broker.address, "g", QUEUE, 1)
        assert time.monotonic() - began < 10.0
        reading = asyncio.create_task(broker_offsets.max_offset(client.remoting, broker.address, QUEUE))
        await asyncio.sleep(0.5)
        assert not reading.done()  # a question may take its time
        reading.cancel()


def test_what_changes_something_is_not_among_the_reads() -> None:
    words = ("UPDATE", "DELETE", "CREATE", "LOCK", "RESET", "SEND", "CLEAN", "PUT", "HEART", "REGISTER", "INVOKE")
    assert not [code.name for code in READS if any(code.name.startswith(word) for word in words)]


async def test_the_brokers_of_a_term_are_fenced_and_those_without_a_term_are_not() -> None:
    class Leader(StageBackend):
        guard = Leading()  # type: ignore[assignment]

    group = group_of()
    for backend, kind in ((Leader(Stage(group)), FencedRemoting), (StageBackend(Stage(group)), None)):
        term = Term(backend, lambda key: None, Defaults("image"), LagOptions(), Metrics())  # type: ignore[arg-type]
        access = await term._brokers.of(group, ClientConfig("127.0.0.1:9876"))
        assert isinstance(access.client, Client)
        assert isinstance(access.client.remoting, FencedRemoting) is (kind is not None)
        await term.close()
