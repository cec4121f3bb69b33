"""`rocketfleet restart`, `suspend` and `resume`: the changes of an object that people make by hand most often.

`kubectl rollout` knows only Kubernetes' own kinds. A restart is what it is there: an annotation of the pods' template,
so that the operator sees another revision and replaces pod after pod, each drained. Suspending is `spec.suspend`. The
operator does the rest, whether or not this command still runs.
"""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from rocketfleet.cli.access.kube_access import KubeAccess, KubeOptions, kube_options, open_cluster
from rocketfleet.cli.moving_offsets.offset_target import time_text
from rocketfleet.cli.output import asynchronous
from rocketfleet.cli.rows.lag_rows import span_text
from rocketfleet.cli.rows.status_rows import conditions, is_stale, part

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocketfleet.cli.access.kube_access import Object

F = TypeVar("F", bound="Callable[..., Any]")

RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"  # as kubectl rollout restart has it
LOOK_EVERY: Final = 0.5


def _options(command: F) -> F:
    """What the three have in common: the group, the cluster, and whether to wait."""
    decorated: Any = functools.wraps(command)(command)
    for option in (
        click.option("--wait", is_flag=True, help="Follow it until the group is as it should be."),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0, min_open=True),
            default=600.0,
            show_default=True,
            metavar="SECONDS",
            help="How long to wait.",
        ),
    ):
        decorated = option(decorated)
    result: F = click.argument("group")(kube_options(decorated))
    return result


@click.command(
    short_help="Replace a group's pods one by one, each drained.",
    epilog="\b\nExample:\n  rocketfleet restart orders -n shop --wait",
)
@_options
@asynchronous
async def restart(kube: KubeOptions, group: str, wait: bool, timeout: float) -> int:
    """Replace all pods of a group, one after the other: each is drained first, so nothing is consumed twice.

    Sets the annotation kubectl.kubernetes.io/restartedAt in spec.template, as `kubectl rollout restart` does for
    Deployments; a later `kubectl apply` of the manifest leaves it there.
    """
    async with open_cluster(kube) as cluster:
        if part(await cluster.group(group), "spec", "suspend"):
            raise click.ClickException(f"{group} is suspended: there are no pods to restart")
        moment = time_text(await cluster.time())
        annotations = {"metadata": {"annotations": {RESTARTED_AT: moment}}}
        await cluster.change_group(group, {"spec": {"template": annotations}})
        click.echo(f"{group} is restarted, pod by pod; the operator does the rest")
        return await _follow(cluster, group, timeout) if wait else 0


@click.command(
    short_help="Drain all members of a group and keep it at rest.",
    epilog="\b\nExample:\n  rocketfleet suspend orders -n shop --wait",
)
@_options
@asynchronous
async def suspend(kube: KubeOptions, group: str, wait: bool, timeout: float) -> int:
    """Drain all members of a group, and start none until it is resumed. Its offsets stay; messages wait.

    Sets spec.suspend.
    """
    return await _suspend(kube, group, True, timeout if wait else None)


@click.command(
    short_help="Start the members of a suspended group again.",
    epilog="\b\nExample:\n  rocketfleet resume orders -n shop --wait",
)
@_options
@asynchronous
async def resume(kube: KubeOptions, group: str, wait: bool, timeout: float) -> int:
    """Start the members of a suspended group again: they go on where it was.

    Clears spec.suspend.
    """
    return await _suspend(kube, group, False, timeout if wait else None)


async def _suspend(kube: KubeOptions, group: str, wanted: bool, timeout: float | None) -> int:
    async with open_cluster(kube) as cluster:
        there = bool(part(await cluster.group(group), "spec", "suspend"))
        word = "suspended" if wanted else "resumed"
        if there == wanted:
            click.echo(f"{group} is {'suspended' if wanted else 'not suspended'} already")
        else:
            await cluster.change_group(group, {"spec": {"suspend": wanted}})
            click.echo(f"{group} is {word}; the operator does the rest")
        return 0 if timeout is None else await _follow(cluster, group, timeout)


async def _follow(cluster: KubeAccess, name: str, timeout: float) -> int:
    """Say what becomes of a group until it is as its object says."""
    began, last = time.monotonic(), ""
    while True:
        done, text = progress(await cluster.group(name))
        waited = time.monotonic() - began
        if text != last:
            click.echo(f"{waited:6.1f} s  {text}")
            last = text
        if done:
            return 0
        if waited > timeout:
            click.echo(
                f"{name} is not done after {span_text(waited)}. It goes on; why it takes so long is in the events of "
                f"the group: kubectl describe consumergroup {name} -n {cluster.namespace}",
                err=True,
            )
            return 1
        await asyncio.sleep(LOOK_EVERY)


def progress(group: Object) -> tuple[bool, str]:
    """Whether a group is as its object says, and how far it is, in words. Pure."""
    if is_stale(group):
        return False, "the operator has not seen the change yet"
    ready = conditions(group).get("Ready") or {}
    return part(ready, "status") == "True", str(part(ready, "message") or "nothing is known yet")
