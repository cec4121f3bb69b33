"""A look at a group: what is known, what is not, and who is asked how often."""

import asyncio
import copy
from dataclasses import replace
from typing import Any

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

from rocketfleet.api.other_versions import read_status
from rocketfleet.api.spec import Engine
from rocketfleet.api.status import ConsumerGroupStatus
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import BackingOff, NoRoute, RocketMQError
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.planning.joining import JOIN_LIMIT
from rocketfleet.controller.planning.preparation import preparation_of
from rocketfleet.controller.planning.rebalance_tracking import Tracking
from rocketfleet.controller.planning.snapshot import DrainMark, Joining, NodeState, PodPhase
from rocketfleet.controller.reconciling.group_state import GroupState
from rocketfleet.controller.reconciling.observe import (
    ASK_AGAIN,
    CACHE_SECONDS,
    SHARING_SECONDS,
    WELL_AGAIN,
    Observation,
    Observer,
    stable,
)
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request


class Look:
    """A stage that is looked at."""

    def __init__(self, stage: Stage | None = None) -> None:
        self.stage = stage or Stage()
        self.state = GroupState("u1")
        self._observer = Observer(StageBackend(self.stage), StageBrokers(self.stage), StageWorkers(self.stage))

    async def __call__(self) -> Observation:
        before = copy.deepcopy(self.state)
        seen = await self._observer.look(self.stage.group, self.state, self.stage.now, self.stage.now)
        assert self.state == before, "a look writes nothing"
        self.state.observed = seen.observed
        return seen


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


async def test_whether_it_is_prepared_is_what_the_brokers_say_now() -> None:
    look = Look()
    snapshot = (await look()).snapshot
    assert (snapshot.prepared, set(snapshot.lacking)) == (False, {"broker-a"})
    look.stage.lacking.clear()
    assert (await look()).snapshot.prepared
    look.stage.lacking = {"broker-b"}  # one that was added, or has lost its disk
    snapshot = (await look()).snapshot
    assert (snapshot.prepared, set(snapshot.lacking)) == (True, {"broker-b"})


async def test_while_no_broker_can_be_asked_what_was_last_seen_counts() -> None:
    look = Look()
    look.stage.lacking.clear()
    assert (await look()).snapshot.prepared
    look.stage.broker_error = away()
    assert (await look()).snapshot.prepared
    another = Look(look.stage)  # as after a restart: only the status is left
    assert not (await another()).snapshot.prepared
    status = ConsumerGroupStatus(prepared=preparation_of(look.stage.group))
    look.stage.group = look.stage.group.model_copy(update={"status": status})
    assert (await another()).snapshot.prepared
    spec = {"nameServers": ["elsewhere:9876"]}
    look.stage.group = group_of(cluster=spec).model_copy(update={"status": status})
    assert not (await another()).snapshot.prepared, "another RocketMQ knows nothing of the group"


@pytest.mark.parametrize("idle", [{"suspend": True}, {}], ids=["suspended", "deleted"])
async def test_a_group_that_is_not_to_run_is_not_asked_after(idle: dict[str, bool]) -> None:
    """The question alone makes some brokers create the group."""
    stage = Stage(group_of(**idle))
    if not idle:
        metadata = stage.group.metadata.model_copy(update={"deletion_timestamp": "2026-01-01T00:00:00Z"})
        stage.group = stage.group.model_copy(update={"metadata": metadata})
    await Look(stage)()
    assert "standing" not in stage.calls


async def test_a_pod_that_answers_is_not_lost_whatever_kubernetes_thinks_of_its_node() -> None:
    look = Look()
    pods = [look.stage.add_pod(n, lost=True, deleting=look.stage.now + 9) for n in range(2)]
    look.stage.unreachable = {pods[1].uid}
    assert [pod.lost for pod in (await look()).snapshot.pods] == [False, True]


async def test_nodes_are_asked_for_only_where_a_pod_should_have_ended_and_does_not_answer() -> None:
    look = Look()
    now = look.stage.now
    look.stage.nodes = dict.fromkeys(("w0", "w1", "w2", "w3"), NodeState.SILENT)
    times: dict[str, Any] = {"deleting": now + 40, "deleting_since": now}
    look.stage.add_pod(0, node="w0")
    look.stage.add_pod(1, node="w1", **times)
    silent = look.stage.add_pod(2, node="w2", **times)
    lost = look.stage.add_pod(3, node="w3", lost=True, **times)
    look.stage.unreachable = {silent.uid, lost.uid}

    async def seen() -> list[tuple[NodeState | None, float | None]]:
        return [(pod.node_state, pod.node_since) for pod in (await look()).snapshot.pods]

    unknown = (None, None)
    assert await seen() == [unknown, unknown, unknown, (NodeState.SILENT, now)]
    look.stage.now += 41
    assert await seen() == [unknown, unknown, (NodeState.SILENT, now + 41), (NodeState.SILENT, now)]
    assert [call for call in look.stage.calls if call.startswith("nodes")] == ["nodes w3", "nodes w2 w3"]


@pytest.mark.parametrize("skew", [-86_400.0, 0.0, 86_400.0])
async def test_whatever_the_time_of_day_is_a_drain_and_a_deletion_begin_when_they_are_seen(skew: float) -> None:
    look = Look()
    theirs = look.stage.now + skew  # the API server's clock
    times: dict[str, Any] = {"deleting": theirs + 40, "deleting_since": theirs, "drain": DrainMark(theirs, "scale-in")}
    look.stage.add_pod(0, created=theirs, node="w0", **times)
    metadata = look.stage.group.metadata.model_copy(update={"deletion_timestamp": "2026-01-02T03:04:05Z"})
    look.stage.group = look.stage.group.model_copy(update={"metadata": metadata})
    for _ in range(2):
        snapshot = (await look()).snapshot
        (pod,) = snapshot.pods
        assert (pod.deleting, pod.deleting_since, snapshot.deleting_since) == (1_000_040, 1_000_000, 1_000_000)
        assert pod.drain == DrainMark(1_000_000, "scale-in")
        look.stage.now += 5


async def test_failures_of_an_ordinal_are_counted_until_one_is_well_for_a_while() -> None:
    look = Look()
    for before in range(3):
        pod = look.stage.add_pod(0, uid=f"failed-{before}", phase=PodPhase.FAILED, ready=False)
        for _ in range(2):
            assert [one.failures for one in (await look()).snapshot.pods] == [before], "each is counted once"
        del look.stage.pods[pod.uid]
    well = look.stage.add_pod(0, ready_since=look.stage.now)
    assert [one.failures for one in (await look()).snapshot.pods] == [3]
    look.stage.now += WELL_AGAIN + 1
    assert [one.failures for one in (await look()).snapshot.pods] == [0]
    look.stage.change(well, phase=PodPhase.FAILED, ready=False, ready_since=None)
    assert [one.failures for one in (await look()).snapshot.pods] == [0]


async def test_failures_of_another_revision_do_not_count() -> None:
    look = Look()
    for number, (revision, before) in enumerate([("a", 0), ("a", 1), ("b", 0), ("b", 1)]):
        pod = look.stage.add_pod(0, uid=str(number), phase=PodPhase.FAILED, ready=False, revision=revision)
        assert [one.failures for one in (await look()).snapshot.pods] == [before]
        del look.stage.pods[pod.uid]


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


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH", b"HTTP/1.1 400 Bad", b"). Check that", b"\xff\xfe\x00abcdef"])
async def test_what_a_host_answers_that_is_no_rocketmq_is_not_told(answer: bytes) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    remoting = Remoting(ClientConfig(address))
    with pytest.raises(RocketMQError) as raised:
        await remoting.call(address, request(RequestCode.GET_MAX_OFFSET, {}))
    await remoting.close()
    server.close()
    said = stable(str(raised.value))
    assert "Check that the address is a RocketMQ remoting port" in said
    assert repr(answer[:8])[2:-1] not in said
    assert str(int.from_bytes(answer[:4], "big", signed=True)) not in said


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
    look.state.tracked.unbalanced_since = 0.0
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
    look.state.tracked.tracking = Tracking(members=frozenset({"10.0.0.0@1#7"}), known=True)
    look.stage.java = {"10.0.0.0@1#7": "10.0.0.0", "10.0.0.1@1#7": "10.0.0.1"}
    look.stage.owners = {queue: {"10.0.0.0@1#7"} for queue in QUEUES}
    look.stage.owners |= {queue: {"10.0.0.1@1#7"} for queue in QUEUES[:queues_of_the_new_one]}
    assert (await look()).agreed is bool(queues_of_the_new_one)
    look.state.tracked.tracking = replace(look.state.tracked.tracking, since=look.stage.now - SHARING_SECONDS)
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
        ({"phase": PodPhase.SUCCEEDED, "outcome": DrainOutcome(confirmed=True)}, False),
        ({"phase": PodPhase.SUCCEEDED}, False),
        ({"phase": PodPhase.FAILED}, True),
        ({"phase": PodPhase.FAILED, "outcome": DrainOutcome(confirmed=False)}, True),
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
    look.state.applied.deletions[pod.uid] = look.stage.now
    assert (await look()).snapshot.pods[0].deleting is not None
    look.stage.now += CACHE_SECONDS + 1
    assert (await look()).snapshot.pods[0].deleting is None


async def test_offsets_are_read_back_for_pods_that_are_about_to_go() -> None:
    look = Look()
    outcome = DrainOutcome(confirmed=True, offsets={QUEUES[0]: 5})
    look.stage.offsets = {QUEUES[0]: 5, QUEUES[1]: 9}
    pod = look.stage.add_pod(0, phase=PodPhase.SUCCEEDED, outcome=outcome, drain=DrainMark(0.0, "scale-in"))
    assert (await look()).snapshot.committed == {QUEUES[0]: 5}
    look.stage.change(pod, drain=None)
    assert (await look()).snapshot.committed == {}


async def test_members_that_know_of_others_than_the_broker_have_not_agreed() -> None:
    look = Look()
    look.stage.add_pod(0)
    workers = StageWorkers(look.stage)
    honest = workers.assignment

    async def outdated(address: str, token: str | None, limit: float = 1.0) -> object:
        return replace(await honest(address, token), members=("somebody else",))

    workers.assignment = outdated  # type: ignore[assignment,method-assign] # a worker that is behind
    observer = Observer(StageBackend(look.stage), StageBrokers(look.stage), workers)
    assert not (await observer.look(look.stage.group, look.state, look.stage.now, look.stage.now)).agreed


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, 3),
        ({}, 3),
        ({"observedGeneration": 1, "desiredReplicas": "nonsense"}, 3),  # one part that cannot be read
        ({"observedGeneration": 1, "desiredReplicas": 2}, 2),
    ],
)
async def test_a_status_that_is_lost_is_no_reason_to_scale_in(status: dict[str, object] | None, expected: int) -> None:
    """The pods say how many were wanted: all that nobody has marked to go, evicted or ended ones too."""
    group = group_of(autoscaling={"maxReplicas": 8, "targetLag": 10})
    look = Look(Stage(group.model_copy(update={"status": None if status is None else read_status(status)})))
    look.stage.add_pod(0)
    look.stage.add_pod(2, deleting=look.stage.now + 9)
    look.stage.add_pod(3, drain=DrainMark(0.0, "scale-in"))
    assert (await look()).snapshot.last_desired == expected


async def test_a_group_without_pods_and_status_begins_as_a_new_one() -> None:
    assert (await Look()()).snapshot.last_desired is None
