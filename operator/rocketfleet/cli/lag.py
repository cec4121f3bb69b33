"""`rocketfleet lag`: how far a group is behind, queue by queue, whether or not anything of it runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketfleet.cli.group_access import GroupAccess, OpenGroup, group_options, open_group
from rocketfleet.cli.group_at_broker import GroupAtBroker
from rocketfleet.cli.group_rows import owners_of
from rocketfleet.cli.lag_explain import Explanation, explained, explanation
from rocketfleet.cli.lag_rows import LagRow, lag_rows, short_names, span_text, total_of, total_text
from rocketfleet.cli.output import OutputFormat, asynchronous, details, output_option, say_failures, show_json, table
from rocketfleet.cli.run import STATE as RUN_STATE
from rocketfleet.client.routes import RETRY_PREFIX
from rocketfleet.consumer.start_offset import Start, start_without_offset
from rocketfleet.wire.bodies import ConsumeFromWhere

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocketfleet.api.spec import ConsumerGroupSpec
    from rocketfleet.cli.status_rows import Object
    from rocketfleet.client.errors import RocketMQError

BROADCASTING = "the group is broadcasting: each member keeps its offsets itself, and the broker knows none"


@click.command(
    short_help="Show a group's lag in every queue.",
    epilog="\b\nExamples:\n  rocketfleet lag orders -n shop\n  rocketfleet lag -f orders.yaml -o json\n"
    "  rocketfleet lag orders -n shop --explain",
)
@click.argument("group", required=False)
@click.option("--no-owners", is_flag=True, help="Do not ask the members which queues they have.")
@click.option("--explain", is_flag=True, help="Say what the rules make of it, and what autoscaling did and why.")
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=RUN_STATE,
    show_default=True,
    help="With -f and --explain: where rocketfleet run keeps its state.",
)
@output_option
@group_options
@asynchronous
async def lag(
    access: GroupAccess, group: str | None, output: OutputFormat, no_owners: bool, explain: bool, state_dir: Path
) -> int:
    """Show how far a group is behind in every queue: its offset, the queue's end, the messages between that are still
    there, the age of the oldest, and the member that has the queue.

    The numbers are read from the brokers, so no consumer has to run. What is not known is shown as -, and is null in
    JSON; the exit code is 1 if a broker or a member did not answer.

    With --explain the object's status is shown too: what the rules say of the lag, how many replicas autoscaling wants,
    and the last changes it made, each with its reason.
    """
    async with open_group(access, group) as opened:
        told = explanation(await _object(opened, state_dir), time.time()) if explain else None
        rows, errors = await read_lag(opened, owners=not no_owners)
    show_lag(output, opened.group.group_name, rows, told)
    if _is_broadcasting(opened.group.spec):
        click.echo(BROADCASTING, err=True)
    say_failures(errors)
    return 1 if errors else 0


async def _object(opened: OpenGroup, state_dir: Path) -> Object:
    """The object with its status: from the cluster, or from a `rocketfleet run` on this machine."""
    namespace, name = opened.group.key
    if opened.kube is not None:
        return await opened.kube.group(name)
    from rocketfleet.controller.local.files import StateDirectory, read_json

    content = read_json(StateDirectory(state_dir).group((namespace, name)).object)
    if content is None:
        raise click.ClickException(
            f"nobody has explained {name} yet: with -f, --explain needs a rocketfleet run of it on this machine "
            f"(--state-dir, now {state_dir}); without -f, an operator in the cluster"
        )
    return {**content["object"], "status": content.get("status") or {}}


async def read_lag(opened: OpenGroup, *, owners: bool = True) -> tuple[list[LagRow], dict[str, RocketMQError]]:
    """The rows, and who did not answer."""
    spec = opened.group.spec
    place = GroupAtBroker(opened.client, opened.group.group_name, (one.topic for one in spec.subscriptions))
    absent: dict[str, RocketMQError] = {}
    queues = await place.queues(retries=True, absent=absent)
    reading = await place.read(queues, absent)
    errors = dict(reading.errors)
    ages = await place.ages(
        dict.fromkeys(queue.topic for queue in queues), dict.fromkeys(queue.broker for queue in queues)
    )
    owned = {}
    if owners:
        ids = await place.member_ids()
        holdings = await place.holdings({member for found in ids.results.values() for member in found})
        owned = owners_of(holdings.results)
        errors.update({**ids.errors, **holdings.errors})
    rows = lag_rows(
        queues, reading.committed, reading.ends, owners=owned, ages=ages, from_beginning=_beginning(spec),
        now=time.time(),
    )  # fmt: skip
    return rows, errors


def _beginning(spec: ConsumerGroupSpec) -> Callable[[str], bool]:
    if _is_broadcasting(spec):
        return lambda _topic: False  # where its members are, only they know
    where = ConsumeFromWhere[spec.consume_from_where.name]
    return lambda topic: start_without_offset(where, topic) is Start.BEGINNING


def _is_broadcasting(spec: ConsumerGroupSpec) -> bool:
    return spec.message_model.value == "Broadcasting"


def show_lag(output: OutputFormat, group: str, rows: Sequence[LagRow], told: Explanation | None = None) -> None:
    """The totals, messages to retry apart, the queues, and what is told of them."""
    own = total_of([row for row in rows if row["topic"] != RETRY_PREFIX + group])
    retry = total_of([row for row in rows if row["topic"] == RETRY_PREFIX + group])
    if output == "json":
        more = {} if told is None else {"explanation": told}
        show_json({"group": group, "lag": own, "retry": retry, "queues": list(rows), **more})
        return
    facts: dict[str, object] = {"group": group, "lag": total_text(own)}
    if retry["queues"]:
        facts["to be retried"] = total_text(retry)
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
