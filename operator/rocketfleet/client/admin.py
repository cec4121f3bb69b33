"""Calls that concern a whole cluster: the same thing at all its brokers, at once, with one fate each.

Every function takes the client first. What changes something goes to the masters of a cluster; what reads goes to the
brokers that matter, at their masters or, where there is none now, at a slave. Results come as a `Partial`: what the
brokers answered and why others did not, by broker name. `.all_or_raise()` is for callers to whom half is nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.client.errors import NoBroker, NoRoute
from rocketfleet.client.fanout import Partial, each
from rocketfleet.client.requests import broker_groups, broker_topics
from rocketfleet.client.routing.routes import subscribe_address
from rocketfleet.wire.bodies import MASTER_ID, ConsumeStats, TopicStatsTable
from rocketfleet.wire.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocketfleet.client.client import Client
    from rocketfleet.wire.bodies import BrokerData, SubscriptionGroupConfig, TopicConfig


# -- which brokers ----------------------------------------------------------------------------------------------------


async def masters(client: Client, cluster: str | None = None) -> dict[str, str]:
    """The masters of a cluster, or of all: broker name → address. NoBroker if there is none."""
    info = await client.name_servers.cluster_info()
    names: Iterable[str] = info.broker_addr_table
    if cluster is not None:
        if cluster not in info.cluster_addr_table:
            known = ", ".join(sorted(info.cluster_addr_table)) or "none"
            raise NoBroker(f"of cluster {cluster}", f"the name server knows no such cluster; it knows: {known}")
        names = info.cluster_addr_table[cluster]
    table = {
        name: info.broker_addr_table[name].broker_addrs[MASTER_ID]
        for name in names
        if name in info.broker_addr_table and MASTER_ID in info.broker_addr_table[name].broker_addrs
    }
    if not table:
        raise NoBroker(f"of cluster {cluster}" if cluster else "of any cluster", "no broker has a master now")
    return table


async def brokers_of_group(client: Client, group: str, topics: Iterable[str] = ()) -> dict[str, str]:
    """The brokers that can know something about a group: broker name → address.

    They are those that have its retry topic or the topics given; a group that never consumed has no retry topic, and
    then it is every broker there is.
    """
    found: dict[str, str] = {}
    for topic in (RETRY_PREFIX + group, *topics):
        try:
            route = await client.name_servers.route(topic)
        except NoRoute:
            continue
        found.update(_readable(route.broker_datas))
    if found:
        return found
    info = await client.name_servers.cluster_info()
    return _readable(info.broker_addr_table.values())


def _readable(brokers: Iterable[BrokerData]) -> dict[str, str]:
    chosen = {broker.broker_name: subscribe_address(broker.broker_addrs) for broker in brokers}
    return {name: found.address for name, found in chosen.items() if found is not None}


# -- topics -----------------------------------------------------------------------------------------------------------


async def create_topic(client: Client, topic: TopicConfig, cluster: str | None = None) -> Partial[None]:
    """Create a topic, or change it, on all masters of a cluster. The name servers learn of it from the brokers."""
    table = await masters(client, cluster)
    return await each(table, lambda name: broker_topics.create_topic(client.remoting, table[name], topic))


async def delete_topic(client: Client, topic: str, cluster: str | None = None) -> Partial[None]:
    """Delete a topic on all masters of a cluster, then in all name servers; by broker name or name server address."""
    table = await masters(client, cluster)
    at_brokers = await each(table, lambda name: broker_topics.delete_topic(client.remoting, table[name], topic))
    if at_brokers.errors:
        return at_brokers  # a name server that forgot it would hide what is left of it
    servers = client.name_servers
    at_servers = await each(servers.addresses, lambda address: servers.delete_topic(address, topic, cluster))
    return Partial({**at_brokers.results, **at_servers.results}, at_servers.errors)


async def topic_stats(client: Client, topic: str) -> Partial[TopicStatsTable]:
    """The numbers of a topic at each broker that has it."""
    table = _readable((await client.name_servers.route(topic)).broker_datas)
    return await each(table, lambda name: broker_topics.topic_stats(client.remoting, table[name], topic))


# -- groups -----------------------------------------------------------------------------------------------------------


async def create_group(client: Client, group: SubscriptionGroupConfig, cluster: str | None = None) -> Partial[None]:
    """Create a group, or change it, on all masters of a cluster."""
    table = await masters(client, cluster)
    return await each(table, lambda name: broker_groups.create_group(client.remoting, table[name], group))


async def delete_group(
    client: Client,
    group: str,
    cluster: str | None = None,
    *,
    remove_offsets: bool = False,
    remove_topics: bool = False,
) -> Partial[None]:
    """Delete a group on all masters of a cluster. Its retry and dead letter topics hold messages: they stay, unless
    they are to go by their own name.
    """
    table = await masters(client, cluster)
    done = await each(
        table,
        lambda name: broker_groups.delete_group(client.remoting, table[name], group, remove_offsets=remove_offsets),
    )
    if done.errors or not remove_topics:
        return done
    for topic in (RETRY_PREFIX + group, DEAD_LETTER_PREFIX + group):
        topics = await delete_topic(client, topic, cluster)
        done = Partial(done.results, {**done.errors, **topics.errors})
    return done


async def consume_stats(client: Client, group: str, topic: str | None = None) -> Partial[ConsumeStats]:
    """How far a group is, at each broker. An empty table means "no offsets here", and not "no lag"."""
    table = await brokers_of_group(client, group, () if topic is None else (topic,))
    return await each(table, lambda name: broker_groups.consume_stats(client.remoting, table[name], group, topic=topic))
