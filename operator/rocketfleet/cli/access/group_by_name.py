"""A consumer group that has no ConsumerGroup object: made out of what its brokers know.

Java's groups, and those of a `rocketfleet worker` without an operator, are nothing but a name. Their topics are those
in which an offset is stored or to which a member subscribes; the message model and where it begins are what the
members say. Of a group at rest the latter are not known, and taken for the defaults: then a queue without an offset has
no known lag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from rocketfleet.cli.access.manifest_file import read_group
from rocketfleet.client import admin
from rocketfleet.client.fanout import each
from rocketfleet.client.requests import broker_groups
from rocketfleet.group.at_brokers import GroupAtBrokers
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel
from rocketfleet.wire.topics import RETRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rocketfleet.api.consumer_group import ConsumerGroup
    from rocketfleet.client.client import Client
    from rocketfleet.client.fanout import Partial
    from rocketfleet.wire.bodies import ConsumerConnection, ConsumeStats

# What a member says of Timestamp lacks the time.
_BEGINNINGS: Final = {where.wire: where for where in (ConsumeFromWhere.LAST_OFFSET, ConsumeFromWhere.FIRST_OFFSET)}


@dataclass(frozen=True)
class Known:
    """What brokers know of a group beside its settings."""

    stats: Partial[ConsumeStats]
    connections: Partial[ConsumerConnection]

    def described(self, client: Client, name: str) -> dict[str, Any] | None:
        """The group as an object; None if no topic of it is known."""
        stored = {queue.topic for table in self.stats.some_or_raise().values() for queue in table.offset_table}
        return described(name, client.config.name_servers, stored, self.connections.some_or_raise())


async def ask_brokers(client: Client, name: str) -> Known:
    """In which topics the group has offsets, and who is in it."""
    return Known(await admin.consume_stats(client, name), await GroupAtBrokers(client, name).connections())


async def find_group(client: Client, name: str) -> ConsumerGroup:
    """The group of this name. One that no broker knows is an error: a mistyped name must not look like "no lag"."""
    masters = await admin.masters(client)
    known = await each(masters, lambda broker: broker_groups.all_groups(client.remoting, masters[broker]))
    servers = ";".join(client.config.name_servers)
    if not any(name in groups for groups in known.some_or_raise().values()):
        raise click.ClickException(
            f"there is no consumer group {name} at {servers}: "
            f"`rocketfleet group list --name-server '{servers}'` lists those there are"
        )
    content = (await ask_brokers(client, name)).described(client, name)
    if content is None:
        raise click.ClickException(
            f"group {name} has no offset stored and no member, so nobody knows its topics: give its manifest with -f"
        )
    return read_group(content, f"group {name}")


def described(
    name: str, name_servers: Iterable[str], stored: Collection[str], members: Mapping[str, ConsumerConnection]
) -> dict[str, Any] | None:
    """The group as an object; None if no topic of it is known. Pure."""
    found = [members[broker] for broker in sorted(members) if members[broker].connection_set]
    subscribed = {topic for one in found for topic in one.subscription_table}
    topics = sorted(topic for topic in {*stored, *subscribed} if not topic.startswith(RETRY_PREFIX))
    if not topics:
        return None
    spec: dict[str, Any] = {
        "groupName": name,
        "cluster": {"nameServers": list(name_servers)},
        "subscriptions": [{"topic": topic} for topic in topics],
    }
    if found and found[0].message_model == MessageModel.BROADCASTING.wire:
        spec["messageModel"] = MessageModel.BROADCASTING.value
    if found and found[0].consume_from_where in _BEGINNINGS:
        spec["consumeFromWhere"] = _BEGINNINGS[found[0].consume_from_where].value
    return {"metadata": {"name": name}, "spec": spec}
