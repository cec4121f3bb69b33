"""Where the cluster comes from: the one of KUBECONFIG if that is set, else a kind cluster of our own.

A cluster that we made is deleted at the end, and the docker daemon stopped if we had to start it; E2E_KEEP=1 keeps both
for the next run. Whether nodes are kind's, and so can be stopped and loaded with images, is read from the nodes.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.kube import Kube

from rocketfleet.devbroker.distribution.jars import cache_directory

TOOL = Path(__file__).parent / "kind" / "kind-cluster"
NAME = "rocketfleet-e2e"
WORKERS = 2


def programs() -> Path:
    """Where kind-cluster puts kubectl, helm and kind."""
    return cache_directory() / "bin"


@dataclass(frozen=True)
class Provision:
    """A cluster, and what is to be cleaned up after it."""

    kube: Kube
    kind: str | None  # kind's name of the cluster
    made: bool  # by us
    docker_started: bool

    def end(self) -> None:
        if not self.made or os.environ.get("E2E_KEEP"):
            return
        tool("down", "--name", NAME, "--kubeconfig", str(self.kube.kubeconfig))
        if self.docker_started:
            tool("stop-docker")


def provide() -> Provision:
    """The cluster to test on."""
    given = os.environ.get("KUBECONFIG")
    if given:
        kube = Kube(Path(given), programs())
        return Provision(kube, kind_of(kube), made=False, docker_started=False)
    kubeconfig = cache_directory() / "e2e.kubeconfig"
    started = not docker_answers()
    tool("up", "--name", NAME, "--workers", str(WORKERS), "--kubeconfig", str(kubeconfig))
    return Provision(Kube(kubeconfig, programs()), NAME, made=True, docker_started=started)


def kind_of(kube: Kube) -> str | None:
    """kind's name of a cluster, or None if it is none of kind's."""
    for node in kube.nodes():
        parts = node["spec"].get("providerID", "").split("/")
        if parts[0] == "kind:":
            return str(parts[-2])
    return None


def tool(*arguments: str, timeout: float = 3600.0) -> None:
    """Run kind-cluster; its output goes to ours, so that somebody who waits sees what for."""
    subprocess.run([str(TOOL), *arguments], check=True, timeout=timeout, env=_without_kubeconfig())


def docker_answers() -> bool:
    try:
        return subprocess.run(["docker", "version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _without_kubeconfig() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
