"""Passes over a group: it comes to rest, says what it did, and survives what is around it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import until
from tests.unit.controller.stage import (
    QUEUES,
    Stage,
    StageBackend,
    StageBrokers,
    StageWorkers,
    away,
    client_id,
    group_of,
)

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.api.names import FINALIZER, REBALANCE_REQUESTED
from rocketfleet.api.status import ConditionType, LastDrain, LastRebalance, Truth
from rocketfleet.base.timestamps import timestamp
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.controller.planning.claims import Claim
from rocketfleet.controller.planning.preparation import BrokerFindings, GroupBroker
from rocketfleet.controller.planning.rebalance_tracking import Rebalanced, SharingSeen, Tracking, track
from rocketfleet.controller.reconciling.reconcile import AT_REST, MOVING, TAKEN_PAUSE, TELL_AGAIN, Reconciler
from rocketfleet.controller.resources.code import Code, parts_of
from rocketfleet.wire.queue import MessageQueue


class Passes:
    """A stage and its reconciler; time passes as the reconciler asks for."""

    def __init__(self, stage: Stage | None = None) -> None:
        self.stage = stage or Stage()
        self.brokers = StageBrokers(self.stage)
        self.woken: list[tuple[str, str]] = []
        self.rebalanced: list[LastRebalance] = []
        self.drained: list[LastDrain] = []
        self.reconciler = self.another()
        self.stage.drained.set()

    def another(self) -> Reconciler:
        return Reconciler(
            StageBackend(self.stage),
            self.brokers,
            workers=StageWorkers(self.stage),
            wake=self.woken.append,
            clock=self.stage.clock,
            ticks=self.stage.clock,
            rebalanced=self.rebalanced.append,
            drained=self.drained.append,
        )

    async def once(self) -> float:
        pause = (await self.reconciler.reconcile(self.stage.group)).after
        for state in list(self.reconciler._states.values()):
            await until(lambda state=state: not state.applied.tasks)  # type: ignore[misc]
        self.stage.now += pause
        return pause

    async def to_rest(self, most: int = 60) -> None:
        for _ in range(most):
            if await self.once() == AT_REST:
                return
        raise AssertionError(f"not at rest after {most} passes: {self.stage.calls}")

    def scale(self, replicas: int) -> None:
        group = self.stage.group
        spec = group.spec.model_copy(update={"replicas": replicas})
        metadata = group.metadata.model_copy(update={"generation": group.metadata.generation + 1})
        self.stage.group = group.model_copy(update={"spec": spec, "metadata": metadata})

    def request(self, moment: str) -> None:
        group = self.stage.group
        metadata = group.metadata.model_copy(update={"annotations": {REBALANCE_REQUESTED: moment}})
        self.stage.group = group.model_copy(update={"metadata": metadata})

    def condition(self, kind: ConditionType) -> tuple[Truth, str]:
        status = self.stage.group.status
        assert status is not None
        found = next(one for one in status.conditions or () if one.type is kind)
        return found.status, found.message

    def reasons(self) -> list[EventReason]:
        return [event.reason for event in self.stage.events]


async def test_a_new_group_comes_to_rest_and_then_nothing_is_written() -> None:
    passes = Passes()
    await passes.to_rest()
    assert sorted(pod.ordinal for pod in passes.stage.pods.values()) == [0, 1]
    assert passes.condition(ConditionType.READY)[0] is Truth.TRUE
    assert passes.stage.calls.index("prepare") < passes.stage.calls.index("create 0")
    written = len(passes.stage.written)
    for _ in range(5):
        assert await passes.once() == AT_REST
    assert len(passes.stage.written) == written


async def test_fewer_pods_than_asked_for_are_explained_once_for_each_number() -> None:
    def said() -> list[str]:
        return [event.message for event in passes.stage.events if event.reason is EventReason.LIMITED_BY_QUEUES]

    passes = Passes()
    await passes.to_rest()
    passes.scale(len(QUEUES))
    await passes.to_rest()
    assert said() == []
    passes.scale(len(QUEUES) + 2)
    await passes.to_rest()
    await passes.once()
    expected = f"{len(QUEUES)} pods run, not {len(QUEUES) + 2}: more would have no queue to consume from"
    assert said() == [expected]
    passes.scale(len(QUEUES))
    await passes.to_rest()
    passes.scale(len(QUEUES) + 2)
    await passes.to_rest()
    assert said() == [expected, expected]


async def test_scaling_in_drains_and_verifies_before_it_deletes() -> None:
    passes = Passes()
    await passes.to_rest()
    passes.stage.calls.clear()
    passes.scale(1)
    await passes.to_rest()
    order = [call for call in passes.stage.calls if "orders-1" in call]
    assert order == ["mark orders-1", "drain orders-1", "delete orders-1"]
    status = passes.stage.group.status
    assert status is not None
    assert status.last_drain is not None
    assert status.last_drain.verified
    assert passes.drained == [status.last_drain]
    assert EventReason.DRAINED in passes.reasons()


async def test_a_drain_goes_on_under_another_reconciler() -> None:
    passes = Passes()
    await passes.to_rest()
    passes.stage.drained.clear()
    passes.scale(1)
    for _ in range(3):
        await passes.reconciler.reconcile(passes.stage.group)
    await until(lambda: "drain orders-1" in passes.stage.calls)
    await passes.reconciler.close()
    passes.reconciler = passes.another()
    passes.stage.drained.set()
    await passes.to_rest()
    assert [pod.ordinal for pod in passes.stage.pods.values()] == [0]
    assert passes.stage.calls.count("mark orders-1") == 1


OTHER = Claim(GroupKey("billing", "orders"), "orders", frozenset({"127.0.0.1:9876"}), 1.0)


async def test_a_group_that_another_object_has_is_left_alone_until_that_is_gone() -> None:
    passes = Passes()
    passes.stage.claims = [OTHER]
    for _ in range(5):
        await passes.once()
    assert passes.stage.calls == ["status"], "nothing at the brokers, no pod, no finalizer"
    assert passes.condition(ConditionType.READY)[0] is Truth.FALSE
    assert "billing/orders" in passes.condition(ConditionType.READY)[1]
    assert EventReason.TAKEN in passes.reasons()
    assert await passes.once() == TAKEN_PAUSE
    passes.stage.claims = []
    await passes.to_rest()
    assert len(passes.stage.pods) == 2
    assert passes.condition(ConditionType.READY)[0] is Truth.TRUE


async def test_members_of_a_group_that_turns_out_to_be_another_s_are_drained() -> None:
    passes = Passes()
    await passes.to_rest()
    passes.stage.claims = [OTHER]
    for _ in range(20):
        await passes.once()
    assert not passes.stage.pods
    assert passes.stage.calls.count("drain orders-0") == 1
    assert "release" not in passes.stage.calls


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_object_that_never_had_its_group_does_not_delete_it(restarted: bool) -> None:
    """Both objects are deleted, and the one that has the group is gone first."""
    passes = Passes(Stage(group_of(deletionPolicy="Delete")))
    passes.stage.claims = [OTHER]
    metadata = passes.stage.group.metadata.model_copy(update={"finalizers": [FINALIZER]})
    passes.stage.group = passes.stage.group.model_copy(update={"metadata": metadata})
    await passes.once()
    metadata = metadata.model_copy(update={"deletion_timestamp": "2026-01-02T03:04:05Z"})
    passes.stage.group = passes.stage.group.model_copy(update={"metadata": metadata})
    passes.stage.claims = []
    if restarted:
        passes.reconciler = passes.another()
    await passes.once()
    assert "no finalizer" in passes.stage.calls
    assert "delete group" not in passes.stage.calls


async def test_brokers_that_are_away_are_said_once_and_looked_for_less_and_less_often() -> None:
    passes = Passes()
    await passes.to_rest()
    passes.stage.broker_error = away()
    pauses = [await passes.once() for _ in range(12)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == AT_REST
    truth, message = passes.condition(ConditionType.BROKER_REACHABLE)
    assert truth is Truth.FALSE
    assert "connection refused" in message
    assert passes.reasons().count(EventReason.UNREACHABLE) == 1
    assert len(passes.stage.pods) == 2
    passes.stage.broker_error = None
    await passes.to_rest()
    assert passes.condition(ConditionType.BROKER_REACHABLE)[0] is Truth.TRUE


async def test_a_backend_that_is_away_does_not_end_the_loop() -> None:
    passes = Passes()
    await passes.to_rest()
    passes.stage.backend_error = "the API server does not answer"
    pauses = [await passes.once() for _ in range(7)]
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0]
    passes.stage.backend_error = None
    await passes.to_rest()


async def test_a_rebalance_is_timed_and_told() -> None:
    passes = Passes(Stage(group_of(1)))
    await passes.to_rest()
    passes.scale(2)
    await passes.to_rest()
    status = passes.stage.group.status
    assert status is not None
    assert status.last_rebalance is not None
    assert status.last_rebalance.reason == "from 1 to 2 members"
    assert status.last_rebalance.moved == 2
    assert status.last_rebalance.generation == 2
    assert passes.reasons().count(EventReason.REBALANCED) == len(passes.rebalanced) == 2
    assert passes.rebalanced[-1] == status.last_rebalance


async def test_members_that_do_not_share_out_the_queues_are_told_again() -> None:
    passes = Passes()
    await passes.to_rest()
    passes.stage.owners.clear()
    passes.stage.calls.clear()
    since = passes.stage.now
    for _ in range(60):
        assert await passes.once() <= 5.0
    told = passes.stage.calls.count("tell uid-0-1")
    assert 2 <= told <= (passes.stage.now - since) / TELL_AGAIN


async def test_a_rebalance_that_somebody_asks_for_is_told_once() -> None:
    passes = Passes()
    passes.request("long ago")
    await passes.to_rest()
    passes.stage.calls.clear()
    await passes.to_rest()
    assert "tell uid-0-1" not in passes.stage.calls, "what was asked for before we came is not owed"
    passes.request("now")
    await passes.to_rest()
    await passes.to_rest()
    assert passes.stage.calls.count("tell uid-0-1") == 1


async def test_an_object_that_was_made_again_starts_with_a_clean_memory() -> None:
    passes = Passes()
    await passes.to_rest()
    metadata = passes.stage.group.metadata.model_copy(update={"uid": "u2"})
    passes.stage.group = passes.stage.group.model_copy(update={"metadata": metadata, "status": None})
    before = passes.reconciler._states[passes.stage.group.key]
    before.observed.preparation.looks["broker-z"] = BrokerFindings(GroupBroker(None, 0, frozenset()), "w", again=2e9)
    passes.stage.lacking = {"broker-a"}
    passes.stage.calls.clear()
    await passes.to_rest()
    assert "prepare" in passes.stage.calls
    assert passes.stage.known is not None
    assert "broker-z" not in passes.stage.known.looks
    assert passes.reconciler._states[passes.stage.group.key].uid == "u2"


async def test_a_deletion_that_waits_for_others_is_looked_at_soon_and_ends_when_they_are_gone() -> None:
    passes = Passes(Stage(group_of(0, deletionPolicy="DeleteAll")))
    await passes.to_rest()
    passes.stage.members.add("guest")
    metadata = passes.stage.group.metadata.model_copy(update={"deletion_timestamp": timestamp(passes.stage.now)})
    passes.stage.group = passes.stage.group.model_copy(update={"metadata": metadata})
    for _ in range(20):
        assert await passes.once() < AT_REST
    truth, message = passes.condition(ConditionType.READY)
    assert truth is Truth.FALSE
    assert "guest" in message
    assert EventReason.DELETION_WAITS in passes.reasons()
    assert "no finalizer" not in passes.stage.calls
    passes.stage.members.clear()
    await passes.once()
    assert passes.stage.calls[-3:] == ["delete group and topics", "no finalizer", "status"]


async def test_what_is_forgotten_holds_no_task_and_no_connection() -> None:
    passes = Passes()
    await passes.to_rest()
    passes.stage.drained.clear()
    passes.scale(0)
    state = passes.reconciler._states[passes.stage.group.key]
    for _ in range(3):
        assert (await passes.reconciler.reconcile(passes.stage.group)).after == MOVING
    assert state.applied.tasks
    tasks = list(state.applied.tasks.values())
    await passes.reconciler.forget(passes.stage.group.key)
    assert all(task.done() for task in tasks)
    assert passes.brokers.forgotten == [passes.stage.group.key]


async def test_as_many_pods_as_there_should_be_but_one_are_kept_through_evictions() -> None:
    passes = Passes()
    await passes.to_rest()
    assert passes.stage.kept == 1
    for replicas, kept in ((1, 0), (9, len(QUEUES) - 1)):
        passes.scale(replicas)
        await passes.to_rest()
        assert passes.stage.kept == kept


async def test_a_group_of_somebody_s_own_consumers_is_ready_when_they_have_joined() -> None:
    passes = Passes(Stage(group_of(engine="Container", worker=None, template=THEIRS)))
    passes.stage.joins = False
    for _ in range(20):
        await passes.once()
    assert len(passes.stage.pods) == 2
    assert passes.condition(ConditionType.READY)[0] is Truth.FALSE
    assert "not seen among the members" in passes.condition(ConditionType.READY)[1]
    for pod in passes.stage.pods.values():
        passes.stage.members.add(client_id(pod))
    passes.stage.deal()
    await passes.to_rest()
    assert passes.condition(ConditionType.READY)[0] is Truth.TRUE
    assert passes.condition(ConditionType.BALANCED)[0] is Truth.TRUE


THEIRS = {"spec": {"containers": [{"name": "consumer", "image": "theirs", "command": ["java"]}]}}


async def test_locks_of_a_pod_that_vanished_are_released() -> None:
    passes = Passes()
    await passes.to_rest()
    pod = passes.stage.pods.pop("uid-1-2")
    passes.stage.members.discard(client_id(pod))
    await passes.to_rest()
    assert passes.stage.released == {client_id(pod)}
    assert sorted(pod.ordinal for pod in passes.stage.pods.values()) == [0, 1]


# -- tracking ---------------------------------------------------------------------------------------------------------


def owned_by(*members: str) -> dict[MessageQueue, frozenset[str]]:
    return {queue: frozenset({members[n % len(members)]}) for n, queue in enumerate(QUEUES)}


def seen(members: set[str], owners: Mapping[MessageQueue, frozenset[str]], *, agreed: bool = True) -> SharingSeen:
    return SharingSeen(frozenset(members), owners, balanced=len(owners) == len(QUEUES), agreed=agreed)


def test_a_group_that_is_found_at_rest_has_not_been_rebalanced() -> None:
    state, done = track(Tracking(), seen({"a"}, owned_by("a")), 5.0)
    assert done is None
    assert track(state, seen({"a"}, owned_by("a")), 6.0) == (state, None)


def test_the_moment_right_after_a_member_has_joined_is_the_beginning_and_not_the_end() -> None:
    state, _ = track(Tracking(), seen({"a"}, owned_by("a")), 0.0)
    state, done = track(state, seen({"a", "b"}, owned_by("a"), agreed=False), 10.0)
    assert done is None
    state, done = track(state, seen({"a", "b"}, {}, agreed=False), 11.0)
    assert done is None
    state, done = track(state, seen({"a", "b"}, owned_by("a", "b")), 12.5)
    assert done is not None
    assert (done.moved, done.seconds) == (2, 2.5)
    assert track(state, seen({"a", "b"}, owned_by("a", "b")), 13.0)[1] is None


def test_whoever_takes_over_in_the_middle_does_not_say_how_it_was_before() -> None:
    state, _ = track(Tracking(), seen({"a", "b"}, {}, agreed=False), 1.0)
    _, done = track(state, seen({"a", "b"}, owned_by("a", "b")), 2.0)
    assert done == Rebalanced("members changed; there are 2", None, 1.0)


@given(st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.booleans(), st.booleans(), st.booleans()), max_size=30))
def test_a_rebalance_is_told_once_and_lasts_as_long_as_it_did(looks: list[tuple[set[str], bool, bool, bool]]) -> None:
    state, restless_since, before = Tracking(), None, None
    for now, (members, known, whole, agreed) in enumerate(looks):
        one = seen(members, owned_by(*sorted(members)) if members and whole else {}, agreed=agreed)
        if not known:
            one = SharingSeen(None, {}, balanced=False, agreed=False)
        state, done = track(state, one, float(now))
        if not known:
            assert done is None
            continue
        if not members:
            assert done is None
            before, restless_since = members, None
        elif not (one.balanced and agreed):
            assert done is None
            restless_since = now if restless_since is None else restless_since
        else:
            expected = restless_since is not None or (before is not None and members != before)
            assert (done is not None) is expected
            if done is not None:
                assert done.seconds == now - (now if restless_since is None else restless_since)
                assert (done.moved is None) is (before is None)
                assert done.moved is None or 0 <= done.moved <= len(QUEUES)
            before, restless_since = members, None


@pytest.mark.parametrize("agreed", [True, False])
def test_a_broker_that_says_nothing_changes_nothing(agreed: bool) -> None:
    state, _ = track(Tracking(), seen({"a"}, owned_by("a")), 0.0)
    assert track(state, SharingSeen(None, {}, balanced=False, agreed=agreed), 1.0) == (state, None)


async def test_a_config_map_that_is_missing_is_told_once_and_an_edit_of_it_rolls_the_group() -> None:
    passes = Passes(Stage(group_of(worker={"handler": "orders:handle", "codeConfigMap": "code"})))
    passes.stage.code = Code(missing="the ConfigMap code is not there")
    for _ in range(6):
        await passes.once()
    assert passes.stage.pods == {}
    assert passes.reasons().count(EventReason.CONFIG_MAP_MISSING) == 1
    for digest in ("one", "two"):
        passes.stage.code = Code(digest)
        await passes.to_rest()
        assert {parts_of(pod.revision)[1] for pod in passes.stage.pods.values()} == {digest}
        status = passes.stage.group.status
        assert status is not None
        assert (status.code_revision, status.updated_replicas) == (digest, 2)
    assert passes.stage.calls.count("mark orders-0") == passes.stage.calls.count("mark orders-1") == 1  # one edit
