"""Nodes that are drained, stopped, and come back."""

from collections.abc import Iterator

import pytest
from tests.cluster.kind_nodes import kill_node, start_node
from tests.cluster.kube import Kube, Manifest, name_of, until
from tests.cluster.platform import Platform
from tests.cluster.provision import Provision
from tests.cluster.scene import GROUP, QUEUES, Scene

NODE_GONE = 240.0  # Kubernetes itself takes 50 s to notice, then come the pods' tolerations and grace periods


@pytest.fixture
def node(kube: Kube, platform: Platform) -> Iterator[str]:
    """A node that may be disturbed; afterwards all take pods again."""
    nodes = sorted(kube.ready_nodes() - {platform.home})
    assert len(nodes) >= 2, "these tests need two nodes besides the one that RocketMQ runs on"
    yield nodes[0]
    for each in nodes:
        kube.kubectl("uncordon", each)
    until(lambda: kube.ready_nodes() >= set(nodes), "all nodes are ready", 180.0)


def on(pods: list[Manifest], node: str) -> list[str]:
    return [name_of(pod) for pod in pods if pod["spec"].get("nodeName") == node]


@pytest.mark.core
def test_kubectl_drain_of_a_node(kube: Kube, scene: Scene, node: str) -> None:
    scene.start(replicas=4)
    assert on(scene.pods(), node)
    kube.kubectl(
        "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=200s", timeout=240.0
    )
    scene.settle(4)
    assert not on(scene.pods(), node)
    scene.hold()
    assert scene.finish().good


def test_a_node_is_stopped_and_comes_back(kube: Kube, scene: Scene, node: str, provision: Provision) -> None:
    assert provision.kind, "only nodes of kind can be stopped from here"
    scene.start(replicas=4)
    assert on(scene.pods(), node)
    stopped = scene.now()
    kill_node(node)
    try:
        until(lambda: node not in kube.ready_nodes(), "the node is seen to be gone")
        scene.settle(4, NODE_GONE)
        assert not on(scene.pods(), node)
        scene.consumes_on(stopped, 200)
    finally:
        start_node(node)
    until(lambda: node in kube.ready_nodes(), "the node is back", 180.0)
    scene.settle(4, NODE_GONE)
    verdict = scene.finish()
    assert not verdict.out_of_order
    # What was handled but not yet committed when its node went comes again: at most one message for each of its queues
    # in an orderly group, and what lies between two commits.
    print(f"repeated after the node was lost: {len(verdict.repeated)}")


def test_an_eager_member_on_a_node_that_only_fell_silent_is_kept_until_somebody_knows(
    kube: Kube, scene: Scene, node: str, provision: Provision
) -> None:
    """It has no lease: nothing would keep it from consuming beside its successor."""
    assert provision.kind, "only nodes of kind can be stopped from here"
    scene.start(replicas=4, rebalance={"handover": "Eager"})
    stuck = on(scene.pods(), node)
    assert stuck
    kill_node(node)
    try:
        taint = f"kubectl taint node {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
        until(lambda: taint in " ".join(text for _, text in scene.events()), "it is said what to do", NODE_GONE)
        assert set(stuck) <= {name_of(pod) for pod in scene.pods()}, "they are kept"
        kube.kubectl("taint", "node", node, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
        scene.settle(4, NODE_GONE)
        assert not on(scene.pods(), node)
    finally:
        kube.kubectl("taint", "node", node, "node.kubernetes.io/out-of-service-")
        start_node(node)
    until(lambda: node in kube.ready_nodes(), "the node is back", 180.0)
    assert not scene.finish().lost


@pytest.mark.parametrize(("replicas", "pods"), [(None, 1), (QUEUES + 2, QUEUES)], ids=["left-out", "more-than-queues"])
def test_kubectl_drain_whatever_the_spec_says_of_replicas(
    kube: Kube, platform: Platform, scene: Scene, node: str, replicas: int | None, pods: int
) -> None:
    """Every pod of the node is evicted, the last one too, and what takes its place goes on where it stopped."""
    scene.open()
    scene.start_traffic()
    manifest = scene.manifest(replicas)
    if replicas is None:
        del manifest["spec"]["replicas"]
    elsewhere = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [platform.home]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [elsewhere]}]}
    manifest["spec"]["template"]["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    scene.apply(manifest)
    scene.settle(pods)
    drained: str = scene.pods()[0]["spec"]["nodeName"]
    evicted = on(scene.pods(), drained)
    kube.kubectl(
        "drain", drained, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=200s", timeout=240.0
    )
    scene.settle(pods)
    assert evicted
    assert not on(scene.pods(), drained)
    scene.hold()
    assert scene.finish().good


@pytest.mark.parametrize(
    ("replicas", "pods", "more"),
    [
        (None, 1, {}),
        (None, 2, {"autoscaling": {"minReplicas": 2, "maxReplicas": 4, "targetLag": 10_000}}),
        (QUEUES + 2, QUEUES, {}),
    ],
    ids=["left-out", "autoscaling", "more-than-queues"],
)
def test_evictions_are_allowed_whatever_the_spec_says_of_replicas(
    kube: Kube, scene: Scene, replicas: int | None, pods: int, more: Manifest
) -> None:
    """A budget that counts on spec.replicas allows none where that is left out, or is not what runs."""
    scene.open()
    manifest = scene.manifest(replicas, **more)
    if replicas is None:
        del manifest["spec"]["replicas"]
    scene.apply(manifest)
    scene.settle(pods)

    def allowed() -> bool:
        budget = kube.get(f"/apis/policy/v1/namespaces/{scene.name}/poddisruptionbudgets/{GROUP}-consumers")
        assert budget is not None
        status = budget.get("status", {})
        assert status.get("disruptionsAllowed", 0) >= 1, status
        return True

    until(allowed, "a pod may be evicted", 60.0)
    scene.delete()
    scene.nothing_left()
