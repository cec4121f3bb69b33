"""One cluster for the whole run, with RocketMQ and the operator in it; each test has a namespace and a group to itself.

A test that fails is reported with what the operator, the pods and the events said.
"""

import itertools
import os
import re
import secrets
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from tests.cluster import post_mortem
from tests.cluster.images import Images, provide_images
from tests.cluster.kube import Kube
from tests.cluster.operator_release import Release
from tests.cluster.platform import Platform
from tests.cluster.provision import Provision, provide
from tests.cluster.scene import Scene

LONGEST = 3000.0  # seconds; the first test waits for the cluster to be built
_numbers = itertools.count()
_run = secrets.token_hex(2)  # a cluster may have seen other runs
_open: dict[str, Scene] = {}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "core: what CI runs too: install, create, scale, roll, drain, delete")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(LONGEST))


@pytest.fixture(scope="session")
def provision() -> Iterator[Provision]:
    found = provide()
    yield found
    found.end()


@pytest.fixture(scope="session")
def kube(provision: Provision) -> Kube:
    return provision.kube


@pytest.fixture(scope="session")
def images(provision: Provision) -> Images:
    return provide_images(provision.kind)


@pytest.fixture(scope="session")
def platform(kube: Kube, images: Images) -> Platform:
    """RocketMQ, the recorder and the toolbox."""
    platform = Platform(kube, images)
    platform.install()
    return platform


@pytest.fixture(scope="session")
def release(kube: Kube, images: Images, platform: Platform) -> Iterator[Release]:
    """The operator, by `helm install` into a namespace that enforces the restricted level."""
    release = Release(kube, images)
    release.install()
    yield release
    if not os.environ.get("E2E_KEEP"):
        release.uninstall()


@pytest.fixture
def make_scene(request: pytest.FixtureRequest, platform: Platform, release: Release) -> Iterator[Callable[..., Scene]]:
    """make_scene(mode="Concurrent", handler_seconds=2) has a namespace, a topic and a group that no other test has."""
    scenes: list[Scene] = []

    def make(**settings: Any) -> Scene:
        stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")[:36].strip("-")
        scene = Scene(platform, f"e2e-{stem}-{_run}{next(_numbers)}", **settings)
        scenes.append(scene)
        _open[scene.name] = scene
        return scene

    yield make
    for scene in scenes:
        _open.pop(scene.name, None)
        scene.close()
    release.mend()


@pytest.fixture
def scene(make_scene: Callable[..., Scene]) -> Scene:
    """An orderly group with a quick handler."""
    return make_scene()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.when in ("setup", "call"):
        kube = getattr(item, "funcargs", {}).get("kube") or next((scene.kube for scene in _open.values()), None)
        if isinstance(kube, Kube):
            report.sections.append(("the cluster", post_mortem.collect(kube, list(_open))))
    return report
