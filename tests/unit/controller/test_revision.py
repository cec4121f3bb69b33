"""A revision changes with everything that a pod is made of, and with nothing else."""

from typing import Any

import pytest
from tests.unit.controller.model_parts import group_of

from rocketfleet.controller.pod import Defaults
from rocketfleet.controller.revision import revision_of

IN_PODS: list[dict[str, Any]] = [
    {"groupName": "other"},
    {"subscriptions": [{"topic": "orders", "expression": "paid"}]},
    {"cluster": {"nameServers": ["127.0.0.1:9877"]}},
    {"cluster": {"nameServers": ["127.0.0.1:9876"], "credentials": {"secretName": "acl"}}},
    {"consume": {"threads": 3}},
    {"rebalance": {"handover": "Eager"}},
    {"shutdown": {"drainTimeoutSeconds": 31}},
    {"worker": {"handler": "app:other"}},
    {"worker": {"handler": "app:handle", "image": "registry/app:2"}},
    {"allocation": {"strategy": "Averagely"}},
    {"template": {"metadata": {"labels": {"team": "orders"}}}},
    {"template": {"spec": {"priorityClassName": "high"}}},
]
NOT_IN_PODS: list[dict[str, Any]] = [
    {"replicas": 5},
    {"suspend": True},
    {"allowIdleMembers": True},
    {"autoscaling": {"maxReplicas": 3, "targetLag": 10}},
    {"update": {"surge": 1}},
    {"deletionPolicy": "Delete"},
    {"shutdown": {"onTimeout": "Wait"}},
    {"consume": {"threads": 20}},  # the default, written out
    {"groupName": "orders"},
]


@pytest.mark.parametrize("change", IN_PODS, ids=str)
def test_a_change_of_the_pods_is_another_revision(change: dict[str, Any]) -> None:
    assert revision_of(group_of(**change), Defaults("worker:1")) != revision_of(group_of(), Defaults("worker:1"))


@pytest.mark.parametrize("change", NOT_IN_PODS, ids=str)
def test_a_change_beside_the_pods_is_the_same_revision(change: dict[str, Any]) -> None:
    assert revision_of(group_of(**change), Defaults("worker:1")) == revision_of(group_of(), Defaults("worker:1"))


def test_the_default_image_counts_only_where_it_is_used() -> None:
    own = group_of(worker={"handler": "app:handle", "image": "registry/app:1"})
    assert revision_of(group_of(), Defaults("worker:1")) != revision_of(group_of(), Defaults("worker:2"))
    assert revision_of(own, Defaults("worker:1")) == revision_of(own, Defaults("worker:2"))


def test_it_is_a_label_value() -> None:
    assert revision_of(group_of(), Defaults("worker:1")).isalnum()
