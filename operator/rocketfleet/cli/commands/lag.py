"""`rocketfleet lag`: how far a group is behind, queue by queue, whether or not anything of it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from rocketfleet.cli.access.group_access import GroupSource, OpenGroup, group_options, open_group
from rocketfleet.cli.access.lag_reading import GroupRows, read_lag
from rocketfleet.cli.output import OutputFormat, asynchronous, details, output_option, say_failures, show_json, table
from rocketfleet.cli.rows.lag_explain import Explanation, explained, explanation
from rocketfleet.cli.rows.lag_rows import short_names, span_text, total_text
from rocketfleet.cli.running.run_state import run_is_live, state_dir_option, written_object

if TYPE_CHECKING:
    from pathlib import Path

    from rocketfleet.cli.rows.status_rows import Object

BROADCASTING = (
    "the group is broadcasting: each member keeps its offsets itself, and what is shown is what the members say"
)


@click.command(
    short_help="Show a group's lag in every queue.",
    epilog="\b\nExamples:\n  rocketfleet lag orders -n shop\n  rocketfleet lag -f orders.yaml -o json\n"
    "  rocketfleet lag orders -n shop --explain\n  rocketfleet lag orders --name-server 10.0.0.1:9876",
)
@click.argument("group", required=False)
@click.option("--no-owners", is_flag=True, help="Do not ask the members which queues they have.")
@click.option("--explain", is_flag=True, help="Say what the rules make of it, and what autoscaling did and why.")
@state_dir_option("With -f and --explain")
@output_option
@group_options
@asynchronous
async def lag(
    access: GroupSource, group: str | None, output: OutputFormat, no_owners: bool, explain: bool, state_dir: Path
) -> int:
    """Show how far a group is behind in every queue: its offset, the queue's end, the messages between that are still
    there, the age of the oldest, and the member that has the queue.

    The numbers are read from the brokers, so no consumer has to run. What is not known is shown as -, and is null in
    JSON; the exit code is 1 if a broker or a member did not answer.

    With --explain the object's status is shown too: what the rules say of the lag, how many replicas autoscaling wants,
    and the last changes it made, each with its reason.
    """
    if explain and access.by_name:
        raise click.UsageError(
            "--explain shows what an operator, or rocketfleet run, wrote to an object: name the cluster (-n, --context)"
            " or the manifest (-f)"
        )
    async with open_group(access, group) as opened:
        told = explanation(await _object(opened, state_dir), time.time()) if explain else None
        seen = await read_lag(opened.client, opened.group, owners=not no_owners)
    show_lag(output, opened.group.group_name, seen, told)
    if opened.group.spec.message_model.value == "Broadcasting":
        click.echo(BROADCASTING, err=True)
    say_failures(seen.errors)
    return 1 if seen.errors else 0


async def _object(opened: OpenGroup, state_dir: Path) -> Object:
    """The object with its status: from the cluster, or from a `rocketfleet run` on this machine."""
    namespace, name = opened.group.key
    if opened.kube is not None:
        return await opened.kube.group(name)
    found = written_object(state_dir, namespace, name)
    if found is None:
        raise click.ClickException(
            f"no explanation of {name} has been recorded yet: with -f, --explain needs a rocketfleet run of it on this "
            f"machine (--state-dir, now {state_dir}); without -f, an operator in the cluster"
        )
    if not run_is_live(state_dir):
        click.echo(
            f"no rocketfleet run is at work in {state_dir} now: what is explained is what the last one left", err=True
        )
    return found


def show_lag(output: OutputFormat, group: str, seen: GroupRows, told: Explanation | None = None) -> None:
    """The totals, messages to retry apart, the queues, and what is told of them."""
    rows = seen.rows
    if output == "json":
        more = {} if told is None else {"explanation": told}
        show_json({"group": group, "lag": seen.total, "retry": seen.retry_total, "dead_letters": seen.dead_letters,
                   "queues": rows, **more})  # fmt: skip
        return
    facts: dict[str, object] = {"group": group, "lag": total_text(seen.total)}
    if seen.retry:
        facts["due for retry"] = total_text(seen.retry_total)
    if seen.dead_letters:
        facts["dead letters"] = seen.dead_letters
    click.echo(details(facts))
    if told is not None:
        click.echo(f"\n{explained(told)}")
    if not rows:
        return
    names = short_names({owner for row in rows for owner in row["owner"]})
    click.echo()
    click.echo(
        table(
            ["TOPIC", "BROKER", "QUEUE", "OWNER", "COMMITTED", "MAX", "LAG", "AGE"],
            [
                [
                    row["topic"],
                    row["broker"],
                    row["queue"],
                    [names[owner] for owner in row["owner"]],
                    row["committed"],
                    row["max_offset"],
                    row["lag"],
                    span_text(row["age_seconds"]),
                ]
                for row in rows
            ],
        )
    )
