"""Actions are done side by side and within bounds; what takes long runs beside the passes."""

import asyncio

from tests.unit.controller.stage import (
    QUEUES,
    Stage,
    StageBackend,
    StageBrokers,
    StageWorkers,
    away,
    client_id,
    until,
)

from rocketfleet.controller.actions import (
    Action,
    CreatePod,
    DeleteGroup,
    DeletePod,
    EnsureObjects,
    MarkDrain,
    PrepareGroup,
    Reason,
    ReleaseLocks,
    RemoveFinalizer,
    RequestDrain,
    TellMembers,
)
from rocketfleet.controller.apply import Applier
from rocketfleet.controller.group_memory import Memory
from rocketfleet.controller.group_preparation import preparation_of
from rocketfleet.controller.observe import Observer


class Acting:
    """A stage on which actions are done."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.memory = Memory("u1")
        self.woken: list[tuple[str, str]] = []
        backend, workers = StageBackend(self.stage), StageWorkers(self.stage)
        self._observer = Observer(backend, StageBrokers(self.stage), workers)
        self._applier = Applier(backend, workers, self.woken.append, self.stage.clock)

    async def __call__(self, *actions: Action) -> list[str]:
        seen = await self._observer.look(self.stage.group, self.memory, self.stage.now)
        return await self._applier.apply(self.stage.group, actions, seen, self.memory)


async def test_one_that_fails_keeps_no_other_from_being_done() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)
    acting.stage.broker_error = away()
    failures = await acting(PrepareGroup(), EnsureObjects(), CreatePod(1), MarkDrain(pod, "why"))
    assert len(failures) == 1
    assert "PrepareGroup" in failures[0]
    assert acting.stage.objects
    assert len(acting.stage.pods) == 2
    assert acting.stage.pods[pod.uid].drain is not None


async def test_the_finalizer_goes_last_and_only_if_all_went_well() -> None:
    acting = Acting()
    assert await acting(DeleteGroup(), RemoveFinalizer()) == []
    assert acting.stage.calls[-2:] == ["delete group", "no finalizer"]
    acting.stage.calls.clear()
    acting.stage.broker_error = away()
    assert await acting(DeleteGroup(), RemoveFinalizer())
    assert "no finalizer" not in acting.stage.calls


async def test_a_drain_runs_beside_and_is_begun_once() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)
    acting.stage.deal()
    for _ in range(3):
        assert await acting(RequestDrain(pod)) == []
        await asyncio.sleep(0)
    assert acting.stage.calls.count("drain orders-0") == 1
    assert acting.memory.outcomes == {}
    acting.stage.drained.set()
    await until(lambda: bool(acting.woken))
    assert acting.memory.outcomes[pod.uid].offsets == dict.fromkeys(QUEUES, 10)
    assert acting.memory.tasks == {}


async def test_a_drain_that_was_not_taken_is_asked_for_again() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)
    acting.stage.unreachable = {pod.uid}
    await acting(RequestDrain(pod))
    await until(lambda: bool(acting.woken))
    assert acting.memory.outcomes == {}
    acting.stage.unreachable.clear()
    acting.stage.drained.set()
    await acting(RequestDrain(pod))
    await until(lambda: pod.uid in acting.memory.outcomes)


async def test_members_are_told_when_they_have_joined_and_once() -> None:
    acting = Acting()
    first, second = acting.stage.add_pod(0), acting.stage.add_pod(1)
    acting.stage.joining = {second.uid}
    await acting(TellMembers((first, second)))
    await until(lambda: acting.memory.told == {first.uid})
    acting.stage.calls.clear()
    await acting(TellMembers((first, second)))
    await asyncio.sleep(0.02)
    assert not [call for call in acting.stage.calls if call.startswith("tell")]
    acting.stage.joining = set()
    await acting(TellMembers((first, second)))
    await until(lambda: acting.memory.told == {first.uid, second.uid})


async def test_a_member_that_could_not_be_told_counts_as_not_told() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)

    class Deaf(StageWorkers):
        async def rebalance(self, address: str, token: str | None, limit: float = 1.0) -> None:
            acting.stage.unreachable.add(address)
            await super().rebalance(address, token)

    acting._applier._workers = Deaf(acting.stage)
    await acting(TellMembers((pod,)))
    await until(lambda: bool(acting.woken))
    assert acting.memory.told == frozenset()


async def test_preparing_is_remembered_and_told() -> None:
    acting = Acting()
    assert await acting(PrepareGroup()) == []
    assert acting.memory.prepared == preparation_of(acting.stage.group)
    assert [event.reason for event in acting.stage.events] == [Reason.PREPARED]


async def test_locks_that_are_released_are_no_longer_owed() -> None:
    acting = Acting()
    acting.memory.gone = frozenset({"a", "b"})
    acting.stage.members = {"b"}
    await acting(ReleaseLocks(frozenset({"a", "b"})))
    assert acting.memory.gone == {"b"}
    assert acting.stage.released == {"a"}


async def test_a_drain_that_was_verified_is_shown() -> None:
    acting = Acting()
    pod = acting.stage.add_pod(0)
    acting.stage.deal()
    await acting(MarkDrain(pod, "scale-in"), RequestDrain(pod))
    acting.stage.drained.set()
    await until(lambda: pod.uid in acting.memory.outcomes)
    seen = await acting._observer.look(acting.stage.group, acting.memory, acting.stage.now)
    await acting(DeletePod(seen.snapshot.pods[0]))
    assert acting.memory.last_drain is not None
    assert acting.memory.last_drain.verified
    assert acting.memory.last_drain.queues == len(QUEUES)
    assert client_id(pod) not in acting.stage.members
