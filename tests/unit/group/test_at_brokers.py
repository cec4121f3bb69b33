"""One group at brokers that are away, do not know it, or answer for it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from rocketfleet.client.errors import ConnectError, NoBroker, NoRoute, RequestTimeout, RocketMQError
from rocketfleet.group.at_brokers import GroupAtBrokers, owners_of
from rocketfleet.wire.bodies import ConsumerRunningInfo, ProcessQueueInfo
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from rocketfleet.client.client import Client

A0, A1, B0 = MessageQueue("orders", "a", 0), MessageQueue("orders", "a", 1), MessageQueue("orders", "b", 0)
RETRY = MessageQueue("%RETRY%g", "a", 0)


class Stage:
    """A client whose brokers answer as they are told to. Addresses are names."""

    def __init__(self) -> None:
        self.topics: dict[str, tuple[MessageQueue, ...]] = {"orders": (B0, A0, A1)}
        self.offsets: dict[tuple[str, int], int] = {}
        self.infos: dict[str, ConsumerRunningInfo] = {}
        self.failing: dict[str, RocketMQError] = {}
        self.without_master: set[str] = set()
        self.asked: list[tuple[str, int]] = []
        self.remoting = self
        self.brokers = SimpleNamespace(clusters={"a": "c", "b": "c"})

    async def subscribe_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        if topic not in self.topics:
            raise NoRoute(topic, "nobody knows it")
        return self.topics[topic]

    def master(self, broker: str) -> str:
        if broker in self.without_master:
            raise NoBroker(broker, "it has no master now")
        return broker

    def reader(self, broker: str) -> Any:
        return SimpleNamespace(address=f"slave of {broker}" if broker in self.without_master else broker)

    async def call(self, address: str, command: Command, _timeout: float | None = None) -> Command:
        self.asked.append((address, command.code))
        if address in self.failing:
            raise self.failing[address]
        fields = command.fields
        if command.code == RequestCode.QUERY_CONSUMER_OFFSET:
            assert fields["setZeroIfNotFound"] == "false"
            found = self.offsets.get((address, int(fields["queueId"])))
            return Command(int(ResponseCode.QUERY_NOT_FOUND) if found is None else 0, {"offset": str(found)})
        if command.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
            info = self.infos.get(address)
            if info is None:
                return Command(int(ResponseCode.CONSUMER_NOT_ONLINE))
            return Command(0, {}, info.encode())
        if command.code == RequestCode.GET_MAX_OFFSET:
            return Command(0, {"offset": "9"})
        assert command.code == RequestCode.UPDATE_CONSUMER_OFFSET
        self.offsets[address, int(fields["queueId"])] = int(fields["commitOffset"])
        return Command(0)


def at(stage: Stage, *topics: str, or_slave: bool = False) -> GroupAtBrokers:
    return GroupAtBrokers(cast("Client", stage), "g", topics or ("orders",), or_slave=or_slave)


async def test_queues_of_topics_that_are_there_and_of_some_that_are_not() -> None:
    stage = Stage()
    assert await at(stage).queues() == (A0, A1, B0)
    assert await at(stage).queues(retries=True) == (A0, A1, B0), "nothing has failed yet"
    stage.topics["%RETRY%g"] = (RETRY,)
    assert await at(stage).queues(retries=True) == (RETRY, A0, A1, B0)
    with pytest.raises(NoRoute):
        await at(stage, "orders", "gone").queues()
    absent: dict[str, RocketMQError] = {}
    assert await at(stage, "orders", "gone").queues(absent=absent) == (A0, A1, B0)
    assert list(absent) == ["gone"]


async def test_what_is_not_answered_is_not_none() -> None:
    stage = Stage()
    stage.offsets["a", 0] = 5
    assert await at(stage).committed([A0, A1]) == {A0: 5, A1: None}
    stage.failing["b"] = ConnectError("b", "refused")
    with pytest.raises(ConnectError):
        await at(stage).committed([A0, B0])
    failures: dict[MessageQueue, RocketMQError] = {}
    assert await at(stage).committed([A0, A1, B0], failures) == {A0: 5, A1: None}
    assert failures == {B0: stage.failing["b"]}


async def test_a_slave_is_asked_only_by_whom_an_old_offset_is_better_than_none() -> None:
    stage = Stage()
    stage.without_master = {"a"}
    with pytest.raises(NoBroker):
        await at(stage).ends([A0])
    assert await at(stage, or_slave=True).ends([A0]) == {A0: 9}
    assert stage.asked == [("slave of a", RequestCode.GET_MAX_OFFSET)]


async def test_offsets_are_written_wherever_it_can_be_done() -> None:
    stage = Stage()
    stage.failing["a"] = ConnectError("a", "refused")
    with pytest.raises(ConnectError):
        await at(stage).write({A0: 1, A1: 2, B0: 3})
    assert stage.offsets == {("b", 0): 3}


HOLDS = ConsumerRunningInfo(mq_table={A0: ProcessQueueInfo(), B0: ProcessQueueInfo(dropped=True)})


@pytest.mark.parametrize(
    ("prepare", "asked", "held"),
    [
        (lambda stage: stage.infos.update(b=HOLDS), ["a", "b"], {"m": frozenset({A0})}),
        (
            lambda stage: (stage.failing.update(a=ConnectError("a", "refused")), stage.infos.update(b=HOLDS)),
            ["a", "b"],
            {"m": frozenset({A0})},
        ),
        # The broker waits for the member: to ask through another would take up a thread there as well.
        (lambda stage: stage.failing.update(a=RequestTimeout("a", 307, 1.0)), ["a"], RequestTimeout),
        (lambda stage: stage.failing.update(b=ConnectError("b", "refused")), ["a", "b"], ConnectError),
        (lambda _stage: None, ["a", "b"], {}),
    ],
)
async def test_members_are_asked_through_the_first_broker_that_knows_them(
    prepare: Callable[[Stage], object], asked: list[str], held: dict[str, frozenset[MessageQueue]] | type[RocketMQError]
) -> None:
    stage = Stage()
    prepare(stage)
    found = await at(stage).holdings(["m"], {"a": "a", "b": "b"})
    assert [address for address, _ in stage.asked] == asked
    if isinstance(held, dict):
        assert (found.results, found.errors) == (held, {})
    else:
        assert isinstance(found.errors["m"], held)


def test_two_owners_of_a_queue_are_both_shown() -> None:
    assert owners_of({"b": [A0], "a": [A0, A1]}) == {A0: ["a", "b"], A1: ["a"]}
