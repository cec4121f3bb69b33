"""The operator as a helm release: installed into a namespace that enforces the restricted pod security level."""

from pathlib import Path

from tests.cluster.images import Images
from tests.cluster.kind_nodes import kill_container
from tests.cluster.kube import Kube, Manifest, is_ready, name_of, until

CHART = Path(__file__).resolve().parents[2] / "helm" / "rocketfleet"
NAMESPACE = "rocketfleet-system"
NAME = "rocketfleet"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/consumergroups.rocketfleet.io"
REPLICAS = 2
_SELECTOR = "app.kubernetes.io/component=operator"


def image_values(images: Images) -> dict[str, str]:
    """The chart's values for these images."""
    return {
        f"{value}.{part}": text
        for value, image in (("image", images.operator), ("workerImage", images.worker))
        for part, text in zip(("repository", "tag"), image.rsplit(":", 1), strict=True)
    }


class Release:
    """`helm install rocketfleet`, two replicas."""

    def __init__(self, kube: Kube, images: Images) -> None:
        self.kube = kube
        self._values = {"replicas": str(REPLICAS), **image_values(images)}

    def install(self, chart: Path = CHART, **more: str) -> str:
        """Install or upgrade, and wait until it is ready. `a__b=…` is the value a.b."""
        self.kube.namespace(NAMESPACE)
        values = self._values | {name.replace("__", "."): value for name, value in more.items()}
        settings = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
        return self.kube.helm(
            "upgrade", "--install", NAME, str(chart), "-n", NAMESPACE, *settings, "--wait", "--timeout=5m"
        )

    def uninstall(self) -> None:
        self.kube.helm("uninstall", NAME, "-n", NAMESPACE, "--wait")

    def pods(self) -> list[Manifest]:
        return self.kube.pods(NAMESPACE, _SELECTOR)

    def leader(self) -> str:
        """The identity of the operator that leads: its pod's name, and something that a restart changes."""

        def holder() -> str | None:
            lease = self.kube.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}")
            return ((lease or {}).get("spec") or {}).get("holderIdentity") or None

        return until(holder, "an operator leads")

    def kill_leader(self) -> str:
        """Kill the operator that leads without a word; its identity."""
        leader = self.leader()
        (pod,) = [pod for pod in self.pods() if name_of(pod) in leader]
        kill_container(pod)
        return leader

    def mend(self) -> None:
        """Two operators are ready and one of them leads: what a test has broken is whole again."""
        until(lambda: sum(map(is_ready, self.pods())) == REPLICAS, "both operators are ready", 180.0)
        self.leader()
