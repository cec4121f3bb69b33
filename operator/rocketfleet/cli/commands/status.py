"""`rocketfleet status`: how groups are, as the operator says or, with a manifest and no cluster, as the broker does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from rocketfleet.cli.access.group_access import GroupSource, group_options, open_group
from rocketfleet.cli.access.kube_access import open_cluster
from rocketfleet.cli.access.lag_reading import read_lag
from rocketfleet.cli.output import (
    OutputFormat,
    asynchronous,
    details,
    output_option,
    rows_as_table,
    say_failures,
    show_json,
)
from rocketfleet.cli.rows.lag_rows import total_text
from rocketfleet.cli.rows.status_rows import Object, condition_rows, facts, group_cells, group_row, is_stale
from rocketfleet.cli.running.run_state import run_is_live, state_dir_option, written_failures, written_object
from rocketfleet.group.at_brokers import GroupAtBrokers

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    short_help="Show the status of groups.",
    epilog="\b\nExamples:\n  rocketfleet status -A\n  rocketfleet status orders -n shop\n"
    "  rocketfleet status -f orders.yaml\n  rocketfleet status orders --name-server 10.0.0.1:9876",
)
@click.argument("group", required=False)
@click.option("--all-namespaces", "-A", "everywhere", is_flag=True, help="The groups of all namespaces.")
@state_dir_option("With -f")
@output_option
@group_options
@asynchronous
async def status(
    access: GroupSource, group: str | None, everywhere: bool, state_dir: Path, output: OutputFormat
) -> int:
    """Show all groups of a namespace, or one with its conditions, as the operator last saw it.

    With -f, or with --name-server alone, nothing is asked of a cluster: members and lag are read from the group's
    brokers. With -f the conditions are those that rocketfleet run last wrote down, if it has run the group here.
    """
    if access.needs_no_cluster:
        return await _at_broker(access, group, output, state_dir)
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


async def _at_broker(access: GroupSource, name: str | None, output: OutputFormat, state_dir: Path) -> int:
    async with open_group(access, name) as opened:
        written = None if access.by_name else written_object(state_dir, *opened.group.key)
        place = GroupAtBrokers(opened.client, opened.group.group_name)
        members = await place.member_ids()
        seen = await read_lag(opened.client, opened.group)
    ids = sorted({member for found in members.results.values() for member in found})
    counts = seen.owner_counts()
    if output == "json":
        queues = {"total": len(counts), "owned": counts.count(1), "unowned": counts.count(0)}
        more = {} if written is None else {"running": run_is_live(state_dir), "status": written["status"]}
        show_json(
            {
                "group": place.group,
                "members": ids,
                "queues": queues,
                "lag": seen.total,
                "retry": seen.retry_total,
                "dead_letters": seen.dead_letters,
                **more,
            }
        )
    else:
        shared = len(counts) - counts.count(1) - counts.count(0)
        click.echo(
            details(
                {
                    "group": place.group,
                    "members": len(ids),
                    "queues": f"{counts.count(1)} of {len(counts)} with one owner, {counts.count(0)} with none, "
                    f"{shared} with several",
                    "lag": total_text(seen.total),
                    "due for retry": total_text(seen.retry_total) if seen.retry else None,
                    **({"dead letters": seen.dead_letters} if seen.dead_letters else {}),
                }
            )
        )
        if written is not None:
            _show_written(written, state_dir, written_failures(state_dir, *opened.group.key))
    errors = {**members.errors, **seen.errors}
    say_failures(errors)
    return 1 if errors else 0


def _show_written(group: Object, state_dir: Path, failures: list[str]) -> None:
    rows = condition_rows(group, time.time())
    live = run_is_live(state_dir)
    if rows and live:
        click.echo(f"\nas rocketfleet run last wrote it to {state_dir}:\n" + rows_as_table(rows))
    elif rows:
        click.echo(
            f"\nno rocketfleet run is at work in {state_dir} now; the last one left this, which may be out of date:\n"
            + rows_as_table(rows)
        )
    if failures:
        click.echo(
            f"\nmembers that {'failed' if live else 'had failed'}:\n"
            + "\n".join(f"  {failure}" for failure in failures)
        )
