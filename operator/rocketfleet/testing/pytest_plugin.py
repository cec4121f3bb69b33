"""Fixtures for users' own tests: `rocketmq`, a development broker, and `worker_group`, a group of workers on it.

pytest imports this in every run where Rocketfleet is installed, so it imports nothing until a fixture is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocketfleet.devbroker.fleet import Fleet
    from rocketfleet.testing.group.worker_group import WorkerGroup


@pytest.fixture(scope="session")
def rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A real RocketMQ on loopback for the whole run: one name server, whose address is `.name_server`, and one broker.

    It needs Java 17 or newer. The first start of all fetches RocketMQ's jars into a cache.
    """
    from rocketfleet.devbroker.errors import DevBrokerError
    from rocketfleet.devbroker.fleet import Fleet
    from rocketfleet.devbroker.guard import Guard
    from rocketfleet.devbroker.setup.config import FleetSpec

    fleet = Fleet(tmp_path_factory.mktemp("rocketmq"))
    guard = Guard(fleet.directory)  # should this process be killed, no broker is left behind
    try:
        try:
            fleet.start(FleetSpec())
        except DevBrokerError as error:  # no Java, say, or not the packages that fetching RocketMQ takes
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        yield fleet
    finally:
        fleet.stop(delete_data=True)
        guard.dismiss()


@pytest.fixture
def worker_group(rocketmq: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., WorkerGroup]]:
    """worker_group("orders.handlers:on_order", orderly=True) makes a group of worker processes with that handler.

    It has a topic of its own and no worker yet: `start(2)`. What is left of it ends with the test.
    """
    from rocketfleet.testing.group.worker_group import WorkerGroup

    groups: list[WorkerGroup] = []

    def make(handler: Callable[[Any], Any] | str, **options: Any) -> WorkerGroup:
        groups.append(WorkerGroup(rocketmq, handler, tmp_path_factory.mktemp("group"), **options))
        return groups[-1]

    yield make
    for group in groups:
        group.close()
