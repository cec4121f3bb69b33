"""The fixtures of users, on the broker that all tests here share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.cluster import Cluster

from rocketfleet.testing import WorkerGroup


@pytest.fixture
def make_workers(broker: Cluster, tmp_path: Path) -> Iterator[Callable[..., WorkerGroup]]:
    """As `worker_group` of the plugin, which would start another broker."""
    groups: list[WorkerGroup] = []

    def make(handler: Any, **options: Any) -> WorkerGroup:
        groups.append(WorkerGroup(broker, handler, tmp_path / f"group-{len(groups)}", **options))
        return groups[-1]

    yield make
    for group in groups:
        group.close()
