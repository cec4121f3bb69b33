"""What breaks: pods, operators, brokers. Nothing is lost; what was going on goes on."""

import time
from collections.abc import Callable

import pytest
from tests.cluster.kind_nodes import kill_container
from tests.cluster.kube import Kube, is_ready, name_of, until
from tests.cluster.operator_release import NAMESPACE, Release
from tests.cluster.scene import GROUP, Scene

SLOW = 3.0  # seconds of a handler, so that a drain has a middle
HANGS = 90.0  # of one that takes longer than any drain should, and ends in the end


def test_delete_pod_by_force(kube: Kube, scene: Scene) -> None:
    scene.start(replicas=3)
    killed = scene.now()
    before = scene.pod(1)
    assert before is not None
    kube.kubectl("delete", "pod", "-n", scene.name, f"{GROUP}-1", "--force", "--grace-period=0")
    scene.settle(3)
    after = scene.pod(1)
    assert after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    scene.consumes_on(killed, 200)
    assert not scene.finish().out_of_order


def test_a_worker_is_killed_and_comes_back_in_its_pod(scene: Scene) -> None:
    scene.start(replicas=3)
    before = scene.pod(1)
    assert before is not None
    killed = scene.now()
    kill_container(before)

    def restarted() -> bool:
        pod = scene.pod(1)
        return pod is not None and pod["status"]["containerStatuses"][0]["restartCount"] == 1 and is_ready(pod)

    until(restarted, "its container was started again")
    scene.settle(3)
    scene.consumes_on(killed, 200)
    verdict = scene.finish()
    assert not verdict.out_of_order
    # One message for each of its queues may have been finished and not yet committed, and those between two commits.
    print(f"repeated after the kill: {len(verdict.repeated)}")


def test_delete_pod_in_good_order_repeats_nothing(kube: Kube, scene: Scene) -> None:
    scene.start(replicas=3)
    kube.kubectl("delete", "pod", "-n", scene.name, f"{GROUP}-0", "--wait=false")
    before = scene.now()
    scene.settle(3)
    scene.consumes_on(before, 200)
    assert scene.finish().good


def test_operator_killed_in_the_middle_of_a_drain(
    make_scene: Callable[..., Scene], kube: Kube, release: Release
) -> None:
    scene = make_scene(handler_seconds=SLOW)
    scene.start(replicas=3)
    kube.kubectl("scale", "-n", scene.name, f"cg/{GROUP}", "--replicas=1")

    def marked() -> bool:
        return any("rocketfleet.io/drain" in pod["metadata"].get("annotations", {}) for pod in scene.pods())

    until(marked, "a pod is marked for its drain")
    assert len(scene.pods()) == 3, "the drain was over before the operator could be killed"
    release.kill_leader()
    scene.settle(1)
    # 32 keys wait behind handlers of three seconds, on one pod now: more pods, or it takes long.
    scene.apply(scene.manifest(replicas=4, template=quick(scene)))
    scene.settle(4)
    assert scene.finish().good


def test_a_drain_that_takes_too_long_is_waited_for_and_told(make_scene: Callable[..., Scene], kube: Kube) -> None:
    scene = make_scene(handler_seconds=HANGS)
    waiting = {"drainTimeoutSeconds": 5, "onTimeout": "Wait"}
    patient = {"handoverTimeoutSeconds": int(HANGS) + 60}  # queues move between live members, too
    scene.start(replicas=2, shutdown=waiting, rebalance=patient)
    until(lambda: scene.ledger().begun_by(f"{GROUP}-1"), "its handlers are at it")
    kube.kubectl("scale", "-n", scene.name, f"cg/{GROUP}", "--replicas=1")

    def told(reason: str) -> list[str]:
        return [message for why, message in scene.events() if why == reason and f"{GROUP}-1 " in message]

    scene.when(lambda _: told("DrainTimedOut"), "people are told that the time is over")
    kept = scene.pod(1)
    assert kept is not None
    assert "deletionTimestamp" not in kept["metadata"]
    assert kept["spec"]["terminationGracePeriodSeconds"] == 86_400
    assert not told("Drained")
    scene.when(lambda _: told("Drained"), "it has drained when its handlers were done", HANGS + 60.0)
    scene.settle(1)
    scene.apply(scene.manifest(replicas=2, template=quick(scene), shutdown=waiting, rebalance=patient))
    scene.settle(2, HANGS + 120.0)
    assert scene.finish().good


def test_a_drain_that_takes_too_long_is_cut_short_and_told(make_scene: Callable[..., Scene], kube: Kube) -> None:
    scene = make_scene(handler_seconds=HANGS)
    scene.start(replicas=2, shutdown={"drainTimeoutSeconds": 5, "onTimeout": "Proceed"})
    until(lambda: scene.ledger().begun_by(f"{GROUP}-1"), "its handlers are at it")
    kube.kubectl("scale", "-n", scene.name, f"cg/{GROUP}", "--replicas=1")
    scene.settle(1)
    told = [message for reason, message in scene.events() if reason == "DrainTimedOut"]
    assert any(f"{GROUP}-1 " in message and "still being handled" in message for message in told), told
    assert scene.group["status"]["lastDrain"]["unfinished"] > 0
    scene.apply(scene.manifest(replicas=2, template=quick(scene)))
    scene.settle(2)
    assert not scene.finish().lost


def quick(scene: Scene) -> dict[str, object]:
    """A template with a quick handler."""
    return {"spec": {"containers": [{"name": "consumer", "env": scene.variables(HANDLER_SECONDS="0")}]}}


def test_a_standby_takes_over_within_seconds(scene: Scene, release: Release) -> None:
    scene.start(replicas=1)
    killed = release.kill_leader()
    began = time.monotonic()
    until(lambda: release.leader() != killed, "another operator leads")
    print(f"another operator led after {time.monotonic() - began:.1f} s")
    scene.scale(3)
    scene.hold()
    assert scene.finish().good


def test_both_operators_gone_and_back(kube: Kube, scene: Scene, release: Release) -> None:
    scene.start(replicas=2)
    kube.kubectl("scale", "-n", NAMESPACE, "deployment/rocketfleet", "--replicas=0")
    until(lambda: not release.pods(), "no operator is left")
    kube.kubectl("scale", "-n", scene.name, f"cg/{GROUP}", "--replicas=4")
    scene.hold()  # consuming goes on
    assert len(scene.pods()) == 2
    kube.kubectl("scale", "-n", NAMESPACE, "deployment/rocketfleet", "--replicas=2")
    scene.settle(4)
    assert scene.finish().good


@pytest.mark.parametrize("kill", [False, True], ids=["in-good-order", "killed"])
def test_broker_restarted(scene: Scene, kill: bool) -> None:
    scene.start(replicas=3)
    before = {name_of(pod): pod["metadata"]["uid"] for pod in scene.pods()}
    scene.platform.restart_broker(kill=kill)
    scene.consumes_on(scene.now(), 200)
    scene.settle(3)
    assert {name_of(pod): pod["metadata"]["uid"] for pod in scene.pods()} == before, "pods were replaced for nothing"
    verdict = scene.finish()
    if not kill:  # a killed broker forgets the commits of its last five seconds
        assert not verdict.out_of_order
        assert not verdict.repeated
