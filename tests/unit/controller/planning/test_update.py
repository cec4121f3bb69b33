"""Which pods of an old revision go, and when all go before the first new one comes."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controller.model_parts import manifest
from tests.unit.controller.plan_parts import NOW, marks, pod, quiet, reasons, snapshot

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.planning.actions import (
    Action,
    CreatePod,
    DeletePod,
    Emit,
    EventReason,
    MarkDrain,
    NoteShared,
)
from rocketfleet.controller.planning.drain import drain_limit
from rocketfleet.controller.planning.plan import plan
from rocketfleet.controller.planning.snapshot import DrainMark, Pod, PodPhase, Snapshot
from rocketfleet.controller.reporting.conditions import ConditionVerdict, verdicts_of
from rocketfleet.controller.resources.shared_settings import shared_settings_of
from rocketfleet.wire.queue import MessageQueue

BEFORE = manifest(3)
SOME = {"subscriptions": [{"topic": "orders", "expression": "paid"}]}
AFTER = manifest(3, **SOME)


def old(ordinal: int, **changes: Any) -> Pod:
    return pod(ordinal, revision="old", **{"shared": shared_settings_of(BEFORE), **changes})


def new(ordinal: int, group: ConsumerGroup = AFTER, **changes: Any) -> Pod:
    return pod(ordinal, shared=shared_settings_of(group), **changes)


def seen(*pods: Pod, group: ConsumerGroup = AFTER, **changes: Any) -> Snapshot:
    return snapshot(*pods, **{"shared": shared_settings_of(group), **changes})


def created(actions: list[Action]) -> list[int]:
    return [action.ordinal for action in actions if isinstance(action, CreatePod)]


def progressing(group: ConsumerGroup, there: Snapshot) -> ConditionVerdict:
    return verdicts_of(group, there, None, None, NOW)[ConditionType.PROGRESSING]


def test_all_pods_with_other_subscriptions_go_before_the_first_new_one_comes() -> None:
    everybody = seen(old(0), old(1), old(2))
    actions = plan(AFTER, everybody, NOW)
    assert quiet(actions) == [MarkDrain(old(n), "recreate: subscriptions changed") for n in range(3)]
    (told,) = [action.event for action in actions if isinstance(action, Emit)]
    assert told.reason is EventReason.RECREATING
    assert "subscriptions changed" in told.message
    going = [old(n, drain=DrainMark(NOW - 1, "recreate")) for n in range(3)]
    assert created(plan(AFTER, seen(*going), NOW)) == []
    assert created(plan(AFTER, seen(going[2]), NOW)) == [], "one of them is still there"
    ended = replace(going[2], phase=PodPhase.SUCCEEDED, deleting=NOW + 5)
    assert created(plan(AFTER, seen(ended), NOW)) == []
    assert plan(AFTER, seen(), NOW) == [CreatePod(n) for n in range(3)]


def test_it_is_said_what_is_under_way() -> None:
    there = seen(old(0), old(1), old(2))
    verdict = progressing(AFTER, there)
    assert (verdict.status, verdict.reason) == (Truth.TRUE, "Recreate")
    assert "subscriptions changed: 3 pods" in verdict.message
    rolling = manifest(3, **SOME, update={"type": "Rolling"})
    verdict = progressing(rolling, seen(old(0), old(1), new(2, rolling), group=rolling))
    assert (verdict.status, verdict.reason) == (Truth.TRUE, "RollingUpdate")
    assert "different subscriptions are in the group side by side" in verdict.message


def test_what_members_may_differ_in_is_rolled_out() -> None:
    image = manifest(3, worker={"handler": "app:handle", "image": "registry/app:2"})
    there = seen(old(0), old(1), old(2), group=image)
    assert plan(image, there, NOW) == [MarkDrain(old(2), "rolling update")]


def test_with_type_recreate_all_go_whatever_changed() -> None:
    group = manifest(3, update={"type": "Recreate", "surge": 1})
    there = seen(old(0), old(1), old(2), group=group)
    actions = plan(group, there, NOW)
    assert marks(actions) == [0, 1, 2]
    assert created(actions) == []
    assert reasons(actions) == [EventReason.RECREATING]
    assert created(plan(group, seen(old(0), group=group), NOW)) == []
    assert plan(group, seen(*(new(n, group) for n in range(3)), group=group), NOW) == []


def test_with_type_rolling_members_that_differ_are_replaced_one_by_one_and_people_are_told() -> None:
    group = manifest(3, **SOME, update={"type": "Rolling"})
    actions = plan(group, seen(old(0), old(1), old(2), group=group), NOW)
    assert marks(actions) == [2]
    (told,) = [action.event for action in actions if isinstance(action, Emit)]
    assert (told.reason, told.warning) == (EventReason.MIXED, True)
    assert "different subscriptions are in the group side by side" in told.message
    assert created(plan(group, seen(old(0), old(1), group=group), NOW)) == [2]


def test_a_spark_driver_shuts_others_out_with_type_rolling_too() -> None:
    spark = {"engine": "Spark", "worker": None, "spark": {"pipeline": "a:b", "checkpoint": "/c"}}
    group = manifest(1, **spark, update={"type": "Rolling"})
    worker = old(0, engine=Engine.WORKER)
    assert quiet(plan(group, seen(worker, group=group), NOW)) == [MarkDrain(worker, "recreate: engine changed")]
    going = replace(worker, drain=DrainMark(NOW - 1, "recreate"))
    assert created(plan(group, seen(going, group=group), NOW)) == []


def test_an_extra_pod_with_the_old_settings_goes_with_the_others_and_none_is_added() -> None:
    group = manifest(2, **SOME, update={"surge": 1})
    assert created(plan(group, seen(old(0), old(1), group=group), NOW)) == []
    assert marks(plan(group, seen(old(0), old(1), old(2), group=group), NOW)) == [0, 1, 2]


def test_a_new_pod_beside_an_old_one_stays_and_the_old_one_goes() -> None:
    """As a former version of the operator, or a changed update.type, may have left them."""
    actions = plan(AFTER, seen(old(0), new(1), new(2)), NOW)
    assert marks(actions) == [0]
    assert created(plan(AFTER, seen(old(0), new(2)), NOW)) == []


def test_while_brokers_are_away_an_edit_waits() -> None:
    away: dict[str, Any] = {"reachable": False, "queues": None, "ownership": None}
    assert quiet(plan(AFTER, seen(old(0), old(1), old(2), **away), NOW)) == []
    broken = old(1, ready=False, trouble="CrashLoopBackOff")
    assert marks(plan(AFTER, seen(old(0), broken, old(2), **away), NOW)) == [1]
    assert created(plan(AFTER, seen(old(0), **away), NOW)) == []


# -- pods of an older operator ----------------------------------------------------------------------------------------


def test_an_upgrade_of_the_operator_recreates_nobody_s_group() -> None:
    """Their revision may be another, by a new default image: they are rolled as ever."""
    unknown = [pod(n, revision="old") for n in range(3)]
    assert marks(plan(AFTER, seen(*unknown), NOW)) == [2]
    fewer = {"consumeMode": "Concurrent"}
    assert marks(plan(AFTER, seen(*(replace(one, shared=fewer) for one in unknown)), NOW)) == [2]


@pytest.mark.parametrize("shared", [None, {"consumeMode": "Concurrent"}, {"subscriptions": "hashed otherwise"}])
def test_pods_of_the_present_revision_get_the_note_that_they_lack(shared: dict[str, str] | None) -> None:
    noted = shared_settings_of(AFTER)
    there = seen(new(0), pod(1, shared=shared), new(2))
    assert plan(AFTER, there, NOW) == [NoteShared(pod(1, shared=shared), noted)]
    outdated = old(1, shared=None)
    assert not [one for one in plan(AFTER, seen(new(0), outdated, new(2)), NOW) if isinstance(one, NoteShared)]


# -- another RocketMQ -------------------------------------------------------------------------------------------------


def test_offsets_at_a_rocketmq_that_the_manifest_left_cannot_be_read_back() -> None:
    moved = manifest(3, cluster={"nameServers": ["elsewhere:9876"]})
    outcome = DrainOutcome(True, {MessageQueue("orders", "broker-a", 0): 7})
    drained = old(0, phase=PodPhase.SUCCEEDED, ready=False, drain=DrainMark(NOW - 1, "recreate"), outcome=outcome)
    assert quiet(plan(moved, seen(drained, group=moved), NOW)) == [DeletePod(drained)], "its own word is what there is"
    behind = seen(drained, group=BEFORE, revision="other", committed={})
    assert DeletePod(drained) not in plan(BEFORE, behind, NOW)
    unconfirmed = replace(drained, outcome=replace(outcome, confirmed=False))
    assert DeletePod(unconfirmed) not in plan(moved, seen(unconfirmed, group=moved), NOW)
    late = replace(unconfirmed, drain=DrainMark(NOW - drain_limit(moved) - 1, "recreate"))
    assert reasons(plan(moved, seen(late, group=moved), NOW)) == [EventReason.OFFSETS_UNSAFE]
