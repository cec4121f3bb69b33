"""A look at a group: what is known, what is not, and who is asked how often."""

from dataclasses import replace

import pytest
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

from rocketfleet.api.spec import Engine
from rocketfleet.client.errors import BackingOff, NoRoute
from rocketfleet.controller.group_memory import Memory
from rocketfleet.controller.joining import JOIN_LIMIT
from rocketfleet.controller.observe import ASK_AGAIN, CACHE_SECONDS, SHARING_SECONDS, Observation, Observer, stable
from rocketfleet.controller.rebalance_tracking import Tracking
from rocketfleet.controller.snapshot import DrainMark, DrainOutcome, Joining, Phase


class Look:
    """A stage that is looked at."""

    def __init__(self, stage: Stage | None = None) -> None:
        self.stage = stage or Stage()
        self.memory = Memory("u1")
        self._observer = Observer(StageBackend(self.stage), StageBrokers(self.stage), StageWorkers(self.stage))

    async def __call__(self) -> Observation:
        return await self._observer.look(self.stage.group, self.memory, self.stage.now)


async def test_when_everybody_answers_everything_is_known() -> None:
    look = Look()
    pods = [look.stage.add_pod(n) for n in range(2)]
    look.stage.deal()
    seen = await look()
    snapshot = seen.snapshot
    assert [pod.client_ids for pod in snapshot.pods] == [(client_id(pod),) for pod in pods]
    assert snapshot.reachable is True
    assert snapshot.queues == frozenset(QUEUES)
    assert snapshot.ownership is not None
    assert snapshot.ownership.owned_once(frozenset(QUEUES))
    assert seen.joined == {pod.uid for pod in pods}
    assert seen.agreed
    assert not any(call.startswith("ownership") for call in look.stage.calls)


@pytest.mark.parametrize("error", [away(), NoRoute("orders", "the topic does not exist")])
async def test_pods_are_seen_while_brokers_are_not(error: BackingOff) -> None:
    look = Look()
    look.stage.add_pod(0)
    look.stage.broker_error = error
    seen = await look()
    assert len(seen.snapshot.pods) == 1
    assert seen.snapshot.reachable is False
    assert (seen.snapshot.queues, seen.snapshot.members, seen.snapshot.ownership) == (None, None, None)
    assert seen.trouble
    assert "next attempt" not in seen.trouble


def test_a_sentence_for_a_status_is_the_same_at_every_try() -> None:
    first = BackingOff("127.0.0.1:9876", "connection refused", 0.4, 1)
    later = BackingOff("127.0.0.1:9876", "connection refused", 3.1, 7)
    assert stable(str(first)) == stable(str(later)) == "cannot connect to 127.0.0.1:9876: connection refused"


async def test_who_cannot_be_asked_directly_is_asked_through_the_broker() -> None:
    look = Look()
    hidden = look.stage.add_pod(0)
    look.stage.add_pod(1)
    look.stage.members.add("guest@1")
    look.stage.unreachable = {hidden.uid}
    look.stage.deal()
    look.stage.owners[QUEUES[0]] = {"guest@1"}
    seen = await look()
    assert "ownership of 2" in look.stage.calls
    assert seen.snapshot.ownership is not None
    assert seen.snapshot.ownership.owned_once(frozenset(QUEUES))

    look.stage.deaf = {client_id(hidden)}
    look.stage.now += 60
    seen = await look()
    assert seen.snapshot.ownership is not None
    assert seen.snapshot.ownership.silent == {client_id(hidden)}


async def test_questions_through_the_broker_are_rare() -> None:
    look = Look(Stage(group_of(engine="Container", worker=None, template=CONTAINER)))
    look.stage.add_pod(0)
    look.memory.unbalanced_since = 0.0
    for _ in range(10):
        await look()
        look.stage.now += ASK_AGAIN / 4
    assert sum(call.startswith("ownership") for call in look.stage.calls) == 3


CONTAINER = {"spec": {"containers": [{"name": "consumer", "image": "theirs", "command": ["java"]}]}}


async def test_members_of_another_engine_are_known_by_their_address() -> None:
    look = java_look(3)
    look.stage.hosts = {"uid-0": "10.0.0.1", "uid-1": "10.0.0.2", "uid-2": "10.0.0.2"}
    look.stage.java = {"10.0.0.1@1#7": "10.0.0.1", "10.0.0.2@1#8": "10.0.0.2", "10.0.0.2@1#9": "10.0.0.2"}
    seen = await look()
    assert [pod.client_ids for pod in seen.snapshot.pods] == [("10.0.0.1@1#7",), (), ()]
    assert all(pod.ready for pod in seen.snapshot.pods)


def java_look(pods: int) -> Look:
    """A group of somebody's own consumers; which of them are members is `stage.java`."""
    look = Look(Stage(group_of(pods, engine="Container", worker=None, template=CONTAINER)))
    for ordinal in range(pods):
        look.stage.add_pod(ordinal, member=False)
        look.stage.hosts[f"uid-{ordinal}"] = f"10.0.0.{ordinal}"
    return look


async def test_a_pod_of_another_engine_is_ready_when_it_is_seen_at_the_broker() -> None:
    look = java_look(2)
    look.stage.java = {"10.0.0.0@1#7": "10.0.0.0"}
    assert [(pod.ready, pod.joining) for pod in (await look()).snapshot.pods] == [
        (True, Joining.JOINED),
        (False, Joining.MISSING),
    ]
    look.stage.java["10.0.0.1@1#7"] = "10.0.0.1"
    assert all(pod.ready for pod in (await look()).snapshot.pods)
    look.stage.broker_error = away()  # they were members a moment ago, and have been ready for long
    look.stage.now += JOIN_LIMIT
    assert all(pod.ready for pod in (await look()).snapshot.pods)


async def test_members_of_a_pod_that_is_gone_are_not_taken_for_those_of_the_next_one_with_its_address() -> None:
    look = java_look(2)
    look.stage.java = {"10.0.0.0@1#7": "10.0.0.0", "10.0.0.1@1#7": "10.0.0.1"}
    await look()
    del look.stage.pods["uid-1"]
    look.stage.add_pod(1, uid="uid-9", member=False)
    look.stage.hosts["uid-9"] = "10.0.0.1"
    seen = (await look()).snapshot
    assert seen.lingering == {"10.0.0.1@1#7"}
    assert [pod.ready for pod in seen.pods] == [True, False]


async def test_what_a_consumer_held_is_known_after_it_has_left_the_broker_before_its_pod() -> None:
    """Java unregisters, and only then does its process end. Members that leave together may lock each other's queues
    on their way, so what they hold is to be released."""
    look = java_look(1)
    look.stage.java = {"10.0.0.0@1#7": "10.0.0.0"}
    await look()
    look.stage.java.clear()
    assert (await look()).snapshot.departed == frozenset()
    del look.stage.pods["uid-0"]
    assert (await look()).snapshot.departed == {"10.0.0.0@1#7"}


async def test_what_a_consumer_held_is_released_when_it_was_started_again_in_its_pod() -> None:
    look = java_look(1)
    look.stage.java = {"10.0.0.0@1#7": "10.0.0.0"}
    await look()
    look.stage.java = {}
    assert (await look()).snapshot.departed == frozenset(), "it may have lost its connection for a moment"
    look.stage.java = {"10.0.0.0@1#8": "10.0.0.0"}
    assert (await look()).snapshot.departed == {"10.0.0.0@1#7"}


async def test_pods_are_known_by_the_engine_they_were_made_for() -> None:
    """An engine that was changed: the pods of the old one are still there, and have to be drained."""
    look = Look(Stage(group_of(engine="Container", worker=None, template=CONTAINER)))
    look.stage.add_pod(0, engine=Engine.WORKER)
    look.stage.add_pod(1, engine=Engine.CONTAINER, member=False)
    look.stage.hosts = {"uid-1": "10.0.0.1"}
    look.stage.java = {"10.0.0.1@1#7": "10.0.0.1"}
    seen = await look()
    assert [pod.client_ids for pod in seen.snapshot.pods] == [("orders-0@uid-0",), ("10.0.0.1@1#7",)]
    assert seen.joined == {"uid-0"}
    look.stage.group = group_of()
    assert [pod.client_ids for pod in (await look()).snapshot.pods] == [("orders-0@uid-0",), ("10.0.0.1@1#7",)]


@pytest.mark.parametrize("queues_of_the_new_one", [0, 1])
async def test_a_rebalance_of_java_s_is_over_when_the_new_member_has_a_share(queues_of_the_new_one: int) -> None:
    look = java_look(2)
    look.memory.tracking = Tracking(members=frozenset({"10.0.0.0@1#7"}), known=True)
    look.stage.java = {"10.0.0.0@1#7": "10.0.0.0", "10.0.0.1@1#7": "10.0.0.1"}
    look.stage.owners = {queue: {"10.0.0.0@1#7"} for queue in QUEUES}
    look.stage.owners |= {queue: {"10.0.0.1@1#7"} for queue in QUEUES[:queues_of_the_new_one]}
    assert (await look()).agreed is bool(queues_of_the_new_one)
    look.memory.tracking = replace(look.memory.tracking, since=look.stage.now - SHARING_SECONDS)
    assert (await look()).agreed, "its strategy may leave it without"


async def test_a_pod_that_vanished_leaves_locks_behind_until_the_broker_misses_it_too() -> None:
    look = Look()
    pod = look.stage.add_pod(0)
    await look()
    del look.stage.pods[pod.uid]
    seen = await look()
    assert (seen.snapshot.lingering, seen.snapshot.departed) == (frozenset({client_id(pod)}), frozenset())
    look.stage.members.clear()
    seen = await look()
    assert (seen.snapshot.lingering, seen.snapshot.departed) == (frozenset(), frozenset({client_id(pod)}))
    look.stage.broker_error = away()
    seen = await look()
    assert (seen.snapshot.lingering, seen.snapshot.departed) == (frozenset({client_id(pod)}), frozenset()), (
        "it may be a member still, for all we know: an object that is deleted waits for it"
    )


@pytest.mark.parametrize(
    ("end", "left"),
    [
        ({"phase": Phase.SUCCEEDED, "outcome": DrainOutcome(confirmed=True)}, False),
        ({"phase": Phase.SUCCEEDED}, False),
        ({"phase": Phase.FAILED}, True),
        ({"phase": Phase.FAILED, "outcome": DrainOutcome(confirmed=False)}, True),
    ],
)
async def test_a_pod_that_drained_leaves_nothing_behind(end: dict[str, object], left: bool) -> None:
    look = Look()
    pod = look.stage.add_pod(0)
    await look()
    look.stage.members.clear()
    look.stage.change(pod, **end)
    assert bool((await look()).snapshot.departed) is left
    del look.stage.pods[pod.uid]
    assert bool((await look()).snapshot.departed) is left


async def test_a_deletion_is_believed_before_a_cache_shows_it_but_not_for_ever() -> None:
    look = Look()
    pod = look.stage.add_pod(0)
    look.memory.deletions[pod.uid] = look.stage.now
    assert (await look()).snapshot.pods[0].deleting is not None
    look.stage.now += CACHE_SECONDS + 1
    assert (await look()).snapshot.pods[0].deleting is None


async def test_offsets_are_read_back_for_pods_that_are_about_to_go() -> None:
    look = Look()
    outcome = DrainOutcome(confirmed=True, offsets={QUEUES[0]: 5})
    look.stage.offsets = {QUEUES[0]: 5, QUEUES[1]: 9}
    pod = look.stage.add_pod(0, phase=Phase.SUCCEEDED, outcome=outcome, drain=DrainMark(0.0, "scale-in"))
    assert (await look()).snapshot.committed == {QUEUES[0]: 5}
    look.stage.change(pod, drain=None)
    assert (await look()).snapshot.committed == {}


async def test_members_that_know_of_others_than_the_broker_have_not_agreed() -> None:
    look = Look()
    look.stage.add_pod(0)
    workers = StageWorkers(look.stage)
    honest = workers.assignment

    async def outdated(address: str, token: str | None, limit: float = 1.0) -> object:
        return replace(await honest(address, token), members=frozenset({"somebody else"}))

    workers.assignment = outdated  # type: ignore[assignment,method-assign] # a worker that is behind
    observer = Observer(StageBackend(look.stage), StageBrokers(look.stage), workers)
    assert not (await observer.look(look.stage.group, look.memory, look.stage.now)).agreed
