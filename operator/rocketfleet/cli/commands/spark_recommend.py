"""`rocketfleet spark recommend`: what a report recommended for this hour, shown or written to the groups' objects.

A report is made once a day, on Spark; its recommendations count by the hour. So this needs no Spark: a job that runs
every hour writes what the file says of the hour.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from rocketfleet.cli.access.kube_access import KubeOptions, kube_options
from rocketfleet.cli.access.replica_floors import apply_floors
from rocketfleet.cli.output import asynchronous, table


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
    right to list and patch ConsumerGroups. Groups without autoscaling are skipped and listed.
    """
    from rocketfleet.spark.analytics.recommendation_file import read_floors
    from rocketfleet.spark.analytics.windows.reference import HistoryError

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
