"""Somebody's own consumer: Java's client in a container, looked after by the same code as our workers.

Its members hear of each other from the broker, and hand queues over as Java does: with a few duplicates. So what is
asked here is that nothing is lost and that the operator knows, through the broker, who has which queue.
"""

from collections.abc import Callable

import pytest
from tests.cluster.kube import Kube, name_of
from tests.cluster.scene import GROUP, QUEUES, Scene

STARTS = 180.0  # a JVM a pod, on few cores


@pytest.mark.parametrize("mode", ["Concurrent", "Orderly"])
def test_java_consumers_are_scaled_rolled_and_drained(make_scene: Callable[..., Scene], kube: Kube, mode: str) -> None:
    scene = make_scene(mode=mode)
    scene.open()
    scene.start_traffic()
    scene.apply(scene.java_manifest(2))
    status = scene.settle(2, STARTS)["status"]
    assert status["queues"]["owned"] == QUEUES
    assert sorted(member["queues"] for member in status["members"]) == [QUEUES // 2] * 2

    kube.kubectl("scale", "-n", scene.name, f"cg/{GROUP}", "--replicas=4")
    scene.settle(4, STARTS)

    before = {name_of(pod): pod["metadata"]["uid"] for pod in scene.pods()}
    scene.apply(scene.java_manifest(4, RELEASE="2"))
    scene.settle(4, 2 * STARTS)
    after = {name_of(pod): pod["metadata"]["uid"] for pod in scene.pods()}
    assert after.keys() == before.keys()
    assert all(after[name] != before[name] for name in before)

    kube.kubectl("scale", "-n", scene.name, f"cg/{GROUP}", "--replicas=1")
    scene.settle(1, STARTS)
    scene.hold()
    verdict = scene.finish()
    if mode == "Orderly":
        assert not verdict.out_of_order
