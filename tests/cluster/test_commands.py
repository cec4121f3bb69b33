"""Day two: the commands of `kubectl rocketfleet`, run in a pod, where brokers can be reached."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.images import Images
from tests.cluster.kube import Kube, is_ready, name_of, until
from tests.cluster.platform import restricted
from tests.cluster.scene import GROUP, QUEUES, Scene

from rocketfleet.cli.access.in_cluster_command import IMAGE, run_in

ACCOUNT = "rocketfleet-desk"
RIGHTS = Path(__file__).parents[2] / "examples" / "desk.yaml"


class Desk:
    """A pod with the operator's image and the rights that the documentation gives it."""

    def __init__(self, kube: Kube, scene: Scene, image: str) -> None:
        self._kube = kube
        self._namespace = scene.name
        container = {
            "name": "desk",
            "image": image,
            "command": ["python3", "-c", "import signal; signal.pause()"],
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        }
        spec = restricted(
            {
                "containers": [container],
                "serviceAccountName": ACCOUNT,
                "volumes": [{"name": "tmp", "emptyDir": {}}],
                "terminationGracePeriodSeconds": 0,
            }
        )
        kube.apply(
            *yaml.safe_load_all(RIGHTS.read_text().replace("namespace: shop", f"namespace: {scene.name}")),
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "desk"}, "spec": spec},
            namespace=scene.name,
        )
        until(
            lambda: any(is_ready(pod) and name_of(pod) == "desk" for pod in kube.pods(scene.name)), "the desk is ready"
        )

    def run(self, *arguments: str) -> str:
        return self._kube.exec(self._namespace, "desk", "rocketfleet", *arguments, timeout=180.0)

    def read(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "-o", "json"))


def test_the_command_that_is_suggested_from_outside_runs_as_it_is(kube: Kube, scene: Scene, images: Images) -> None:
    scene.start(replicas=1)
    kube.apply(
        *yaml.safe_load_all(RIGHTS.read_text().replace("namespace: shop", f"namespace: {scene.name}")),
        namespace=scene.name,
    )
    line = run_in(scene.name).replace(IMAGE, images.operator)
    answer = kube.kubectl(*shlex.split(line)[1:], "--", "rocketfleet", "lag", GROUP, "-n", scene.name, "-o", "json")
    assert len(json.loads(answer)["queues"]) >= 8
    assert scene.finish().good


@pytest.fixture
def desk(kube: Kube, scene: Scene, images: Images) -> Desk:
    scene.start(replicas=2)
    return Desk(kube, scene, images.operator)


def test_looking_at_a_group(desk: Desk, scene: Scene) -> None:
    assert GROUP in desk.run("status")
    assert GROUP in desk.run("status", GROUP)
    assert [member["pod"] for member in desk.read("members", GROUP)] == [f"{GROUP}-0", f"{GROUP}-1"]
    lag = desk.read("lag", GROUP)
    assert len([row for row in lag["queues"] if row["topic"] == scene.name]) == QUEUES
    assert scene.finish().good


def test_autoscaling_through_zero_is_explained(kube: Kube, scene: Scene, images: Images) -> None:
    scene.open()
    manifest = scene.manifest(
        autoscaling={"minReplicas": 0, "maxReplicas": 4, "targetSeconds": 30, "scaleToZeroAfterSeconds": 30}
    )
    del manifest["spec"]["replicas"]
    scene.apply(manifest)
    desk = Desk(kube, scene, images.operator)
    until(lambda: "nothing waits" in desk.run("lag", GROUP, "--explain"), "the lag of an idle group is explained")
    assert not scene.pods()

    scene.start_traffic()
    until(scene.pods, "the first messages bring a member")
    scene.hold()
    told = desk.run("lag", GROUP, "--explain")
    print(told)
    assert "ScaledFromZero" in told
    assert "of 0 to 4" in told

    scene.drain_off()
    until(lambda: not scene.pods(), "nobody is left when nothing was to do for a while", 180.0)
    reasons = {reason for reason, _ in scene.events()}
    assert {"ScaledFromZero", "ScaledToZero", "Drained"} <= reasons
    assert "ScaledToZero" in desk.run("lag", GROUP, "--explain")
    assert scene.finish().good


def test_draining_and_rebalancing_by_hand(desk: Desk, scene: Scene) -> None:
    before = scene.pod(1)
    assert before is not None
    desk.run("drain", f"{GROUP}-1", "--wait")
    scene.settle(2)
    after = scene.pod(1)
    assert after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    desk.run("rebalance", GROUP)
    scene.settle(2)
    scene.hold()
    assert scene.finish().good


def test_restarting_suspending_and_resuming_by_hand(desk: Desk, scene: Scene) -> None:
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in scene.pods()}
    desk.run("restart", GROUP, "--wait")
    scene.settle(2)
    after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in scene.pods()}
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    desk.run("suspend", GROUP, "--wait")
    assert scene.pods() == []
    desk.run("resume", GROUP, "--wait")
    scene.settle(2)
    assert scene.finish().good


def test_offsets_are_saved_moved_and_restored(desk: Desk, scene: Scene) -> None:
    scene.drain_off()
    scene.apply(scene.manifest(replicas=2, suspend=True))
    until(lambda: not scene.pods(), "no pod is left")
    desk.run("snapshot-offsets", GROUP, "-o", "/tmp/before.json")
    ends = {
        queue: place["committed"] for queue, place in scene.platform.facts(scene.name, scene.name)["queues"].items()
    }

    desk.run("reset-offsets", GROUP, "--to", "earliest", "--dry-run")
    assert committed(scene) == ends
    desk.run("reset-offsets", GROUP, "--to", "earliest", "--yes")
    assert set(committed(scene).values()) == {0}
    desk.run("restore-offsets", GROUP, "/tmp/before.json", "--yes")
    assert committed(scene) == ends
    scene.delete()
    scene.nothing_left()


def committed(scene: Scene) -> dict[str, int]:
    return {
        queue: place["committed"] for queue, place in scene.platform.facts(scene.name, scene.name)["queues"].items()
    }
