"""`rocketfleet spark recommend`: what a report recommended for this hour, shown or written to the groups' objects.

A report is made once a day, on Spark; its recommendations count by the hour. So this needs no Spark: a job that runs
every hour writes what the file says of the hour.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketfleet.cli.kube_access import KubeOptions, kube_options, open_cluster
from rocketfleet.cli.output import asynchronous, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.spark.analytics.recommendation_file import Floor


@click.command(
    short_help="Show this hour's recommendation, or write it to the groups.",
    epilog="\b\nExample:\n  rocketfleet spark recommend floors.json --apply -n shop",
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--apply",
    is_flag=True,
    help="Write it to each ConsumerGroup of the namespace, as the floor of its autoscaling.",
)
@kube_options
@asynchronous
async def recommend(kube: KubeOptions, file: Path, *, apply: bool) -> int:
    """Show how many members FILE recommends for each group in this hour, or with --apply write it to the groups.

    FILE is what `rocketfleet spark report --recommend` wrote. What is written is the annotation
    rocketfleet.io/recommended-replicas: autoscaling goes no lower, within minReplicas and maxReplicas. It needs the
    right to list and patch ConsumerGroups. Groups without autoscaling are left alone, and said.
    """
    from rocketfleet.spark.analytics.recommendation_file import read_floors
    from rocketfleet.spark.analytics.reference import HistoryError

    try:
        floors = read_floors(file, time.time())
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    if apply:
        await apply_floors(floors, kube)
    elif floors:
        rows = [(one.key.group, one.key.cluster, one.members) for one in floors]
        click.echo(table(["GROUP", "CLUSTER", "MEMBERS"], rows))
    else:
        click.echo("there are no groups in it", err=True)
    return 0


async def apply_floors(floors: Sequence[Floor], kube: KubeOptions) -> None:
    """Write each floor to its object, and say what was done and what was not."""
    # Here, for an image with Spark alone has the commands beside this one, and no resource's schema.
    from rocketfleet.api.consumer_group import RECOMMENDED_REPLICAS
    from rocketfleet.cli.recommended_replicas import placed

    async with open_cluster(kube) as cluster:
        found = placed(await cluster.groups(), floors)
        for one in found:
            if one.replicas is not None or one.taken_away:
                value = None if one.replicas is None else str(one.replicas)
                await cluster.annotate_group(one.name, {RECOMMENDED_REPLICAS: value})
            click.echo(f"{one.name}: {one.told}")
        written = sum(one.replicas is not None for one in found)
        click.echo(f"{written} of {len(found)} ConsumerGroups in namespace {cluster.namespace} have a floor", err=True)
