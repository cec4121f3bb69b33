"""Objects as an operator of another version would leave them: keys that we do not know, anywhere, change nothing."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.controller.kube_objects import manifest
from tests.unit.controller.model_parts import QUEUES

from rocketfleet.api.checking import ManifestError, read_object, read_stored_object
from rocketfleet.api.names import FINALIZER
from rocketfleet.api.other_versions import read_status
from rocketfleet.api.status import ConsumerGroupStatus
from rocketfleet.controller.lag.scaling import first_history, policy_of
from rocketfleet.controller.planning.actions import MarkDrain
from rocketfleet.controller.planning.plan import plan
from rocketfleet.controller.planning.snapshot import Ownership, Pod, PodPhase, Snapshot
from rocketfleet.controller.planning.wanted import desired_replicas
from rocketfleet.controller.resources.pod import Defaults, build
from rocketfleet.controller.resources.revision import revision_of

NOW = 10_000.0
DEFAULTS = Defaults("worker:1", spark_image="spark:1")
FREE = {("spec", "template", "spec"), ("spec", "template", "metadata", "labels"), ("spec", "spark", "conf")}
QUEUE = {"topic": "orders", "broker": "broker-a", "queueId": 0}
SPECS: list[dict[str, Any]] = [
    {},
    {
        "replicas": None,
        "autoscaling": {"maxReplicas": 4, "targetLag": 10},
        "consume": {"threads": 3},
        "rebalance": {"handover": "Eager"},
        "shutdown": {"drainTimeoutSeconds": 5},
        "update": {"surge": 1},
    },
    {
        "cluster": {
            "nameServers": ["127.0.0.1:9876"],
            "credentials": {"secretName": "acl"},
            "tls": {"secretName": "tls"},
        },
        "allocation": {"strategy": "Config", "assignments": [{"ordinal": 0, "queues": [QUEUE]}]},
        "template": {"metadata": {"labels": {"team": "orders"}}, "spec": {"nodeSelector": {"disk": "ssd"}}},
    },
    {
        "engine": "Spark",
        "worker": None,
        "replicas": 1,
        "spark": {"pipeline": "shop:revenue", "checkpoint": "/data/c", "conf": {"spark.x": "1"}},
    },
]
STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "groupName": "orders",
    "desiredReplicas": 3,
    "revision": "abc",
    "queues": {"total": 4, "owned": 4, "unowned": 0, "shared": 0},
    "lag": {"messages": 7, "state": "OK"},
    "autoscaling": {
        "replicas": 3,
        "reason": "ScaledOut",
        "message": "m",
        "replicaRate": 5.5,
        "decisions": [
            {"at": "2026-01-31T08:00:00Z", "before": 1, "replicas": 3, "reason": "ScaledOut", "message": "m"}
        ],
    },
    "members": [{"pod": "orders-0", "clientId": "orders-0@u", "queues": 4, "state": "Ready"}],
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "AllReady",
            "message": "All pods are ready.",
            "lastTransitionTime": "2026-01-31T08:00:00Z",
            "observedGeneration": 1,
        }
    ],
}


def places_in(content: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every object in which a newer version might have one key more."""
    if path in FREE:
        return
    if isinstance(content, dict):
        yield path
        for key, held in content.items():
            yield from places_in(held, (*path, key))
    elif isinstance(content, list):
        for number, held in enumerate(content):
            yield from places_in(held, (*path, number))


def at(content: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        content = content[part]
    return content


names = st.text("abcdefgXYZ", min_size=1, max_size=6).map(lambda text: f"new{text}")
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)


def newer(data: st.DataObject, content: dict[str, Any], only: str | None = None) -> dict[str, Any]:
    """The content with keys of a version to come."""
    changed = copy.deepcopy(content)
    places = [path for path in places_in(content) if only is None or path[:1] == (only,)]
    for path in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=6)):
        at(changed, path)[data.draw(names)] = data.draw(values)
    return changed


def running(count: int, revision: str) -> tuple[Pod, ...]:
    return tuple(
        Pod(
            name=f"orders-{number}",
            ordinal=number,
            uid=f"u{number}",
            revision=revision,
            created=NOW - 500,
            phase=PodPhase.RUNNING,
            ready=True,
            ready_since=NOW - 400,
            client_ids=(f"orders-{number}@u{number}",),
        )
        for number in range(count)
    )


def snapshot_of(raw: dict[str, Any], **changes: Any) -> Snapshot:
    group, _ = read_stored_object(raw)
    revision = revision_of(group, DEFAULTS)
    pods = running(3, "of-another-revision")
    owners = {queue: frozenset({pods[n % 3].client_ids[0]}) for n, queue in enumerate(sorted(QUEUES))}
    made = Snapshot(
        pods=pods,
        revision=revision,
        finalizer=True,
        prepared=True,
        objects=True,
        reachable=True,
        queues=QUEUES,
        members=frozenset(pod.client_ids[0] for pod in pods),
        ownership=Ownership(owners),
        told=frozenset(pod.uid for pod in pods),
        last_desired=None if group.status is None else group.status.desired_replicas,
    )
    return replace(made, **changes)


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(SPECS), st.booleans())
def test_what_a_newer_version_adds_changes_neither_the_plan_nor_the_pods(
    data: st.DataObject, spec: dict[str, Any], deleting: bool
) -> None:
    raw = manifest(**spec)
    raw["metadata"] |= {"uid": "u", "finalizers": [FINALIZER]}
    raw["status"] = STATUS
    if deleting:
        raw["metadata"]["deletionTimestamp"] = "2026-01-31T08:00:00Z"
    known, nothing = read_stored_object(raw)
    assert nothing == []
    changed = {**newer(data, {key: held for key, held in raw.items() if key == "spec"}, "spec")}
    changed = {**raw, **changed, "status": newer(data, {"status": STATUS})["status"]}
    read, unknown = read_stored_object(changed)
    assert unknown or changed["spec"] == raw["spec"] or not _told(changed["spec"])
    assert (read.spec, read.status, read.metadata) == (known.spec, known.status, known.metadata)
    assert revision_of(read, DEFAULTS) == revision_of(known, DEFAULTS)
    assert build(read, 0, "r", DEFAULTS) == build(known, 0, "r", DEFAULTS)
    since = NOW - 1 if deleting else None
    plans = [plan(one, snapshot_of(made, deleting_since=since), NOW) for one, made in ((read, changed), (known, raw))]
    assert plans[0] == plans[1]
    if deleting:
        assert any(isinstance(action, MarkDrain) for action in plans[0])  # it is drained, not let go


def _told(spec: Any) -> bool:
    """Whether a key with a value was added: one that is null was not given."""
    return any(
        key.startswith("new") and value is not None
        for path in places_in({"spec": spec})
        for key, value in at({"spec": spec}, path).items()
    )


def test_unknown_keys_are_named_by_their_path() -> None:
    raw = manifest(consume={"threads": 3, "newLimit": 5}, newSection={"a": 1})
    raw["spec"]["subscriptions"][0]["newFilter"] = "x"
    _, unknown = read_stored_object(raw)
    assert unknown == ["spec.consume.newLimit", "spec.newSection", "spec.subscriptions[0].newFilter"]


def test_a_file_is_still_refused_with_what_was_meant() -> None:
    with pytest.raises(ManifestError, match="did you mean replicas"):
        read_object(manifest(replica=3))


def test_a_stored_object_that_is_wrong_otherwise_is_still_refused() -> None:
    with pytest.raises(ManifestError, match=r"spec\.engine"):
        read_stored_object(manifest(engine="Flink", newKey=1))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_status_is_read_as_far_as_it_can_be(data: st.DataObject) -> None:
    """Whatever one part has become, the others are kept."""
    broken = copy.deepcopy(STATUS)
    keys = data.draw(st.lists(st.sampled_from(sorted(STATUS)), min_size=1, max_size=3, unique=True))
    for key in keys:
        broken[key] = data.draw(st.sampled_from(["nonsense", {"newKey": 1}, [1], [{"newKey": 1}], -1.5]))
    read, whole = read_status(broken), read_status(STATUS)
    for key, field in (("revision", "revision"), ("queues", "queues"), ("autoscaling", "autoscaling")):
        if key not in keys:
            assert getattr(read, field) == getattr(whole, field)
    if "desiredReplicas" not in keys:
        assert read.desired_replicas == 3


@pytest.mark.parametrize("raw", [None, "text", 7, [], {}, {"newKey": {}}])
def test_a_status_that_says_nothing_is_an_empty_one(raw: Any) -> None:
    assert read_status(raw) == ConsumerGroupStatus()


def test_a_condition_of_an_unknown_type_is_read_and_an_incomplete_one_left_out() -> None:
    ready = STATUS["conditions"][0]
    read = read_status({"conditions": [{**ready, "type": "Stalled"}, {"type": "Ready"}, ready]})
    assert [one.type for one in read.conditions or ()] == ["Stalled", "Ready"]


def test_an_autoscaled_group_without_a_status_begins_with_the_pods_that_are_there() -> None:
    group, _ = read_stored_object(manifest(replicas=None, autoscaling={"maxReplicas": 9, "targetLag": 10}))
    policy = policy_of(group, 10.0)
    assert policy is not None
    assert first_history(group, policy, 5).replicas == 5
    snapshot = replace(snapshot_of(manifest()), last_desired=3)
    assert desired_replicas(group, snapshot) == 3
