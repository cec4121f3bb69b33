"""Several objects for one group: the oldest has it, the others run nothing and touch nothing."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.model_parts import manifest
from tests.unit.controller.plan_parts import NOW, marks, pod, quiet, reasons, snapshot

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.controller.planning import actions as act
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.controller.planning.claims import Claim, claim_of, holder, needed_by
from rocketfleet.controller.planning.plan import plan
from rocketfleet.controller.planning.snapshot import DrainMark, Snapshot
from rocketfleet.controller.reporting.conditions import verdicts_of

HERE = frozenset({"a:9876", "b:9876"})
MINE = Claim(GroupKey("shop", "orders"), "orders", HERE, 100.0)
OLDER = Claim(GroupKey("billing", "orders"), "orders", HERE, 90.0)

claims = st.builds(
    Claim,
    key=st.builds(GroupKey, st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"])),
    group_name=st.sampled_from(["orders", "refunds"]),
    name_servers=st.frozensets(st.sampled_from(["n1:1", "n2:1", "n3:1"]), min_size=1),
    created=st.sampled_from([None, 1.0, 2.0]),
)


@pytest.mark.parametrize(
    ("other", "has_it"),
    [
        (OLDER, True),
        (replace(OLDER, created=110.0), False),
        (replace(OLDER, created=100.0), True),  # in the same second: by name
        (replace(OLDER, created=100.0, key=GroupKey("z", "orders")), False),
        (replace(OLDER, created=None), False),
        (replace(OLDER, group_name="refunds"), False),
        (replace(OLDER, name_servers=frozenset({"c:9876"})), False),
        (replace(OLDER, name_servers=frozenset({"b:9876", "c:9876"})), True),
        (replace(MINE, created=1.0), False),  # it is this very object
    ],
)
def test_the_older_object_has_the_group(other: Claim, has_it: bool) -> None:
    assert holder(MINE, [MINE, other]) == (other if has_it else None)


def test_the_oldest_is_named() -> None:
    oldest = replace(OLDER, key=GroupKey("archive", "orders"), created=10.0)
    assert holder(MINE, [OLDER, oldest, MINE]) == oldest
    assert str(oldest) == "archive/orders"


@given(st.lists(claims, max_size=6, unique_by=lambda claim: claim.key))
def test_no_two_at_one_rocketmq_have_one_group_and_the_oldest_always_does(everybody: list[Claim]) -> None:
    having = [one for one in everybody if holder(one, everybody) is None]
    for one in having:
        for other in having:
            same = one.group_name == other.group_name and one.name_servers & other.name_servers
            assert one.key == other.key or not same
    if everybody:
        assert min(everybody, key=lambda claim: claim.rank) in having


@pytest.mark.parametrize(
    ("other", "misses_it"),
    [
        (OLDER, True),
        (replace(OLDER, created=110.0), True),  # a younger one would have it next
        (replace(OLDER, removes=True), False),
        (replace(OLDER, group_name="refunds"), False),
        (replace(OLDER, name_servers=frozenset({"c:9876"})), False),
        (replace(MINE, created=1.0), False),  # it is this very object
    ],
)
def test_a_group_stays_while_another_object_is_for_it(other: Claim, misses_it: bool) -> None:
    assert needed_by(MINE, [MINE, other]) == (other if misses_it else None)


@given(claims, claims)
def test_who_has_a_group_and_who_misses_it_agree_on_what_one_group_is(one: Claim, other: Claim) -> None:
    related = holder(one, [other]) is not None or holder(other, [one]) is not None
    assert related == (needed_by(one, [other]) is not None)


@pytest.mark.parametrize(
    ("deleting", "policy", "removes"),
    [(True, "DeleteOffsets", True), (True, "Retain", False), (True, None, False), (False, "DeleteAll", False)],
)
def test_only_an_object_that_is_being_deleted_can_take_the_group_along(
    deleting: bool, policy: str | None, removes: bool
) -> None:
    metadata = {"name": "orders"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})
    assert claim_of(metadata, {} if policy is None else {"deletionPolicy": policy}).removes is removes


def test_a_claim_is_read_from_an_object_however_broken() -> None:
    metadata = {"name": "orders", "namespace": "shop", "creationTimestamp": "1970-01-01T00:01:40Z"}
    spec: dict[str, Any] = {"cluster": {"nameServers": ["B:9876 ", "a:9876"]}}
    assert claim_of(metadata, spec) == MINE
    assert claim_of(metadata, spec | {"groupName": "g"}).group_name == "g"
    broken = claim_of({"name": "x", "creationTimestamp": "long ago"}, {"cluster": "none"})
    assert broken == Claim(GroupKey("default", "x"), "x", frozenset())


# -- what the planner makes of it -------------------------------------------------------------------------------------


def taken(*pods: Any, **changes: Any) -> Snapshot:
    return snapshot(*pods, **{"taken_by": "billing/orders", **changes})


def test_nothing_is_begun_for_a_group_that_another_object_has() -> None:
    actions = plan(manifest(2), taken(finalizer=False, prepared=False, objects=False, budget=None), NOW)
    assert quiet(actions) == []
    assert reasons(actions) == [EventReason.TAKEN]
    assert quiet(plan(manifest(2), taken(prepared=False, objects=False, budget=None), NOW)) == []


def test_what_runs_already_is_drained_though_brokers_are_away() -> None:
    there = taken(pod(0), pod(1), told=frozenset(), departed=frozenset({"dead"}))
    why = "the group belongs to billing/orders"
    assert quiet(plan(manifest(2), there, NOW)) == [act.MarkDrain(pod(0), why), act.MarkDrain(pod(1), why)]
    assert marks(plan(manifest(2), replace(there, reachable=False), NOW)) == [0, 1]
    assert quiet(plan(manifest(2), replace(there, finalizer=False), NOW)) == [act.AddFinalizer()]
    outdated = pod(0, revision="old", drain=DrainMark(NOW, why), ready=False, phase="Pending")
    assert "CreatePod" not in [type(one).__name__ for one in plan(manifest(2), taken(outdated), NOW)]


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_its_deletion_leaves_everything_at_the_broker(policy: str) -> None:
    group = manifest(2, deletionPolicy=policy)
    left: dict[str, Any] = {"departed": frozenset({"dead"}), "lingering": frozenset({"x"}), "deleting_since": NOW}
    assert plan(group, taken(**left), NOW) == [act.RemoveFinalizer()]
    late: list[act.Action] = plan(group, taken(**{**left, "deleting_since": NOW - 1e6}), NOW)
    assert act.DeleteGroup() not in late
    assert act.RemoveFinalizer() in late


@pytest.mark.parametrize("deleting", [None, NOW])
def test_it_is_said_whose_the_group_is(deleting: float | None) -> None:
    verdicts = verdicts_of(manifest(2), taken(deleting_since=deleting, reachable=None, queues=None), None, None, NOW)
    ready = verdicts[ConditionType.READY]
    assert (ready.status, ready.reason) == (Truth.FALSE, "GroupTaken")
    assert "billing/orders" in ready.message
    assert "another groupName" in ready.message
    assert verdicts[ConditionType.PROGRESSING].status is Truth.FALSE
