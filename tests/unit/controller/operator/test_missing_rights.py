"""A role that lacks what a new version needs: groups go on, and a sentence says which right is missing.

So it is with a role that was written by hand (rbac.create=false), or while the chart's is not upgraded yet.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.controller.kube.test_backend import Setup
from tests.unit.controller.kube_server import no_right, running
from tests.unit.controller.operator.test_operator_scale import QuietBrokers

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.api.status import ConditionType
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.controller.reconciling.reconcile import Reconciler

EARLIER = [
    no_right("DELETE", "delete", "poddisruptionbudgets"),
    no_right("GET", "get", "configmaps"),
    no_right("GET", "get", "nodes"),
]
RIGHTS = 'docs/install.md, "Rights"'


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    async with running() as server:
        made = Setup(server)
        try:
            yield made
        finally:
            made.backend.close()
            await made.api.close()


def old_budget(setup: Setup) -> dict[str, Any]:
    """As earlier versions made it: under the group's own name."""
    owner = {"apiVersion": "rocketfleet.io/v1alpha1", "kind": "ConsumerGroup", "name": "orders", "controller": True}
    owner["uid"] = setup.seen().metadata.uid
    labels = {"rocketfleet.io/group": "orders"}
    metadata = {"name": "orders", "labels": labels, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}


async def passes(setup: Setup, count: int = 4) -> Reconciler:
    reconciler = Reconciler(setup.backend, QuietBrokers(), clock=lambda: 1_700_000_000.0, ticks=lambda: setup.now)
    for _ in range(count):
        setup.now += 30.0
        await reconciler.reconcile(setup.seen())
    return reconciler


async def test_a_group_goes_on_with_the_role_of_the_earlier_release(setup: Setup) -> None:
    await setup.group(worker={"handler": "app:handle", "codeConfigMap": "code"})
    await setup.server.put("poddisruptionbudgets", old_budget(setup))
    await setup.view.sync()
    setup.server.faults += EARLIER
    reconciler = await passes(setup)
    assert setup.server.names("pods") == ["orders-0", "orders-1"]
    assert setup.server.names("poddisruptionbudgets") == ["orders"], "with two of them nothing could be evicted"
    (told,) = {one.message for one in setup.told if one.reason is EventReason.EVICTIONS}
    assert "the PodDisruptionBudget orders, which an earlier version made, stays as it is" in told
    assert "cannot delete" in told
    assert RIGHTS in told
    (ready,) = [one for _, found in reconciler.conditions() for one in found if one.type == ConditionType.READY]
    assert ready.reason == "PodsNotReady", "the budget is no part of it"
    assert reconciler.troubled(GroupKey("default", "orders")), "and whoever counts passes that fail hears of it"
    setup.server.faults.clear()
    await passes(setup, 1)
    assert setup.server.names("poddisruptionbudgets") == ["orders-consumers"]


async def test_a_deletion_ends_with_the_role_of_the_earlier_release(setup: Setup) -> None:
    await setup.group(replicas=0)
    setup.server.faults += EARLIER
    await passes(setup)
    gone = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    await setup.server.change("consumergroups", "default", "orders", gone)
    await setup.view.sync()
    await passes(setup, 1)
    assert setup.view.raw_group(GroupKey("default", "orders")) is None


@pytest.mark.parametrize(
    ("missing", "what"),
    [
        (no_right("POST", "create", "poddisruptionbudgets"), "create"),
        (no_right("PATCH", "patch", "poddisruptionbudgets"), "patch"),
    ],
)
async def test_a_budget_that_may_not_be_written_is_told_and_nothing_else_waits(
    setup: Setup, missing: Any, what: str
) -> None:
    await setup.group(replicas=3)
    if what == "patch":
        await passes(setup)
        await setup.server.change("consumergroups", "default", "orders", {"spec": {"replicas": 5}})
        await setup.view.sync()
    setup.server.faults.append(missing)
    await passes(setup)
    assert len(setup.server.names("pods")) == (5 if what == "patch" else 3)
    assert any(f"cannot {what}" in one.message for one in setup.told if one.reason is EventReason.EVICTIONS)


@pytest.mark.parametrize(
    "message",
    ['pods "x" is forbidden: exceeded quota: pods', 'pods "x" is forbidden: violates PodSecurity "restricted"'],
)
async def test_what_quotas_and_admission_refuse_is_not_called_a_lack_of_rights(setup: Setup, message: str) -> None:
    await setup.group(replicas=1)
    fault = no_right("POST", "create", "pods")
    fault.message = message
    setup.server.faults.append(fault)
    reconciler = await passes(setup)
    (ready,) = [one for _, found in reconciler.conditions() for one in found if one.type == ConditionType.READY]
    assert ready.reason == "ReconcileFailed"
    assert message in ready.message
    assert RIGHTS not in ready.message
