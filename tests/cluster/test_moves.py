"""What is done on purpose, under live traffic: nothing is lost, nothing comes twice, nothing is out of order."""

from collections.abc import Callable

import pytest
from tests.cluster.images import Images
from tests.cluster.kube import Kube, name_of, until
from tests.cluster.platform import code
from tests.cluster.scene import GROUP, Scene


@pytest.mark.core
@pytest.mark.parametrize("mode", ["Orderly", "Concurrent"])
def test_scale_2_to_6_to_1(make_scene: Callable[..., Scene], mode: str) -> None:
    scene = make_scene(mode=mode)
    scene.start(replicas=2)
    for replicas in (6, 1):
        group = scene.scale(replicas)
        print(f"to {replicas}: {group['status']['lastRebalance']}, {group['status'].get('lastDrain')}")
        assert group["status"]["lastRebalance"]["seconds"] >= 0
        scene.hold()
    assert group["status"]["lastDrain"]["verified"] is True
    reasons = [reason for reason, _ in scene.events()]
    assert reasons.count("Drained") == 5
    assert "RebalanceCompleted" in reasons
    verdict = scene.finish()
    assert not verdict.repeated
    if mode == "Orderly":
        assert not verdict.out_of_order


def test_members_go_one_by_one(scene: Scene) -> None:
    scene.start(replicas=4)
    for replicas in (3, 2, 1):
        scene.hold()
        status = scene.scale(replicas)["status"]
        print(f"to {replicas}: {status['lastRebalance']}, {status['lastDrain']}")
        assert status["lastDrain"]["verified"]
    assert scene.finish().good


@pytest.mark.core
def test_rolling_update_to_another_image(scene: Scene, images: Images) -> None:
    scene.start(replicas=3)
    before = {name_of(pod): pod["metadata"]["uid"] for pod in scene.pods()}
    worker = {"handler": "handler:handle", "codeConfigMap": "code", "image": images.worker_next}
    scene.apply(scene.manifest(replicas=3, worker=worker))
    scene.settle(3)
    after = {name_of(pod): pod for pod in scene.pods()}
    assert after.keys() == before.keys()
    for name, pod in after.items():
        assert pod["metadata"]["uid"] != before[name]
        assert pod["spec"]["containers"][0]["image"] == images.worker_next
    scene.hold()
    assert scene.finish().good


def test_rolling_update_with_surge_by_a_variable(scene: Scene) -> None:
    scene.start(replicas=2)
    template = {"spec": {"containers": [{"name": "consumer", "env": scene.variables(RELEASE="2")}]}}
    scene.apply(scene.manifest(replicas=2, template=template, update={"surge": 1}))

    def rolled() -> bool:
        variables = [pod["spec"]["containers"][0]["env"] for pod in scene.pods()]
        return all({"name": "RELEASE", "value": "2"} in env for env in variables)

    until(rolled, "all pods have the new variable")
    scene.settle(2)
    scene.hold()
    assert scene.finish().good


def test_edited_code_is_rolled_out(kube: Kube, scene: Scene) -> None:
    scene.start(replicas=2)
    before = {pod["metadata"]["uid"]: pod["metadata"]["annotations"]["rocketfleet.io/code"] for pod in scene.pods()}
    assert len(set(before.values())) == 1
    edited = code("code")
    edited["data"]["handler.py"] += "\nRELEASE = 2\n"
    kube.apply(edited, namespace=scene.name)

    def rolled() -> bool:
        pods = {pod["metadata"]["uid"]: pod["metadata"]["annotations"]["rocketfleet.io/code"] for pod in scene.pods()}
        return len(pods) == 2 and not pods.keys() & before.keys() and not set(pods.values()) & set(before.values())

    until(rolled, "both pods are replaced", 180.0)
    group = scene.settle(2)
    assert group["status"]["codeRevision"] == scene.pods()[0]["metadata"]["annotations"]["rocketfleet.io/code"]
    scene.hold()
    assert scene.finish().good


def test_missing_code_is_said_and_found_when_it_comes(kube: Kube, scene: Scene) -> None:
    scene.open()
    scene.apply(scene.manifest(replicas=1, worker={"handler": "handler:handle", "codeConfigMap": "later"}))

    def said() -> bool:
        conditions = scene.group.get("status", {}).get("conditions", [])
        ready = [one for one in conditions if one["type"] == "Ready" and one["reason"] == "ConfigMapNotFound"]
        return any("later" in one["message"] for one in ready)

    until(said, "Ready says that the ConfigMap is missing")
    assert not scene.pods()
    kube.apply(code("later"), namespace=scene.name)
    scene.settle(1)
    scene.delete()
    scene.nothing_left()


def test_suspend_and_resume(scene: Scene) -> None:
    scene.start(replicas=2)
    scene.apply(scene.manifest(replicas=2, suspend=True))
    until(lambda: not scene.pods(), "no pod is left")
    scene.nothing_left()
    scene.offsets_are_what_was_handled(scene.ledger())
    scene.apply(scene.manifest(replicas=2))
    scene.settle(2)
    assert scene.finish().good


@pytest.mark.core
def test_delete_under_load_then_begin_again_where_it_ended(scene: Scene) -> None:
    scene.start(replicas=3)
    scene.hold()
    scene.delete()
    scene.nothing_left()
    ledger = scene.ledger()
    scene.offsets_are_what_was_handled(ledger)
    assert not ledger.ended  # the traffic went on all the time
    scene.apply(scene.manifest(replicas=2))  # deletionPolicy Retain: the offsets are still there
    scene.settle(2)
    assert scene.finish().good


def test_delete_under_load_with_the_group(kube: Kube, scene: Scene) -> None:
    scene.start(replicas=2, deletionPolicy="Delete")
    scene.hold()
    scene.delete()
    scene.nothing_left()
    assert not scene.ledger().verdict().repeated
    groups = scene.platform.rocketfleet("group", "list", "-o", "json")
    assert f'"{scene.name}"' not in groups
    assert kube.group(scene.name, GROUP) is None


def test_deleting_the_namespace_under_load_ends(kube: Kube, scene: Scene) -> None:
    scene.start(replicas=2)
    scene.hold()
    kube.kubectl("delete", "namespace", scene.name, "--wait=false")
    until(lambda: kube.get(f"/api/v1/namespaces/{scene.name}") is None, "the namespace is gone", 180.0)
    ledger = scene.ledger()
    assert not ledger.verdict().repeated
    assert not scene.platform.facts(scene.name, scene.name)["members"]
