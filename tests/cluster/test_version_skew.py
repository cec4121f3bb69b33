"""Versions side by side: what an upgrade is while it is under way, and what a rollback leaves behind.

This operator with workers of the version before it, and with that version's definition; and this operator with a
definition that is newer than itself, as after a rollback. Each test ends with the same verdict as all others: nothing
lost, nothing repeated, nothing left.
"""

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.cluster.images import ROOT, Images, provide_images_of
from tests.cluster.kube import GROUPS, Kube, name_of, until
from tests.cluster.operator_release import CHART, CRD, Release, image_values
from tests.cluster.provision import Provision
from tests.cluster.scene import GROUP, Scene

PREVIOUS = "ddccc0acc5ed193318a26abaa4280aec0b25e1f8"
"""The version before this one: a commit, or from the first release on a tag. E2E_PREVIOUS names another. Its operator
is not run with our definition: it refused what it did not know, which is what the first test here is about.
"""
DEFINITION = Path("files/crds/rocketfleet.io_consumergroups.yaml")


@dataclass(frozen=True)
class Previous:
    """The version before ours: its chart and its images."""

    chart: Path
    images: Images

    def values(self) -> dict[str, str]:
        """For `Release.install`."""
        return {name.replace(".", "__"): value for name, value in image_values(self.images).items()}


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory, provision: Provision, images: Images) -> Previous:
    tree = tmp_path_factory.mktemp("previous")
    revision = os.environ.get("E2E_PREVIOUS", PREVIOUS)
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", revision], capture_output=True, check=False)
    assert archive.returncode == 0, f"{archive.stderr.decode()}: these tests need the history up to {revision}"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tree, filter="data")
    return Previous(tree / "helm" / "rocketfleet", provide_images_of(tree, images, provision.kind))


@pytest.fixture(autouse=True)
def _ours_at_the_end(release: Release) -> Iterator[None]:
    yield
    release.install()
    release.mend()


def chart_with(definition_of: Path, chart: Path, place: Path) -> Path:
    """A copy of a chart with the definition of another one."""
    copy = place / "rocketfleet"
    shutil.copytree(chart, copy)
    shutil.copy(definition_of / DEFINITION, copy / DEFINITION)
    return copy


def identities(scene: Scene) -> dict[str, str]:
    return {name_of(pod): pod["metadata"]["uid"] for pod in scene.pods()}


def schema(kube: Kube) -> str:
    found = kube.get(CRD)
    assert found is not None
    return str(found["spec"]["versions"])


def newer_definition(place: Path) -> Path:
    """Our chart with the definition of a version to come: fields with defaults that we do not know, and a column."""
    copy = chart_with(CHART, CHART, place)
    path = copy / DEFINITION
    definition = yaml.safe_load(path.read_text())
    for version in definition["spec"]["versions"]:
        parts = version["schema"]["openAPIV3Schema"]["properties"]
        spec, status = parts["spec"]["properties"], parts["status"]["properties"]
        spec["newPolicy"] = {"type": "string", "default": "Careful"}
        spec["consume"]["properties"]["newLimit"] = {"type": "integer", "default": 7}
        spec["subscriptions"]["items"]["properties"]["newFilter"] = {"type": "string", "default": "None"}
        status["newNotes"] = {"type": "object", "additionalProperties": {"type": "string"}}
        version["additionalPrinterColumns"].append({"name": "New", "type": "string", "jsonPath": ".spec.newPolicy"})
    path.write_text(yaml.safe_dump(definition))
    return copy


def test_our_operator_goes_on_with_a_newer_definition(
    kube: Kube, release: Release, scene: Scene, tmp_path: Path
) -> None:
    scene.start(replicas=2)
    ours, before = schema(kube), identities(scene)

    release.install(newer_definition(tmp_path))
    assert schema(kube) != ours
    # As the newer operator has left it: defaults are in every object as soon as it is written, and in the status are
    # notes and conditions of its own.
    object_path = f"{GROUPS}/namespaces/{scene.name}/consumergroups/{GROUP}"
    kube.call("PATCH", object_path, {"metadata": {"annotations": {"touched": "yes"}}})
    of_its_own = {
        "type": "NewAspect",
        "status": "True",
        "reason": "New",
        "message": "Of a version to come.",
        "lastTransitionTime": "2026-01-31T08:00:00Z",
    }
    conditions = [*scene.group["status"]["conditions"], of_its_own]
    kube.call("PATCH", f"{object_path}/status", {"status": {"newNotes": {"a": "b"}, "conditions": conditions}})
    assert scene.group["spec"]["newPolicy"] == "Careful", "the API server has filled it in"

    release.kill_leader()  # whoever leads next reads all of it anew
    release.mend()
    scene.hold()
    scene.settle(2)
    assert identities(scene) == before, "nobody was replaced"
    scene.scale(3)
    scene.scale(1)
    ignored = [text for reason, text in scene.events() if reason == "UnknownFields"]
    assert any("newPolicy" in text for text in ignored), scene.events()

    release.install()
    scene.hold()
    scene.scale(2)
    assert scene.finish().good


def test_our_operator_goes_on_with_workers_of_the_version_before(previous: Previous, scene: Scene) -> None:
    scene.start(
        replicas=2,
        worker={"handler": "handler:handle", "codeConfigMap": "code", "image": previous.images.worker},
    )
    scene.scale(3)
    scene.hold()
    scene.scale(1)
    drained = [text for reason, text in scene.events() if reason == "Drained"]
    assert len(drained) == 2, scene.events()
    assert all("safe at the broker" in text for text in drained), "their offsets were asked for, and read back"
    assert scene.finish().good


def test_an_upgrade_of_everything_but_the_definition_keeps_groups_running(
    kube: Kube, release: Release, previous: Previous, scene: Scene, tmp_path: Path
) -> None:
    release.install(previous.chart, **previous.values())
    scene.start(replicas=2)
    theirs, before = schema(kube), identities(scene)

    release.install(chart_with(previous.chart, CHART, tmp_path))
    assert schema(kube) == theirs, "only the operator is new"
    until(
        lambda: not set(identities(scene).values()) & set(before.values()),
        "each pod is replaced, for the default image is new",
        240.0,
    )
    scene.settle(2)
    scene.scale(3)
    scene.scale(1)

    release.install()
    assert schema(kube) != theirs
    scene.hold()
    scene.scale(2)
    assert scene.finish().good
