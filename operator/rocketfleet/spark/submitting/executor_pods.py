"""What the master `k8s://` takes beyond its name, as far as it can be known where a driver is started by hand.

Spark's scheduler makes the executors' pods, and they connect back to the driver. So it has to be at an address that
pods can reach: in a pod that is the pod's own, elsewhere the one from which the API server is reached. They are made in
the driver's namespace, are owned by its pod where its name is known, and keep to the restricted pod security level.

What the user gives as a setting wins. The image cannot be guessed, and Spark says so after a page of Java: here it is
one sentence (`what_is_missing`).
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from rocketfleet.client.variables import POD_NAME_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

IMAGE: Final = ("spark.kubernetes.container.image", "spark.kubernetes.executor.container.image")
LEAST_RIGHTS: Final = {
    # So that the right to make and delete pods is all that a driver needs.
    "spark.kubernetes.executor.disableConfigMap": "true",
    "spark.kubernetes.driver.service.deleteOnTermination": "false",
    "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
}
_PREFIX: Final = "k8s://"
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_TEMPLATE: Final[Mapping[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "executor",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
}


@dataclass(frozen=True)
class SubmitterPlace:
    """Where the driver runs, as far as that is known."""

    address: str | None = None  # that pods reach
    namespace: str | None = None
    pod_name: str | None = None


def is_kubernetes(master: str) -> bool:
    return master.startswith(_PREFIX)


def what_is_missing(master: str, given: Mapping[str, str]) -> str | None:
    """The sentence for settings without which executors cannot be made."""
    if not is_kubernetes(master) or any(name in given for name in IMAGE):
        return None
    return f"with {_PREFIX} the executors need an image, built from the target spark: --conf {IMAGE[0]}=…"


def pod_settings(given: Mapping[str, str], where: SubmitterPlace, template: Path) -> dict[str, str]:
    """Spark's settings beside those given. `template` is where the executors' template was written."""
    settings = {"spark.kubernetes.executor.podTemplateFile": str(template), **LEAST_RIGHTS}
    if "spark.driver.host" in given:
        # Else Spark 4.3 sends executors to the address that the driver is bound to, which need not be one of theirs.
        settings["spark.kubernetes.executor.useDriverPodIP"] = "false"
    elif where.address is not None:
        settings |= {"spark.driver.host": where.address, "spark.driver.bindAddress": where.address}
    if where.namespace is not None:
        settings["spark.kubernetes.namespace"] = where.namespace
    if where.pod_name is not None:
        settings["spark.kubernetes.driver.pod.name"] = where.pod_name
    return {name: value for name, value in settings.items() if name not in given}


def write_template(path: Path) -> Path:
    """Write the executors' template, of the restricted level."""
    path.write_text(json.dumps(_TEMPLATE))
    return path


def whereabouts(
    master: str, environment: Mapping[str, str] = os.environ, namespace_file: Path = _NAMESPACE_FILE
) -> SubmitterPlace:
    """Find out where this driver runs. POD_NAME and POD_IP are names that people give to the downward API's values."""
    namespace = None
    with suppress(OSError):
        namespace = namespace_file.read_text("utf-8").strip() or None
    address = environment.get("POD_IP") or _address_towards(master)
    # The name matters only together with the namespace: outside of a pod, such a variable means something else.
    return SubmitterPlace(address, namespace, environment.get(POD_NAME_VARIABLE) if namespace else None)


def _address_towards(master: str) -> str | None:
    """This machine's address on the way to the API server; None if that is this machine itself."""
    server_url = master.removeprefix(_PREFIX)
    with suppress(OSError, ValueError):
        url = urlsplit(server_url if "://" in server_url else f"https://{server_url}")
        host, port = url.hostname or "", url.port or 443
        ((family, kind, _, _, server), *_) = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        with socket.socket(family, kind) as way:
            way.connect(server)  # no packet is sent: the kernel only looks for a route
            address: str = way.getsockname()[0]
        return None if ipaddress.ip_address(address).is_loopback else address
    return None
