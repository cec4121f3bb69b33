"""What a topic's route says, as pure functions of it: which queues to write and read, and where their brokers are.

The rules are Java's (MQClientInstance), because every member of a group, in any language, must see the same queues:

- Written are the queues of brokers with write permission that have a master, broker by broker in the order of their
  names. A route with an order configuration (`broker-a:4;broker-b:4`) lists its queues itself, whatever the
  permissions.
- Read are the queues of brokers with read permission, master or not.

Brokers are known by name; `Brokers` merges the addresses out of the routes of all topics, and the two `…_address` rules
choose among the replicas of a broker.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from rocketfleet.client.errors import NoBroker
from rocketfleet.wire.bodies import MASTER_ID, BrokerData
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocketfleet.wire.bodies import TopicRouteData


class PublishInfo(NamedTuple):
    """The queues of a topic that can be written, in the order in which Java's round robin takes them."""

    queues: tuple[MessageQueue, ...]
    ordered: bool


def publish_info(topic: str, route: TopicRouteData) -> PublishInfo:
    """The writeable queues; `ordered` if the route has an order configuration."""
    if route.order_topic_conf:
        return PublishInfo(_ordered_queues(topic, route.order_topic_conf), ordered=True)
    masters = {broker.broker_name for broker in reversed(route.broker_datas) if MASTER_ID in broker.broker_addrs}
    # Java takes the first entry of a broker's name, and `sort` keeps the order of equal names, as Java's does.
    queues = tuple(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.writable and data.broker_name in masters
        for queue_id in range(data.write_queue_nums)
    )
    return PublishInfo(queues, ordered=False)


def _ordered_queues(topic: str, configuration: str) -> tuple[MessageQueue, ...]:
    queues: list[MessageQueue] = []
    for item in configuration.split(";"):
        broker, _, count = item.partition(":")
        # Nonsense in this configuration makes Java's client fail on every send; here it offers no queue.
        queues.extend(MessageQueue(topic, broker, n) for n in range(int(count) if count.strip().isdigit() else 0))
    return tuple(queues)


def subscribe_queues(topic: str, route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """The readable queues, each once, sorted."""
    return tuple(
        sorted(
            {
                MessageQueue(topic, data.broker_name, queue_id)
                for data in route.queue_datas
                if data.readable
                for queue_id in range(data.read_queue_nums)
            }
        )
    )


def route_for_new_topic(model: TopicRouteData, queues: int) -> TopicRouteData:
    """The route that a topic to be created by its first message will have, from that of the model topic (TBW102)."""
    clipped = tuple(
        replace(data, read_queue_nums=count, write_queue_nums=count)
        for data in model.queue_datas
        for count in (min(queues, data.read_queue_nums),)
    )
    return replace(model, queue_datas=clipped)


def changed(before: TopicRouteData | None, now: TopicRouteData) -> bool:
    """Whether anything differs that matters. In which order a name server lists things does not."""
    return before is None or _essence(before) != _essence(now)


def _essence(route: TopicRouteData) -> object:
    return (
        route.order_topic_conf or None,
        sorted((data.broker_name, repr(data)) for data in route.queue_datas),
        sorted((data.broker_name, sorted(data.broker_addrs.items())) for data in route.broker_datas),
    )


def brokers_named(route: TopicRouteData | None) -> frozenset[str]:
    """The brokers that a route names, with a master or without."""
    return frozenset() if route is None else frozenset(broker.broker_name for broker in route.broker_datas)


def masters_named(route: TopicRouteData | None) -> frozenset[str]:
    """The brokers that a route names a master of."""
    if route is None:
        return frozenset()
    return frozenset(broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs)


def vanished_brokers(before: TopicRouteData | None, now: TopicRouteData) -> frozenset[str]:
    """The brokers that a topic's route named and no longer names: neither an address nor a queue."""
    gone = brokers_named(before) - brokers_named(now)
    return gone - {data.broker_name for data in now.queue_datas} if gone else gone


class FoundBroker(NamedTuple):
    """Where to send a request meant for a broker, and whether that is a slave."""

    address: str
    slave: bool


def subscribe_address(
    addresses: Mapping[int, str], broker_id: int = MASTER_ID, *, only_this: bool = False
) -> FoundBroker | None:
    """The replica to read from (Java: findBrokerAddressInSubscribe).

    The one asked for; else, if it was a slave, the one after it; else, unless only that one will do, any, the lowest.
    """
    address = addresses.get(broker_id)
    slave = broker_id != MASTER_ID
    if address is None and slave:
        address = addresses.get(broker_id + 1)
    if address is None and not only_this and addresses:
        lowest = min(addresses)
        address, slave = addresses[lowest], lowest != MASTER_ID
    return None if address is None else FoundBroker(address, slave)


@dataclass(slots=True)
class Brokers:
    """The addresses of all brokers that any route names: broker name → broker id → address."""

    table: dict[str, dict[int, str]] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, routes: Iterable[TopicRouteData]) -> Brokers:
        """Merge routes; a later one wins over an earlier one about the same broker."""
        return cls.from_brokers(broker for route in routes for broker in route.broker_datas)

    @classmethod
    def from_brokers(cls, brokers: Iterable[BrokerData]) -> Brokers:
        """The same from what the name server says about its clusters."""
        made = cls()
        for broker in brokers:
            made.table[broker.broker_name] = dict(broker.broker_addrs)
            made.clusters[broker.broker_name] = broker.cluster
        return made

    def merge(self, route: TopicRouteData) -> None:
        """Take over what a route says about its brokers."""
        for broker in route.broker_datas:
            self.table[broker.broker_name] = dict(broker.broker_addrs)
            self.clusters[broker.broker_name] = broker.cluster

    def forget(self, broker: str) -> None:
        """Know nothing of a broker any longer."""
        self.table.pop(broker, None)
        self.clusters.pop(broker, None)

    def master(self, broker: str) -> str:
        """The master's address; NoBroker if there is none now."""
        addresses = self.table.get(broker)
        if not addresses:
            raise NoBroker(broker, "no route names it; is its name right, and is it registered?")
        address = addresses.get(MASTER_ID)
        if address is None:
            raise NoBroker(broker, "it has no master now, only slaves: wait for it to come back or to be elected")
        return address

    def reader(self, broker: str, broker_id: int = MASTER_ID, *, only_this: bool = False) -> FoundBroker:
        """The replica to read from; NoBroker if none will do."""
        found = subscribe_address(self.table.get(broker, {}), broker_id, only_this=only_this)
        if found is None:
            raise NoBroker(broker, f"no route names a replica {broker_id} of it, nor another that will do")
        return found

    def has_only_slaves(self, broker: str) -> bool:
        """Whether the broker is known, and has no master now but a replica: it can be read, not written or locked."""
        addresses = self.table.get(broker, {})
        return bool(addresses) and MASTER_ID not in addresses

    def masters(self) -> dict[str, str]:
        """The address of each broker that has a master, by broker name."""
        return {name: addresses[MASTER_ID] for name, addresses in self.table.items() if MASTER_ID in addresses}

    def all_addresses(self) -> dict[str, str]:
        """Every replica: address → broker name."""
        return {address: name for name, addresses in self.table.items() for address in addresses.values()}
