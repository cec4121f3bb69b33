"""Somebody's own consumer: Java's client in a container, looked after by the same code as our workers.

Its members hear of each other from the broker, and hand queues over as Java does: with a few duplicates. So what is
asked here is that nothing is lost and that the operator knows, through the broker, who has which queue.
"""

from collections.abc import Callable

import pytest
from tests.cluster.kube import Kube, name_of, until
from tests.cluster.scene import GROUP, QUEUES, Scene

STARTS = 180.0  # a JVM a pod, on few cores


@pytest.mark.parametrize("mode", ["Concurrent", "Orderly"])
def test_java_consumers_are_scaled_rolled_and_drained(make_scene: Callable[..., Scene], kube: Kube, mode: str) -> None:
    scene = make_scene(mode=mode)
    scene.open()
    scene.start_traffic()
    scene.apply(scene.java_manifest(2))
    shared_out(scene, 2)

    kube.kubectl("scale", "-n", scene.name, f"cg/{GROUP}", "--replicas=4")
    shared_out(scene, 4)

    before = {name_of(pod): pod["metadata"]["uid"] for pod in scene.pods()}
    scene.apply(scene.java_manifest(4, RELEASE="2"))
    shared_out(scene, 4)
    after = {name_of(pod): pod["metadata"]["uid"] for pod in scene.pods()}
    assert after.keys() == before.keys()
    assert all(after[name] != before[name] for name in before)

    kube.kubectl("scale", "-n", scene.name, f"cg/{GROUP}", "--replicas=1")
    shared_out(scene, 1)
    scene.hold()
    verdict = scene.finish()
    if mode == "Orderly":
        assert not verdict.out_of_order


def shared_out(scene: Scene, members: int) -> None:
    """Wait until so many members have equally many queues, by what the broker told the operator.

    That may be later than `Balanced`: when the last member has joined, Java's members move orderly queues at their next
    round, up to 20 s later. Until then each queue has one owner too, an old one.
    """

    def even() -> bool:
        found = [member.get("queues") for member in scene.group["status"]["members"]]
        assert found == [QUEUES // members] * members, f"{members} members are to have the queues, they have {found}"
        return True

    scene.settle(members, STARTS)
    until(even, "the queues are shared out evenly", STARTS)
    scene.settle(members, STARTS)
