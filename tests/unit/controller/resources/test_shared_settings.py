"""What members have to agree on: the aspects of a manifest, and when two of them differ."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.model_parts import group_of

from rocketfleet.controller.resources.shared_settings import (
    canonical,
    decode,
    differing,
    elsewhere,
    encode,
    shared_settings_of,
)

THEIRS = {"spec": {"containers": [{"name": "consumer", "image": "theirs"}]}}
CONTAINER = {"engine": "Container", "worker": None, "template": THEIRS}

TOGETHER: list[tuple[dict[str, Any], str]] = [
    ({"subscriptions": [{"topic": "orders", "expression": "paid"}]}, "subscriptions"),
    ({"subscriptions": [{"topic": "orders", "expression": "a > 1", "type": "SQL92"}]}, "subscriptions"),
    ({"subscriptions": [{"topic": "orders"}, {"topic": "refunds"}]}, "subscriptions"),
    ({"messageModel": "Broadcasting"}, "messageModel"),
    ({"consumeMode": "Orderly"}, "consumeMode"),
    ({"rebalance": {"handover": "Eager"}}, "rebalance.handover"),
    ({"allocation": {"strategy": "Averagely"}}, "allocation"),
    ({"cluster": {"nameServers": ["127.0.0.1:9877"]}}, "cluster.nameServers"),
    (CONTAINER, "engine"),
]
ONE_BY_ONE: list[dict[str, Any]] = [
    {"worker": {"handler": "app:handle", "image": "registry/app:2"}},
    {"worker": {"handler": "app:other", "processes": 3}},
    {"template": {"metadata": {"labels": {"team": "orders"}}}},
    {"consume": {"threads": 3, "batchSize": 8}},
    {"shutdown": {"drainTimeoutSeconds": 31}},
    {"rebalance": {"handoverTimeoutSeconds": 3}},
    {"consumeFromWhere": "FirstOffset"},
    {"cluster": {"nameServers": ["127.0.0.1:9876"], "credentials": {"secretName": "acl"}, "tls": {}}},
    {"replicas": 7, "update": {"surge": 1}},
]


@pytest.mark.parametrize(("change", "aspect"), TOGETHER, ids=str)
def test_members_have_to_agree_on(change: dict[str, Any], aspect: str) -> None:
    assert differing(shared_settings_of(group_of()), shared_settings_of(group_of(**change))) == (aspect,)


@pytest.mark.parametrize("change", ONE_BY_ONE, ids=str)
def test_members_may_differ_in(change: dict[str, Any]) -> None:
    assert shared_settings_of(group_of()) == shared_settings_of(group_of(**change))


def test_what_means_the_same_is_the_same() -> None:
    servers = ["a:9876", "b:9876"]
    one = group_of(
        subscriptions=[{"topic": "orders", "expression": "a||b"}, {"topic": "refunds"}],
        cluster={"nameServers": servers},
    )
    other = group_of(
        subscriptions=[{"topic": "refunds", "expression": "*"}, {"topic": "orders", "expression": "b || a"}],
        cluster={"nameServers": servers[::-1]},
    )
    assert shared_settings_of(one) == shared_settings_of(other)


def test_somebody_s_own_consumer_locks_and_shares_out_its_own_way() -> None:
    theirs = shared_settings_of(group_of(**CONTAINER))
    assert shared_settings_of(group_of(**CONTAINER, rebalance={"handover": "Eager"})) == theirs
    assert shared_settings_of(group_of(**CONTAINER, allocation={"strategy": "Averagely"})) == theirs


def test_what_one_of_them_does_not_say_counts_as_agreed() -> None:
    whole = shared_settings_of(group_of())
    fewer = {key: value for key, value in whole.items() if key != "allocation"}
    assert differing(whole, None) == differing(None, whole) == differing(whole, fewer) == ()
    assert differing(fewer, shared_settings_of(group_of(consumeMode="Orderly"))) == ("consumeMode",)


def test_the_hashes_stay_what_they_are() -> None:
    """A version in which they are others would recreate every group when it is installed."""
    group = group_of(
        subscriptions=[
            {"topic": "orders", "expression": "b || a"},
            {"topic": "x", "expression": "n > 1", "type": "SQL92"},
        ],
        cluster={"nameServers": ["b:9876", "a:9876"]},
        allocation={"strategy": "ConsistentHash", "virtualNodes": 3},
    )
    assert encode(shared_settings_of(group)) == (
        '{"allocation":"65ed76d146","cluster":"827ab2dde6","consumeMode":"Concurrent","engine":"Worker",'
        '"handover":"Exclusive","messageModel":"Clustering","subscriptions":"2fa589737b"}'
    )


@given(st.dictionaries(st.text(), st.text()))
def test_it_is_kept_with_a_pod_and_read_again(shared: dict[str, str]) -> None:
    assert decode(encode(shared)) == shared


@pytest.mark.parametrize("text", [None, "", "no json", "[]", '{"a": 1}', 7])
def test_a_note_that_makes_no_sense_is_none(text: object) -> None:
    assert decode(text) is None


@pytest.mark.parametrize(
    ("kind", "expression", "same"),
    [("TAG", "*", ("Tag", "*")), ("Tag", "", ("Tag", "*")), ("TAG", " b|| a||b", ("Tag", "a || b")),
     ("SQL92", " a > 1 ", ("SQL92", "a > 1"))],
)  # fmt: skip
def test_an_expression_has_one_form(kind: str, expression: str, same: tuple[str, str]) -> None:
    assert canonical(kind, expression) == same


def test_another_cluster_is_elsewhere() -> None:
    here, there = group_of(), group_of(cluster={"nameServers": ["b:9876"]})
    assert elsewhere(shared_settings_of(here), shared_settings_of(there))
    assert not elsewhere(shared_settings_of(here), shared_settings_of(group_of(consumeMode="Orderly")))
    assert not elsewhere(None, shared_settings_of(there))
