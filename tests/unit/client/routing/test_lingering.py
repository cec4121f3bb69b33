"""Queues of brokers that a route no longer names, though they are there."""

from __future__ import annotations

from rocketfleet.client.routing.lingering import LingeringQueues
from rocketfleet.client.routing.lookout import BELIEVED
from rocketfleet.client.routing.routes import vanished_brokers
from rocketfleet.wire.bodies import BrokerData, QueueData, TopicRouteData
from rocketfleet.wire.queue import MessageQueue


def route(*brokers: str, perm: int = 6, only_slaves: bool = False) -> TopicRouteData:
    return TopicRouteData(
        tuple(QueueData(name, 2, 2, perm) for name in brokers),
        tuple(BrokerData("c", name, {1 if only_slaves else 0: f"{name}:1"}) for name in brokers),
    )


def queues(broker: str) -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue("T", broker, n) for n in range(2))


def test_who_has_vanished() -> None:
    assert vanished_brokers(route("a", "b"), route("a")) == {"b"}
    assert vanished_brokers(route("a"), route("a", "b")) == frozenset()
    assert vanished_brokers(None, route("a")) == frozenset()
    assert vanished_brokers(route("a", "b"), route("a", "b", only_slaves=True)) == frozenset()  # it is named still
    named_by_a_queue = TopicRouteData(route("a", "b").queue_datas, route("a").broker_datas)
    assert vanished_brokers(route("a", "b"), named_by_a_queue) == frozenset()


def test_queues_stay_while_their_broker_is_connected_but_not_for_ever() -> None:
    now = 0.0
    connected = {"a", "b"}
    lingering = LingeringQueues(lambda: now)

    def left() -> tuple[MessageQueue, ...]:
        return lingering.queues("T", connected.__contains__)

    lingering.route_changed("T", None, route("a", "b"))
    assert left() == ()
    lingering.route_changed("T", route("a", "b"), route("a"))
    assert left() == queues("b")
    assert lingering.queues("U", connected.__contains__) == ()
    connected.discard("b")
    assert left() == ()
    connected.add("b")
    now = 40.0
    lingering.route_changed("T", route("a"), route("a", "c"))  # another change does not begin the time anew
    assert left() == queues("b")
    now = BELIEVED
    assert left() == ()
    lingering.forget_past()
    assert not lingering._topics


def test_a_broker_that_is_back_speaks_for_itself() -> None:
    lingering = LingeringQueues(lambda: 0.0)
    lingering.route_changed("T", route("a", "b", "c"), route("a"))
    assert sorted(lingering.queues("T", lambda _: True)) == [*queues("b"), *queues("c")]
    lingering.route_changed("T", route("a"), route("a", "b", perm=2))
    assert lingering.queues("T", lambda _: True) == queues("c")
    lingering.route_changed("T", route("a", "b"), route("a", "b", "c"))
    assert lingering.queues("T", lambda _: True) == ()


def test_what_could_not_be_read_does_not_linger() -> None:
    lingering = LingeringQueues(lambda: 0.0)
    lingering.route_changed("T", route("a", "b", perm=2), route("a"))
    assert lingering.queues("T", lambda _: True) == ()
