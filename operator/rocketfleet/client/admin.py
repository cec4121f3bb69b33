"""Calls that concern a whole cluster: the same thing at all its brokers, at once, with one fate each.

Every function takes the client first. What changes something goes to the masters of a cluster; what reads goes to the
brokers that matter, at their masters or, where there is none now, at a slave. Results come as a `Partial`: what the
brokers answered and why others did not, by broker name. `.all_or_raise()` is for callers to whom half is nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.client.errors import ConsumerNotOnline, NoBroker, NoRoute, ResponseError, RocketMQError
from rocketfleet.client.fanout import Partial, each
from rocketfleet.client.requests import broker_groups, broker_members, broker_offsets, broker_topics
from rocketfleet.client.routing.routes import subscribe_address, subscribe_queues
from rocketfleet.wire.bodies import MASTER_ID, ConsumeStats, TopicStatsTable
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocketfleet.client.client import Client
    from rocketfleet.wire.bodies import BrokerData, ConsumerRunningInfo, SubscriptionGroupConfig, TopicConfig
    from rocketfleet.wire.queue import MessageQueue


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


async def consumer_ids(client: Client, group: str) -> Partial[tuple[str, ...]]:
    """The members of a group as each broker sees them. Brokers disagree for a moment after each change."""
    table = await brokers_of_group(client, group)
    return await each(table, lambda name: broker_members.consumer_ids(client.remoting, table[name], group))


async def running_info(client: Client, group: str, client_id: str, *, stacks: bool = False) -> ConsumerRunningInfo:
    """What a member says about itself, through the first broker that reaches it."""
    last: RocketMQError | None = None
    for address in (await brokers_of_group(client, group)).values():
        try:
            return await broker_members.running_info(client.remoting, address, group, client_id, stacks=stacks)
        except RocketMQError as error:
            # "Not online" from one broker says less than a failure at another where it may be online.
            if last is None or not isinstance(error, ConsumerNotOnline):
                last = error
    raise last or NoBroker(f"of group {group}", "the name server knows no broker at all")


async def reset_offsets(client: Client, group: str, topic: str, timestamp: int) -> Partial[dict[MessageQueue, int]]:
    """Move a group in all queues of a topic to a time in milliseconds, or with broker_offsets.NOW to the end.

    A broker that leaves resetting to the members cannot do it for a group without any; then the offsets are looked
    up and stored from here, which is safe for just that reason.
    """
    route = await client.name_servers.route(topic)
    table = {broker.broker_name: broker.broker_addrs.get(MASTER_ID) for broker in route.broker_datas}
    queues = subscribe_queues(topic, route)

    async def reset(name: str) -> dict[MessageQueue, int]:
        address = table[name]
        if address is None:
            raise NoBroker(name, "it has no master now, and offsets can be reset only there")
        try:
            return await broker_offsets.reset_offsets(client.remoting, address, group, topic, timestamp)
        except ResponseError as error:
            if not await _is_offline(client, address, group, error):
                raise
        return {
            queue: await _move(client, address, group, queue, timestamp) for queue in queues if queue.broker == name
        }

    return await each(table, reset)


async def _is_offline(client: Client, address: str, group: str, error: ResponseError) -> bool:
    """Whether a reset failed only because the group has no members, or none that ever stored an offset."""
    if isinstance(error, ConsumerNotOnline):
        return True
    if error.code != ResponseCode.SYSTEM_ERROR or "not exist" not in (error.remark or ""):
        return False
    return not await broker_members.consumer_ids(client.remoting, address, group)


async def _move(client: Client, address: str, group: str, queue: MessageQueue, timestamp: int) -> int:
    if timestamp == broker_offsets.NOW:
        offset = await broker_offsets.max_offset(client.remoting, address, queue)
    else:
        offset = await broker_offsets.search_offset(client.remoting, address, queue, timestamp)
    await broker_offsets.update_offset(client.remoting, address, group, queue, offset)
    return offset
