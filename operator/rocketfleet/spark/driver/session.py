"""How Spark is set up for a group: the master and its settings, decided purely from what the manifest says and where
the driver runs.

Master `k8s` means executors in pods of this cluster: the driver's own pod is their owner, so they go when it goes, and
they are made after a template that the operator hands down. Where there is no such template, on somebody's machine, the
same manifest runs with as many executor processes beside the driver (Spark's local-cluster).

What the manifest gives in `conf` wins over what is set here, except where that would part the driver from its
executors; the resource's own rules refuse that before it comes here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rocketfleet.base.settings_error import SettingsError
from rocketfleet.client.variables import POD_NAME_VARIABLE
from rocketfleet.control.budget import Margin
from rocketfleet.spark.driver.settings import KUBERNETES
from rocketfleet.spark.submitting.executor_pods import LEAST_RIGHTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rocketfleet.spark.driver.settings import DriverSettings

EXECUTOR_CONTAINER: Final = "executor"
DRIVER_PORT: Final = 7078  # to which executors connect, and those of the chart's network policy
BLOCK_PORT: Final = 7079
_MEMORY: Final = re.compile(r"([0-9]+)([kmgt]?)b?", re.IGNORECASE)
_MIB: Final = {"k": 1 / 1024, "": 1.0, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}  # without a unit, Spark takes MiB


@dataclass(frozen=True)
class DriverPlace:
    """Where the driver runs."""

    executor_template: Path | None = None  # in a pod, with executors in pods of their own
    executor_image: str | None = None
    executor_pull_policy: str | None = None
    pod_name: str | None = None
    pod_ip: str | None = None
    namespace: str | None = None
    api_server: str | None = None  # host:port
    path: Path | None = None  # of the pipeline's module


def place_in(environment: Mapping[str, str], executor_template: Path | None, path: Path | None) -> DriverPlace:
    """The place, as the pod's environment tells it."""
    executor = {} if executor_template is None else _executor_in(executor_template)
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    return DriverPlace(
        executor_template=executor_template,
        executor_image=executor.get("image"),
        executor_pull_policy=executor.get("imagePullPolicy"),
        pod_name=environment.get(POD_NAME_VARIABLE),
        pod_ip=environment.get("POD_IP"),
        namespace=environment.get("POD_NAMESPACE"),
        api_server=None if not host else f"{_bracketed(host)}:{port}",
        path=path,
    )


def master_url(settings: DriverSettings, place: DriverPlace) -> str:
    """The master as Spark names it."""
    spark = settings.spark
    if spark.master != KUBERNETES:
        return spark.master
    if place.executor_template is None:
        cores = spark.conf.get("spark.executor.cores", "1")
        return f"local-cluster[{spark.executors},{cores},{_mebibytes(spark.conf)}]"
    if place.api_server is None:
        raise SettingsError("master k8s needs a cluster around the driver, and KUBERNETES_SERVICE_HOST is not set")
    return f"k8s://https://{place.api_server}"


def session_conf(settings: DriverSettings, place: DriverPlace) -> dict[str, str]:
    """Spark's settings."""
    spark = settings.spark
    conf = {
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",  # it has no password, and buttons that end things
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.stopTimeout": f"{Margin.QUERY_STOP.seconds:g}s",
    }
    if not spark.is_local:
        conf["spark.executor.instances"] = str(spark.executors)
    if (
        spark.master == KUBERNETES and place.path is not None
    ):  # they have the directory; a standalone cluster is sent it
        conf["spark.executorEnv.PYTHONPATH"] = str(place.path)
    if spark.master == KUBERNETES and place.executor_template is not None:
        conf |= _in_pods(place, place.executor_template)
    return {**conf, **spark.conf}


def _in_pods(place: DriverPlace, template: Path) -> dict[str, str]:
    if not (place.pod_name and place.pod_ip and place.namespace and place.executor_image):
        raise SettingsError(
            "master k8s needs POD_NAME, POD_IP and POD_NAMESPACE in the driver's environment, and an image in the "
            "executors' template"
        )
    pulling = {"spark.kubernetes.container.image.pullPolicy": place.executor_pull_policy or ""}
    return {
        **(pulling if place.executor_pull_policy else {}),
        "spark.kubernetes.namespace": place.namespace,
        "spark.kubernetes.container.image": place.executor_image,
        "spark.kubernetes.driver.pod.name": place.pod_name,
        "spark.kubernetes.executor.podTemplateFile": str(template),
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
        "spark.driver.host": place.pod_ip,
        "spark.driver.bindAddress": place.pod_ip,  # not 0.0.0.0: executors connect to it (useDriverPodIP)
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_PORT),
        # Without, Spark waits for this pod to be ready, which it is when the session is there, and logs a stack trace.
        "spark.kubernetes.driver.service.publishNotReadyAddresses": "true",
        **LEAST_RIGHTS,
    }


def _mebibytes(conf: Mapping[str, str]) -> int:
    """What an executor's memory comes to, for a local cluster's workers, which have to be as large."""
    written = conf.get("spark.executor.memory", "1g")
    found = _MEMORY.fullmatch(written)
    if found is None:
        raise SettingsError(f"spark.executor.memory is {written!r}: write a number and its unit, as 2g")
    return max(1, round(int(found[1]) * _MIB[found[2].lower()]))


def _executor_in(template: Path) -> dict[str, str]:
    """The executor's container in the template: what Spark takes from settings alone, its image, stands there too."""
    try:
        containers = json.loads(template.read_bytes())["spec"]["containers"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{template} is not a pod template in JSON: {error}") from error
    return next((one for one in containers if one.get("name") == EXECUTOR_CONTAINER), {})


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
