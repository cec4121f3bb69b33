"""An operator with a thousand groups, their lag watched, at rest: how much memory and how many calls that takes."""

import time

from prometheus_client.parser import text_string_to_metric_families
from tests.cluster.kube import GROUPS, Kube, Manifest, name_of, until
from tests.cluster.operator_release import NAMESPACE, Release
from tests.cluster.scene import Scene

MANY = 1000
AT_ONCE = 100  # in one `kubectl apply`
WATCHED = 120.0  # seconds at rest
MOST_BYTES = 256e6
MOST_CALLS = 20.0  # a second


def figures(kube: Kube, pod: str) -> tuple[float, float]:
    """Memory of an operator, in bytes, and how many calls it has made."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics"
    status, text = kube.call("GET", path)
    assert status == 200, text
    samples = [one for family in text_string_to_metric_families(text.decode()) for one in family.samples]
    (memory,) = [one.value for one in samples if one.name == "process_resident_memory_bytes"]
    calls = sum(one.value for one in samples if one.name == "rocketfleet_operator_api_requests_total")
    assert calls > 0
    return memory, calls


def test_a_thousand_groups_at_rest_take_little(kube: Kube, release: Release, scene: Scene) -> None:
    scene.open()
    where = f"{GROUPS}/namespaces/{scene.name}/consumergroups"

    def group(number: int) -> Manifest:
        manifest = scene.manifest(suspend=True, groupName=f"{scene.name}-{number}")
        manifest["metadata"]["name"] = f"group-{number}"
        return manifest

    try:
        for first in range(0, MANY, AT_ONCE):
            kube.apply(*(group(number) for number in range(first, first + AT_ONCE)), arguments=["--server-side"])

        def measured() -> bool:
            return all("lag" in (one.get("status") or {}) for one in kube.items(where))

        until(measured, "the lag of each is known", 400.0)
        leader = release.leader()
        (pod,) = [name_of(one) for one in release.pods() if name_of(one) in leader]

        began, (_, before) = time.monotonic(), figures(kube, pod)
        until(lambda: time.monotonic() > began + WATCHED, "time passes", 2 * WATCHED)
        memory, after = figures(kube, pod)
        rate = (after - before) / (time.monotonic() - began)
        print(f"\n{MANY} groups: {memory / 1e6:.0f} MB, {rate:.2f} calls per second")
        assert memory < MOST_BYTES
        assert rate < MOST_CALLS
    finally:
        kube.kubectl("delete", "cg", "--all", "-n", scene.name, "--wait=false")
        until(lambda: not kube.items(where), "all groups are gone", 400.0)
