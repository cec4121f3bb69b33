"""Actions are done side by side and within bounds; what takes long runs beside the passes."""

import asyncio

import pytest
from tests.support.waiting import until
from tests.unit.controller.stage import (
    QUEUES,
    Stage,
    StageBackend,
    StageBrokers,
    StageWorkers,
    away,
    client_id,
)

from rocketfleet.control.http_call import Credential
from rocketfleet.control.proof import Proof
from rocketfleet.controller.planning import actions as act
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.controller.planning.preparation import BrokerFindings, GroupBroker
from rocketfleet.controller.reconciling.apply import Applier
from rocketfleet.controller.reconciling.backend import BackendError, ObjectChanged
from rocketfleet.controller.reconciling.group_state import GroupState
from rocketfleet.controller.reconciling.observe import Observation, Observer
from rocketfleet.controller.reconciling.slow_start import MOST_CREATIONS, batches
from rocketfleet.controller.rocketmq.group_removal import Leftovers


class Acting:
    """A stage on which actions are done."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.state = GroupState("u1")
        self.woken: list[tuple[str, str]] = []
        backend, workers = StageBackend(self.stage), StageWorkers(self.stage)
        self._observer = Observer(backend, StageBrokers(self.stage), workers)
        self._applier = Applier(backend, workers, self.woken.append, self.stage.clock, self.stage.clock)

    async def __call__(self, *actions: act.Action) -> list[str]:
        return await self._applier.apply(self.stage.group, actions, await self.look(), self.state.applied)

    async def look(self) -> Observation:
        seen = await self._observer.look(self.stage.group, self.state, self.stage.now, self.stage.now)
        self.state.observed = seen.observed
        return seen


def test_creations_begin_with_one_and_double() -> None:
    assert [len(batch) for batch in batches(range(20))] == [1, 2, 4, 8, 5]
    assert [number for batch in batches(range(20)) for number in batch] == list(range(20))
    assert list(batches([])) == []
    assert sum(map(len, batches(range(1000)))) == MOST_CREATIONS, "the rest is in the next plan"


async def test_creations_stop_at_the_first_that_is_refused() -> None:
    acting = Acting()
    acting.stage.quota = 2
    failures = await acting(*map(act.CreatePod, range(100)), act.EnsureObjects())
    tried = [call for call in acting.stage.calls if call.startswith("create")]
    assert tried == ["create 0", "create 1", "create 2"]
    assert acting.stage.objects, "nothing else waits for them"
    assert failures == ["CreatePod: exceeded quota; 97 more were not tried"]


async def test_a_name_that_is_taken_keeps_no_other_pod_from_being_created() -> None:
    acting = Acting()
    acting.stage.taken = {0, 3}
    failures = await acting(*map(act.CreatePod, range(10)))
    assert sorted(pod.ordinal for pod in acting.stage.pods.values()) == [1, 2, 4, 5, 6, 7, 8, 9]
    assert failures == ["CreatePod: orders-0 belongs to somebody else"]


async def test_what_was_noted_of_a_pod_goes_with_it() -> None:
    acting = Acting()
    acting.stage.drained.set()
    gone, other = acting.stage.add_pod(0), acting.stage.add_pod(1)
    await acting(*(act.RequestDrain(pod) for pod in (gone, other)))
    applied = acting.state.applied
    await until(lambda: len(applied.outcomes) == 2)
    await acting(*(act.DeletePod(pod) for pod in (gone, other)))
    acting.stage.pods = {other.uid: other}
    await acting()
    assert applied.outcomes.keys() == applied.deletions.keys() == {other.uid}


async def test_a_pod_that_takes_proofs_is_shown_no_token() -> None:
    acting = Acting()
    acting.stage.proves = True
    acting.stage.drained.set()
    pod = acting.stage.add_pod(0)
    await acting(act.TellMembers((pod,)), act.RequestDrain(pod))
    await until(lambda: bool(acting.state.applied.outcomes))
    assert acting.stage.credentials == [Proof("token", pod.uid)] * 3
    acting.stage.proves = False
    acting.stage.credentials.clear()
    other = acting.stage.add_pod(1)
    await acting(act.TellMembers((other,)))
    assert set(acting.stage.credentials) == {"token"}


async def test_one_that_fails_keeps_no_other_from_being_done() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)
    acting.stage.broker_error = away()
    failures = await acting(act.PrepareGroup(), act.EnsureObjects(), act.CreatePod(1), act.MarkDrain(pod, "why"))
    assert len(failures) == 1
    assert "PrepareGroup" in failures[0]
    assert acting.stage.objects
    assert len(acting.stage.pods) == 2
    assert acting.stage.pods[pod.uid].drain is not None


async def test_the_finalizer_goes_last_and_only_if_all_went_well() -> None:
    acting = Acting()
    assert await acting(act.DeleteGroup(), act.RemoveFinalizer()) == []
    assert acting.stage.calls[-2:] == ["delete group", "no finalizer"]
    acting.stage.calls.clear()
    acting.stage.broker_error = away()
    assert await acting(act.DeleteGroup(), act.RemoveFinalizer())
    assert "no finalizer" not in acting.stage.calls


@pytest.mark.parametrize("topics_too", [False, True])
async def test_what_a_deletion_removes_is_told_before_anything_is_removed(topics_too: bool) -> None:
    acting = Acting()
    acting.stage.leftovers = Leftovers(retries=3, dead_letters=12)
    assert await acting(act.DeleteGroup(topics_too), act.RemoveFinalizer()) == []
    (event,) = acting.stage.events
    assert event.reason is EventReason.GROUP_REMOVED
    assert "3 messages that wait for a retry" in event.message
    assert "12 dead letters" in event.message
    assert event.warning is topics_too
    what = "delete group and topics" if topics_too else "delete group"
    assert acting.stage.calls[-4:] == ["count leftovers", "confirm deletion", what, "no finalizer"]


async def test_an_object_that_is_no_longer_deleted_keeps_its_group() -> None:
    acting = Acting()
    acting.stage.refusal = ObjectChanged("deletionPolicy of orders is Retain now")
    (failure,) = await acting(act.DeleteGroup(topics_too=True), act.RemoveFinalizer())
    assert "Retain now" in failure
    assert not {"delete group and topics", "no finalizer"} & set(acting.stage.calls)
    assert acting.stage.events == []


async def test_a_group_that_may_not_be_deleted_now_is_told_with_the_way_out() -> None:
    acting = Acting()
    acting.stage.refusal = BackendError("the ConsumerGroup shop/second is for the same group orders")
    (failure,) = await acting(act.DeleteGroup(), act.RemoveFinalizer())
    assert "shop/second" in failure
    (event,) = acting.stage.events
    assert event.reason is EventReason.DELETION_WAITS
    assert "shop/second" in event.message
    assert "kubectl patch cg orders -n default" in event.message
    assert not {"delete group", "no finalizer"} & set(acting.stage.calls)


async def test_a_deletion_that_is_late_lets_the_object_go_and_says_that_the_group_stays() -> None:
    acting = Acting()
    acting.stage.broker_error = away()
    assert await acting(act.DeleteGroup(late=True), act.RemoveFinalizer()) == []
    (event,) = acting.stage.events
    assert event.reason is EventReason.DELETION_GAVE_UP
    assert "connection refused" in event.message
    assert acting.stage.calls[-1] == "no finalizer"


async def test_a_drain_runs_beside_and_is_begun_once() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)
    acting.stage.deal()
    for _ in range(3):
        assert await acting(act.RequestDrain(pod)) == []
        await asyncio.sleep(0)
    assert acting.stage.calls.count("drain orders-0") == 1
    assert acting.state.applied.outcomes == {}
    acting.stage.drained.set()
    await until(lambda: bool(acting.woken))
    assert acting.state.applied.outcomes[pod.uid].offsets == dict.fromkeys(QUEUES, 10)
    assert acting.state.applied.tasks == {}


async def test_a_drain_that_was_not_taken_is_asked_for_again() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)
    acting.stage.unreachable = {pod.uid}
    await acting(act.RequestDrain(pod))
    await until(lambda: bool(acting.woken))
    assert acting.state.applied.outcomes == {}
    acting.stage.unreachable.clear()
    acting.stage.drained.set()
    await acting(act.RequestDrain(pod))
    await until(lambda: pod.uid in acting.state.applied.outcomes)


async def test_members_are_told_when_they_have_joined_and_once() -> None:
    acting = Acting()
    first, second = acting.stage.add_pod(0), acting.stage.add_pod(1)
    acting.stage.joining = {second.uid}
    await acting(act.TellMembers((first, second)))
    await until(lambda: acting.state.applied.told == {first.uid})
    acting.stage.calls.clear()
    await acting(act.TellMembers((first, second)))
    await asyncio.sleep(0.02)
    assert not [call for call in acting.stage.calls if call.startswith("tell")]
    acting.stage.joining = set()
    await acting(act.TellMembers((first, second)))
    await until(lambda: acting.state.applied.told == {first.uid, second.uid})


async def test_a_member_that_could_not_be_told_counts_as_not_told() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)

    class Deaf(StageWorkers):
        async def rebalance(self, address: str, token: Credential, limit: float = 1.0) -> None:
            acting.stage.unreachable.add(address)
            await super().rebalance(address, token)

    acting._applier._workers = Deaf(acting.stage)
    await acting(act.TellMembers((pod,)))
    await until(lambda: bool(acting.woken))
    assert acting.state.applied.told == frozenset()


async def test_what_was_prepared_is_told_and_read_back() -> None:
    acting = Acting()
    place = GroupBroker("127.0.0.1:10911", 1, frozenset(QUEUES))
    acting.state.observed.preparation.looks["broker-a"] = BrokerFindings(place, "w", again=2e9, lacks=True)
    assert await acting(act.PrepareGroup()) == []
    assert acting.state.observed.prepared is None, "that it was written proves nothing"
    assert (await acting.look()).observed.preparation.looks == {}, "what was seen before does not count any more"
    assert [event.reason for event in acting.stage.events] == [EventReason.PREPARED]


async def test_locks_that_are_released_are_no_longer_owed() -> None:
    acting = Acting()
    acting.state.observed.gone = frozenset({"a", "b"})
    acting.stage.members = {"b"}
    await acting(act.ReleaseLocks(frozenset({"a", "b"})))
    assert (await acting.look()).snapshot.lingering == {"b"}
    assert acting.stage.released == {"a"}


async def test_a_drain_that_was_verified_is_shown() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)
    acting.stage.deal()
    await acting(act.MarkDrain(pod, "scale-in"), act.RequestDrain(pod))
    acting.stage.drained.set()
    await until(lambda: pod.uid in acting.state.applied.outcomes)
    seen = await acting.look()
    await acting(act.DeletePod(seen.snapshot.pods[0]))
    assert acting.state.applied.last_drain is not None
    assert acting.state.applied.last_drain.verified
    assert acting.state.applied.last_drain.queues == len(QUEUES)
    assert client_id(pod) not in acting.stage.members
