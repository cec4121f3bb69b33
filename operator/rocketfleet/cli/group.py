"""`rocketfleet group …`: what consumer groups there are, how far they are, and who is in them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from rocketfleet.cli.connection import Connection, connection_options
from rocketfleet.cli.group_rows import (
    describe,
    group_rows,
    lag_of,
    member_rows,
    owners_of,
    queue_rows,
    same_settings,
)
from rocketfleet.cli.output import (
    OutputFormat,
    asynchronous,
    details,
    output_option,
    rows_as_table,
    say_failures,
    show_json,
    show_rows,
)
from rocketfleet.cli.topic import cluster_option
from rocketfleet.client import admin, broker_groups, broker_members
from rocketfleet.client.client import Client
from rocketfleet.client.errors import ConsumerNotOnline, NoRoute, RocketMQError
from rocketfleet.client.fanout import Partial, each
from rocketfleet.client.routes import RETRY_PREFIX
from rocketfleet.wire.bodies import ConsumerConnection, SubscriptionGroupConfig

if TYPE_CHECKING:
    from rocketfleet.wire.bodies import ConsumerRunningInfo, TopicStatsTable
    from rocketfleet.wire.queue import MessageQueue


@click.group(short_help="List, create, inspect and delete consumer groups.")
def group() -> None:
    """List, create, inspect and delete consumer groups."""


@group.command("list", epilog="\b\nExample:\n  rocketfleet group list")
@click.option("--all", "everything", is_flag=True, help="Those of RocketMQ itself too.")
@output_option
@connection_options
@asynchronous
async def list_groups(connection: Connection, output: OutputFormat, everything: bool) -> int:
    """List the groups that brokers know, with their settings."""
    async with Client(connection.config()) as client:
        _, found = await _groups(client)
    rows = group_rows(found.some_or_raise())
    shown = rows if everything else [row for row in rows if not row["system"]]
    show_rows(output, [{k: v for k, v in row.items() if k != "system"} for row in shown], "There is no group.")
    say_failures(found.errors)
    return 1 if found.errors else 0


@group.command("create", epilog="\b\nExample:\n  rocketfleet group create billing --max-retries 3")
@click.argument("name")
@click.option(
    "--max-retries", type=click.IntRange(0), metavar="N", help="Before a message is a dead letter. [default: 16]"
)
@click.option(
    "--orderly/--concurrent", default=None, help="Whether messages are consumed in order. [default: concurrent]"
)
@click.option(
    "--broadcast/--no-broadcast", default=None, help="Whether members may consume everything each. [default: yes]"
)
@click.option("--enabled/--disabled", default=None, help="Whether the group may consume at all. [default: yes]")
@click.option("--update", is_flag=True, help="Change the group if it is there already.")
@cluster_option
@connection_options
@asynchronous
async def create(
    connection: Connection,
    name: str,
    max_retries: int | None,
    orderly: bool | None,
    broadcast: bool | None,
    enabled: bool | None,
    update: bool,
    cluster: str | None,
) -> int:
    """Create a consumer group on every broker.

    A group that is there already with the same settings is fine; one with other settings is left alone without
    --update, which changes what you name and keeps the rest.
    """
    given: dict[str, Any] = {
        "retry_max_times": max_retries,
        "consume_message_orderly": orderly,
        "consume_broadcast_enable": broadcast,
        "consume_enable": enabled,
    }
    changes = {setting: value for setting, value in given.items() if value is not None}
    async with Client(connection.config()) as client:
        masters, found = await _groups(client, cluster)
        there = {broker: groups[name] for broker, groups in found.all_or_raise().items() if name in groups}
        differing = sorted(broker for broker, config in there.items() if not same_settings(config, changes))
        if differing and not update:
            raise click.ClickException(
                f"group {name} is there already with other settings on {', '.join(differing)} "
                f"({describe(there[differing[0]])}): add --update to change it"
            )
        if len(there) == len(masters) and not differing:
            click.echo(f"group {name} is there already; nothing was changed")
            return 0
        new = SubscriptionGroupConfig(group_name=name)
        configs = {
            # The broker keeps a group's attributes; those sent along would be read as changes.
            broker: dataclasses.replace(there.get(broker, new), attributes={}, **changes)
            for broker in masters
        }
        done = await each(
            masters, lambda broker: broker_groups.create_group(client.remoting, masters[broker], configs[broker])
        )
        done.all_or_raise()
    shown = describe(next(iter(configs.values())))
    click.echo(f"group {name} {'changed' if there else 'created'} on {', '.join(sorted(masters))} ({shown})")
    return 0


@group.command("status", epilog="\b\nExample:\n  rocketfleet group status billing")
@click.argument("name")
@output_option
@connection_options
@asynchronous
async def status(connection: Connection, output: OutputFormat, name: str) -> int:
    """Show a group's members, its offset and lag in every queue, and which member has the queue.

    Lag counts messages that are still there: what the broker has deleted cannot be consumed any more.
    """
    async with Client(connection.config()) as client:
        brokers, known = await _groups(client)
        if not any(name in groups for groups in known.some_or_raise().values()):
            raise click.ClickException(f"there is no group {name}: `rocketfleet group list` shows those there are")
        # The group's offsets before the queues' ends: the other way round, a busy queue could show less than no lag.
        stats = await admin.consume_stats(client, name)
        progress = {queue: at for table in stats.some_or_raise().values() for queue, at in table.offset_table.items()}
        ends, lost = await _topic_stats(client, {queue.topic for queue in progress})
        connections = await each(brokers, lambda broker: _connections(client, brokers[broker], name))
        members = member_rows(connections.results)
        infos = await each(
            [row["client_id"] for row in members], lambda client_id: _running_info(client, name, client_id)
        )
    rows = queue_rows(progress, ends, owners_of(infos.results))
    retry = RETRY_PREFIX + name
    facts = {
        "group": name,
        "members": len(members),
        "lag": lag_of(row for row in rows if row["topic"] != retry),
        "retry_lag": lag_of(row for row in rows if row["topic"] == retry),
    }
    if output == "json":
        show_json({**facts, "members": members, "queues": rows})
    else:
        click.echo(details({key.replace("_", " "): value for key, value in facts.items()}))
        for table in (members, rows):
            if table:
                click.echo("\n" + rows_as_table(table))
        if not rows:
            click.echo("\nno offset of the group is stored yet")
    errors = {**known.errors, **stats.errors, **lost, **connections.errors, **infos.errors}
    say_failures(errors)
    return 1 if errors else 0


@group.command("delete", epilog="\b\nExample:\n  rocketfleet group delete billing --remove-offsets")
@click.argument("name")
@click.option(
    "--remove-offsets", is_flag=True, help="Its offsets, retries and dead letters too. They are kept otherwise."
)
@click.option("--force", is_flag=True, help="Even if it has members.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@cluster_option
@connection_options
@asynchronous
async def delete(
    connection: Connection, name: str, remove_offsets: bool, force: bool, yes: bool, cluster: str | None
) -> int:
    """Delete a consumer group on every broker. Its offsets stay, for the day it comes back, unless they are to go."""
    async with Client(connection.config()) as client:
        masters, found = await _groups(client, cluster)
        if not any(name in groups for groups in found.all_or_raise().values()):
            raise click.ClickException(f"there is no group {name}: `rocketfleet group list` shows those there are")
        seen = await each(masters, lambda broker: broker_members.consumer_ids(client.remoting, masters[broker], name))
        members = {member for members in seen.all_or_raise().values() for member in members}
        if members and not force:
            raise click.ClickException(
                f"group {name} has {len(members)} member{'s' if len(members) > 1 else ''} connected "
                f"({', '.join(sorted(members))}): stop them first, or add --force"
            )
        if not yes:
            what = "and its offsets, retries and dead letters" if remove_offsets else "but keep its offsets"
            click.confirm(f"Delete group {name} {what}?", abort=True, err=True)
        (await admin.delete_group(client, name, cluster, remove_offsets=remove_offsets)).all_or_raise()
    click.echo(f"group {name} deleted" + (", with its offsets" if remove_offsets else "; its offsets are kept"))
    return 0


async def _groups(
    client: Client, cluster: str | None = None
) -> tuple[dict[str, str], Partial[dict[str, SubscriptionGroupConfig]]]:
    """The masters, and all groups of each: to ask for one would create it at a broker that may create groups."""
    masters = await admin.masters(client, cluster)
    return masters, await each(masters, lambda name: broker_groups.all_groups(client.remoting, masters[name]))


async def _topic_stats(client: Client, topics: set[str]) -> tuple[list[TopicStatsTable], dict[str, RocketMQError]]:
    """The ends of the topics' queues. A topic that has been deleted meanwhile is not an error."""
    stats: list[TopicStatsTable] = []
    errors: dict[str, RocketMQError] = {}
    for topic in sorted(topics):
        try:
            found = await admin.topic_stats(client, topic)
        except NoRoute:
            continue
        stats += found.results.values()
        errors.update(found.errors)
    return stats, errors


async def _connections(client: Client, address: str, name: str) -> ConsumerConnection:
    try:
        return await broker_members.consumer_connections(client.remoting, address, name)
    except ConsumerNotOnline:
        return ConsumerConnection()


async def _running_info(client: Client, name: str, client_id: str) -> dict[MessageQueue, object] | None:
    """The queues that a member says it has; None if it cannot tell."""
    try:
        info: ConsumerRunningInfo = await admin.running_info(client, name, client_id)
    except ConsumerNotOnline:
        return None
    return {**info.mq_table, **info.mq_pop_table}
