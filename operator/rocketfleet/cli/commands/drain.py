"""`rocketfleet drain`: let one pod of a group finish its work, then have the operator replace it.

The command only writes the mark, which is the same that the operator writes when it scales in. The operator asks the
worker to drain, reads its offsets back from the broker, deletes the pod and creates it anew. So it goes on whether or
not this command still runs.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

import click

from rocketfleet.api.names import DRAIN_ANNOTATION, GROUP_LABEL
from rocketfleet.cli.access.kube_access import KubeAccess, KubeOptions, Missing, Object, kube_options, open_cluster
from rocketfleet.cli.output import asynchronous
from rocketfleet.cli.rows.lag_rows import span_text
from rocketfleet.cli.rows.status_rows import drain_mark, part, parts
from rocketfleet.control import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_EVERY = 0.5


@click.command(
    short_help="Drain one pod of a group, and have it replaced.",
    epilog="\b\nExample:\n  rocketfleet drain orders-1 -n shop --wait",
)
@click.argument("pod")
@click.option("--wait", is_flag=True, help="Follow the drain until the pod is gone.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait.",
)
@kube_options
@asynchronous
async def drain(kube: KubeOptions, pod: str, wait: bool, timeout: float) -> int:
    """Let a pod finish what it has begun and commit it, then have the operator delete it and create it anew.

    Nothing is consumed twice and nothing is lost, unlike with `kubectl delete pod --force`. To have one pod less
    instead, scale the group: the operator drains the highest ordinal by itself.
    """
    async with open_cluster(kube) as cluster:
        found = await cluster.pod(pod)
        group = part(found, "metadata", "labels", GROUP_LABEL)
        if not group:
            raise click.ClickException(f"pod {pod} belongs to no ConsumerGroup, so nobody would drain it")
        if part(found, "metadata", "deletionTimestamp"):
            click.echo(f"{pod} is being deleted already")
        elif drain_mark(found) is not None:
            click.echo(f"{pod} is being drained already")
        else:
            mark = {"since": await cluster.time(), "reason": "requested"}
            await cluster.annotate_pod(found, {DRAIN_ANNOTATION: json.dumps(mark)})
            click.echo(f"{pod} is to be drained; the operator does the rest")
        if not wait:
            return 0
        return await follow(cluster, found, group, timeout, click.echo)


async def follow(cluster: KubeAccess, pod: Object, group: str, timeout: float, say: Callable[[str], object]) -> int:
    """Say what becomes of a pod until it is gone. One that has its name but another uid is its successor."""
    name, uid = part(pod, "metadata", "name"), part(pod, "metadata", "uid")
    began, last = time.monotonic(), ""
    while True:
        try:
            seen = await cluster.pod(name)
        except Missing:
            break
        if part(seen, "metadata", "uid") != uid:
            break
        text = progress(seen)
        waited = time.monotonic() - began
        if text != last:
            say(f"{waited:6.1f} s  {name} {text}")
            last = text
        if waited > timeout:
            click.echo(
                f"{name} is still there after {span_text(waited)}. The drain goes on; why it takes so long is in the "
                f"events of the group: kubectl describe consumergroup {group} -n {cluster.namespace}",
                err=True,
            )
            return 1
        await asyncio.sleep(LOOK_EVERY)
    say(f"{time.monotonic() - began:6.1f} s  {name} is gone")
    return 0


def progress(pod: Object) -> str:
    """How far a drain is, in words."""
    ended = next(
        (part(one, "state", "terminated") for one in parts(pod, "status", "containerStatuses")
         if one.get("name") == "consumer" and part(one, "state", "terminated")),
        None,
    )  # fmt: skip
    if part(pod, "metadata", "deletionTimestamp"):
        return "is being deleted"
    if ended is not None:
        return {
            exit_codes.DRAINED: "has drained; its offsets are being read back",
            exit_codes.NOT_CONFIRMED: "has stopped, but not every offset was confirmed",
            exit_codes.CUT_SHORT: "has drained, but handlers were cut short; its offsets are being read back",
        }.get(part(ended, "exitCode"), f"has ended with exit code {part(ended, 'exitCode')}")
    phase = part(pod, "status", "phase")
    if phase == "Pending":
        return "has not started yet"
    return "is finishing what it has begun" if drain_mark(pod) is not None else "runs, and is not marked to be drained"
