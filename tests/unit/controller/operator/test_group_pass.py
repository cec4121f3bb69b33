"""A pass over an object that another version wrote: what is not known is said once, and the group looked after."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.controller.kube_objects import manifest
from tests.unit.controller.kube_server import KubeServer, running

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.names import FINALIZER
from rocketfleet.controller.kube.api import KubeApi
from rocketfleet.controller.kube.backend import KubeBackend
from rocketfleet.controller.kube.view import KubeView
from rocketfleet.controller.operator.group_pass import GroupPass
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.reconciling.work_queue import Requeue
from rocketfleet.controller.resources.pod import Defaults

ORDERS = GroupKey("default", "orders")


class Passes:
    """A GroupPass with a reconciler that only takes notes."""

    def __init__(self, server: KubeServer) -> None:
        self.server = server
        self.api = KubeApi(server.client())
        self.view = KubeView(self.api)
        self.told: list[Event] = []
        self.backend = KubeBackend(
            self.api,
            self.view,
            Defaults("image"),
            instance="test",
            clock=lambda: 0.0,
            wall=lambda: 1_700_000_000.0,
            told=self.told.append,
        )
        self.run = GroupPass(self.view, self.backend, lambda: True, lambda: 1_700_000_000.0)
        term: Any = self
        self.run.begin_term(term)
        self.groups: list[ConsumerGroup] = []

    async def reconcile(self, group: ConsumerGroup) -> Requeue:
        self.groups.append(group)
        return Requeue(30.0)

    async def forget(self, key: GroupKey) -> None: ...

    def troubled(self, key: GroupKey) -> bool:
        return False

    async def put(self, generation: int = 1, **spec: Any) -> None:
        raw = manifest(**spec)
        raw["metadata"] |= {"generation": generation, "finalizers": [FINALIZER]}
        await self.server.put("consumergroups", raw)
        await self.view.sync()


@pytest.fixture
async def passes() -> AsyncIterator[Passes]:
    async with running() as server:
        made = Passes(server)
        try:
            yield made
        finally:
            made.backend.close()
            await made.api.close()


async def test_unknown_fields_are_ignored_and_said_once_for_each_generation(
    passes: Passes, caplog: pytest.LogCaptureFixture
) -> None:
    await passes.put(newField=1, consume={"threads": 3, "newLimit": 5})
    with caplog.at_level(logging.WARNING, "rocketfleet"):
        for _ in range(3):
            await passes.run(ORDERS)
    assert len(passes.groups) == 3
    assert passes.groups[0].spec.consume.threads == 3
    (event,) = passes.told
    assert (event.reason, event.warning) == (EventReason.UNKNOWN_FIELDS, True)
    assert "spec.consume.newLimit, spec.newField" in event.message
    assert sum("spec.newField" in record.message for record in caplog.records) == 1

    await passes.put(generation=2, newField=2)
    await passes.run(ORDERS)
    await passes.run(ORDERS)
    assert len(passes.told) == 2


async def test_a_deleted_group_with_unknown_fields_is_drained_and_not_let_go(passes: Passes) -> None:
    await passes.put(newField=1)
    await passes.api.delete("/apis/rocketfleet.io/v1alpha1/namespaces/default/consumergroups/orders", {})
    await passes.view.sync()
    await passes.run(ORDERS)
    (group,) = passes.groups
    assert group.metadata.deletion_timestamp is not None
    assert passes.server.get("consumergroups", *ORDERS)["metadata"]["finalizers"] == [FINALIZER]
