"""Engine Spark: a driver pod whose executors are pods, made by Spark's own scheduler; and what a wrong pipeline says.

The namespaces enforce the restricted level, so whatever Spark makes of the executors' template has to keep to it.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.images import provide_spark_image
from tests.cluster.kube import Kube, Manifest, is_ready, name_of, until
from tests.cluster.operator_release import Release
from tests.cluster.provision import Provision
from tests.cluster.scene import GROUP, QUEUES, Scene

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
        (ready,) = [one for one in scene.group["status"]["conditions"] if one["type"] == "Ready"]
        assert ready["reason"] == "PodTrouble", ready
        assert "there is no module 'nowhere_to_be_found' on the Python path" in ready["message"], ready
        return True

    until(said, "the status says what is wrong", STARTS)
