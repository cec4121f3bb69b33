"""Edits that members of a live group have to agree on, and two objects that name one group."""

import threading
from collections.abc import Callable
from typing import Any, Self

from tests.cluster.kube import Kube, Manifest, name_of, until
from tests.cluster.platform import code
from tests.cluster.scene import GROUP, SETTLE, Scene

SHARED = "rocketfleet.io/shared-settings"


class Together:
    """What pods that were there at the same time carried as their shared settings, looked at again and again."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.mixed: set[tuple[str, ...]] = set()
        self.all: set[str] = set()

    def _look(self) -> None:
        while not self._over.wait(0.2):
            found = {pod["metadata"]["annotations"].get(SHARED, "") for pod in self._scene.pods()}
            self.all |= found
            if len(found) > 1:
                self.mixed.add(tuple(sorted(found)))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30.0)


def condition_of(group: Manifest, kind: str) -> dict[str, Any]:
    conditions = group.get("status", {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == kind), {"reason": "nothing said yet", "message": ""})


def test_another_consume_mode_recreates_the_group(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene(mode="Concurrent")
    scene.start(replicas=3)
    scene.hold()
    before = {pod["metadata"]["uid"] for pod in scene.pods()}
    with Together(scene) as together:
        scene.apply(scene.manifest(replicas=3, consumeMode="Orderly"))
        until(lambda: not before & {pod["metadata"]["uid"] for pod in scene.pods()} or None, "the old pods are gone")
        scene.settle(3)
    assert not together.mixed
    assert len(together.all) == 2
    told = dict(scene.events())
    assert "consumeMode changed" in told["RecreateStarted"]
    assert condition_of(scene.group, "SubscriptionsConsistent")["status"] == "True"
    scene.hold()
    assert not scene.finish().repeated


def test_the_younger_of_two_objects_waits_for_the_group(kube: Kube, make_scene: Callable[..., Scene]) -> None:
    scene = make_scene(mode="Concurrent")
    scene.start(replicas=2)
    other = f"{scene.name}-b"
    kube.namespace(other)
    try:
        kube.apply(code("code"), namespace=other)
        second = scene.manifest(replicas=1, deletionPolicy="Delete")
        second["metadata"] = {"name": "second", "namespace": other}
        kube.apply(second)

        def taken() -> bool:
            found = kube.group(other, "second")
            assert found is not None
            ready = condition_of(found, "Ready")
            assert ready["reason"] == "GroupTaken", ready
            assert f"{scene.name}/{GROUP}" in ready["message"], ready
            return True

        until(taken, "the younger object says whose the group is")
        assert not kube.pods(other, "rocketfleet.io/group=second")
        kube.kubectl("delete", "-n", other, "cg/second", "--timeout=60s")
        scene.hold()
        scene.settle(2)

        kube.apply(second)
        until(taken, "the younger object says whose the group is")
        scene.delete()

        def takes_over() -> bool:
            pods = kube.pods(other, "rocketfleet.io/group=second")
            assert [name_of(pod) for pod in pods] == ["second-0"]
            found = kube.group(other, "second")
            assert found is not None
            assert condition_of(found, "Ready")["status"] == "True", condition_of(found, "Ready")
            return True

        until(takes_over, "the younger object has the group now", SETTLE)
        ledger = scene.drain_off()
        assert not ledger.verdict().lost
        kube.kubectl("patch", "-n", other, "cg/second", "--type=merge", "-p", '{"spec":{"deletionPolicy":"Retain"}}')
        kube.kubectl("delete", "-n", other, "cg/second", "--timeout=60s")
    finally:
        kube.kubectl("delete", "namespace", other, "--ignore-not-found", "--wait=false")
