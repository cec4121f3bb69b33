"""A group under live traffic in a namespace of its own, with everything written down. One scene a test.

`Scene.finish` is the end of each: traffic stops, all that was sent is handled, the ConsumerGroup is deleted, and then
nothing may be left: no pod, no member, no lock, and the broker's offsets are exactly what was handled.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.cluster.kube import GROUPS, Kube, Manifest, condition, is_ready, name_of, until
from tests.cluster.ledger import Ledger
from tests.cluster.platform import NAME_SERVER, RECORDER, Platform, code, environment, restricted

from rocketfleet.demo.verdict import DemoVerdict

GROUP = "orders"  # the object's name; its name at the broker is the scene's
QUEUES = 8
SETTLE = 120.0


class Scene:
    """Use as: scene.start(replicas=2), do something, scene.finish()."""

    def __init__(self, platform: Platform, name: str, *, mode: str = "Orderly", handler_seconds: float = 0.02) -> None:
        self.platform = platform
        self.kube: Kube = platform.kube
        self.name = name  # of the namespace, the topic and the group
        self.mode = mode
        self.handler_seconds = handler_seconds

    # -- set-up -------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """The namespace, the handler's code and the topic."""
        self.kube.namespace(self.name)
        self.kube.apply(code("code"), namespace=self.name)
        self.platform.rocketfleet("topic", "create", self.name, "--queues", str(QUEUES))

    def manifest(self, replicas: int | None = 2, **spec: Any) -> Manifest:
        """The scene's ConsumerGroup."""
        return {
            "apiVersion": "rocketfleet.io/v1alpha1",
            "kind": "ConsumerGroup",
            "metadata": {"name": GROUP, "namespace": self.name},
            "spec": {
                "groupName": self.name,
                "cluster": {"nameServers": [NAME_SERVER]},
                "subscriptions": [{"topic": self.name}],
                "consumeMode": self.mode,
                "consumeFromWhere": "FirstOffset",
                "replicas": replicas,
                "worker": {"handler": "handler:handle", "codeConfigMap": "code"},
                "template": {"spec": {"containers": [{"name": "consumer", "env": self.variables()}]}},
                "shutdown": {"drainTimeoutSeconds": 20},
                **spec,
            },
        }

    def java_manifest(self, replicas: int = 2, **variables: str) -> Manifest:
        """The same with Java's own client in somebody's own image."""
        container: Manifest = {
            "name": "consumer",
            "image": self.platform.images.rocketmq,
            "args": ["member"],
            "env": environment(
                NAME_SERVER=NAME_SERVER,
                GROUP=self.name,
                TOPIC=self.name,
                ORDERLY=str(self.mode == "Orderly").lower(),
                SCENE=self.name,
                RECORDER=RECORDER,
                HANDLER_SECONDS=str(self.handler_seconds),
                **variables,
            ),
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        template = restricted({"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]})
        manifest = self.manifest(replicas, engine="Container", template={"spec": template})
        del manifest["spec"]["worker"]
        manifest["spec"]["rebalance"] = {"handover": "Eager"}
        return manifest

    def variables(self, **more: str) -> list[Manifest]:
        """What the handler reads from its environment."""
        given = {"SCENE": self.name, "RECORDER": RECORDER, "HANDLER_SECONDS": str(self.handler_seconds), **more}
        return [{"name": name, "value": value} for name, value in given.items()]

    def start(self, replicas: int = 2, **spec: Any) -> None:
        """Traffic, then the group, until it is whole."""
        self.open()
        self.start_traffic()
        self.apply(self.manifest(replicas, **spec))
        self.settle(replicas)

    def apply(self, manifest: Manifest) -> None:
        self.kube.apply(manifest)

    def start_traffic(self, rate: float = 100.0) -> None:
        spec = self.platform.program("traffic", "code", SCENE=self.name, TOPIC=self.name, RATE=str(rate))
        spec |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 60}
        metadata = {"name": "traffic", "labels": {"app": "traffic"}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.kube.apply(pod, namespace=self.name)
        until(lambda: self.ledger().sent, "the first message is sent")

    # -- looking ------------------------------------------------------------------------------------------------------

    @property
    def group(self) -> Manifest:
        found = self.kube.group(self.name, GROUP)
        assert found is not None, f"there is no ConsumerGroup {GROUP} in {self.name}"
        return found

    def pods(self) -> list[Manifest]:
        return self.kube.pods(self.name, f"rocketfleet.io/group={GROUP}")

    def pod(self, ordinal: int) -> Manifest | None:
        return self.kube.get(f"/api/v1/namespaces/{self.name}/pods/{GROUP}-{ordinal}")

    def ledger(self) -> Ledger:
        return Ledger(tuple(self.platform.records(self.name)))

    def events(self) -> list[tuple[str, str]]:
        """Reason and message of each event about the group."""
        found = self.kube.items(f"/api/v1/namespaces/{self.name}/events")
        about = [event for event in found if event["involvedObject"].get("name") == GROUP]
        return [(event["reason"], event.get("message", "")) for event in about]

    def settle(self, replicas: int, seconds: float = SETTLE) -> Manifest:
        """Wait until so many pods are ready and each queue has exactly one owner, by the status of this generation."""

        def whole() -> Manifest | None:
            group, pods = self.group, self.pods()
            status = group.get("status", {})
            assert status.get("observedGeneration") == group["metadata"]["generation"], "the status is of an old spec"
            summary = {kind: condition(group, kind) for kind in ("Ready", "Balanced", "Progressing")}
            names = sorted(name_of(pod) for pod in pods)
            assert sum(map(is_ready, pods)) == len(pods) == replicas, f"{names}, wanted {replicas}; {summary}"
            assert summary["Ready"] == summary["Balanced"] == "True", f"{summary}, {status.get('queues')}"
            return group

        return until(whole, f"{replicas} pods, and each queue owned once", seconds)

    def consumes_on(self, moment: float, messages: int = 50, seconds: float = SETTLE) -> None:
        """Wait until so many messages were handled after a moment (by the recorder's clock)."""
        until(lambda: self.ledger().finished_after(moment) >= messages, "messages are handled again", seconds)

    def now(self) -> float:
        """The recorder's clock: the time of the latest record."""
        return max((float(event["time"]) for event in self.ledger().events), default=0.0)

    # -- doing --------------------------------------------------------------------------------------------------------

    def scale(self, replicas: int) -> Manifest:
        """`kubectl scale`, and wait until it is done."""
        self.kube.kubectl("scale", "-n", self.name, f"cg/{GROUP}", f"--replicas={replicas}")
        return self.settle(replicas)

    def hold(self, messages: int = 200) -> None:
        """Let traffic flow for a while."""
        self.consumes_on(self.now(), messages)

    def delete(self, seconds: float = SETTLE) -> None:
        """Delete the ConsumerGroup, and wait until it is gone."""
        self.kube.kubectl("delete", "-n", self.name, f"cg/{GROUP}", "--wait=false")
        until(lambda: self.kube.group(self.name, GROUP) is None, "the ConsumerGroup is gone", seconds)

    def stop_traffic(self) -> None:
        self.kube.kubectl("delete", "pod", "-n", self.name, "traffic", "--ignore-not-found", "--timeout=100s")
        until(lambda: self.ledger().ended, "the traffic has come to its end")

    # -- the end ------------------------------------------------------------------------------------------------------

    def drain_off(self, seconds: float = SETTLE) -> Ledger:
        """Stop the traffic and wait until all that was sent is handled."""
        self.stop_traffic()

        def handled() -> Ledger | None:
            ledger = self.ledger()
            missing = ledger.sent - ledger.finished
            assert not missing, f"{len(missing)} of {len(ledger.sent)} are not handled, {sorted(missing)[:5]}"
            return ledger

        return until(handled, "all that was sent is handled", seconds)

    def finish(self) -> DemoVerdict:
        """The end of a scene: nothing is left behind, nothing lost. The rest of the verdict is the test's."""
        self.drain_off()
        self.delete()
        self.nothing_left()
        ledger = self.ledger()
        self.offsets_are_what_was_handled(ledger)
        verdict = ledger.verdict()
        print(f"{self.name}: {verdict}")
        assert not verdict.lost
        return verdict

    def nothing_left(self) -> None:
        """No pod, no member, no lock. The broker hears of a closed connection a moment later."""

        def clean() -> bool:
            pods = [name_of(pod) for pod in self.pods()]
            facts = self.platform.facts(self.name, self.name)
            assert not pods, f"pods are left: {pods}"
            assert not facts["members"], f"members are left: {facts['members']}"
            assert not facts["locked"], f"locks are left: {facts['locked']}"
            return True

        until(clean, "nothing is left behind", 30.0)

    def offsets_are_what_was_handled(self, ledger: Ledger) -> None:
        queues = self.platform.facts(self.name, self.name)["queues"]
        committed = {queue: place["committed"] for queue, place in queues.items() if place["end"]}
        stands = ledger.stands()
        wrong = {
            queue: (committed[queue], stands.get(queue, 0))
            for queue in committed
            if committed[queue] != stands.get(queue, 0)
        }
        assert not wrong, f"committed, and handled: {json.dumps(wrong)}"

    def close(self) -> None:
        """Clean up after a test, well or not. An object that nobody finishes loses its finalizer."""
        path = f"{GROUPS}/namespaces/{self.name}/consumergroups/{GROUP}"
        if self.kube.group(self.name, GROUP) is not None:
            self.kube.call("DELETE", path)
            try:
                until(lambda: self.kube.group(self.name, GROUP) is None, "the ConsumerGroup is gone", 45.0)
            except AssertionError:
                self.kube.call("PATCH", path, {"metadata": {"finalizers": None}})
        self.kube.kubectl("delete", "namespace", self.name, "--ignore-not-found", "--wait=false")

    def when(self, seen: Callable[["Scene"], object], what: str, seconds: float = SETTLE) -> None:
        """Wait until something is seen in this scene."""
        until(lambda: seen(self) or None, what, seconds)
