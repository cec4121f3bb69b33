"""The Lease object in Kubernetes, for leader.py."""

from collections.abc import Mapping
from typing import Any

from rocketfleet.controller.kube.api import KubeApi, KubeError, path_of
from rocketfleet.controller.operator.leader import LeaseTaken

_API = "coordination.k8s.io/v1"


class KubeLease:
    """One Lease by namespace and name. Writing it needs no leadership: it is how leadership is had."""

    def __init__(self, api: KubeApi, namespace: str, name: str) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name

    async def read(self, timeout: float) -> Mapping[str, Any] | None:
        try:
            return await self._api.get(path_of(_API, "leases", self._namespace, self._name), timeout)
        except KubeError as error:
            if error.not_found:
                return None
            raise

    async def write(self, lease: Mapping[str, Any], version: str | None, timeout: float) -> Mapping[str, Any]:
        metadata = {"namespace": self._namespace, "name": self._name}
        method, path = "POST", path_of(_API, "leases", self._namespace)
        if version is not None:
            metadata["resourceVersion"] = version
            method, path = "PUT", path_of(_API, "leases", self._namespace, self._name)
        body = {"apiVersion": _API, "kind": "Lease", "metadata": metadata, **lease}
        try:
            return await self._api.write_freely(method, path, body, timeout)
        except KubeError as error:
            # Somebody was faster, or has removed it: either way what we read is no longer so.
            if error.reason == "AlreadyExists" or error.conflict or (version is not None and error.not_found):
                raise LeaseTaken from error
            raise
