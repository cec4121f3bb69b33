"""The planner's rules, one by one. What they come to together is in test_plan_model.py."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controller.model_parts import QUEUES, group_of, manifest
from tests.unit.controller.plan_parts import NOW, QUEUE, marks, pod, quiet, reasons, snapshot

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.planning import actions as act
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.controller.planning.drain import DELETION_MARGIN, drain_limit
from rocketfleet.controller.planning.plan import failed_pause, plan
from rocketfleet.controller.planning.snapshot import DrainMark, Evictions, Ownership, Pod, PodPhase, Snapshot
from rocketfleet.controller.planning.update import SETTLE_LIMIT
from rocketfleet.controller.planning.wanted import desired_replicas
from rocketfleet.wire.queue import MessageQueue


def marked(ordinal: int, waited: float = 1.0, **changes: Any) -> Pod:
    return pod(ordinal, drain=DrainMark(NOW - waited, "scale-in to 1"), **changes)


def with_shutdown(group: ConsumerGroup, **shutdown: Any) -> ConsumerGroup:
    made = group.spec.shutdown.model_validate(shutdown)
    return group.model_copy(update={"spec": group.spec.model_copy(update={"shutdown": made})})


def test_without_the_config_map_of_its_code_no_pod_is_made_and_none_is_replaced() -> None:
    missing = "the ConfigMap code is not there"
    assert quiet(plan(manifest(2), snapshot(pod(0), code_missing=missing), NOW)) == []
    outdated = snapshot(pod(0, revision="old"), pod(1, revision="old"), code_missing=missing)
    assert quiet(plan(manifest(2), outdated, NOW)) == []
    going = snapshot(pod(0), pod(1), code_missing=missing, last_desired=1)
    assert act.MarkDrain in {type(action) for action in plan(manifest(1), going, NOW)}  # who has to go, goes


def test_a_group_at_rest_needs_nothing() -> None:
    assert plan(manifest(2), snapshot(pod(0), pod(1)), NOW) == []


# -- the start --------------------------------------------------------------------------------------------------------


def test_the_finalizer_comes_first_and_alone() -> None:
    assert plan(manifest(2), snapshot(finalizer=False, prepared=False, objects=False), NOW) == [act.AddFinalizer()]


def test_no_pod_before_the_group_is_prepared() -> None:
    assert plan(manifest(2), snapshot(prepared=False, objects=False), NOW) == [act.PrepareGroup(), act.EnsureObjects()]
    assert plan(manifest(2), snapshot(objects=False), NOW) == [act.EnsureObjects()]
    assert plan(manifest(2), snapshot(prepared=False, reachable=False), NOW) == []


def test_missing_pods_are_created_at_once() -> None:
    assert plan(manifest(3), snapshot(pod(1)), NOW) == [act.CreatePod(0), act.CreatePod(2)]


def test_a_suspended_group_prepares_and_creates_nothing() -> None:
    assert plan(manifest(2, suspend=True), snapshot(prepared=False, objects=False), NOW) == []


@pytest.mark.parametrize(
    ("spec", "seen", "keep"),
    [
        ({"replicas": 3}, {}, 2),
        ({"replicas": 1}, {}, 0),
        ({"replicas": 0}, {}, 0),
        ({"replicas": None}, {}, 0),  # left out
        ({"replicas": 9}, {}, len(QUEUES) - 1),  # more than there are queues
        ({"replicas": 9, "allowIdleMembers": True}, {}, 8),
        ({"replicas": None, "autoscaling": {"minReplicas": 2, "maxReplicas": 4, "targetLag": 9}}, {"advised": 3}, 2),
    ],
)
def test_evictions_leave_all_pods_but_one(spec: dict[str, Any], seen: dict[str, Any], keep: int) -> None:
    group = group_of(**spec)
    for unlimited in (None, keep + 1):
        assert act.LimitEvictions(keep) in plan(group, snapshot(budget=unlimited, **seen), NOW)
    for limited in (keep, Evictions.NONE):
        actions = plan(group, snapshot(budget=limited, **seen), NOW)
        assert not any(isinstance(action, act.LimitEvictions) for action in actions)


def test_nobody_waits_for_the_limit_of_evictions() -> None:
    assert plan(manifest(1), snapshot(budget=None), NOW) == [act.LimitEvictions(0), act.CreatePod(0)]
    assert plan(manifest(2, suspend=True), snapshot(budget=None), NOW) == []


# -- how many ---------------------------------------------------------------------------------------------------------


def test_no_more_pods_than_queues_unless_asked_for() -> None:
    assert desired_replicas(manifest(9), snapshot()) == len(QUEUES)
    assert desired_replicas(manifest(9, allowIdleMembers=True), snapshot()) == 9
    assert desired_replicas(manifest(9, messageModel="Broadcasting"), snapshot()) == 9
    assert desired_replicas(manifest(9, worker={"handler": "a:b", "processes": 3}), snapshot()) == 2


@pytest.mark.parametrize("queues", [None, frozenset(), frozenset({QUEUE})])
def test_a_group_does_not_shrink_because_queues_are_missing(queues: frozenset[MessageQueue] | None) -> None:
    there = snapshot(pod(0), pod(1), queues=queues)
    assert not [action for action in plan(manifest(2), there, NOW) if isinstance(action, act.MarkDrain)]
    assert act.CreatePod(1) in plan(manifest(2), replace(there, pods=(pod(0),)), NOW), "nor while a pod is replaced"


def test_while_queues_are_not_known_a_group_does_not_grow() -> None:
    assert desired_replicas(manifest(4), snapshot(pod(0), queues=None)) == 1
    assert plan(manifest(4), snapshot(queues=None, last_desired=None), NOW) == []


def test_with_autoscaling_the_advice_counts_within_its_bounds() -> None:
    group = manifest().model_copy()
    spec = group.spec.model_validate(
        group.spec.model_dump(by_alias=True, exclude_none=True)
        | {"replicas": None, "autoscaling": {"minReplicas": 1, "maxReplicas": 3, "targetLag": 10}}
    )
    group = group.model_copy(update={"spec": spec})
    assert desired_replicas(group, snapshot(advised=2)) == 2
    assert desired_replicas(group, snapshot(advised=50)) == 3
    assert desired_replicas(group, snapshot(advised=None, last_desired=2)) == 2
    assert desired_replicas(group, snapshot(advised=None, last_desired=None)) == 1


ASSIGNED = {
    "strategy": "Config",
    "assignments": [
        {"ordinal": 1, "queues": [{"topic": "orders", "broker": "broker-a", "queueId": 0}]},
        {"ordinal": 2, "queues": [{"topic": "orders", "broker": "broker-a", "queueId": 1}]},
    ],
}


def test_config_runs_the_ordinals_that_have_queues() -> None:
    assert plan(manifest(4, allocation=ASSIGNED), snapshot(), NOW) == [act.CreatePod(1), act.CreatePod(2)]
    assert plan(manifest(2, allocation=ASSIGNED), snapshot(), NOW) == [act.CreatePod(1)]


def test_config_has_no_use_for_an_extra_pod() -> None:
    there = snapshot(pod(1, revision="old"), pod(2, revision="old"))
    actions = plan(manifest(3, allocation=ASSIGNED, update={"surge": 1}), there, NOW)
    assert not [action for action in actions if isinstance(action, act.CreatePod)]


# -- drains -----------------------------------------------------------------------------------------------------------


def test_all_pods_too_many_are_marked_at_once() -> None:
    actions = plan(manifest(1), snapshot(pod(0), pod(1), pod(2)), NOW)
    assert actions == [act.MarkDrain(pod(1), "scale-in to 1"), act.MarkDrain(pod(2), "scale-in to 1")]


def test_a_marked_pod_is_asked_until_it_has_drained() -> None:
    assert plan(manifest(1), snapshot(pod(0), marked(1)), NOW) == [act.RequestDrain(marked(1))]


@pytest.mark.parametrize(
    ("outcome", "committed", "goes"),
    [
        (DrainOutcome(True, {QUEUE: 7}), {QUEUE: 7}, True),
        (DrainOutcome(True, {QUEUE: 7}), {QUEUE: 8}, True),
        (DrainOutcome(True, {}), {}, True),
        (DrainOutcome(True), {}, True),
        (DrainOutcome(True, {QUEUE: 7}), {QUEUE: 6}, False),
        (DrainOutcome(True, {QUEUE: 7}), {}, False),
        (DrainOutcome(False, {QUEUE: 7}), {QUEUE: 7}, False),
        (DrainOutcome(False), {}, False),
        (None, {}, True),  # it has ended with code 0
    ],
)
def test_it_goes_when_its_offsets_are_read_back(
    outcome: DrainOutcome | None, committed: dict[MessageQueue, int], goes: bool
) -> None:
    ended = marked(1, phase=PodPhase.SUCCEEDED, ready=False, outcome=outcome)
    actions = plan(manifest(1), snapshot(pod(0), ended, committed=committed), NOW)
    assert (act.DeletePod(ended) in actions) == goes
    assert (EventReason.DRAINED in reasons(actions)) == goes


def test_a_broadcasting_member_keeps_its_own_offsets() -> None:
    ended = marked(1, phase=PodPhase.SUCCEEDED, ready=False, outcome=DrainOutcome(True, {QUEUE: 7}))
    group = manifest(1, messageModel="Broadcasting")
    assert quiet(plan(group, snapshot(pod(0), ended), NOW)) == [act.DeletePod(ended)]


def test_a_worker_that_came_back_after_an_unconfirmed_drain_is_asked_again() -> None:
    back = marked(1, outcome=DrainOutcome(False, {QUEUE: 7}))
    assert plan(manifest(1), snapshot(pod(0), back, committed={QUEUE: 7}), NOW) == [act.RequestDrain(back)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, EventReason.DRAIN_TIMED_OUT),
        ({"outcome": DrainOutcome(True, {QUEUE: 7}), "phase": PodPhase.SUCCEEDED}, EventReason.OFFSETS_UNSAFE),
    ],
)
def test_out_of_time_it_goes_or_stays_as_on_timeout_says(changes: dict[str, Any], reason: EventReason) -> None:
    late = marked(1, waited=drain_limit(manifest()) + 1, **changes)
    there = snapshot(pod(0), late, committed={QUEUE: 3})
    proceed = plan(manifest(1), there, NOW)
    assert quiet(proceed) == [act.DeletePod(late)]
    assert reasons(proceed) == [reason]
    waiting = with_shutdown(manifest(1), drainTimeoutSeconds=5, onTimeout="Wait")
    kept = plan(waiting, there, NOW)
    assert act.DeletePod(late) not in kept
    assert reasons(kept) == [reason]
    later = plan(waiting, there, NOW + 7)
    assert later == kept, "a text that changes with time would be told again and again"


def test_a_worker_that_waits_is_asked_on_and_kept_for_as_long_as_it_takes() -> None:
    group = with_shutdown(manifest(1), drainTimeoutSeconds=5, onTimeout="Wait")
    early, late = marked(1), marked(1, waited=86_400)
    assert plan(group, snapshot(pod(0), early), NOW) == [act.RequestDrain(early)]
    actions = plan(group, snapshot(pod(0), late), NOW)
    assert quiet(actions) == [act.RequestDrain(late)]
    assert reasons(actions) == [EventReason.DRAIN_TIMED_OUT]
    done = replace(late, outcome=DrainOutcome(True, {QUEUE: 7}, 80_000.0))
    actions = plan(group, snapshot(pod(0), done, committed={QUEUE: 7}), NOW)
    assert quiet(actions) == [act.DeletePod(done)]
    assert reasons(actions) == [EventReason.DRAINED]


@pytest.mark.parametrize("on_timeout", ["Proceed", "Wait"])
@pytest.mark.parametrize("phase", [PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED, PodPhase.PENDING])
def test_what_was_cut_short_is_said_though_every_offset_is_safe(phase: PodPhase, on_timeout: str) -> None:
    cut = marked(1, phase=phase, ready=False, outcome=DrainOutcome(True, {QUEUE: 7}, 5.0, unfinished=3))
    group = with_shutdown(manifest(1), drainTimeoutSeconds=5, onTimeout=on_timeout)
    actions = plan(group, snapshot(pod(0), cut, committed={QUEUE: 7}), NOW)
    assert quiet(actions) == [act.DeletePod(cut)]
    (told,) = [action.event for action in actions if isinstance(action, act.Emit)]
    assert (told.reason, told.warning) == (EventReason.DRAIN_TIMED_OUT, True)
    assert cut.name in told.message
    assert "3 messages were still being handled" in told.message


def test_what_was_cut_short_of_a_pod_that_others_deleted_is_said_too() -> None:
    evicted = pod(1, deleting=NOW + 5, outcome=DrainOutcome(True, {QUEUE: 7}, unfinished=1))
    actions = plan(manifest(2), snapshot(pod(0), evicted), NOW)
    assert reasons(actions) == [EventReason.DRAIN_TIMED_OUT]


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": PodPhase.PENDING, "ready": False},
        {"ready": False, "trouble": "CrashLoopBackOff"},
        {"phase": PodPhase.FAILED, "ready": False},
    ],
)
def test_a_marked_pod_that_does_not_run_goes_at_once(changes: dict[str, Any]) -> None:
    idle = marked(1, **changes)
    assert quiet(plan(manifest(1), snapshot(pod(0), idle), NOW)) == [act.DeletePod(idle)]


def test_somebody_s_own_consumer_drains_by_its_deletion() -> None:
    foreign = marked(1, engine=Engine.CONTAINER)
    assert quiet(plan(manifest(1), snapshot(pod(0), foreign), NOW)) == [act.DeletePod(foreign)]
    ours = marked(1, engine=Engine.WORKER)
    group = manifest(1, engine="Container")
    assert quiet(plan(group, snapshot(pod(0), ours), NOW)) == [act.RequestDrain(ours)], "it was made by our engine"


def test_a_wanted_pod_that_somebody_marked_is_drained_and_then_made_anew() -> None:
    asked = replace(marked(1), drain=DrainMark(NOW - 1, "asked for"))
    assert plan(manifest(2), snapshot(pod(0), asked), NOW) == [act.RequestDrain(asked)]
    done = replace(asked, phase=PodPhase.SUCCEEDED, outcome=DrainOutcome(True, {}))
    assert quiet(plan(manifest(2), snapshot(pod(0), done), NOW)) == [act.DeletePod(done)]
    gone = replace(done, deleting=NOW + 5)
    assert plan(manifest(2), snapshot(pod(0), gone), NOW) == []
    assert plan(manifest(2), snapshot(pod(0)), NOW) == [act.CreatePod(1)]


def test_without_brokers_scale_in_and_updates_wait_but_suspension_does_not() -> None:
    there = snapshot(pod(0), pod(1), reachable=False, queues=None, ownership=None)
    assert plan(manifest(1), there, NOW) == []
    old = snapshot(pod(0, revision="old"), pod(1, revision="old"), reachable=False, queues=None, ownership=None)
    assert plan(manifest(2), old, NOW) == []
    assert len(plan(manifest(2, suspend=True), there, NOW)) == 2
    assert len(plan(manifest(2), replace(there, deleting_since=NOW), NOW)) == 2


# -- pods that cannot be helped ---------------------------------------------------------------------------------------


def test_an_ended_pod_is_replaced() -> None:
    ended = pod(1, phase=PodPhase.SUCCEEDED, ready=False)
    actions = plan(manifest(2), snapshot(pod(0), ended), NOW)
    assert quiet(actions) == [act.DeletePod(ended)]
    assert reasons(actions) == [EventReason.REPLACED]


def test_a_failed_pod_is_replaced_after_a_pause() -> None:
    young = pod(1, phase=PodPhase.FAILED, ready=False, created=NOW - 2)
    assert plan(manifest(2), snapshot(pod(0), young), NOW) == []
    assert quiet(plan(manifest(2), snapshot(pod(0), young), NOW + 30)) == [act.DeletePod(young)]
    assert quiet(plan(manifest(1), snapshot(pod(0), young), NOW)) == [act.DeletePod(young)], "nobody waits for it"


@pytest.mark.parametrize("ordinal", [-1, 1])
def test_a_pod_whose_label_is_wrong_is_drained_and_its_name_left_alone(ordinal: int) -> None:
    wrong = replace(pod(0), ordinal=ordinal)
    actions = plan(manifest(2), snapshot(wrong, pod(1)), NOW)
    assert [action.pod for action in actions if isinstance(action, act.MarkDrain)] == [wrong]
    assert not [action for action in actions if isinstance(action, act.CreatePod)], "orders-0 is still there"


# -- updates ----------------------------------------------------------------------------------------------------------


def old(ordinal: int, **changes: Any) -> Pod:
    return pod(ordinal, revision="old", **changes)


def test_an_update_takes_one_pod_at_a_time_the_last_first() -> None:
    assert marks(plan(manifest(3), snapshot(old(0), old(1), old(2)), NOW)) == [2]
    assert marks(plan(manifest(3), snapshot(old(0), old(1), replace(marked(2), revision="old")), NOW)) == []
    assert marks(plan(manifest(3), snapshot(old(0), old(1)), NOW)) == [], "it is not back yet"
    assert marks(plan(manifest(3), snapshot(old(0), old(1), pod(2, ready=False)), NOW)) == []
    assert marks(plan(manifest(3), snapshot(old(0), old(1), pod(2)), NOW)) == [1]


def test_an_update_waits_for_the_queues_but_not_for_ever() -> None:
    nobody = Ownership(dict.fromkeys(QUEUES, frozenset()))
    there = snapshot(old(0), pod(1, ready_since=NOW), ownership=nobody)
    assert marks(plan(manifest(2), there, NOW + 1)) == []
    assert marks(plan(manifest(2), there, NOW + SETTLE_LIMIT)) == [0]


def test_an_update_begins_with_what_is_not_well() -> None:
    assert marks(plan(manifest(3), snapshot(old(0, ready=False), old(1), old(2)), NOW)) == [0]
    broken = [old(ordinal, ready=False, trouble="ImagePullBackOff") for ordinal in range(3)]
    assert marks(plan(manifest(3), snapshot(*broken), NOW)) == [0, 1, 2], "they hold nothing"


def test_a_broken_update_stops_at_the_first_pod() -> None:
    there = snapshot(old(0), old(1), pod(2, ready=False, trouble="exit code 2"))
    assert plan(manifest(3), there, NOW + 10 * SETTLE_LIMIT) == []


SURGING = manifest(2, update={"surge": 1})


def test_a_roll_that_has_to_wait_touches_nothing_that_works() -> None:
    there = snapshot(old(0), old(1), old(2), may_roll=False)
    assert plan(manifest(3), there, NOW) == []
    assert plan(SURGING, snapshot(old(0), old(1), may_roll=False), NOW) == []
    broken = old(0, ready=False, trouble="ImagePullBackOff")
    assert marks(plan(manifest(3), snapshot(broken, old(1), old(2), may_roll=False), NOW)) == [0], "it holds nothing"


def test_failed_pods_are_replaced_less_and_less_often() -> None:
    assert [failed_pause(failures) for failures in (0, 1, 2, 4, 5, 9, 10_000)] == [10, 20, 40, 160, 300, 300, 300]
    failed = pod(0, phase=PodPhase.FAILED, ready=False, created=NOW - 30)
    for failures, goes in ((0, True), (1, True), (2, False)):
        actions = plan(manifest(1), snapshot(replace(failed, failures=failures)), NOW)
        assert any(isinstance(action, act.DeletePod) for action in actions) is goes


def test_a_manifest_that_is_mended_does_not_wait_for_failures_before_it() -> None:
    failed = pod(0, phase=PodPhase.FAILED, ready=False, created=NOW - 1, failures=9, revision="old")
    assert quiet(plan(manifest(1), snapshot(failed), NOW)) == [act.DeletePod(failed)]


def test_an_update_with_surge_adds_a_pod_first_and_removes_it_last() -> None:
    assert plan(SURGING, snapshot(old(0), old(1)), NOW) == [act.CreatePod(2)]
    assert marks(plan(SURGING, snapshot(old(0), old(1), pod(2, ready=False)), NOW)) == []
    assert marks(plan(SURGING, snapshot(old(0), old(1), pod(2)), NOW)) == [1]
    assert plan(SURGING, snapshot(old(0), pod(2)), NOW) == [act.CreatePod(1)]
    assert marks(plan(SURGING, snapshot(old(0), pod(1), pod(2)), NOW)) == [0]
    assert plan(SURGING, snapshot(pod(1), pod(2)), NOW) == [act.CreatePod(0)]
    assert plan(SURGING, snapshot(pod(0, ready=False, ready_since=None, created=NOW), pod(1), pod(2)), NOW) == []
    assert marks(plan(SURGING, snapshot(pod(0), pod(1), pod(2)), NOW)) == [2]


def test_an_extra_pod_that_cannot_stand_in_is_replaced_by_the_next_update() -> None:
    assert marks(plan(SURGING, snapshot(old(0), old(1), old(2, ready=False)), NOW)) == [2]
    assert marks(plan(SURGING, snapshot(old(0), old(1), old(2)), NOW)) == [1], "one that can need not be"


def test_without_an_update_surge_makes_no_difference() -> None:
    assert plan(SURGING, snapshot(pod(0), pod(1)), NOW) == []
    assert plan(SURGING, snapshot(pod(0)), NOW) == [act.CreatePod(1)]


# -- members ----------------------------------------------------------------------------------------------------------


def test_members_are_told_when_they_are_others_than_before() -> None:
    there = snapshot(pod(0), pod(1), told=frozenset({"u0"}))
    assert plan(manifest(2), there, NOW) == [act.TellMembers((pod(0), pod(1)))]
    broken = pod(1, ready=False, trouble="CrashLoopBackOff")
    assert plan(manifest(2), snapshot(pod(0), broken, told=frozenset({"u0"})), NOW) == []
    assert plan(manifest(2, engine="Container"), there, NOW) == []


def test_locks_of_the_dead_are_released_when_a_broker_answers() -> None:
    departed = frozenset({"orders-1@gone"})
    assert plan(manifest(1), snapshot(pod(0), departed=departed), NOW) == [act.ReleaseLocks(departed)]
    assert plan(manifest(1), snapshot(pod(0), departed=departed, reachable=False), NOW) == []


# -- the end ----------------------------------------------------------------------------------------------------------


def deleted(*pods: Pod, since: float = NOW, **changes: Any) -> Snapshot:
    return snapshot(*pods, deleting_since=since, **changes)


LONG_AGO = NOW - drain_limit(manifest()) - DELETION_MARGIN - 1


def test_a_deletion_drains_everybody_and_ends_when_nobody_is_left() -> None:
    assert marks(plan(manifest(2), deleted(pod(0), pod(1)), NOW)) == [0, 1]
    assert plan(manifest(2), deleted(pod(0, ready=False, deleting=NOW + 5)), NOW) == []
    assert plan(manifest(2), deleted(), NOW) == [act.RemoveFinalizer()]


@pytest.mark.parametrize("left", [{"departed": frozenset({"a"})}, {"lingering": frozenset({"a"})}])
def test_a_deletion_waits_for_locks_and_members_but_not_for_ever(left: dict[str, Any]) -> None:
    assert act.RemoveFinalizer() not in plan(manifest(), deleted(**left), NOW)
    assert act.RemoveFinalizer() in plan(manifest(), deleted(since=LONG_AGO, **left), NOW)


def test_a_deletion_ends_even_if_drains_may_wait_for_ever() -> None:
    group = with_shutdown(manifest(1), drainTimeoutSeconds=5, onTimeout="Wait")
    hanging = marked(0, waited=60)
    assert act.DeletePod(hanging) not in plan(group, deleted(hanging, since=NOW - 60), NOW)
    actions = plan(group, deleted(hanging, since=LONG_AGO), NOW)
    assert quiet(actions) == [act.DeletePod(hanging)]
    assert reasons(actions) == [EventReason.DELETION_GAVE_UP]


def test_a_broker_that_lacks_something_is_prepared_while_another_is_away() -> None:
    state = snapshot(*[pod(n) for n in range(2)], prepared=False, lacking=frozenset({"broker-b"}), reachable=False)
    assert act.PrepareGroup() in plan(manifest(2), state, NOW)
    assert act.PrepareGroup() not in plan(manifest(2), replace(state, lacking=frozenset()), NOW)
    assert act.PrepareGroup() not in plan(manifest(2, suspend=True), state, NOW)
    missing = replace(state, pods=state.pods[:1], prepared=True, reachable=True)
    assert quiet(plan(manifest(2), missing, NOW))[:2] == [act.PrepareGroup(), act.CreatePod(1)], (
        "no pod waits for that broker"
    )


def test_a_deletion_that_is_late_does_not_begin_to_drain_what_it_deletes() -> None:
    """The operator was away for as long as a deletion may take."""
    forgotten = pod(0)
    assert quiet(plan(manifest(1), deleted(forgotten, since=LONG_AGO), NOW))[0] == act.DeletePod(forgotten)
    assert not [
        one for one in plan(manifest(1), deleted(forgotten, since=LONG_AGO), NOW) if isinstance(one, act.MarkDrain)
    ]


@pytest.mark.parametrize(
    "hindrance", [{"reachable": False}, {"members": None}, {"members": frozenset({"guest"})}], ids=str
)
def test_the_group_is_deleted_at_the_broker_only_when_nobody_uses_it(hindrance: dict[str, Any]) -> None:
    group = manifest(deletionPolicy="DeleteOffsets")
    assert plan(group, deleted(), NOW) == [act.DeleteGroup(), act.RemoveFinalizer()]
    waits = plan(group, deleted(**hindrance), NOW)
    assert quiet(waits) == []
    assert reasons(waits) == [EventReason.DELETION_WAITS]
    late = plan(group, deleted(since=LONG_AGO, **hindrance), NOW)
    assert quiet(late) == [act.RemoveFinalizer()]
    assert reasons(late) == [EventReason.DELETION_GAVE_UP]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Retain", []),
        ("Delete", [act.DeleteGroup(topics_too=False)]),
        ("DeleteOffsets", [act.DeleteGroup(topics_too=False)]),
        ("DeleteAll", [act.DeleteGroup(topics_too=True)]),
    ],
)
def test_what_goes_with_the_object(policy: str, expected: list[act.Action]) -> None:
    assert plan(manifest(deletionPolicy=policy), deleted(), NOW) == [*expected, act.RemoveFinalizer()]


def test_a_deletion_that_waits_says_for_whom_and_how_to_end_it() -> None:
    state = deleted(members=frozenset({"guest-1", "guest-2"}))
    (told,) = plan(manifest(deletionPolicy="DeleteAll"), state, NOW)
    assert isinstance(told, act.Emit)
    assert told.event.warning
    assert "2 members that are not its pods still consume in the group: guest-1, guest-2" in told.event.message
    assert '--type merge -p \'{"spec":{"deletionPolicy":"Retain"}}\'' in told.event.message
    assert plan(manifest(), state, NOW) == [act.RemoveFinalizer()], "Retain waits for nobody else's members"


def test_a_deletion_waits_for_its_own_members_to_leave_the_brokers() -> None:
    state = deleted(members=frozenset({"orders-0@u"}), lingering=frozenset({"orders-0@u"}))
    (told,) = plan(manifest(), state, NOW)
    assert isinstance(told, act.Emit)
    assert "orders-0@u" in told.event.message
    assert not told.event.warning
    assert plan(manifest(), replace(state, deleting_since=LONG_AGO), NOW)[-1] == act.RemoveFinalizer()


def test_an_object_without_our_finalizer_that_goes_is_left_alone() -> None:
    assert plan(manifest(1), deleted(pod(0), finalizer=False), NOW) == []


# -- Spark ------------------------------------------------------------------------------------------------------------

SPARK = {"engine": "Spark", "worker": None, "spark": {"pipeline": "a:b", "checkpoint": "/c"}}


def driver(**changes: Any) -> Pod:
    return pod(0, engine=Engine.SPARK, **changes)


@pytest.mark.parametrize(("asked", "expected"), [(None, [act.CreatePod(0)]), (1, [act.CreatePod(0)]), (0, [])])
def test_a_spark_group_has_one_driver_or_none(asked: int | None, expected: list[act.Action]) -> None:
    assert quiet(plan(group_of(replicas=asked, **SPARK), snapshot(), NOW)) == expected


def test_a_driver_of_an_old_revision_goes_before_its_successor_comes() -> None:
    group = group_of(**SPARK, update={"surge": 1})
    old_one = driver(revision="old")
    assert quiet(plan(group, snapshot(old_one), NOW)) == [act.MarkDrain(old_one, "rolling update")]
    going = driver(revision="old", drain=DrainMark(NOW - 1, "rolling update"))
    assert quiet(plan(group, snapshot(going), NOW)) == [act.RequestDrain(going)]
    assert quiet(plan(group, snapshot(), NOW)) == [act.CreatePod(0)]


def test_a_driver_comes_when_the_last_worker_is_gone() -> None:
    workers = [pod(n, engine=Engine.WORKER, revision="old") for n in range(3)]
    group = group_of(**SPARK)
    actions = quiet(plan(group, snapshot(*workers), NOW))
    assert {action.pod.ordinal for action in actions if isinstance(action, act.MarkDrain)} == {0, 1, 2}
    left = pod(2, engine=Engine.WORKER, revision="old", drain=DrainMark(NOW - 1, "scale-in to 1"))
    assert not [action for action in plan(group, snapshot(left), NOW) if isinstance(action, act.CreatePod)]


def test_workers_come_when_the_driver_is_gone() -> None:
    outdated = driver(revision="old")
    group = manifest(3)
    assert quiet(plan(group, snapshot(outdated), NOW)) == [act.MarkDrain(outdated, "recreate: engine changed")]
    going = driver(revision="old", drain=DrainMark(NOW - 1, "recreate: engine changed"))
    assert not [action for action in plan(group, snapshot(going), NOW) if isinstance(action, act.CreatePod)]
    assert quiet(plan(group, snapshot(), NOW)) == [act.CreatePod(n) for n in range(3)]
