"""The cluster in the hands of tests: kubectl and helm for what a user does, the API for what a test only looks at.

kubectl takes a third of a second of one core, so what is polled is asked of the API directly.
"""

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import urllib3
import yaml
from kubernetes import config
from tests.support.waiting import wait_until

T = TypeVar("T")
Manifest = dict[str, Any]
GROUPS = "/apis/rocketfleet.io/v1alpha1"
PATIENCE = 120.0
_POLL = 0.4


class CommandError(AssertionError):
    """kubectl or helm ended with an error; the text is what it said."""

    def __init__(self, command: list[str], code: int, output: str) -> None:
        super().__init__(f"`{' '.join(command)}` ended with {code}:\n{output}")
        self.output = output


def until(probe: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
    """Poll until the probe gives something. An assertion that it fails is its last word."""
    return wait_until(
        probe, what, seconds, every=_POLL, ignoring=(AssertionError, OSError, urllib3.exceptions.HTTPError)
    )


class Kube:
    """One cluster, as its kubeconfig has it."""

    def __init__(self, kubeconfig: Path, programs: Path) -> None:
        self.kubeconfig = kubeconfig
        self._programs = programs
        connect: Any = config.new_client_from_config  # it has no types
        self._api = connect(str(kubeconfig))

    # -- programs -----------------------------------------------------------------------------------------------------

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 180.0) -> str:
        """Run kubectl; what it said, or a CommandError."""
        return self._run("kubectl", [*arguments], stdin, timeout)

    def helm(self, *arguments: str, timeout: float = 400.0) -> str:
        return self._run("helm", [*arguments], None, timeout)

    def _run(self, program: str, arguments: list[str], stdin: str | None, timeout: float) -> str:
        path = self._programs / program
        command = [str(path) if path.exists() else program, "--kubeconfig", str(self.kubeconfig), *arguments]
        answer = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
        if answer.returncode != 0:
            raise CommandError([program, *arguments], answer.returncode, answer.stdout + answer.stderr)
        return answer.stdout

    def apply(self, *manifests: Manifest, namespace: str | None = None, arguments: Iterable[str] = ()) -> str:
        """`kubectl apply` of manifests."""
        where = ["-n", namespace] if namespace is not None else []
        return self.kubectl("apply", *where, "-f", "-", *arguments, stdin=yaml.safe_dump_all(manifests))

    def exec(self, namespace: str, pod: str, *command: str, timeout: float = 60.0) -> str:
        return self.kubectl("exec", "-n", namespace, pod, "--", *command, timeout=timeout)

    # -- the API ------------------------------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/merge-patch+json",
    ) -> tuple[int, bytes]:
        """A request; its status and what was answered."""
        full = f"{path}?{urlencode(query)}" if query else path
        headers = {"Accept": "*/*"}
        if body is not None:
            headers["Content-Type"] = content_type
        prepared = self._api.param_serialize(
            method, full, header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        response = self._api.call_api(*prepared, _request_timeout=30)
        return int(response.status), bytes(response.read())

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Manifest | None:
        """An object or a list; None if it is not there."""
        status, data = self.call("GET", path, query=query)
        if status == 404:
            return None
        assert status == 200, f"GET {path} answered {status}: {data[:300]!r}"
        found: Manifest = json.loads(data)
        return found

    def items(self, path: str, query: Mapping[str, str] | None = None) -> list[Manifest]:
        found = self.get(path, query)
        items: list[Manifest] = found["items"] if found is not None else []
        return items

    def pods(self, namespace: str, selector: str = "") -> list[Manifest]:
        return self.items(f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector})

    def group(self, namespace: str, name: str) -> Manifest | None:
        return self.get(f"{GROUPS}/namespaces/{namespace}/consumergroups/{name}")

    def service(self, namespace: str, service: str, path: str) -> bytes:
        """GET from a Service, through the API server."""
        status, data = self.call("GET", f"/api/v1/namespaces/{namespace}/services/{service}/proxy/{path}")
        assert status == 200, f"{service}/{path} answered {status}: {data[:300]!r}"
        return data

    # -- what tests often need ----------------------------------------------------------------------------------------

    def namespace(self, name: str, level: str = "restricted") -> None:
        """A namespace that enforces a pod security level."""
        labels = {"pod-security.kubernetes.io/enforce": level, "rocketfleet-e2e": "yes"}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    def nodes(self) -> list[Manifest]:
        return self.items("/api/v1/nodes")

    def ready_nodes(self) -> set[str]:
        return {node["metadata"]["name"] for node in self.nodes() if condition(node, "Ready") == "True"}


def condition(thing: Manifest, kind: str) -> str | None:
    """The status of one of an object's conditions."""
    for one in thing.get("status", {}).get("conditions") or []:
        if one["type"] == kind:
            status: str = one["status"]
            return status
    return None


def is_ready(pod: Manifest) -> bool:
    return condition(pod, "Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


def name_of(thing: Manifest) -> str:
    name: str = thing["metadata"]["name"]
    return name
