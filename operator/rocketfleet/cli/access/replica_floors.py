"""Recommended members, written to the groups' objects as the floor of their autoscaling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocketfleet.cli.access.kube_access import KubeOptions, open_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.spark.analytics.recommendation_file import Floor


async def apply_floors(floors: Sequence[Floor], kube: KubeOptions) -> None:
    """Write each floor to its object, and say what was done and what was not."""
    # Here, for an image with Spark alone has the commands that import this, and no resource's schema.
    from rocketfleet.api.names import RECOMMENDED_REPLICAS
    from rocketfleet.cli.rows.recommended_replicas import placed

    async with open_cluster(kube) as cluster:
        found = placed(await cluster.groups(), floors)
        for one in found:
            if one.replicas is not None or one.taken_away:
                value = None if one.replicas is None else str(one.replicas)
                await cluster.annotate_group(one.name, {RECOMMENDED_REPLICAS: value})
            click.echo(f"{one.name}: {one.told}")
        written = sum(one.replicas is not None for one in found)
        click.echo(f"{written} of {len(found)} ConsumerGroups in namespace {cluster.namespace} have a floor", err=True)
