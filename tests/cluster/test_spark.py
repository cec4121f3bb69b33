"""Engine Spark: a driver pod whose executors are pods, made by Spark's own scheduler; and what a wrong pipeline says.
Then `rocketfleet spark submit` and `report`, started by hand with executors in pods.

The namespaces enforce the restricted level, so whatever Spark makes of the executors' template has to keep to it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.images import provide_spark_image
from tests.cluster.kube import Kube, Manifest, is_ready, name_of, until
from tests.cluster.operator_release import Release
from tests.cluster.platform import NAME_SERVER, environment, restricted
from tests.cluster.provision import Provision
from tests.cluster.scene import GROUP, QUEUES, Scene

from rocketfleet.lag.samples.history import LagSample, json_line
from rocketfleet.lag.samples.topic_sink import TAG

STARTS = 400.0  # JVMs, and an image of more than a gigabyte
EXECUTORS = f"rocketfleet.io/executor-of={GROUP}"
SMALL = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.kubernetes.executor.request.cores": "100m",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="session")
def spark_image(provision: Provision) -> str:
    return provide_spark_image(provision.kind)


def manifest(scene: Scene, image: str, **spark: Any) -> Manifest:
    """The scene's group, in Spark. The checkpoint goes with the pod: the next driver begins where the group stands."""
    section = {
        "pipeline": "spark_pipeline:record",
        "codeConfigMap": "code",
        "image": image,
        "checkpoint": "/tmp/checkpoint",
        "maxOffsetsPerTrigger": 500,
        "conf": SMALL,
        **spark,
    }
    made = scene.manifest(1, engine="Spark", spark=section, shutdown={"drainTimeoutSeconds": 120})
    del made["spec"]["worker"]
    return made


def executors(scene: Scene, number: int) -> list[Manifest]:
    """Wait until so many run, by Kubernetes and by the status."""

    def there() -> list[Manifest]:
        pods = scene.kube.pods(scene.name, EXECUTORS)
        seen = scene.group["status"].get("spark", {}).get("executors")
        running = [pod for pod in pods if is_ready(pod)]
        assert (len(running), seen) == (number, number), f"{[name_of(pod) for pod in pods]}, and the status says {seen}"
        return running

    return until(there, f"{number} executors", STARTS)


def replaced(scene: Scene, uid: str) -> str:
    """Wait until another driver than this one is ready; its uid."""

    def another() -> str | None:
        pods = scene.pods()
        assert len(pods) <= 1, "two drivers at one checkpoint"
        return next((pod["metadata"]["uid"] for pod in pods if pod["metadata"]["uid"] != uid), None)

    until(another, "another driver", STARTS)
    scene.settle(1, STARTS)
    (pod,) = scene.pods()
    found: str = pod["metadata"]["uid"]
    return found


def stands_where_its_sink_is(scene: Scene) -> None:
    """Nobody consumes now: the broker's offsets are exactly what was recorded."""
    scene.offsets_are_what_was_handled(scene.ledger())


def test_a_spark_group_is_scaled_updated_and_deleted_under_load(
    make_scene: Callable[..., Scene], kube: Kube, release: Release, spark_image: str
) -> None:
    scene = make_scene(mode="Concurrent", handler_seconds=0.001)
    scene.open()
    release.install(spark__namespaces=f"{{{scene.name}}}")
    scene.start_traffic(rate=50)
    scene.apply(manifest(scene, spark_image, master="k8s", executors=1))
    group = scene.settle(1, STARTS)
    (member,) = group["status"]["members"]
    assert member["queues"] == QUEUES
    assert scene.platform.facts(scene.name, scene.name)["members"] == [member["clientId"]], "a member for all to see"
    (first,) = executors(scene, 1)
    (driver,) = scene.pods()
    assert first["metadata"]["ownerReferences"][0]["uid"] == driver["metadata"]["uid"]
    scene.hold()

    scene.apply(manifest(scene, spark_image, master="k8s", executors=2))
    uid = replaced(scene, driver["metadata"]["uid"])
    executors(scene, 2)
    assert scene.group["status"]["lastDrain"]["verified"] is True
    scene.hold()

    scene.apply(manifest(scene, spark_image, master="k8s", executors=2, trigger="2 seconds"))
    replaced(scene, uid)
    scene.hold()

    scene.delete(STARTS)
    stands_where_its_sink_is(scene)
    scene.nothing_left()
    until(lambda: not kube.pods(scene.name, EXECUTORS), "no executor is left")
    events = scene.events()
    assert not [event for event in events if event[0] in ("DrainTimedOut", "OffsetsUnsafe")], events

    scene.apply(manifest(scene, spark_image))
    scene.settle(1, STARTS)
    verdict = scene.finish()
    assert not verdict.repeated


def test_a_wrong_pipeline_is_a_sentence_in_the_status(make_scene: Callable[..., Scene], spark_image: str) -> None:
    scene = make_scene(mode="Concurrent")
    scene.open()
    scene.apply(manifest(scene, spark_image, pipeline="nowhere_to_be_found:record"))

    def said() -> bool:
        conditions = scene.group.get("status", {}).get("conditions", ())
        ready = next((one for one in conditions if one["type"] == "Ready"), {"reason": "nothing said yet"})
        assert ready["reason"] == "PodTrouble", ready
        assert "there is no module 'nowhere_to_be_found' on the Python path" in ready["message"], ready
        return True

    until(said, "the status says what is wrong", STARTS)


EXAMPLE = Path(__file__).parents[2] / "examples" / "spark" / "count_by_tag.py"


def by_hand(scene: Scene, image: str, command: str, *arguments: str) -> str:
    """Run a command of `rocketfleet spark` in a pod, with executors in others; what it said."""
    conf = {"spark.kubernetes.container.image": image, "spark.executor.instances": "1", **SMALL}
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    container: Manifest = {
        "name": "driver",
        "image": image,
        "args": [command, "--master", "k8s://https://kubernetes.default.svc", *settings, *arguments],
        "env": environment(),
        "volumeMounts": [{"name": "pipelines", "mountPath": "/pipelines"}],
    }
    spec = restricted(
        {"containers": [container], "volumes": [{"name": "pipelines", "configMap": {"name": "examples"}}]}
    )
    spec |= {"serviceAccountName": "rocketfleet-spark", "automountServiceAccountToken": True, "restartPolicy": "Never"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": command}, "spec": spec}
    scene.kube.apply(pod, namespace=scene.name)
    owners: set[str] = set()

    def ended() -> str | None:
        for executor in scene.kube.pods(scene.name, "spark-role=executor"):
            owners.update(owner["name"] for owner in executor["metadata"].get("ownerReferences", ()))
        found = scene.kube.get(f"/api/v1/namespaces/{scene.name}/pods/{command}")
        phase: str = (found or {}).get("status", {}).get("phase", "")
        return phase if phase in ("Succeeded", "Failed") else None

    phase = until(ended, f"spark {command} ends", STARTS)
    said = scene.kube.kubectl("logs", "-n", scene.name, command)
    assert phase == "Succeeded", said
    assert owners == {command}, "executors were pods of this driver's"
    until(lambda: not scene.kube.pods(scene.name, "spark-role=executor"), "no executor is left")
    return said


def test_commands_by_hand_have_their_executors_in_pods(
    make_scene: Callable[..., Scene], kube: Kube, release: Release, spark_image: str
) -> None:
    scene = make_scene()
    scene.open()
    release.install(spark__namespaces=f"{{{scene.name}}}")
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "examples"}}
    kube.apply(code | {"data": {EXAMPLE.name: EXAMPLE.read_text()}}, namespace=scene.name)
    scene.platform.rocketfleet("send", scene.name, "--body", "hello", "--tag", "greeting", "--count", "300")
    said = by_hand(scene, spark_image, "submit", f"/pipelines/{EXAMPLE.name}", NAME_SERVER, scene.name)
    assert "greeting\t300\t1500" in said.splitlines(), said

    history = f"{scene.name}-lag"
    scene.platform.rocketfleet("topic", "create", history, "--queues", "1")
    samples = [
        LagSample(
            1_772_000_000 + 60 * n, "c", "orders", "orders", "broker-a", 0, 0, 100 * n, 90 * n, 10 * n, 1.0, "m-0"
        )
        for n in range(60)
    ]
    lines = b"".join(map(json_line, samples)).decode()
    scene.platform.rocketfleet("send", history, "--body", lines, "--tag", TAG)
    where = f"rocketmq://{NAME_SERVER}/{history}"
    said = by_hand(scene, spark_image, "report", "--history", where, "--out", "/tmp/lag.html")
    assert "/tmp/lag.html: 1 group, 60 samples" in said, said
