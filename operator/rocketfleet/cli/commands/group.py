"""`rocketfleet group …`: what consumer groups there are, how far they are, and who is in them."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from rocketfleet.cli.access.connection import ConnectionOptions, connection_options
from rocketfleet.cli.access.group_by_name import ask_brokers
from rocketfleet.cli.access.lag_reading import NOTHING, read_lag
from rocketfleet.cli.access.manifest_file import read_group
from rocketfleet.cli.options.cluster_name import cluster_option
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
from rocketfleet.cli.rows.group_rows import describe, group_rows, member_rows, queue_rows, same_settings
from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoRoute
from rocketfleet.client.fanout import Partial, each
from rocketfleet.client.requests import broker_groups
from rocketfleet.controller.rocketmq.group_removal import leftovers, removal
from rocketfleet.group.at_brokers import GroupAtBrokers
from rocketfleet.wire.bodies import SubscriptionGroupConfig


@click.group(short_help="List, create, inspect and delete consumer groups.")
def group() -> None:
    """List, create, inspect and delete consumer groups."""


@group.command("list", epilog="\b\nExample:\n  rocketfleet group list")
@click.option("--all", "everything", is_flag=True, help="Those of RocketMQ itself too.")
@output_option
@connection_options
@asynchronous
async def list_groups(connection: ConnectionOptions, output: OutputFormat, everything: bool) -> int:
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
    "--max-retries",
    type=click.IntRange(0),
    metavar="N",
    help="Retries before a message is dead-lettered. [default: 16]",
)
@click.option(
    "--orderly/--concurrent", default=None, help="Whether messages are consumed in order. [default: concurrent]"
)
@click.option("--broadcast/--no-broadcast", default=None, help="Whether broadcasting is allowed. [default: yes]")
@click.option("--enabled/--disabled", default=None, help="Whether the group may consume at all. [default: yes]")
@click.option("--update", is_flag=True, help="Change the group if it is there already.")
@cluster_option
@connection_options
@asynchronous
async def create(
    connection: ConnectionOptions,
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
async def status(connection: ConnectionOptions, output: OutputFormat, name: str) -> int:
    """Show a group's members, its offset and lag in every queue, and which member has the queue.

    Lag counts messages that are still there: what the broker has deleted cannot be consumed any more.
    """
    async with Client(connection.config()) as client:
        _, known = await _groups(client)
        if not any(name in groups for groups in known.some_or_raise().values()):
            raise click.ClickException(f"there is no group {name}: `rocketfleet group list` shows those there are")
        found = await ask_brokers(client, name)
        content = found.described(client, name)
        seen = NOTHING if content is None else await read_lag(client, read_group(content, f"group {name}"))
    members = member_rows(found.connections.results)
    progress = {queue: at for table in found.stats.results.values() for queue, at in table.offset_table.items()}
    rows = queue_rows(seen.rows, progress)
    facts = {
        "group": name,
        "members": len(members),
        "lag": seen.total["lag"],
        "retry_lag": seen.retry_total["lag"],
        "dead_letters": seen.dead_letters,
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
    # A topic that has been deleted meanwhile is not an error.
    lost = {one: error for one, error in seen.errors.items() if not isinstance(error, NoRoute)}
    errors = {**known.errors, **found.stats.errors, **found.connections.errors, **lost}
    say_failures(errors)
    return 1 if errors else 0


@group.command("delete", epilog="\b\nExample:\n  rocketfleet group delete billing --remove-offsets")
@click.argument("name")
@click.option(
    "--remove-offsets", is_flag=True, help="Its offsets too, as deletionPolicy DeleteOffsets does. They stay otherwise."
)
@click.option(
    "--remove-topics",
    is_flag=True,
    help="Its offsets, its retry and dead letter topics and what is in them too, as deletionPolicy DeleteAll does.",
)
@click.option("--force", is_flag=True, help="Delete the group even if it has members.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@cluster_option
@connection_options
@asynchronous
async def delete(
    connection: ConnectionOptions,
    name: str,
    remove_offsets: bool,
    remove_topics: bool,
    force: bool,
    yes: bool,
    cluster: str | None,
) -> int:
    """Delete a consumer group on every broker. Its offsets stay, for the day it comes back, unless they are to go.

    Messages that wait for a retry, and dead letters, are counted and shown first. They stay, unless --remove-topics
    says that they are to go.
    """
    async with Client(connection.config()) as client:
        masters, found = await _groups(client, cluster)
        there = [broker for broker, groups in found.all_or_raise().items() if name in groups]
        if not there:
            raise click.ClickException(f"there is no group {name}: `rocketfleet group list` shows those there are")
        if cluster is None:
            await _in_one_cluster(client, name, there)
        members = await GroupAtBrokers(client, name).members(masters)
        if members and not force:
            raise click.ClickException(
                f"group {name} has {len(members)} member{'s' if len(members) > 1 else ''} connected "
                f"({', '.join(sorted(members))}): stop them first, or add --force"
            )
        offsets_too = remove_offsets or remove_topics
        left = await leftovers(client, name, masters)
        preview = removal(name, left, offsets_too=offsets_too, topics_too=remove_topics)
        click.echo(f"{'' if yes else 'if you confirm: '}{preview}", err=True)
        if not yes:
            click.confirm(f"Delete group {name}?", abort=True, err=True)
        done = await admin.delete_group(client, name, cluster, remove_offsets=offsets_too, remove_topics=remove_topics)
        done.all_or_raise()
    topics = ", its retry and its dead letter topic" if remove_topics else ""
    click.echo(f"group {name} deleted" + (f", with its offsets{topics}" if offsets_too else "; its offsets are kept"))
    return 0


async def _in_one_cluster(client: Client, name: str, brokers: list[str]) -> None:
    """A group of the same name in another cluster may be somebody else's."""
    info = await client.name_servers.cluster_info()
    clusters = sorted(one for one, members in info.cluster_addr_table.items() if set(brokers) & set(members))
    if len(clusters) > 1:
        raise click.ClickException(f"group {name} is in the clusters {', '.join(clusters)}: say which, with --cluster")


async def _groups(
    client: Client, cluster: str | None = None
) -> tuple[dict[str, str], Partial[dict[str, SubscriptionGroupConfig]]]:
    """The masters, and all groups of each: to ask for one would create it at a broker that may create groups."""
    masters = await admin.masters(client, cluster)
    return masters, await each(masters, lambda name: broker_groups.all_groups(client.remoting, masters[name]))
