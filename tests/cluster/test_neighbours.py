"""Who else is there: slow handlers, somebody's own objects, a second release of the operator, addresses that are no
name servers."""

from collections.abc import Callable, Iterator

import pytest
from tests.cluster.images import Images
from tests.cluster.kube import Kube, name_of, until
from tests.cluster.operator_release import CHART, image_values
from tests.cluster.scene import GROUP, Scene

SLOW_IMPORT = "import time\n\ntime.sleep(50)  # longer than a liveness probe waits\n\nfrom handler import handle\n"
Install = Callable[..., None]


@pytest.fixture
def second(kube: Kube, images: Images) -> Iterator[Install]:
    """Installs another release of the operator, in a namespace of its own."""
    name = "rocketfleet-second"

    def install(**values: str) -> None:
        kube.namespace(name)
        given = {**image_values(images), "crds.install": "false", "rbac.aggregate": "false", **values}
        settings = [part for key, value in given.items() for part in ("--set", f"{key}={value}")]
        kube.helm("upgrade", "--install", name, str(CHART), "-n", name, *settings, "--wait", "--timeout=5m")

    yield install
    kube.helm("uninstall", name, "-n", name, "--wait", "--ignore-not-found")
    kube.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def uids(scene: Scene) -> dict[str, str]:
    return {name_of(pod): pod["metadata"]["uid"] for pod in scene.pods()}


def condition_of(scene: Scene, kind: str) -> tuple[str, str, str]:
    conditions = (scene.group.get("status") or {}).get("conditions") or []
    return next(
        ((one["status"], one["reason"], one["message"]) for one in conditions if one["type"] == kind), ("", "", "")
    )


def test_a_handler_that_takes_long_to_import_is_not_restarted(kube: Kube, scene: Scene) -> None:
    scene.open()
    code = kube.get(f"/api/v1/namespaces/{scene.name}/configmaps/code")
    assert code is not None
    data = {**code["data"], "slow.py": SLOW_IMPORT}
    slow = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}, "data": data}
    kube.apply(slow, namespace=scene.name)
    scene.start_traffic(rate=20.0)
    scene.apply(scene.manifest(replicas=1, worker={"handler": "slow:handle", "codeConfigMap": "slow"}))
    scene.settle(1, seconds=180.0)
    (pod,) = scene.pods()
    (status,) = pod["status"]["containerStatuses"]
    assert status["restartCount"] == 0
    assert scene.finish().good


def test_a_budget_of_somebody_elses_is_left_alone(kube: Kube, scene: Scene) -> None:
    budgets = f"/apis/policy/v1/namespaces/{scene.name}/poddisruptionbudgets"
    kube.namespace(scene.name)
    theirs = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": GROUP},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a-web-server"}}},
    }
    kube.apply(theirs, namespace=scene.name)
    scene.start(replicas=2)
    found = {name_of(one): one for one in kube.items(budgets)}
    assert set(found) == {GROUP, f"{GROUP}-consumers"}
    assert found[GROUP]["spec"]["selector"] == {"matchLabels": {"app": "a-web-server"}}
    assert scene.finish().good
    assert [name_of(one) for one in kube.items(budgets)] == [GROUP], "it did not go with the group"


def test_a_class_has_an_operator_of_its_own(scene: Scene, second: Install) -> None:
    scene.open()
    scene.start_traffic()
    scene.apply(scene.manifest(replicas=2, operatorClass="second"))
    second(operatorClass="second")
    scene.settle(2)
    assert scene.group["status"]["operator"] == "rocketfleet-second/rocketfleet-second"
    before = uids(scene)

    scene.apply(scene.manifest(replicas=2))  # without a class it belongs to the first release again
    until(lambda: scene.group["status"]["operator"] == "rocketfleet-system/rocketfleet", "it has been handed over")
    scene.settle(2)
    assert uids(scene) == before, "no pod was touched by that"
    scene.scale(3)
    assert scene.finish().good


def test_two_releases_by_mistake_do_not_fight(scene: Scene, second: Install) -> None:
    scene.start(replicas=2)
    before = uids(scene)
    second()
    until(lambda: "OperatorConflict" in dict(scene.events()), "the mistake is said")
    scene.hold()
    assert uids(scene) == before
    scene.scale(3)
    scene.scale(1)
    assert scene.finish().good


def test_an_address_that_is_no_name_server_is_not_connected_to(scene: Scene) -> None:
    scene.open()
    scene.apply(scene.manifest(replicas=1, cluster={"nameServers": ["169.254.169.254:80"]}))
    until(lambda: condition_of(scene, "BrokerReachable")[1] == "NameServerNotAllowed", "it is refused")
    assert condition_of(scene, "Ready")[0] == "False"
    assert not scene.pods()
    scene.delete()
