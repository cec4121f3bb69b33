"""Fields changed in every way that their type knows, on a real Kubernetes: what is taken, what comes of it, and back.

Which values there are is told by the schema: tests/unit/controller/faults/mutations.py, where the same changes meet the
operator without a cluster. Here the API server itself says which of them it takes, and a group under traffic lives
through one change of each kind: a field of the pods, of their number, of how they go and come, of what all members have
to agree on, of the brokers' settings, and some that change nothing that runs.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.kube import GROUPS, Kube, Manifest, until
from tests.cluster.operator_release import NAMESPACE, Release
from tests.cluster.scene import GROUP, Scene
from tests.cluster.wrong_manifests import good
from tests.unit.controller.faults.mutations import accepted, mutations

SHARED = "rocketfleet.io/shared-settings"
SETTINGS = "rocketfleet.io/settings"
REVISION = "rocketfleet.io/revision"
# Field, value, and whether pods are replaced for it.
ALIVE: tuple[tuple[str, Any, bool], ...] = (
    ("consume", {"threads": 1}, True),
    ("consume", {"maxReconsumeTimes": 3}, True),
    ("consumeMode", "Concurrent", True),
    ("allocation", {"strategy": "AveragelyByCircle"}, True),
    ("rebalance", {"handoverTimeoutSeconds": 5}, True),
    ("shutdown", {"drainTimeoutSeconds": 15}, True),
    ("update", {"type": "Recreate"}, False),
    ("update", {"surge": 1}, False),
    ("allowIdleMembers", True, False),
    ("deletionPolicy", "DeleteAll", False),
)


def test_the_api_server_takes_what_fits_the_schema_and_keeps_the_rules(kube: Kube, release: Release) -> None:
    manifest = good("mutated", template={"metadata": {"labels": {"team": "shop"}}}, shutdown={"drainTimeoutSeconds": 5})
    path, wrong, count = f"{GROUPS}/namespaces/{NAMESPACE}/consumergroups", [], 0
    for mutation in mutations(manifest["spec"]):
        body = {**manifest, "spec": mutation.spec}
        status, answer = kube.call("POST", path, body, {"dryRun": "All"}, "application/json")
        count += 1
        if (status == 201) is not accepted(body, manifest) and not mutation.path.startswith("groupName"):
            wrong.append(f"{mutation}: {status} {answer[:300]!r}")
    print(f"{count} changes, and of {len(wrong)} the API server thinks otherwise")
    assert not wrong, "\n".join(wrong)
    assert count


def pods_of(scene: Scene) -> dict[str, tuple[str, str, str]]:
    """What the pods were made with."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["labels"][REVISION],
            pod["metadata"]["annotations"][SETTINGS],
            pod["metadata"]["annotations"][SHARED],
        )
        for pod in scene.pods()
    }


def uids_of(scene: Scene) -> set[str]:
    return {pod["metadata"]["uid"] for pod in scene.pods()}


@pytest.mark.parametrize(
    ("field", "value", "replaces"), ALIVE, ids=[f"{field}-{number}" for number, (field, _, _) in enumerate(ALIVE)]
)
def test_a_changed_field_has_its_effect_and_a_way_back(
    make_scene: Callable[..., Scene], field: str, value: Any, replaces: bool
) -> None:
    scene = make_scene()
    scene.start(replicas=2)
    original = scene.manifest(replicas=2)
    before, uids = pods_of(scene), uids_of(scene)

    changed: Manifest = copy.deepcopy(original)
    held = changed["spec"].get(field)
    changed["spec"][field] = {**held, **value} if isinstance(held, dict) else value
    scene.apply(changed)
    if replaces:
        until(lambda: not uids & uids_of(scene) or None, "all pods are others")
    scene.settle(2)
    assert (pods_of(scene) != before) is replaces
    if not replaces:
        assert uids_of(scene) == uids, "nothing in the pods was changed, and they were replaced"

    uids = uids_of(scene)
    scene.apply(original)
    if replaces:
        until(lambda: not uids & uids_of(scene) or None, "all pods are others again")
    scene.settle(2)
    assert pods_of(scene) == before, "it is not what it was"
    verdict = scene.finish()
    assert not verdict.repeated
    assert scene.kube.group(scene.name, GROUP) is None
