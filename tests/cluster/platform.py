"""What stands beside the operator for all tests: RocketMQ, the recorder, and a toolbox to ask the broker from.

All of it is pinned to one node, its home, which no test drains or stops: kind's control plane, or the first node of a
cluster that shows none. Their pods keep to the `restricted` level too.
"""

import json
from pathlib import Path
from typing import Any

from tests.cluster.images import Images
from tests.cluster.kube import Kube, Manifest, is_ready, name_of, until

NAMESPACE = "rocketfleet-e2e"
PODS = Path(__file__).parent / "pods"
NAME_SERVER = f"namesrv.{NAMESPACE}:9876"
RECORDER = f"recorder.{NAMESPACE}:8080"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_CODE = "/e2e"  # where the sources of pods/ are, as the package that they are here


def restricted(spec: Manifest) -> Manifest:
    """A pod's spec as the restricted level wants it."""
    spec["securityContext"] = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for container in spec["containers"]:
        container["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return spec


def environment(**variables: str) -> list[Manifest]:
    own = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in (("POD_NAME", "metadata.name"), ("POD_IP", "status.podIP"))
    ]
    return own + [{"name": name, "value": value} for name, value in variables.items()]


def code(name: str) -> Manifest:
    """A ConfigMap of the programs in pods/."""
    data = {path.name: path.read_text() for path in sorted(PODS.glob("*.py"))}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Platform:
    """RocketMQ, recorder and toolbox, in one namespace."""

    def __init__(self, kube: Kube, images: Images) -> None:
        self.kube = kube
        self.images = images
        self.home = self._home()

    def _home(self) -> str:
        nodes = self.kube.nodes()
        planes = [node for node in nodes if _CONTROL_PLANE in node["metadata"]["labels"]]
        return name_of((planes or nodes)[0])

    def at_home(self, spec: Manifest) -> Manifest:
        """Pin a pod to the node that no test touches."""
        spec["nodeSelector"] = {"kubernetes.io/hostname": self.home}
        spec["tolerations"] = [{"key": _CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}]
        return restricted(spec)

    def program(self, program: str, config_map: str, **variables: str) -> Manifest:
        """The spec of a pod that runs one of the programs in pods/, from the worker's image."""
        items = [{"key": path.name, "path": f"tests/cluster/pods/{path.name}"} for path in sorted(PODS.glob("*.py"))]
        container: Manifest = {
            "name": program,
            "image": self.images.worker,
            "command": ["python3", f"{_CODE}/tests/cluster/pods/{program}.py"],
            "env": environment(PYTHONPATH=_CODE, ROCKETFLEET_NAME_SERVERS=NAME_SERVER, RECORDER=RECORDER, **variables),
            "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}},
            "volumeMounts": [{"name": "code", "mountPath": _CODE}, {"name": "records", "mountPath": "/records"}],
        }
        volumes: list[Manifest] = [
            {"name": "code", "configMap": {"name": config_map, "items": items}},
            {"name": "records", "emptyDir": {}},
        ]
        return self.at_home({"containers": [container], "volumes": volumes, "enableServiceLinks": False})

    def install(self) -> None:
        """Bring it all up; what is up already stays."""
        self.kube.namespace(NAMESPACE)
        toolbox = self.program("recorder", "code")
        toolbox["containers"][0]["command"] = ["python3", "-c", "import signal; signal.pause()"]
        self.kube.apply(
            code("code"),
            _service("namesrv", 9876),
            _service("recorder", 8080),
            self._rocketmq("namesrv", ["name-server"], 9876),
            self._rocketmq("broker", ["broker"], 10911),
            _deployment("recorder", self.program("recorder", "code"), 8080),
            _deployment("toolbox", toolbox),
            namespace=NAMESPACE,
        )
        for name in ("namesrv", "recorder", "toolbox", "broker"):
            self.pod(name)
        until(lambda: "broker-a" in self.rocketfleet("cluster"), "the broker is registered")

    def pod(self, app: str) -> str:
        """The one pod of a part, once it is ready."""

        def ready() -> str | None:
            pods = [name_of(pod) for pod in self.kube.pods(NAMESPACE, f"app={app}") if is_ready(pod)]
            return pods[0] if len(pods) == 1 else None

        return until(ready, f"the pod of {app} is ready")

    def _rocketmq(self, name: str, arguments: list[str], port: int) -> Manifest:
        container = {
            "name": name,
            "image": self.images.rocketmq,
            "args": arguments,
            "env": environment(NAME_SERVER=NAME_SERVER),
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
            # Outside the pod's container, inside the pod: a broker that is started again finds its store.
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        spec = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}], "enableServiceLinks": False}
        return _deployment(name, self.at_home(spec), port)

    # -- talking to the broker ----------------------------------------------------------------------------------------

    def toolbox(self, *command: str) -> str:
        return self.kube.exec(NAMESPACE, "deploy/toolbox", *command)

    def rocketfleet(self, *arguments: str) -> str:
        """A command of ours, inside the cluster, where brokers can be reached."""
        return self.toolbox("rocketfleet", *arguments)

    def facts(self, topic: str, group: str) -> dict[str, Any]:
        """What the broker says of a group: pods/facts.py."""
        answer = self.toolbox("python3", f"{_CODE}/tests/cluster/pods/facts.py", NAME_SERVER, topic, group)
        found: dict[str, Any] = json.loads(answer)
        return found

    def records(self, scene: str) -> list[dict[str, Any]]:
        data = self.kube.service(NAMESPACE, "recorder:8080", scene)
        return [json.loads(line) for line in data.decode().splitlines()]

    def restart_broker(self, *, kill: bool) -> None:
        """Have the broker's container end, in good order or not, and wait until it is back."""
        pod = self.pod("broker")
        before = self._restarts(pod)
        signal = "kill -KILL $(cat /data/pid)" if kill else "kill -TERM 1"
        self.kube.exec(NAMESPACE, pod, "sh", "-c", signal)
        until(lambda: self._restarts(pod) > before, "the broker's container is started again")
        until(lambda: "broker-a" in self.rocketfleet("cluster"), "the broker is registered again")

    def _restarts(self, pod: str) -> int:
        found = self.kube.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}")
        assert found is not None
        status = found["status"]["containerStatuses"][0]
        return int(status["restartCount"]) if status["ready"] else 0


def _service(name: str, port: int) -> Manifest:
    spec = {"selector": {"app": name}, "ports": [{"port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _deployment(name: str, spec: Manifest, port: int | None = None) -> Manifest:
    container = spec["containers"][0]
    if port is not None:
        container["ports"] = [{"containerPort": port}]
        container["readinessProbe"] = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }
