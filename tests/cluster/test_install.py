"""From `helm install` to a group that consumes, and how it reads to somebody who knows Kubernetes."""

import json
import time

import pytest
from tests.cluster.images import Images
from tests.cluster.kube import GROUPS, CommandError, Kube, name_of, until
from tests.cluster.operator_release import CRD, NAMESPACE, Release
from tests.cluster.scene import GROUP, QUEUES, Scene

STEADY = 40.0  # seconds


@pytest.mark.core
def test_helm_installs_into_a_restricted_namespace_and_its_test_passes(kube: Kube, release: Release) -> None:
    namespace = kube.get(f"/api/v1/namespaces/{NAMESPACE}")
    assert namespace is not None
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert any(name_of(pod) in release.leader() for pod in release.pods())
    kube.helm("test", "rocketfleet", "-n", NAMESPACE, "--timeout=3m")


@pytest.mark.core
def test_a_group_is_created_and_consumes_what_was_sent_before_and_since(scene: Scene) -> None:
    scene.start(replicas=2)
    scene.hold()
    assert scene.ledger().pods == {f"{GROUP}-0", f"{GROUP}-1"}
    assert scene.finish().good


def test_kubectl_reads_as_a_kubernetes_user_expects(kube: Kube, scene: Scene, images: Images) -> None:
    scene.start(replicas=2)
    where = ("-n", scene.name)
    kube.kubectl("wait", *where, "--for=condition=Ready", f"cg/{GROUP}", "--timeout=60s")
    header, line = kube.kubectl("get", "cg", *where).splitlines()
    assert header.split()[:2] == ["NAME", "READY"]
    assert header.split() == ["NAME", "READY", "STATE", "QUEUES", "LAG", "LAG-SECONDS", "AGE"]
    assert line.split()[0] == GROUP
    assert GROUP in kube.kubectl("get", "rocketmq", *where)  # the category
    assert "Java's six strategies" in kube.kubectl("explain", "cg.spec.allocation.strategy")
    described = kube.kubectl("describe", "cg", *where, GROUP)
    assert "RebalanceCompleted" in described
    # Pods are the restricted kind that they would have to be, and run what the operator was told to run.
    for pod in scene.pods():
        assert pod["spec"]["containers"][0]["image"] == images.worker
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "ConsumerGroup"
    scene.finish()


def test_the_scale_subresource_is_what_an_autoscaler_needs(kube: Kube, scene: Scene) -> None:
    scene.start(replicas=1)
    path = f"{GROUPS}/namespaces/{scene.name}/consumergroups/{GROUP}/scale"
    scale = kube.get(path)
    assert scale is not None
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (1, 1)
    selected = kube.pods(scene.name, scale["status"]["selector"])
    assert [name_of(pod) for pod in selected] == [f"{GROUP}-0"]

    scale["spec"]["replicas"] = 3
    status, answer = kube.call("PUT", path, scale, content_type="application/json")
    assert status == 200, answer
    scene.settle(3)
    after = kube.get(path)
    assert after is not None
    assert (after["spec"]["replicas"], after["status"]["replicas"]) == (3, 3)
    assert len(kube.pods(scene.name, after["status"]["selector"])) == 3
    assert scene.finish().good


def test_a_second_scaler_is_refused_with_a_sentence(kube: Kube, scene: Scene) -> None:
    """Whoever writes the number is told why not; a real HPA already fails to read one, and says so itself."""
    scene.open()
    manifest = scene.manifest(autoscaling={"minReplicas": 1, "maxReplicas": 4, "targetLag": 10_000})
    del manifest["spec"]["replicas"]
    scene.apply(manifest)
    scene.settle(1)
    sentence = "remove replicas and any HorizontalPodAutoscaler that writes it"
    with pytest.raises(CommandError, match=sentence):
        kube.kubectl("scale", "-n", scene.name, f"cg/{GROUP}", "--replicas=3")
    path = f"{GROUPS}/namespaces/{scene.name}/consumergroups/{GROUP}/scale"
    written = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": GROUP, "namespace": scene.name},
        "spec": {"replicas": 3},
    }
    status, answer = kube.call("PUT", path, written, content_type="application/json")
    assert status == 422, answer
    assert sentence in str(answer)

    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": GROUP},
        "spec": {
            "scaleTargetRef": {"apiVersion": "rocketfleet.io/v1alpha1", "kind": "ConsumerGroup", "name": GROUP},
            "minReplicas": 2,
            "maxReplicas": 3,
        },
    }
    kube.apply(scaler, namespace=scene.name)

    def gave_up() -> bool:
        hpa = kube.get(f"/apis/autoscaling/v2/namespaces/{scene.name}/horizontalpodautoscalers/{GROUP}")
        conditions = (hpa or {}).get("status", {}).get("conditions", [])
        return any(one["reason"] == "FailedGetScale" and ".spec.replicas" in one["message"] for one in conditions)

    until(gave_up, "the HPA to say that it cannot read a number of replicas", 90.0)
    assert "replicas" not in scene.group["spec"]
    assert len(scene.pods()) == 1
    scene.delete()
    scene.nothing_left()


def test_the_status_says_who_has_what(scene: Scene) -> None:
    scene.start(replicas=2)
    status = scene.group["status"]
    assert status["queues"] == {"total": QUEUES, "owned": QUEUES, "unowned": 0, "shared": 0}
    assert [member["queues"] for member in status["members"]] == [QUEUES // 2] * 2
    assert (status["readyReplicas"], status["updatedReplicas"], status["desiredReplicas"]) == (2, 2, 2)
    assert all(one["observedGeneration"] == 1 for one in status["conditions"])
    scene.finish()


def test_no_more_members_than_queues_unless_asked(scene: Scene) -> None:
    scene.open()
    scene.apply(scene.manifest(replicas=QUEUES + 2))
    scene.settle(QUEUES)
    scene.delete()
    scene.nothing_left()


def test_a_steady_group_causes_no_writes(scene: Scene) -> None:
    scene.start(replicas=2)
    scene.stop_traffic()
    scene.drain_off()

    def versions() -> tuple[str, ...]:
        return (scene.group["metadata"]["resourceVersion"], *(p["metadata"]["resourceVersion"] for p in scene.pods()))

    def quiet() -> bool:
        """Whether nothing was written for longer than the operator waits between two looks at a steady group."""
        before, began = versions(), time.monotonic()
        until(lambda: time.monotonic() > began + STEADY, "time passes")
        return versions() == before

    until(quiet, "the group is left alone", 180.0)
    scene.finish()


@pytest.mark.core
def test_the_definition_is_the_one_in_the_tree(kube: Kube, release: Release) -> None:
    there = kube.get(CRD)
    assert there is not None
    names = there["spec"]["names"]
    assert (names["kind"], names["shortNames"], names["categories"]) == ("ConsumerGroup", ["cg"], ["rocketmq"])
    assert there["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert not [one for one in there["status"]["conditions"] if one["type"] == "NonStructuralSchema"]
    assert json.dumps(there).count("x-kubernetes-validations") > 3
