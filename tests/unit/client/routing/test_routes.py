"""What a route means: queues to write and read, addresses to use, and when it has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED

from rocketfleet.client.errors import NoBroker
from rocketfleet.client.routing.routes import (
    Brokers,
    FoundBroker,
    changed,
    publish_info,
    route_for_new_topic,
    subscribe_address,
    subscribe_queues,
)
from rocketfleet.wire.bodies import BrokerData, QueueData, TopicRouteData

if TYPE_CHECKING:
    from rocketfleet.wire.queue import MessageQueue

NAMES = st.sampled_from(["broker-a", "broker-b", "broker-c", "broker-d"])
QUEUES = st.builds(
    QueueData,
    broker_name=NAMES,
    read_queue_nums=st.integers(0, 6),
    write_queue_nums=st.integers(0, 6),
    perm=st.integers(0, 15),
)
BROKERS = st.builds(
    BrokerData,
    cluster=st.just("c"),
    broker_name=NAMES,
    broker_addrs=st.dictionaries(st.integers(0, 3), st.sampled_from(["h:1", "h:2", "h:3"]), max_size=3),
)
# A name server lists each broker once in each list.
ROUTES = st.builds(
    TopicRouteData,
    queue_datas=st.lists(QUEUES, unique_by=lambda data: data.broker_name).map(tuple),
    broker_datas=st.lists(BROKERS, unique_by=lambda data: data.broker_name).map(tuple),
    order_topic_conf=st.none() | st.just(""),
)


def _route(*queues: QueueData, masters: tuple[str, ...] = ("broker-a", "broker-b")) -> TopicRouteData:
    return TopicRouteData(queues, tuple(BrokerData("c", name, {0: f"{name}:1", 1: f"{name}:2"}) for name in masters))


def _ids(queues: tuple[MessageQueue, ...]) -> list[tuple[str, int]]:
    return [(queue.broker, queue.queue_id) for queue in queues]


def test_written_are_queues_of_brokers_with_permission_and_a_master() -> None:
    slave_only = BrokerData("c", "broker-c", {1: "c:2"})
    route = _route(
        QueueData("broker-c", 1, 1, 6),
        QueueData("broker-b", 9, 2, 6),
        QueueData("broker-a", 9, 1, 2),
        QueueData("broker-d", 9, 9, 6),  # no such broker
    )
    route = replace(route, broker_datas=(*route.broker_datas, slave_only))
    info = publish_info("T", route)
    assert _ids(info.queues) == [("broker-a", 0), ("broker-b", 0), ("broker-b", 1)]
    assert not info.ordered
    read_only = _route(QueueData("broker-a", 4, 4, 4))
    assert publish_info("T", read_only).queues == ()


def test_read_are_queues_with_permission_master_or_not() -> None:
    route = _route(QueueData("broker-c", 2, 0, 4), QueueData("broker-a", 1, 5, 6), QueueData("broker-b", 3, 3, 2))
    assert _ids(subscribe_queues("T", route)) == [("broker-a", 0), ("broker-c", 0), ("broker-c", 1)]


def test_an_order_configuration_lists_the_queues_itself() -> None:
    route = replace(_route(QueueData("broker-a", 4, 4, 0)), order_topic_conf="broker-b:2;broker-a:1")
    info = publish_info("T", route)
    assert _ids(info.queues) == [("broker-b", 0), ("broker-b", 1), ("broker-a", 0)]
    assert info.ordered
    assert subscribe_queues("T", route) == ()  # reading goes by permission all the same
    nonsense = replace(route, order_topic_conf="broker-a;:;broker-b:x;broker-c:1")
    assert _ids(publish_info("T", nonsense).queues) == [("broker-c", 0)]


@UNTIMED
@given(ROUTES)
def test_queues_are_as_counted_and_never_twice(route: TopicRouteData) -> None:
    written = publish_info("T", route).queues
    assert len(set(written)) == len(written)
    masters = {broker.broker_name for broker in route.broker_datas if 0 in broker.broker_addrs}
    expected = sum(d.write_queue_nums for d in route.queue_datas if d.perm & 2 and d.broker_name in masters)
    assert len(written) == expected
    assert list(written) == sorted(written)
    read = subscribe_queues("T", route)
    assert len(set(read)) == len(read) == sum(d.read_queue_nums for d in route.queue_datas if d.perm & 4)


@UNTIMED
@given(ROUTES, st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_listed_is_no_change(route: TopicRouteData, random: object) -> None:
    queues, brokers = list(route.queue_datas), list(route.broker_datas)
    random.shuffle(queues)  # type: ignore[attr-defined]  # Hypothesis draws a random.Random
    random.shuffle(brokers)  # type: ignore[attr-defined]
    shuffled = replace(route, queue_datas=tuple(queues), broker_datas=tuple(brokers))
    assert not changed(route, shuffled)
    assert publish_info("T", route) == publish_info("T", shuffled)
    assert subscribe_queues("T", route) == subscribe_queues("T", shuffled)
    assert changed(None, route)


@UNTIMED
@given(ROUTES, ROUTES)
def test_whatever_changes_queues_or_addresses_is_a_change(one: TopicRouteData, other: TopicRouteData) -> None:
    same = (
        publish_info("T", one) == publish_info("T", other)
        and subscribe_queues("T", one) == subscribe_queues("T", other)
        and Brokers.of([one]).table == Brokers.of([other]).table
    )
    assert same or changed(one, other)
    assert changed(one, other) == changed(other, one)


def test_a_topic_that_its_first_message_creates() -> None:
    model = _route(QueueData("broker-a", 8, 8, 7), QueueData("broker-b", 2, 8, 7))
    made = route_for_new_topic(model, 4)
    assert [(d.read_queue_nums, d.write_queue_nums) for d in made.queue_datas] == [(4, 4), (2, 2)]


@pytest.mark.parametrize(
    ("addresses", "broker_id", "only_this", "found"),
    [
        ({0: "m", 1: "s"}, 0, False, FoundBroker("m", slave=False)),
        ({0: "m", 1: "s"}, 1, False, FoundBroker("s", slave=True)),
        ({0: "m", 2: "s"}, 1, True, FoundBroker("s", slave=True)),  # a slave that is gone: the one after it
        ({0: "m", 3: "s"}, 1, True, None),
        ({0: "m", 3: "s"}, 1, False, FoundBroker("m", slave=False)),
        ({1: "s"}, 0, False, FoundBroker("s", slave=True)),
        ({1: "s"}, 0, True, None),
        ({}, 0, False, None),
    ],
)
def test_which_replica_to_read_from(
    addresses: dict[int, str], broker_id: int, only_this: bool, found: FoundBroker | None
) -> None:
    assert subscribe_address(addresses, broker_id, only_this=only_this) == found


def test_brokers_are_merged_from_routes_and_forgotten_with_them() -> None:
    one = TopicRouteData(
        (), (BrokerData("c1", "broker-a", {0: "a:1", 1: "a:2"}), BrokerData("c1", "broker-s", {1: "s:2"}))
    )
    two = TopicRouteData((), (BrokerData("c2", "broker-b", {0: "b:1"}), BrokerData("c1", "broker-a", {0: "a:9"})))
    brokers = Brokers.of([one, two])
    assert brokers.masters() == {"broker-a": "a:9", "broker-b": "b:1"}  # the later route is the newer
    assert brokers.clusters == {"broker-a": "c1", "broker-s": "c1", "broker-b": "c2"}
    assert brokers.all_addresses() == {"a:9": "broker-a", "s:2": "broker-s", "b:1": "broker-b"}
    assert brokers.reader("broker-s") == FoundBroker("s:2", slave=True)
    with pytest.raises(NoBroker, match="no address for broker broker-s: it has no master now, only slaves"):
        brokers.master("broker-s")
    with pytest.raises(NoBroker, match="no route names it"):
        brokers.master("broker-x")
    with pytest.raises(NoBroker, match="no route names a replica 0"):
        brokers.reader("broker-x")
    assert brokers.has_only_slaves("broker-s")
    assert not any(brokers.has_only_slaves(name) for name in ("broker-a", "broker-b", "broker-x"))
    brokers.forget("broker-s")
    assert set(brokers.table) == set(brokers.clusters) == {"broker-a", "broker-b"}


@UNTIMED
@given(st.lists(ROUTES, max_size=5))
def test_a_merge_knows_exactly_the_brokers_named(routes: list[TopicRouteData]) -> None:
    brokers = Brokers()
    for route in routes:
        brokers.merge(route)
    assert brokers.table == Brokers.of(routes).table
    assert set(brokers.table) == {broker.broker_name for route in routes for broker in route.broker_datas}
