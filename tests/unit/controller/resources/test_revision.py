"""A revision changes with everything that a pod is made of, and with nothing else."""

from typing import Any

import pytest
from tests.unit.controller.model_parts import group_of

from rocketfleet.controller.resources.pod import Defaults
from rocketfleet.controller.resources.revision import revision_of

IN_PODS: list[dict[str, Any]] = [
    {"groupName": "other"},
    {"subscriptions": [{"topic": "orders", "expression": "paid"}]},
    {"cluster": {"nameServers": ["127.0.0.1:9877"]}},
    {"cluster": {"nameServers": ["127.0.0.1:9876"], "credentials": {"secretName": "acl"}}},
    {"consume": {"threads": 3}},
    {"rebalance": {"handover": "Eager"}},
    {"rebalance": {"lockMaxLiveSeconds": 30}},
    {"shutdown": {"drainTimeoutSeconds": 31}},
    {"shutdown": {"onTimeout": "Wait"}},
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
    {"consume": {"threads": 20}},  # the default, written out
    {"groupName": "orders"},
    {"worker": {"handler": "app:handle", "codeUpdate": "Ignore"}},
]


@pytest.mark.parametrize("change", IN_PODS, ids=str)
def test_a_change_of_the_pods_is_another_revision(change: dict[str, Any]) -> None:
    assert revision_of(group_of(**change), Defaults("worker:1")) != revision_of(group_of(), Defaults("worker:1"))


@pytest.mark.parametrize("change", NOT_IN_PODS, ids=str)
def test_a_change_beside_the_pods_is_the_same_revision(change: dict[str, Any]) -> None:
    assert revision_of(group_of(**change), Defaults("worker:1")) == revision_of(group_of(), Defaults("worker:1"))


def test_somebody_s_own_consumer_is_not_told_what_happens_when_a_drain_takes_too_long() -> None:
    template = {"spec": {"containers": [{"name": "consumer", "image": "theirs"}]}}
    theirs = {"engine": "Container", "worker": None, "template": template}
    waiting = group_of(**theirs, shutdown={"onTimeout": "Wait"})
    assert revision_of(waiting, Defaults("worker:1")) == revision_of(group_of(**theirs), Defaults("worker:1"))


def test_the_default_image_counts_only_where_it_is_used() -> None:
    own = group_of(worker={"handler": "app:handle", "image": "registry/app:1"})
    assert revision_of(group_of(), Defaults("worker:1")) != revision_of(group_of(), Defaults("worker:2"))
    assert revision_of(own, Defaults("worker:1")) == revision_of(own, Defaults("worker:2"))


@pytest.mark.parametrize(
    ("spec", "revision"),
    [
        ({}, "81cb1899c8"),
        ({"worker": {"handler": "app:handle", "codeConfigMap": "code", "processes": 2}}, "001a411805"),
        ({"shutdown": {"onTimeout": "Wait"}}, "40f41a00f8"),
    ],
)
def test_a_new_version_of_the_operator_does_not_change_it(spec: dict[str, Any], revision: str) -> None:
    """Written down: another value restarts everybody's consumers on an upgrade."""
    assert revision_of(group_of(**spec), Defaults("worker:1")) == revision


def test_it_is_a_label_value() -> None:
    assert revision_of(group_of(), Defaults("worker:1")).isalnum()
