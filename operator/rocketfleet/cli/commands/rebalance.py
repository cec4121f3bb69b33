"""`rocketfleet rebalance`: make a group rebalance."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from rocketfleet.cli.access.kube_access import KubeOptions, kube_options, open_cluster
from rocketfleet.cli.output import asynchronous
from rocketfleet.wire.enums import MessageModel


@click.command(
    short_help="Make a group rebalance.",
    epilog="\b\nExample:\n  rocketfleet rebalance orders -n shop",
)
@click.argument("group")
@kube_options
@asynchronous
async def rebalance(kube: KubeOptions, group: str) -> int:
    """Ask the operator to tell all members of a group to look at each other and share out the queues.

    The request is written to the object (annotation rocketfleet.io/rebalance-requested), so it needs the right to patch
    ConsumerGroups and nothing else. It is rarely needed: the operator does the same at every change of members. Members
    without an operator rebalance by themselves, every 20 seconds.
    """
    # Only that it is another than before matters; it is not reckoned with.
    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    from rocketfleet.api.names import REBALANCE_REQUESTED

    async with open_cluster(kube) as cluster:
        found = await cluster.group(group)
        spec = found.get("spec") or {}
        if spec.get("messageModel") == MessageModel.BROADCASTING.value:
            raise click.ClickException(f"{group} is a broadcasting group: every member has every queue")
        if spec.get("engine", "Worker") != "Worker":
            raise click.ClickException(
                f"the members of {group} (engine {spec['engine']}) share out their queues by themselves; the operator "
                "cannot tell them to"
            )
        if spec.get("suspend"):
            raise click.ClickException(f"{group} is suspended: there are no members to tell")
        await cluster.annotate_group(group, {REBALANCE_REQUESTED: moment})
        where = f"-n {cluster.namespace}"
    click.echo(f"asked for at {moment}; `rocketfleet status {group} {where}` shows when it is done")
    return 0
