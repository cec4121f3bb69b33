"""The release itself: upgraded with its definitions, narrowed to namespaces, uninstalled without harm."""

import shutil
from pathlib import Path

from tests.cluster.kube import Kube, condition
from tests.cluster.operator_release import CHART, CRD, NAMESPACE, Release
from tests.cluster.scene import GROUP, Scene

FILE = "files/crds/rocketfleet.io_consumergroups.yaml"


def test_helm_upgrade_upgrades_the_definition(kube: Kube, release: Release, tmp_path: Path) -> None:
    chart = tmp_path / "rocketfleet"
    shutil.copytree(CHART, chart)
    text = (chart / FILE).read_text()
    newer = text.replace("categories:\n      - rocketmq\n", "categories:\n      - rocketmq\n      - newer\n")
    assert newer != text
    (chart / FILE).write_text(newer)
    release.install(chart)
    assert "newer" in categories(kube)
    release.install()
    assert "newer" not in categories(kube)


def categories(kube: Kube) -> list[str]:
    found = kube.get(CRD)
    assert found is not None
    result: list[str] = found["spec"]["names"]["categories"]
    return result


def test_uninstall_leaves_groups_running_and_a_new_release_takes_them_over(
    kube: Kube, release: Release, scene: Scene
) -> None:
    scene.start(replicas=2)
    release.uninstall()
    try:
        assert kube.get(CRD) is not None
        assert kube.group(scene.name, GROUP) is not None
        scene.hold()  # it consumes without an operator
    finally:
        release.install()
    scene.scale(3)
    assert scene.finish().good


def test_a_release_for_named_namespaces_looks_after_those_only(kube: Kube, release: Release, scene: Scene) -> None:
    scene.open()
    release.install(watchNamespaces=f"{{{scene.name}}}")
    try:
        roles = kube.items(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            {"labelSelector": "app.kubernetes.io/instance=rocketfleet"},
        )
        assert {role["metadata"]["name"].rpartition("-")[2] for role in roles} == {"edit", "view"}
        scene.start_traffic()
        scene.apply(scene.manifest(replicas=2))
        scene.settle(2)
        elsewhere = scene.manifest(replicas=1)
        elsewhere["metadata"] |= {"name": "elsewhere", "namespace": NAMESPACE}
        scene.apply(elsewhere)
        scene.scale(1)  # by then the other one would have been seen
        other = kube.group(NAMESPACE, "elsewhere")
        assert other is not None
        assert condition(other, "Ready") is None
        kube.kubectl("delete", "-n", NAMESPACE, "cg/elsewhere")
        assert scene.finish().good
    finally:
        release.install()
        release.mend()
