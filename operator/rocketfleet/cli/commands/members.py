"""`rocketfleet members`: who is in a group, in which state, with how many queues."""

from __future__ import annotations

import time

import click

from rocketfleet.cli.access.group_access import GroupSource, group_options, open_group
from rocketfleet.cli.access.kube_access import open_cluster
from rocketfleet.cli.output import OutputFormat, asynchronous, output_option, say_failures, show_json, show_rows
from rocketfleet.cli.rows.group_rows import member_rows
from rocketfleet.cli.rows.status_rows import pod_cells, pod_rows
from rocketfleet.group.at_brokers import GroupAtBrokers


@click.command(
    short_help="Show the members of a group.",
    epilog="\b\nExamples:\n  rocketfleet members orders -n shop\n  rocketfleet members orders --at-broker\n"
    "  rocketfleet members orders --name-server 10.0.0.1:9876",
)
@click.argument("group", required=False)
@click.option("--at-broker", is_flag=True, help="Ask the brokers, not the operator.")
@output_option
@group_options
@asynchronous
async def members(access: GroupSource, group: str | None, at_broker: bool, output: OutputFormat) -> int:
    """Show a group's pods with their state, and members at the broker that are none of its pods.

    Queues and lag are as the operator last wrote them to the object. With --at-broker, or without a cluster (-f, or
    --name-server alone), the brokers are asked: client id, address and language of every member, and how many queues it
    says it has.
    """
    if at_broker or access.needs_no_cluster:
        return await _at_broker(access, group, output)
    if group is None:
        raise click.UsageError("say which group: its name, or -f with a manifest that has only one")
    async with open_cluster(access.kube) as kube:
        found, pods = await kube.group(group), await kube.pods(group)
    rows = pod_rows(found, pods, time.time())
    if output == "json":
        show_json(rows)
    else:
        show_rows(output, [pod_cells(row) for row in rows], f"Group {group} has no members.")
    return 0


async def _at_broker(access: GroupSource, name: str | None, output: OutputFormat) -> int:
    async with open_group(access, name) as opened:
        place = GroupAtBrokers(
            opened.client, opened.group.group_name, (one.topic for one in opened.group.spec.subscriptions)
        )
        connections = await place.connections()
        rows = member_rows(connections.some_or_raise())
        holdings = await place.holdings([row["client_id"] for row in rows])
    shown = []
    for row in rows:
        held = holdings.results.get(row["client_id"])
        own = None if held is None else sum(queue.topic in place.topics for queue in held)
        shown.append({**row, "queues": own})
    show_rows(output, shown, f"Group {place.group} has no members.")
    errors = {**connections.errors, **holdings.errors}
    say_failures(errors)
    return 1 if errors else 0
