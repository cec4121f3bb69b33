"""The status: what it says in each situation, and that it says it once."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controller.model_parts import QUEUES, manifest
from tests.unit.controller.plan_parts import NOW, QUEUE, pod, snapshot
from tests.unit.controller.planning.test_plan import ASSIGNED, marked, old

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Autoscaling, Engine
from rocketfleet.api.status import (
    Condition,
    ConditionType,
    ConsumerGroupStatus,
    Lag,
    LastDrain,
    Scaling,
    SparkProgress,
    Truth,
)
from rocketfleet.base.timestamps import timestamp
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.planning.broker_trouble import BrokerTrouble
from rocketfleet.controller.planning.snapshot import Joining, Ownership, Pod, PodPhase, Snapshot
from rocketfleet.controller.reporting.conditions import START_SECONDS, ConditionVerdict
from rocketfleet.controller.reporting.lag_health import capitalised
from rocketfleet.controller.reporting.status import StatusInputs, differs, invalid_status, status_of
from rocketfleet.wire.queue import MessageQueue

EMPTY = ConsumerGroupStatus()
NOTHING = StatusInputs()


def status(group: ConsumerGroup, seen: Snapshot, memory: StatusInputs = NOTHING) -> ConsumerGroupStatus:
    return status_of(group, seen, memory, EMPTY, NOW)


def condition(found: ConsumerGroupStatus, kind: ConditionType) -> Condition:
    return next(one for one in found.conditions or () if one.type is kind)


def ready(group: ConsumerGroup, seen: Snapshot) -> tuple[str, str]:
    found = condition(status(group, seen), ConditionType.READY)
    return found.status.value, found.reason


WHOLE = snapshot(pod(0), pod(1))


def test_a_group_that_is_as_it_should_be() -> None:
    found = status(manifest(2), WHOLE)
    assert {one.type: (one.status, one.reason) for one in found.conditions or ()} == {
        ConditionType.READY: (Truth.TRUE, "AllReady"),
        ConditionType.PROGRESSING: (Truth.FALSE, "Settled"),
        ConditionType.BALANCED: (Truth.TRUE, "EachQueueOwnedOnce"),
        ConditionType.LAG_HEALTHY: (Truth.UNKNOWN, "NotMeasured"),
        ConditionType.BROKER_REACHABLE: (Truth.TRUE, "Reachable"),
        ConditionType.DRAINING: (Truth.FALSE, "NoDrain"),
        ConditionType.SUBSCRIPTIONS_CONSISTENT: (Truth.UNKNOWN, "NotObserved"),
    }
    assert (found.replicas, found.ready_replicas, found.updated_replicas, found.desired_replicas) == (2, 2, 2, 2)
    assert found.ready_summary == "2/2"
    assert found.selector == "rocketfleet.io/group=orders"
    assert found.queues is not None
    assert (found.queues.total, found.queues.owned, found.queues.unowned, found.queues.shared) == (4, 4, 0, 0)
    assert [(m.pod, m.client_id, m.queues, m.state) for m in found.members or ()] == [
        ("orders-0", "orders-0@u0", 2, "Ready"),
        ("orders-1", "orders-1@u1", 2, "Ready"),
    ]


@pytest.mark.parametrize(
    ("group", "seen", "expected"),
    [
        (manifest(1), snapshot(pod(0)), "The one pod is ready and has every queue."),
        (manifest(2), WHOLE, "All 2 pods are ready and share the queues."),
        (manifest(2, suspend=True), snapshot(marked(0)), "1 pod is still being drained."),
        (manifest(2), snapshot(pod(0)), "1 of 2 pods is ready."),
        (manifest(1), snapshot(), "0 of 1 pod is ready."),
    ],
)
def test_one_pod_is_not_called_pods(group: ConsumerGroup, seen: Snapshot, expected: str) -> None:
    assert condition(status(group, seen), ConditionType.READY).message == expected


def test_a_config_map_that_is_missing_is_said_where_it_stands_in_the_way() -> None:
    missing = "the ConfigMap orders-code with the code is not in namespace shop: create it"
    seen = replace(snapshot(pod(0)), code_missing=missing)
    found = status(manifest(2), seen)
    one = condition(found, ConditionType.READY)
    assert (one.status, one.reason) == (Truth.FALSE, "ConfigMapNotFound")
    assert one.message == "The ConfigMap orders-code with the code is not in namespace shop: create it."
    assert condition(found, ConditionType.PROGRESSING).status is Truth.FALSE  # waiting does not mend it
    assert ready(manifest(2), replace(WHOLE, code_missing=missing)) == ("True", "AllReady")  # all run with theirs


def test_everything_is_about_the_generation_that_was_seen() -> None:
    group = manifest(2)
    group = group.model_copy(update={"metadata": group.metadata.model_copy(update={"generation": 7})})
    found = status(group, WHOLE)
    assert found.observed_generation == 7
    assert {one.observed_generation for one in found.conditions or ()} == {7}


NOBODY = Ownership(dict.fromkeys(QUEUES, frozenset()))
SHARED = Ownership(dict.fromkeys(QUEUES, frozenset({"orders-0@u0", "orders-1@u1"})))


THEIRS = manifest(2, engine="Container")


def unseen(joining: Joining) -> Pod:
    """A pod of somebody's own consumer that runs, but is not counted as a member."""
    return pod(1, ready=False, joining=joining, client_ids=())


DELETES = manifest(2, deletionPolicy="DeleteAll")


@pytest.mark.parametrize(
    ("group", "seen", "expected"),
    [
        (manifest(2, suspend=True), snapshot(), ("True", "Suspended")),
        (manifest(2, suspend=True), snapshot(reachable=False, prepared=False), ("True", "Suspended")),
        (manifest(2, suspend=True), snapshot(marked(0)), ("False", "Suspending")),
        (manifest(0), snapshot(), ("True", "NoReplicas")),
        (manifest(0), snapshot(marked(0)), ("False", "Draining")),
        (manifest(9), snapshot(*(pod(i) for i in range(4))), ("True", "LimitedByQueues")),
        (manifest(2), snapshot(queues=frozenset(), last_desired=0), ("False", "NoQueues")),
        (manifest(2), replace(WHOLE, reachable=False), ("False", "BrokerUnreachable")),
        (manifest(2), replace(WHOLE, reachable=False, allowed=False), ("False", "NameServerNotAllowed")),
        (manifest(2), replace(WHOLE, prepared=False), ("False", "Preparing")),
        (manifest(2), snapshot(pod(0)), ("False", "PodsNotReady")),
        (manifest(2), snapshot(pod(0), pod(1, ready=False)), ("False", "PodsNotReady")),
        (manifest(2), snapshot(pod(0), pod(1, ready=False, trouble="ImagePullBackOff")), ("False", "PodTrouble")),
        (manifest(2), snapshot(pod(0), old(1)), ("False", "RollingUpdate")),
        (manifest(1), WHOLE, ("False", "ScalingIn")),
        (manifest(1), snapshot(pod(0), marked(1)), ("False", "Draining")),
        (manifest(2), replace(WHOLE, ownership=NOBODY), ("False", "NotBalanced")),
        (manifest(2), replace(WHOLE, ownership=SHARED), ("False", "NotBalanced")),
        (manifest(2), replace(WHOLE, ownership=Ownership({}, frozenset({"x"}))), ("False", "MembersSilent")),
        (manifest(2), replace(WHOLE, ownership=None), ("Unknown", "NotObserved")),
        (manifest(2), snapshot(queues=None, last_desired=None), ("Unknown", "NotObserved")),
        (manifest(2), replace(WHOLE, deleting_since=NOW), ("False", "Deleting")),
        (manifest(2), snapshot(deleting_since=NOW), ("False", "Deleting")),
        (manifest(2), snapshot(deleting_since=NOW, lingering=frozenset({"a"})), ("False", "Deleting")),
        (manifest(2), snapshot(deleting_since=NOW, members=frozenset({"a"})), ("False", "Deleting")),
        (DELETES, snapshot(deleting_since=NOW, members=frozenset({"a"})), ("False", "DeletionWaits")),
        (DELETES, snapshot(deleting_since=NOW, reachable=False), ("False", "DeletionWaits")),
        (manifest(2, messageModel="Broadcasting"), replace(WHOLE, ownership=None), ("True", "AllReady")),
        (THEIRS, snapshot(pod(0), unseen(Joining.MISSING)), ("False", "MembersJoining")),
        (THEIRS, snapshot(pod(0), unseen(Joining.AWAITED)), ("False", "MembersJoining")),
        (THEIRS, snapshot(old(0), unseen(Joining.MISSING)), ("False", "RollingUpdate")),
        (THEIRS, snapshot(pod(0), pod(1, joining=Joining.ASSUMED)), ("True", "AllReady")),
    ],
)
def test_ready(group: ConsumerGroup, seen: Snapshot, expected: tuple[str, str]) -> None:
    assert ready(group, seen) == expected


ELSEWHERE = MessageQueue("orders", "broker-b", 0)


@pytest.mark.parametrize(
    ("states", "reachable", "reason", "said"),
    [
        ({QUEUE: {"Owned"}}, True, "Reachable", "answer"),
        ({QUEUE: {"Wanted"}}, True, "Reachable", "answer"),  # a lock that another has
        ({QUEUE: {"Owned"}}, False, "BrokerUnreachable", "cannot be reached"),
        ({QUEUE: {"Standby"}, ELSEWHERE: {"Owned"}}, True, "MasterAway", "1 are consumed from a slave"),
        ({QUEUE: {"Standby"}, ELSEWHERE: {"Owned"}}, False, "MasterAway", "The master of broker-a is away"),
        ({QUEUE: {"Wanted"}, ELSEWHERE: {"Owned"}}, False, "MasterAway", "1 are not consumed"),
        ({QUEUE: {"Suspended", "Wanted"}}, False, "MasterAway", "The master of broker-a is away"),
        ({QUEUE: {"Leaving"}}, False, "BrokerUnreachable", "cannot be reached"),
        ({}, False, "BrokerUnreachable", "cannot be reached"),
    ],
)
def test_a_master_that_is_away_is_told_by_what_members_say_of_their_queues(
    states: dict[MessageQueue, set[str]], reachable: bool, reason: str, said: str
) -> None:
    seen = replace(WHOLE, reachable=reachable, states={queue: frozenset(them) for queue, them in states.items()})
    found = status(manifest(2), seen)
    told = condition(found, ConditionType.BROKER_REACHABLE)
    assert (told.status is Truth.TRUE, told.reason) == (reason == "Reachable", reason)
    assert said in told.message
    if reason == "MasterAway":
        assert condition(found, ConditionType.READY).reason == "MasterAway"
        assert condition(found, ConditionType.PROGRESSING).status is Truth.FALSE, "waiting does not mend it"


def test_a_group_is_not_balanced_before_its_members_have_joined() -> None:
    """Right after a pod has started each queue has one owner, an old one."""
    owners = Ownership(dict.fromkeys(QUEUES, frozenset({"orders-0@u0"})))
    for joining in (Joining.MISSING, Joining.AWAITED):
        seen = snapshot(pod(0), unseen(joining), ownership=owners)
        found = condition(status(THEIRS, seen), ConditionType.BALANCED)
        assert (found.status, found.reason) == (Truth.FALSE, "MembersJoining")
        assert "orders-1" in found.message
        assert status(THEIRS, seen).ready_replicas == 1


def test_what_is_taken_on_trust_is_said() -> None:
    found = status(THEIRS, snapshot(pod(0), pod(1, joining=Joining.ASSUMED)))
    for kind in (ConditionType.READY, ConditionType.BALANCED):
        assert condition(found, kind).status is Truth.TRUE
        assert "orders-1 cannot be told among the members" in condition(found, kind).message
    assert "told" not in condition(status(THEIRS, WHOLE), ConditionType.READY).message


def test_what_could_not_be_done_is_said() -> None:
    found = status(manifest(2), WHOLE, StatusInputs(trouble="the API server said no: quota exceeded"))
    assert condition(found, ConditionType.READY).reason == "ReconcileFailed"
    assert "quota" in condition(found, ConditionType.READY).message
    found = status(manifest(2), replace(WHOLE, reachable=False), StatusInputs(broker_trouble="127.0.0.1:9876 refused"))
    assert "refused" in condition(found, ConditionType.BROKER_REACHABLE).message


def test_config_that_leaves_queues_out_is_not_balanced_and_says_which() -> None:
    owners = Ownership({queue: frozenset({f"orders-{queue.queue_id + 1}@u"}) for queue in sorted(QUEUES)[:2]})
    seen = snapshot(pod(1), pod(2), ownership=owners)
    found = condition(status(manifest(3, allocation=ASSIGNED), seen), ConditionType.BALANCED)
    assert (found.status, found.reason) == (Truth.FALSE, "QueuesUnassigned")
    assert "orders@broker-a/2" in found.message


@pytest.mark.parametrize(
    ("changes", "waited", "reason", "word"),
    [
        ({}, 1, "Draining", "scale-in to 1"),
        ({}, 100, "DrainTimedOut", "orders-1"),
        ({"outcome": DrainOutcome(True, {QUEUE: 9}), "phase": PodPhase.SUCCEEDED}, 100, "OffsetsUnsafe", "2 behind"),
    ],
)
def test_draining_says_what_is_unsafe_and_by_how_much(
    changes: dict[str, Any], waited: float, reason: str, word: str
) -> None:
    seen = snapshot(pod(0), marked(1, waited=waited, **changes), committed={QUEUE: 7})
    found = condition(status(manifest(1), seen), ConditionType.DRAINING)
    assert (found.status, found.reason) == (Truth.TRUE, reason)
    assert word in found.message


def test_a_roll_that_waits_says_so_and_is_no_trouble() -> None:
    found = status(manifest(2), replace(WHOLE, may_roll=False))
    assert condition(found, ConditionType.READY).reason == "AllReady"
    waits = condition(found, ConditionType.PROGRESSING)
    assert (waits.status, waits.reason) == (Truth.TRUE, "RollWaits")
    assert "--max-rolling-groups" in waits.message
    away = status(manifest(2), replace(WHOLE, may_roll=False, reachable=False))
    assert condition(away, ConditionType.PROGRESSING).reason == "BrokerUnreachable"


def test_the_operator_that_wrote_it_is_named() -> None:
    assert status(manifest(2), WHOLE, StatusInputs(operator="system/rf")).operator == "system/rf"


def test_guests_are_shown_and_the_dead_are_not() -> None:
    seen = replace(
        WHOLE,
        members=frozenset({"orders-0@u0", "orders-1@u1", "java@1", "orders-2@dead"}),
        lingering=frozenset({"orders-2@dead"}),
    )
    members = status(manifest(2), seen).members or []
    assert [(m.client_id, m.state) for m in members if m.pod is None] == [("java@1", "Guest")]


def test_time_alone_changes_nothing() -> None:
    for seen in (WHOLE, snapshot(pod(0), marked(1)), snapshot(pod(0)), replace(WHOLE, reachable=False)):
        first = status_of(manifest(2), seen, NOTHING, EMPTY, NOW)
        again = status_of(manifest(2), seen, NOTHING, first, NOW + 10)
        assert again == first
        assert not differs(first, again)


def test_a_transition_has_its_time_and_a_mere_change_of_reason_has_not() -> None:
    first = status_of(manifest(2), snapshot(pod(0)), NOTHING, EMPTY, NOW)
    waiting = status_of(manifest(2), replace(WHOLE, ownership=NOBODY), NOTHING, first, NOW + 5)
    done = status_of(manifest(2), WHOLE, NOTHING, waiting, NOW + 9)
    times = [condition(one, ConditionType.READY).last_transition_time for one in (first, waiting, done)]
    assert times[0] == times[1] < times[2]
    assert differs(first, waiting)
    assert differs(waiting, done)


def test_what_is_not_known_now_stays_as_it_was() -> None:
    drain = LastDrain(pod="orders-1", verified=True, seconds=1.0, queues=2, completed_at="2026-01-31T08:00:00Z")
    first = status_of(manifest(2), WHOLE, StatusInputs(prepared="p", last_drain=drain), EMPTY, NOW)
    later = status_of(manifest(2), replace(WHOLE, queues=None, reachable=False), NOTHING, first, NOW + 1)
    assert (later.prepared, later.last_drain, later.queues) == ("p", drain, first.queues)


def test_lag_is_written_along_or_after_a_while_but_not_at_every_look() -> None:
    def with_lag(messages: int, second: int, state: str = "Fine") -> ConsumerGroupStatus:
        lag = Lag(messages=messages, state=state, observed_at=f"2026-01-31T08:00:{second:02}Z")
        return status_of(manifest(2), WHOLE, StatusInputs(lag=lag), EMPTY, NOW)

    assert not differs(with_lag(5, 0), with_lag(6, 1))
    assert differs(with_lag(5, 0), with_lag(6, 31))
    assert not differs(with_lag(5, 0), with_lag(5, 31))
    assert differs(with_lag(5, 0), with_lag(6, 1, "Behind"))


def test_lag_that_means_something_else_is_written_sooner_and_many_groups_write_less() -> None:
    targets = Autoscaling(max_replicas=4, target_lag=50, target_seconds=20)

    def with_lag(messages: int | None, at: int, seconds: float = 0.0) -> ConsumerGroupStatus:
        lag = Lag(messages=messages, seconds=seconds, state="OK", observed_at=timestamp(NOW + at))
        return status_of(manifest(2), WHOLE, StatusInputs(lag=lag), EMPTY, NOW)

    assert differs(with_lag(5, 0), with_lag(5000, 11), targets)
    assert not differs(with_lag(5, 0), with_lag(5000, 9), targets)
    assert not differs(with_lag(90, 0), with_lag(99, 11), targets)
    assert differs(with_lag(90, 0), with_lag(110, 11), targets)  # two replicas of 50
    assert differs(with_lag(90, 0, 18.0), with_lag(91, 11, 22.0), targets)
    assert differs(with_lag(None, 0), with_lag(91, 11), targets)
    assert not differs(with_lag(5, 0), with_lag(5000, 45), targets, groups=1000)
    assert not differs(with_lag(90, 0), with_lag(91, 95), targets, groups=1000)
    assert differs(with_lag(90, 0), with_lag(91, 101), targets, groups=1000)


def test_what_autoscaling_wants_is_written_and_how_it_stands_along_with_it() -> None:
    def with_scaling(replicas: int, message: str) -> ConsumerGroupStatus:
        scaling = Scaling(replicas=replicas, reason="Steady", message=message, replica_rate=float(len(message)))
        return status_of(manifest(2), WHOLE, StatusInputs(scaling=scaling), EMPTY, NOW)

    assert not differs(with_scaling(2, "10 messages wait"), with_scaling(2, "110 messages wait"))
    assert differs(with_scaling(2, "10 messages wait"), with_scaling(3, "10 messages wait"))


def test_members_show_the_lag_of_their_queues() -> None:
    client_id = WHOLE.pods[0].client_ids[0]
    status = status_of(manifest(2), WHOLE, StatusInputs(lag_of_members={client_id: 7}), EMPTY, NOW)
    lags = {member.client_id: member.lag for member in status.members or ()}
    assert lags.pop(client_id) == 7
    assert set(lags.values()) == {None}


def test_an_invalid_manifest_is_not_ready_and_leaves_the_rest_as_it_was() -> None:
    before = status(manifest(2), WHOLE)
    found = invalid_status(9, "spec.replicas: choose 0 or more", before, NOW + 1)
    one = condition(found, ConditionType.READY)
    assert (one.status, one.reason, one.observed_generation) == (Truth.FALSE, "InvalidSpec", 9)
    assert found.observed_generation == 9
    assert condition(found, ConditionType.BALANCED) == condition(before, ConditionType.BALANCED)
    assert found.members == before.members
    assert not differs(found, invalid_status(9, "spec.replicas: choose 0 or more", found, NOW + 50))


# -- Spark ------------------------------------------------------------------------------------------------------------

IN_SPARK = manifest(1, engine="Spark", worker=None, spark={"pipeline": "a:b", "checkpoint": "/c"})
DRIVEN = snapshot(pod(0, engine=Engine.SPARK))


def test_a_spark_group_has_one_member_with_every_queue() -> None:
    found = status(IN_SPARK, DRIVEN)
    assert condition(found, ConditionType.READY).status is Truth.TRUE
    assert condition(found, ConditionType.BALANCED).reason == "EachQueueOwnedOnce"
    assert found.queues is not None
    assert (found.queues.total, found.queues.owned) == (4, 4)
    assert [(member.pod, member.queues) for member in found.members or ()] == [("orders-0", 4)]


def test_somebody_else_in_a_spark_group_is_named() -> None:
    members = frozenset({"orders-0@u0", "worker@1"})
    found = condition(status(IN_SPARK, replace(DRIVEN, members=members)), ConditionType.BALANCED)
    assert (found.status, found.reason) == (Truth.FALSE, "OtherMembers")
    assert "worker@1" in found.message
    assert "orders-0@u0" not in found.message
    gone = replace(DRIVEN, members=members, lingering=frozenset({"worker@1"}))
    assert condition(status(IN_SPARK, gone), ConditionType.BALANCED).status is Truth.TRUE, "a pod that was there before"


def test_batches_are_written_with_the_lag_and_executors_at_once() -> None:
    def after(seconds: float, **spark: Any) -> ConsumerGroupStatus:
        lag = Lag(messages=0, state="OK", observed_at=timestamp(NOW + seconds))
        return ConsumerGroupStatus(lag=lag, spark=SparkProgress(**{"batch": 1, "executors": 1, "lost": 0, **spark}))

    assert not differs(after(0), after(5, batch=9))
    assert differs(after(0), after(60, batch=9))
    assert not differs(after(0), after(60))
    assert differs(after(0), after(0, executors=2))
    assert differs(after(0), after(0, lost=5))


def test_progress_is_kept_while_nobody_can_be_asked() -> None:
    known = StatusInputs(progress=SparkProgress(batch=7))
    before = status_of(IN_SPARK, DRIVEN, known, EMPTY, NOW)
    assert before.spark == SparkProgress(batch=7)
    assert status_of(IN_SPARK, DRIVEN, NOTHING, before, NOW).spark == SparkProgress(batch=7)
    assert status_of(manifest(2), WHOLE, NOTHING, before, NOW).spark is None, "another engine has none"


def test_a_deletion_that_cannot_go_on_says_why_and_how_to_end_it() -> None:
    state = snapshot(deleting_since=NOW)
    status = status_of(
        DELETES, state, StatusInputs(trouble="DeleteGroup: shop/other is for the same group"), EMPTY, NOW
    )
    ready = next(one for one in status.conditions or () if one.type is ConditionType.READY)
    assert ready.reason == "DeletionWaits"
    assert "shop/other is for the same group" in ready.message
    assert "deletionPolicy" in ready.message
    progressing = next(one for one in status.conditions or () if one.type is ConditionType.PROGRESSING)
    assert (progressing.status, progressing.reason) == (Truth.FALSE, "DeletionWaits")


FAILS = StatusInputs(lag_health=ConditionVerdict(Truth.FALSE, "Failing", "The handlers fail"))


@pytest.mark.parametrize(
    ("group", "seen", "memory", "state"),
    [
        (manifest(2), WHOLE, NOTHING, "Ready"),
        (manifest(2), WHOLE, FAILS, "Failing"),
        (
            manifest(2),
            WHOLE,
            StatusInputs(lag_health=ConditionVerdict(Truth.TRUE, "Skewed", "One queue has most")),
            "Ready",
        ),
        (manifest(2), snapshot(pod(0)), FAILS, "PodsNotReady"),
        (manifest(2, suspend=True), snapshot(), FAILS, "Suspended"),
        (manifest(2, suspend=True), snapshot(), NOTHING, "Suspended"),
        (manifest(2, suspend=True), snapshot(marked(0)), NOTHING, "Suspending"),
        (manifest(0), snapshot(), NOTHING, "NoReplicas"),
        (manifest(9), snapshot(*(pod(i) for i in range(4))), NOTHING, "LimitedByQueues"),
        (manifest(2), WHOLE, StatusInputs(trouble="quota"), "ReconcileFailed"),
        (manifest(2), replace(WHOLE, reachable=False), NOTHING, "BrokerUnreachable"),
        (
            manifest(2),
            replace(WHOLE, hindrance=BrokerTrouble.TOPIC_NOT_FOUND, reachable=False),
            NOTHING,
            "TopicNotFound",
        ),
    ],
)
def test_the_state_is_the_worst_of_the_conditions(
    group: ConsumerGroup, seen: Snapshot, memory: StatusInputs, state: str
) -> None:
    assert status(group, seen, memory).state == state
    assert invalid_status(1, "no", status(group, seen, memory), NOW).state == "InvalidSpec"


def test_ready_is_of_what_was_asked_for_where_no_queue_is_seen() -> None:
    missing = snapshot(queues=None, last_desired=0, reachable=False)
    assert status(manifest(2), missing).ready_summary == "0/2"
    assert status(manifest(2, suspend=True), snapshot(queues=None)).ready_summary == "0/0"
    assert status(manifest(9), snapshot(*(pod(i) for i in range(4)))).ready_summary == "4/4"


def test_a_pod_whose_containers_are_not_made_says_what_may_be_missing() -> None:
    starting = pod(1, ready=False, phase=PodPhase.PENDING, starting_since=NOW - START_SECONDS - 1)
    found = condition(status(manifest(2), snapshot(pod(0), starting)), ConditionType.READY)
    assert (found.status, found.reason) == (Truth.FALSE, "PodTrouble")
    assert "a ConfigMap or a Secret" in found.message
    assert "kubectl describe pod orders-1" in found.message
    young = replace(starting, starting_since=NOW - 1)
    assert ready(manifest(2), snapshot(pod(0), young)) == ("False", "PodsNotReady")


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("the lag in orders grew", "The lag in orders grew"),
        ("orders@broker-a/1 stands still", "orders@broker-a/1 stands still"),
        ("orders-0 has no queue", "orders-0 has no queue"),
        ("3 of 8 queues are not read", "3 of 8 queues are not read"),
        ("", ""),
    ],
)
def test_a_name_keeps_its_letters(sentence: str, shown: str) -> None:
    assert capitalised(sentence) == shown
