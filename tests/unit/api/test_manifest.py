"""Reading manifests: several documents, every mistake in one go, each in a line that says what to change."""

import json
from typing import Any

import pytest
import yaml
from tests.unit.api.groups import changed, good

from rocketfleet.api.checking import ManifestError, read_object
from rocketfleet.api.manifest import read_documents

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"spec.cluster": None}, "spec.cluster: is missing. The RocketMQ that the group consumes from."),
    ({"metadata.name": None}, "metadata.name: is missing."),
    ({"spec.replica": 3}, "spec.replica: there is no such key: did you mean replicas? there are groupName, cluster,"),
    (
        {"spec.subscriptions": [{"topic": "a", "tags": "b"}]},
        "spec.subscriptions[0].tags: there is no such key: there are topic, expression, type",
    ),
    ({"spec.replicas": "3"}, 'spec.replicas: is "3": give a whole number'),
    ({"spec.replicas": 2.5}, "spec.replicas: is 2.5: give a whole number"),
    ({"spec.replicas": -1}, "spec.replicas: is -1: give 0 or more"),
    ({"spec.suspend": "yes"}, 'spec.suspend: is "yes": give true or false'),
    ({"spec.groupName": 7}, "spec.groupName: is 7: give a text (in quotes, if YAML takes it for something else)"),
    ({"spec.groupName": "x" * 121}, "spec.groupName: is too long: give at most 120 characters"),
    ({"spec.subscriptions": []}, "spec.subscriptions: is too short: give at least 1 items"),
    ({"spec.subscriptions": {"topic": "a"}}, 'spec.subscriptions: is {"topic": "a"}: give a list'),
    ({"spec.engine": "worker"}, "spec.engine: is \"worker\": choose 'Worker', 'Container' or 'Spark'"),
    ({"spec.consume": 3}, "spec.consume: is 3: give an object with keys"),
    ({"spec.consumeTimestamp": "2026-01-31"}, 'spec.consumeTimestamp: is "2026-01-31", which has not the right form.'),
    (
        {"spec.template": {"spec": {"terminationGracePeriodSeconds": "60"}}},
        'spec.template.spec.terminationGracePeriodSeconds: is "60": give a whole number',
    ),
    (
        {"spec.template": {"spec": {"containers": [{"image": "i"}]}}},
        "spec.template.spec.containers[0].name: is missing.",
    ),
    ({"kind": "Consumer"}, 'kind is "Consumer": this reads ConsumerGroup of rocketfleet.io/v1alpha1'),
    ({"apiVersion": "rocketfleet.io/v2"}, 'apiVersion is "rocketfleet.io/v2", which is another version: write'),
    ({"spec.shutdown": {"drainTimeoutSeconds": float("inf")}}, "this is no JSON, which Kubernetes needs"),
]


@pytest.mark.parametrize(("changes", "line"), WRONG)
def test_a_mistake_is_one_line_that_says_what_to_change(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_object(changed(good(), changes))
    assert any(problem.startswith(line) for problem in caught.value.problems), caught.value.problems


def test_all_mistakes_of_a_file_are_named_with_their_document() -> None:
    first = changed(good(), {"spec.replicas": "3", "spec.enigne": "Worker"})
    second = changed(good(), {"metadata.name": "shop", "spec.worker.handler": "handle", "spec.worker.path": ""})
    third = changed(good(), {"metadata.name": "b", "spec.worker.handler": "handle", "spec.consumeMode": "Orderly"})
    with pytest.raises(ManifestError) as caught:
        read_documents(yaml.safe_dump_all([first, second, third]), "shop.yaml")
    assert [problem.partition(": ")[::2][0] for problem in caught.value.problems] == [
        "shop.yaml, document 1 (ConsumerGroup orders)",
        "shop.yaml, document 1 (ConsumerGroup orders)",
        "shop.yaml, document 2 (ConsumerGroup shop)",
        "shop.yaml, document 3 (ConsumerGroup b)",
    ]
    assert str(caught.value) == "\n".join(caught.value.problems)


def test_null_is_as_good_as_left_out_but_not_in_a_pod_s_spec() -> None:
    raw = changed(good(), {"spec.template": {"spec": {"nodeSelector": {"disk": None}}}})
    raw["spec"] |= {"replicas": None, "consume": {"threads": None}}
    group = read_object(raw)
    assert group.spec.replicas is None
    assert group.spec.consume.threads == 20
    assert group.spec.template is not None
    assert group.spec.template.spec == {"nodeSelector": {"disk": None}}


def test_an_object_of_a_cluster_is_read_whatever_its_status() -> None:
    raw = good() | {"status": {"replicas": 3, "ofAnotherVersion": True}}
    raw["metadata"] |= {"uid": "u", "resourceVersion": "7", "managedFields": [{"manager": "kubectl"}]}
    assert read_object(raw).status is not None
    raw["status"] = {"replicas": 3, "readyReplicas": 2}
    status = read_object(raw).status
    assert status is not None
    assert (status.replicas, status.ready_replicas) == (3, 2)


def test_a_time_without_quotes_is_a_text() -> None:
    raw = changed(good(), {"spec.consumeFromWhere": "Timestamp"})
    text = yaml.safe_dump(raw) + "  consumeTimestamp: 2026-01-31T08:00:00Z\n"
    (group,) = read_documents(text).groups
    assert group.spec.consume_timestamp == "2026-01-31T08:00:00Z"


def test_lists_empty_documents_and_json_are_read() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [good(), changed(good(), {"metadata.name": "shop"})]}
    assert [g.metadata.name for g in read_documents(f"---\n---\n{json.dumps(listed)}\n---\n").groups] == [
        "orders",
        "shop",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "shop.yaml is not YAML"),
        ("a: 1\na: 2\n", "the key a is twice"),
        ("a: {1: b}\n", "the key 1 is no text: put it in quotes"),
        ("- a\n", "shop.yaml is no object"),
        ("just words", "shop.yaml is no object"),
        ("", "there is no ConsumerGroup in it"),
        ("kind: Deployment\napiVersion: apps/v1\n", "kind 'Deployment' is not read here"),
        ("!!python/object/apply:os.system [ls]", "shop.yaml is not YAML"),
    ],
)
def test_what_is_no_manifest_is_refused(text: str, said: str) -> None:
    with pytest.raises(ManifestError, match=said.replace("(", r"\(")):
        read_documents(text, "shop.yaml")


def test_groups_that_would_mix_are_refused() -> None:
    twice = [good(), good()]
    with pytest.raises(ManifestError, match="orders stands here twice"):
        read_documents(yaml.safe_dump_all(twice))
    mixed = [good(), changed(good(), {"metadata.name": "shop", "spec.groupName": "orders"})]
    with pytest.raises(ManifestError, match="their members would mix"):
        read_documents(yaml.safe_dump_all(mixed))
    elsewhere = [good(), changed(mixed[1], {"spec.cluster.nameServers": ["elsewhere:9876"]})]
    assert len(read_documents(yaml.safe_dump_all(elsewhere)).groups) == 2


def test_config_maps_and_secrets_stand_beside_their_group() -> None:
    beside: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"a.py": "x = 1\n"}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "keys", "namespace": "shop"},
            "data": {"accessKey": "YWNjZXNz"},
            "stringData": {"secretKey": "sesame"},
        },
    ]
    found = read_documents(yaml.safe_dump_all([*beside, good()]))
    assert found.config_maps == {("default", "code"): {"a.py": "x = 1\n"}}
    assert found.secrets == {("shop", "keys"): {"accessKey": b"access", "secretKey": b"sesame"}}
    assert "sesame" not in repr(found)


def test_a_secret_s_content_is_in_no_message() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": {"secretKey": "open sesame!"}}
    with pytest.raises(ManifestError) as caught:
        read_documents(yaml.safe_dump_all([secret, good()]))
    assert "data.secretKey: is not base64" in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert caught.value.__cause__ is None
