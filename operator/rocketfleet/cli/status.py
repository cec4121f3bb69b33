"""`rocketfleet status`: how groups are, as the operator says or, with a manifest and no cluster, as the broker does."""

from __future__ import annotations

import time

import click

from rocketfleet.cli.group_access import GroupAccess, group_options, open_group
from rocketfleet.cli.group_at_broker import GroupAtBroker
from rocketfleet.cli.kube_access import open_cluster
from rocketfleet.cli.lag import read_lag
from rocketfleet.cli.lag_rows import total_of, total_text
from rocketfleet.cli.output import (
    OutputFormat,
    asynchronous,
    details,
    output_option,
    rows_as_table,
    say_failures,
    show_json,
)
from rocketfleet.cli.status_rows import Object, condition_rows, facts, group_cells, group_row, is_stale
from rocketfleet.client.routes import RETRY_PREFIX


@click.command(
    short_help="Show how groups are.",
    epilog="\b\nExamples:\n  rocketfleet status -A\n  rocketfleet status orders -n shop\n"
    "  rocketfleet status -f orders.yaml",
)
@click.argument("group", required=False)
@click.option("--all-namespaces", "-A", "everywhere", is_flag=True, help="The groups of all namespaces.")
@output_option
@group_options
@asynchronous
async def status(access: GroupAccess, group: str | None, everywhere: bool, output: OutputFormat) -> int:
    """Show all groups of a namespace, or one with its conditions, as the operator last saw it.

    With -f, nothing is asked of a cluster: members and lag are read from the group's brokers.
    """
    if access.manifest is not None:
        return await _at_broker(access, group, output)
    if group is not None and everywhere:
        raise click.UsageError("name a group, or add -A to see all; both together mean nothing")
    async with open_cluster(access.kube) as kube:
        if group is None:
            found = await kube.groups(everywhere=everywhere)
            _show_groups(output, found, "any namespace" if everywhere else f"namespace {kube.namespace}", everywhere)
        else:
            _show_group(output, await kube.group(group))
    return 0


def _show_groups(output: OutputFormat, found: list[Object], where: str, everywhere: bool) -> None:
    rows = [group_row(one, time.time()) for one in found]
    if output == "json":
        show_json(rows)
    elif not rows:
        click.echo(f"There is no ConsumerGroup in {where}.", err=True)
    else:
        cells = [group_cells(row) for row in rows]
        hidden = () if everywhere else ("namespace",)
        click.echo(rows_as_table([{key: value for key, value in row.items() if key not in hidden} for row in cells]))


def _show_group(output: OutputFormat, group: Object) -> None:
    now = time.time()
    if output == "json":
        show_json({**group_row(group, now), "up_to_date": not is_stale(group), "status": group.get("status") or {}})
        return
    click.echo(details(facts(group, now)))
    rows = condition_rows(group, now)
    if rows:
        click.echo("\n" + rows_as_table(rows))
    else:
        click.echo(
            "\nno operator has looked at this group yet: does one run, and does it watch this namespace?", err=True
        )
    if rows and is_stale(group):
        click.echo("\nthe object has changed since the operator last looked", err=True)


async def _at_broker(access: GroupAccess, name: str | None, output: OutputFormat) -> int:
    async with open_group(access, name) as opened:
        place = GroupAtBroker(
            opened.client, opened.group.group_name, (one.topic for one in opened.group.spec.subscriptions)
        )
        members = await place.member_ids()
        rows, errors = await read_lag(opened)
    ids = sorted({member for found in members.results.values() for member in found})
    own = [row for row in rows if row["topic"] != RETRY_PREFIX + place.group]
    counts = [len(row["owner"]) for row in own]
    totals = total_of(own), total_of([row for row in rows if row["topic"] == RETRY_PREFIX + place.group])
    if output == "json":
        queues = {"total": len(own), "owned": counts.count(1), "unowned": counts.count(0)}
        show_json({"group": place.group, "members": ids, "queues": queues, "lag": totals[0], "retry": totals[1]})
    else:
        shared = len(own) - counts.count(1) - counts.count(0)
        click.echo(
            details(
                {
                    "group": place.group,
                    "members": len(ids),
                    "queues": f"{counts.count(1)} of {len(own)} with one owner, {counts.count(0)} with none, "
                    f"{shared} with several",
                    "lag": total_text(totals[0]),
                    "to be retried": total_text(totals[1]) if totals[1]["queues"] else None,
                }
            )
        )
    errors = {**members.errors, **errors}
    say_failures(errors)
    return 1 if errors else 0
