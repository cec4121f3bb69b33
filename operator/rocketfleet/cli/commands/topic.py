"""`rocketfleet topic …`: what topics there are, where their queues are and what is in them."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import TYPE_CHECKING

import click

from rocketfleet.base.counting import counted
from rocketfleet.cli.access.connection import ConnectionOptions, connection_options
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
from rocketfleet.cli.rows.topic_change import DEFAULT_QUEUES, RequestedTopic, hidden, refusal, unread, wanted
from rocketfleet.cli.rows.topic_rows import describe, list_rows, perm_text, queue_rows, route_rows, same_settings
from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoRoute, TopicNotExist
from rocketfleet.client.fanout import each
from rocketfleet.client.requests import broker_offsets, broker_topics
from rocketfleet.client.routing.routes import subscribe_address
from rocketfleet.producer.checks import check_topic
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rocketfleet.wire.bodies import TopicConfig

_POLL_SECONDS = 0.05


@click.group(short_help="List, create, inspect and delete topics.")
def topic() -> None:
    """List, create, inspect and delete topics."""


@topic.command("list", epilog="\b\nExample:\n  rocketfleet topic list --name-server 10.0.0.1:9876")
@click.option("--all", "everything", is_flag=True, help="Those of RocketMQ itself, retries and dead letters too.")
@output_option
@connection_options
@asynchronous
async def list_topics(connection: ConnectionOptions, output: OutputFormat, everything: bool) -> int:
    """List topics with their queues, over all brokers."""
    async with Client(connection.config()) as client:
        masters = await admin.masters(client)
        configs = await each(masters, lambda name: broker_topics.all_topic_configs(client.remoting, masters[name]))
        found = configs.some_or_raise()
        own = await each(found, lambda name: broker_topics.system_topics(client.remoting, masters[name]))
        reserved = set((await client.name_servers.system_topics()).topic_list).union(*own.results.values())
    rows = list_rows(found, reserved)
    own_rows = [{k: v for k, v in row.items() if k != "kind"} for row in rows if row["kind"] == "topic"]
    show_rows(output, rows if everything else own_rows, "There is no topic.")
    errors = {**own.errors, **configs.errors}
    say_failures(errors)
    return 1 if errors else 0


@topic.command(
    "create",
    epilog="\b\nExamples:\n  rocketfleet topic create orders --queues 8\n"
    "  rocketfleet topic create orders --update --write-queues 4",
)
@click.argument("name")
@click.option(
    "--queues", type=click.IntRange(1), metavar="N", help=f"Queues on each broker. [default: {DEFAULT_QUEUES}]"
)
@click.option("--write-queues", type=click.IntRange(1), metavar="N", help="Only those that producers write to.")
@click.option("--read-queues", type=click.IntRange(1), metavar="N", help="Only those that consumers read.")
@click.option(
    "--type",
    "message_type",
    type=click.Choice(["NORMAL", "FIFO", "DELAY", "TRANSACTION"], case_sensitive=False),
    help="The kind of messages the topic is for.",
)
@click.option("--order", is_flag=True, help="Mark the topic as ordered.")
@click.option("--update", is_flag=True, help="Change the topic if it is there already; what is not named stays.")
@click.option(
    "--allow-unreachable-messages",
    is_flag=True,
    help="With --update: take queues away that have messages, which nobody can read any more then.",
)
@cluster_option
@connection_options
@asynchronous
async def create(
    connection: ConnectionOptions,
    name: str,
    queues: int | None,
    write_queues: int | None,
    read_queues: int | None,
    message_type: str | None,
    order: bool,
    update: bool,
    allow_unreachable_messages: bool,
    cluster: str | None,
) -> int:
    """Create a topic on every broker, and wait until the name server knows it.

    A topic that is there already with the same settings is fine; one with other settings is left alone
    without --update.

    A topic is made smaller in two steps: first fewer queues to write (--write-queues), then, when the others have been
    consumed, fewer to read (--read-queues).
    """
    check_topic(name)
    asked = RequestedTopic(queues, read_queues, write_queues, message_type, order)
    if asked.contradiction:
        raise click.UsageError(asked.contradiction)
    async with Client(connection.config()) as client:
        masters = await admin.masters(client, cluster)
        found = (await each(masters, lambda broker: _config_at(client, masters[broker], name))).all_or_raise()
        there = {broker: config for broker, config in found.items() if config is not None}
        # Without --update nothing given is the default; with it, what is there.
        configs = {broker: wanted(name, asked, there.get(broker) if update else None) for broker in masters}
        differing = [broker for broker, config in there.items() if not same_settings(config, configs[broker])]
        if differing and not update:
            raise click.ClickException(
                f"topic {name} is there already with other settings on {', '.join(differing)} "
                f"({describe(there[differing[0]])}): add --update to change it"
            )
        shown = describe(next(iter(configs.values())))
        if len(there) == len(masters) and not differing:
            click.echo(f"topic {name} is there already ({shown}); nothing was changed")
            return 0
        _check_readable(configs.values())
        if not allow_unreachable_messages:
            await _check_messages(client, masters, there, configs)
        done = await each(masters, lambda broker: _put(client, masters[broker], configs[broker]))
        done.all_or_raise()
        await _wait_for_route(client, name, set(masters), connection.timeout, time.monotonic)
    where = f"on {', '.join(sorted(masters))}"
    click.echo(f"topic {name} {'changed' if there else 'created'} {where} ({shown})")
    return 0


def _check_readable(configs: Iterable[TopicConfig]) -> None:
    for config in configs:
        if (problem := unread(config)) is not None:
            raise click.UsageError(problem)


async def _check_messages(
    client: Client, masters: Mapping[str, str], there: Mapping[str, TopicConfig], configs: Mapping[str, TopicConfig]
) -> None:
    """Refuse what would put messages out of reach."""
    counted = await each(
        there, lambda broker: _messages_in(client, masters[broker], broker, there[broker], configs[broker])
    )
    messages = {queue: count for counts in counted.all_or_raise().values() for queue, count in counts.items()}
    smallest = min(configs.values(), key=lambda config: config.read_queue_nums)
    if (problem := refusal(smallest, messages)) is not None:
        raise click.ClickException(problem)


async def _messages_in(
    client: Client, address: str, broker: str, there: TopicConfig, after: TopicConfig
) -> dict[MessageQueue, int]:
    """How many messages are in each of the queues that would go, consumed or not."""
    found = {}
    for number in hidden(there, after):
        queue = MessageQueue(there.topic_name, broker, number)
        first = await broker_offsets.min_offset(client.remoting, address, queue)
        end = await broker_offsets.max_offset(client.remoting, address, queue)
        found[queue] = max(0, end - max(0, first))
    return found


async def _put(client: Client, address: str, config: TopicConfig) -> None:
    changed = dataclasses.replace(config, attributes=broker_topics.added(config.attributes))
    await broker_topics.create_topic(client.remoting, address, changed)


async def _config_at(client: Client, address: str, name: str) -> TopicConfig | None:
    try:
        return await broker_topics.topic_config(client.remoting, address, name)
    except TopicNotExist:
        return None


async def _wait_for_route(
    client: Client, name: str, brokers: set[str], timeout: float, clock: Callable[[], float]
) -> None:
    """Brokers tell the name servers a moment after they have answered us; a send in that moment would fail."""
    deadline = clock() + timeout
    missing = brokers
    while clock() < deadline:
        try:
            route = await client.name_servers.route(name)
        except NoRoute:
            route = None
        if route is not None:
            missing = brokers - {data.broker_name for data in route.queue_datas}
            if not missing:
                return
        await asyncio.sleep(_POLL_SECONDS)
    raise click.ClickException(
        f"topic {name} was created, but the name server does not know it yet on {', '.join(sorted(missing))}"
    )


@topic.command("status", epilog="\b\nExample:\n  rocketfleet topic status orders")
@click.argument("name")
@output_option
@connection_options
@asynchronous
async def status(connection: ConnectionOptions, output: OutputFormat, name: str) -> int:
    """Show a topic's settings, the offsets of its queues, and the groups that consume it."""
    async with Client(connection.config()) as client:
        stats = await admin.topic_stats(client, name)
        table = stats.some_or_raise()
        readers = await _readers(client, name)
        configs = await each(table, lambda broker: broker_topics.topic_config(client.remoting, readers[broker], name))
        groups = await each(table, lambda broker: broker_topics.groups_of_topic(client.remoting, readers[broker], name))
    rows = queue_rows(table)
    consuming = sorted({group for found in groups.results.values() for group in found})
    config = next(iter(configs.results.values()), None)
    facts = {
        "topic": name,
        "type": config.attributes.get("message.type", "NORMAL") if config else None,
        "permission": perm_text(config.perm) if config else None,
        "messages": sum(row["messages"] for row in rows),
        "per_second": round(sum(stat.topic_put_tps for stat in table.values()), 2),
        "groups": consuming,
    }
    if output == "json":
        show_json({**facts, "queues": rows})
    else:
        click.echo(details({key.replace("_", " "): value for key, value in facts.items()}))
        if rows:
            click.echo("\n" + rows_as_table(rows))
    errors = {**configs.errors, **groups.errors, **stats.errors}
    say_failures(errors)
    return 1 if errors else 0


async def _readers(client: Client, name: str) -> dict[str, str]:
    """Where to ask about a topic: broker name → master, or a slave where there is none now."""
    brokers = (await client.name_servers.route(name)).broker_datas
    found = {broker.broker_name: subscribe_address(broker.broker_addrs) for broker in brokers}
    return {broker: place.address for broker, place in found.items() if place is not None}


@topic.command("route", epilog="\b\nExample:\n  rocketfleet topic route orders")
@click.argument("name")
@output_option
@connection_options
@asynchronous
async def route(connection: ConnectionOptions, output: OutputFormat, name: str) -> int:
    """Show which brokers have the topic, as the name server tells its clients."""
    async with Client(connection.config()) as client:
        found = await client.name_servers.route(name)
    show_rows(output, route_rows(found), f"No broker has topic {name}.")
    return 0


@topic.command("delete", epilog="\b\nExample:\n  rocketfleet topic delete orders --yes")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@cluster_option
@connection_options
@asynchronous
async def delete(connection: ConnectionOptions, name: str, yes: bool, cluster: str | None) -> int:
    """Delete a topic and all its messages, on every broker and in every name server."""
    async with Client(connection.config()) as client:
        await client.name_servers.route(name)  # a mistyped name is an error and not "deleted"
        if not yes:
            stats = (await admin.topic_stats(client, name)).results
            messages = sum(row["messages"] for row in queue_rows(stats))
            click.confirm(f"Delete topic {name} with {counted(messages, grouped=True)}?", abort=True, err=True)
        (await admin.delete_topic(client, name, cluster)).all_or_raise()
    click.echo(f"topic {name} deleted")
    return 0
