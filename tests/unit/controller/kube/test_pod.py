"""A pod's JSON as the planner sees it."""

import json
from typing import Any

import pytest
from tests.unit.controller.kube_objects import group

from rocketfleet.api.spec import Engine
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.kube.pod import group_of, mark_text, moment, owner_of, pod_of
from rocketfleet.controller.planning.snapshot import DrainMark, PodPhase
from rocketfleet.controller.reconciling.backend import PodSighting
from rocketfleet.controller.resources.pod import Defaults, build
from rocketfleet.wire.queue import MessageQueue

CREATED = "2026-01-02T03:04:05Z"
FINISHED = "2026-01-02T04:00:00Z"
WORDS = '{"confirmed":true,"queues":[["orders","broker-a",0,1232],["orders","broker-a",1,7]]}'
OFFSETS = {MessageQueue("orders", "broker-a", 0): 1232, MessageQueue("orders", "broker-a", 1): 7}


def raw(status: dict[str, Any] | None = None, mark: DrainMark | None = None, **metadata: Any) -> dict[str, Any]:
    made = build(group(), 3, "abc", Defaults("image"))
    made["metadata"] |= {"uid": "u", "creationTimestamp": CREATED, "resourceVersion": "1"} | metadata
    if mark is not None:
        made["metadata"]["annotations"]["rocketfleet.io/drain"] = mark_text(mark)
    return made | {"status": status or {}}


def seen(*arguments: Any, **more: Any) -> PodSighting:
    found = pod_of(raw(*arguments, **more))
    assert found is not None
    return found


def running(state: dict[str, Any], last: dict[str, Any] | None = None, phase: str = "Running") -> dict[str, Any]:
    container = {"name": "consumer", "state": state, "lastState": last or {}}
    return {"phase": phase, "podIP": "10.1.2.3", "containerStatuses": [container]}


def ended(
    code: int, message: str = "", finished: str = FINISHED, reason: str = "Error", container: str | None = "c://1"
) -> dict[str, Any]:
    said = {"exitCode": code, "message": message, "finishedAt": finished, "reason": reason}
    return {"terminated": said | ({} if container is None else {"containerID": container})}


class TestIdentity:
    def test_what_the_builder_builds_is_read_again(self) -> None:
        found = seen()
        assert (found.pod.name, found.pod.ordinal, found.pod.uid, found.pod.revision) == ("orders-3", 3, "u", "abc")
        assert found.pod.created == moment(CREATED)
        assert found.pod.engine is Engine.WORKER
        assert found.pod.client_ids == ("orders-3@u",)
        assert found.pod.phase is PodPhase.PENDING
        assert found.control is None
        assert (group_of(raw()), owner_of(raw())) == ("orders", "uid-of-orders")

    def test_a_pod_of_an_earlier_version_is_sent_the_token_itself(self) -> None:
        assert seen().proves
        assert not seen(annotations={}).proves

    def test_anybodys_pod_is_not_ours(self) -> None:
        assert pod_of({"metadata": {"name": "x", "labels": {"app": "y"}}}) is None
        assert pod_of({}) is None

    @pytest.mark.parametrize("text", ["", "-1", "x", "١"])
    def test_an_ordinal_that_cannot_be_read_is_below_0(self, text: str) -> None:
        pod = raw()
        pod["metadata"]["labels"]["rocketfleet.io/ordinal"] = text
        found = pod_of(pod)
        assert found is not None
        assert found.pod.ordinal == -1

    def test_the_control_port_is_where_the_pod_is(self) -> None:
        assert seen(running({"running": {}})).control == "10.1.2.3:9470"
        assert seen({"phase": "Running", "podIP": "fd00::1"}).control == "[fd00::1]:9470"
        assert seen({"phase": "Running", "podIP": "fd00::1"}).host == "fd00::1"

    def test_a_room_and_several_processes_are_in_the_client_ids(self) -> None:
        allocation = {"strategy": "MachineRoomNearby", "memberRooms": ["r1", "r2"]}
        made = build(
            group(allocation=allocation, worker={"handler": "app:handle", "processes": 2}), 0, "abc", Defaults("image")
        )
        made["metadata"]["uid"] = "u"
        found = pod_of(made)
        assert found is not None
        assert found.pod.client_ids == ("r1@orders-0@u#0", "r1@orders-0@u#1")

    def test_a_foreign_consumer_has_no_control_port_and_no_known_ids(self) -> None:
        template = {"spec": {"containers": [{"name": "consumer", "image": "java"}]}}
        made = build(group(engine="Container", worker=None, template=template), 0, "abc", Defaults("image"))
        made |= {"status": {"phase": "Running", "podIP": "10.0.0.1", "hostIP": "192.168.0.5"}}
        found = pod_of(made)
        assert found is not None
        assert (found.control, found.host, found.pod.client_ids) == (None, "10.0.0.1", ())
        assert found.node == "192.168.0.5", "connections may leave the node under its address"
        assert found.pod.engine is Engine.CONTAINER


class TestPhase:
    @pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Failed"])
    def test_phases_are_kubernetes_own(self, phase: str) -> None:
        assert seen({"phase": phase}).pod.phase == phase

    def test_a_pod_of_which_nothing_is_known_may_run(self) -> None:
        assert seen({"phase": "Unknown"}).pod.phase is PodPhase.RUNNING

    def test_a_container_that_waits_to_be_started_again_does_not_run(self) -> None:
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
        pod = seen(running(state, ended(1))).pod
        assert pod.phase is PodPhase.PENDING
        assert pod.trouble == "CrashLoopBackOff after exit code 1"

    def test_a_drained_worker_with_a_living_sidecar_has_succeeded(self) -> None:
        assert seen(running(ended(0))).pod.phase is PodPhase.SUCCEEDED

    def test_a_crashed_one_is_between_two_lives(self) -> None:
        assert seen(running(ended(1))).pod.phase is PodPhase.PENDING

    def test_ready_and_since_when(self) -> None:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": CREATED}
        pod = seen({"phase": "Running", "conditions": [condition]}).pod
        assert pod.ready
        assert pod.ready_since == moment(CREATED)
        pod = seen({"phase": "Running", "conditions": [condition | {"status": "False"}]}).pod
        assert (pod.ready, pod.ready_since) == (False, None)

    def test_deleting_is_the_end_of_the_grace_period(self) -> None:
        found = seen(deletionTimestamp="2026-01-02T03:05:05Z", deletionGracePeriodSeconds=40)
        assert found.pod.deleting == moment("2026-01-02T03:05:05Z")


class TestDrain:
    def test_the_mark_comes_back_as_it_was_written(self) -> None:
        mark = DrainMark(1234.5, 'scale-in to "1"')
        assert seen(mark=mark).pod.drain == mark

    @pytest.mark.parametrize("text", ["", "true", "{}", "[1]", '{"since":"soon"}', "not json"])
    def test_a_mark_that_cannot_be_read_is_a_mark(self, text: str) -> None:
        pod = raw()
        pod["metadata"]["annotations"]["rocketfleet.io/drain"] = text
        found = pod_of(pod)
        assert found is not None
        assert found.pod.drain is not None

    def test_last_words_are_the_outcome(self) -> None:
        assert seen(running(ended(0, WORDS), phase="Succeeded")).pod.outcome == DrainOutcome(True, OFFSETS)

    @pytest.mark.parametrize(
        ("code", "message", "outcome"),
        [
            (0, "", DrainOutcome(True)),
            (0, "the end of a log", DrainOutcome(True)),
            (0, '{"confirmed":true,"queues":null}', DrainOutcome(True)),
            (4, "", DrainOutcome(False)),
            (5, "", DrainOutcome(True, unfinished=1)),
            (5, '{"confirmed":true,"unfinished":3,"queues":null}', DrainOutcome(True, unfinished=3)),
            (4, '{"confirmed":false,"queues":[["t","b",0,1]]}', DrainOutcome(False, {MessageQueue("t", "b", 0): 1})),
            (0, '{"confirmed":"yes","queues":[]}', DrainOutcome(True)),
            (1, "Traceback", None),
            (2, "", None),
            (137, "", None),
        ],
    )
    def test_exit_code_and_message(self, code: int, message: str, outcome: DrainOutcome | None) -> None:
        assert seen(running(ended(code, message))).pod.outcome == outcome

    @pytest.mark.parametrize("now", [{"running": {}}, {"waiting": {"reason": "CrashLoopBackOff"}}])
    @pytest.mark.parametrize("off", [-86_400.0, 0.0, 86_400.0])
    @pytest.mark.parametrize(
        ("before", "counts"), [("", True), ("containerd://first", True), ("containerd://second", False)]
    )
    def test_an_end_counts_if_it_came_after_the_mark_whatever_the_clocks_say(
        self, now: dict[str, Any], off: float, before: str, counts: bool
    ) -> None:
        # The node's clock is off against the operator's, which wrote the mark, by a day to either side.
        finished = moment(FINISHED)
        assert finished is not None
        status = running(now, ended(4, container="containerd://second"))
        found = seen(status, DrainMark(finished + off, "r", before)).pod
        assert found.outcome == (DrainOutcome(False) if counts else None)
        assert found.ended_run == "containerd://second"
        assert seen(status).pod.outcome is None, "no drain was asked for"

    def test_a_run_without_a_name_is_told_from_others_by_what_else_it_says(self) -> None:
        status = running({"running": {}}, ended(4, container=None))
        assert seen(status).pod.ended_run == FINISHED
        assert seen(status, DrainMark(0.0, "r", FINISHED)).pod.outcome is None
        assert seen(status, DrainMark(0.0, "r", "2026-01-02T03:59:59Z")).pod.outcome == DrainOutcome(False)
        assert seen(running({"running": {}})).pod.ended_run == ""
        assert seen(running(ended(4, container="x"))).pod.ended_run == "x"

    @pytest.mark.parametrize("off", [-86_400.0, 0.0, 86_400.0])
    def test_with_an_earlier_versions_mark_one_that_runs_is_asked_again(self, off: float) -> None:
        finished = moment(FINISHED)
        assert finished is not None
        mark = DrainMark(finished + off, "r")
        assert json.loads(mark_text(mark)) == {"since": finished + off, "reason": "r"}, "as it was written"
        assert seen(running({"running": {}}, ended(5)), mark).pod.outcome is None
        # These are its last words, whenever they were said.
        assert seen(running({"waiting": {}}, ended(4)), mark).pod.outcome == DrainOutcome(False)
        assert seen(running({"waiting": {}}), mark).pod.outcome is None

    def test_an_earlier_version_can_read_the_mark(self) -> None:
        content = json.loads(mark_text(DrainMark(7.0, "why", "containerd://first")))
        assert (content["since"], content["reason"]) == (7.0, "why")


class TestTrouble:
    def test_an_image_that_cannot_be_had(self) -> None:
        state = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}}
        assert seen(running(state, phase="Pending")).pod.trouble == 'ImagePullBackOff: Back-off pulling image "x"'

    def test_what_is_on_its_way_is_no_trouble(self) -> None:
        assert seen(running({"waiting": {"reason": "ContainerCreating"}}, phase="Pending")).pod.trouble is None

    def test_one_whose_volumes_are_awaited_has_been_starting_since_it_had_a_node(self) -> None:
        waiting = running({"waiting": {"reason": "ContainerCreating"}}, phase="Pending")
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:01:40Z"}
        status = {**waiting, "podIP": None, "conditions": [scheduled]}
        assert seen(status).pod.starting_since == 100.0
        assert seen({**status, "podIP": "10.0.0.9"}).pod.starting_since is None, "its image is pulled"
        assert seen({**waiting, "podIP": None}).pod.starting_since is None
        pulling = running({"waiting": {"reason": "ImagePullBackOff"}}, phase="Pending")
        assert seen({**pulling, "podIP": None, "conditions": [scheduled]}).pod.starting_since is None

    def test_a_config_map_that_a_variable_needs_is_told(self) -> None:
        waiting = {"reason": "CreateContainerConfigError", "message": 'configmap "nope" not found'}
        trouble = seen(running({"waiting": waiting}, phase="Pending")).pod.trouble
        assert trouble == 'CreateContainerConfigError: configmap "nope" not found'

    def test_no_node_for_it(self) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
        assert seen({"phase": "Pending", "conditions": [condition]}).pod.trouble == "Unschedulable: 0/3 nodes"

    def test_out_of_memory_says_what_to_do(self) -> None:
        status = running({"waiting": {"reason": "CrashLoopBackOff"}}, ended(137, reason="OOMKilled"))
        trouble = seen(status).pod.trouble
        assert trouble is not None
        assert "memory limit" in trouble

    def test_wrong_settings_say_so(self) -> None:
        trouble = seen(running({"waiting": {"reason": "CrashLoopBackOff"}}, ended(2))).pod.trouble
        assert trouble is not None
        assert "handler" in trouble

    def test_one_that_left_a_sentence_is_quoted(self) -> None:
        sentence = "there is no module 'shop' on the Python path"
        trouble = seen(running({"waiting": {"reason": "CrashLoopBackOff"}}, ended(2, sentence))).pod.trouble
        assert trouble == f"CrashLoopBackOff after exit code 2: {sentence}"

    def test_the_usual_last_words_are_no_sentence(self) -> None:
        words = '{"confirmed":false,"queues":[["t","b",0,1]]}'
        trouble = seen(running({"waiting": {"reason": "CrashLoopBackOff"}}, ended(4, words))).pod.trouble
        assert trouble is not None
        assert "confirmed" in trouble
        assert "{" not in trouble

    def test_evicted(self) -> None:
        assert seen({"phase": "Failed", "reason": "Evicted", "message": "m"}).pod.trouble == "Evicted: m"

    def test_a_sidecars_crash_is_no_reason_to_think_that_the_consumer_does_not_run(self) -> None:
        status = running({"running": {}})
        sidecar = {"name": "proxy", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        status["containerStatuses"].append(sidecar)
        pod = seen(status).pod
        assert (pod.phase, pod.trouble) == (PodPhase.RUNNING, None)

    def test_it_is_short(self) -> None:
        state = {"waiting": {"reason": "ErrImagePull", "message": "x" * 5000}}
        assert len(seen(running(state, phase="Pending")).pod.trouble or "") <= 240


def test_a_pod_full_of_nonsense_is_read() -> None:
    nonsense = raw({"phase": 7, "conditions": [{}], "containerStatuses": [{"name": "consumer", "state": None}]})
    nonsense["metadata"]["annotations"] = None
    nonsense["spec"] = None
    assert pod_of(json.loads(json.dumps(nonsense))) is not None


TAINTED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}


class TestDeletion:
    def test_when_it_was_asked_for_and_when_it_should_be_over(self) -> None:
        found = seen(deletionTimestamp="2026-01-03T03:04:05Z", deletionGracePeriodSeconds=86_400).pod
        assert found.deleting == moment("2026-01-03T03:04:05Z")
        assert found.deleting_since == moment("2026-01-02T03:04:05Z")
        assert not found.lost
        assert (seen().pod.deleting, seen().pod.deleting_since) == (None, None)

    def test_one_that_is_driven_off_a_node_that_does_not_answer_is_lost(self) -> None:
        status = running({"running": {}}) | {"conditions": [TAINTED]}
        assert seen(status, deletionTimestamp=CREATED).pod.lost
        assert not seen(status).pod.lost, "not deleted yet"
        evicted = running({"running": {}}) | {"conditions": [TAINTED | {"reason": "EvictionByEvictionAPI"}]}
        assert not seen(evicted, deletionTimestamp=CREATED).pod.lost
