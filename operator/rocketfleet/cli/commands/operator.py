"""`rocketfleet operator`: looks after the ConsumerGroups of a cluster."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING

import click

from rocketfleet.cli.options.operator_process import (
    lag_options,
    lease_options,
    pod_options,
    process_options,
    scope_options,
)
from rocketfleet.control.logs import configure
from rocketfleet.control.port import shown

if TYPE_CHECKING:
    from rocketfleet.cli.options.operator_process import (
        LagWatchOptions,
        LeaseOptions,
        PodOptions,
        ProcessOptions,
        ScopeOptions,
    )

_log = logging.getLogger(__name__)


@click.command()
@scope_options
@pod_options
@lease_options
@process_options
@lag_options
def operator(
    scope: ScopeOptions, pods: PodOptions, lease: LeaseOptions, process: ProcessOptions, lag: LagWatchOptions
) -> None:
    """Look after the ConsumerGroups of a cluster: create, drain and replace their pods.

    The cluster is the one that KUBECONFIG names; in a pod it is the pod's own. The custom resource has to be there
    (rocketfleet crds | kubectl apply --server-side -f -). Several operators may run: one leads, the others stand by
    and take over within seconds.

    SIGTERM and SIGINT stop it in good order: what is under way gets 10 seconds, then the Lease is given back. Pods go
    on consuming without an operator.
    """
    try:
        from rocketfleet.controller.operator.operator import OperatorError, Options, run_operator
    except ImportError as error:
        raise click.ClickException(
            f"{error.name} is not installed: in a checkout, pip install '.[operator]'"
        ) from error
    configure(process.log_format, process.log_level)
    if process.log_level != "debug":
        for chatty in ("kopf.objects", "kopf.activities", "kopf._core", "kopf._cogs"):
            logging.getLogger(chatty).setLevel(logging.WARNING)
    scope.check()
    settings = Options(
        defaults=pods.defaults(),
        namespaces=scope.namespace_names,
        workers=process.workers,
        lease_namespace=lease.namespace,
        lease_name=lease.lease_name,
        lease_times=lease.times(),
        operator_class=scope.operator_class,
        bind=process.bind,
        port=process.port,
        allowed_name_servers=scope.name_server_hosts,
        api_qps=process.kube_api_qps,
        api_burst=process.kube_api_burst,
        lag=lag.settings(),
    )
    try:
        asyncio.run(run_operator(settings))
    except OperatorError as error:
        _log.error("%s", error)
        sys.exit(1)
    except OSError as error:
        where = shown(settings.bind, settings.port)
        raise click.ClickException(f"cannot listen on {where}: {error.strerror}") from error
