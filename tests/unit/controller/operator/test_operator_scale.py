"""A thousand groups at rest cost next to nothing: with the real reconciler, and brokers that only answer."""

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any

from tests.support.waiting import until
from tests.unit.controller.kube_objects import manifest
from tests.unit.controller.kube_server import KubeServer, running

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.client.config import ClientConfig
from rocketfleet.controller.kube.backend import KubeBackend
from rocketfleet.controller.operator.metrics import Metrics
from rocketfleet.controller.operator.operator import Operator, Options
from rocketfleet.controller.planning.preparation import Preparation, PreparationState
from rocketfleet.controller.planning.snapshot import Ownership
from rocketfleet.controller.reconciling.reconcile import Reconciler
from rocketfleet.controller.reconciling.work_queue import Requeue
from rocketfleet.controller.resources.pod import Defaults
from rocketfleet.controller.rocketmq.brokers import Members
from rocketfleet.controller.rocketmq.group_preparation import Prepared
from rocketfleet.controller.rocketmq.group_removal import Confirm
from rocketfleet.lag.target import Target
from rocketfleet.wire.queue import MessageQueue

GROUPS = 1000


class QuietBrokers:
    """Brokers where nothing happens."""

    async def of(self, group: ConsumerGroup, config: ClientConfig) -> "QuietBrokers":
        return self

    async def forget(self, holder: Hashable) -> None: ...

    async def close(self) -> None: ...

    async def queues(self) -> frozenset[MessageQueue]:
        return frozenset(MessageQueue("orders", "broker-a", n) for n in range(8))

    async def registered_brokers(self) -> frozenset[str]:
        return frozenset({"broker-a"})

    async def members(self, *, with_hosts: bool) -> Members:
        return Members({})

    async def ownership(self, client_ids: Iterable[str]) -> Ownership:
        return Ownership({})

    async def subscribed(self) -> dict[str, dict[str, str]]:
        return {}

    async def committed(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        return {}

    def lag_target(self) -> Target:
        raise AssertionError("nobody watches the lag here")

    async def standing(self, known: Preparation, now: float, *, nobody: bool) -> PreparationState:
        return PreparationState(prepared=True)

    async def prepare(self) -> Prepared:
        return Prepared()

    async def release_locks(self, client_ids: Collection[str]) -> frozenset[str]:
        return frozenset(client_ids)

    async def delete_group(self, confirm: Confirm, *, topics_too: bool) -> None: ...


def statuses(server: KubeServer) -> int:
    return sum(
        bool(body.get("status")) for (plural, _, _), body in server.objects.items() if plural == "consumergroups"
    )


class Counted(Reconciler):
    passes = 0

    async def reconcile(self, group: ConsumerGroup) -> Requeue:
        Counted.passes += 1
        return await super().reconcile(group)

    def metrics(self) -> bytes:
        return b""


async def test_a_thousand_suspended_groups_at_rest_cause_no_calls() -> None:
    def make_term(backend: KubeBackend, wake: Callable[[GroupKey], None], _: Metrics) -> Any:
        return Counted(backend, QuietBrokers(), defaults=Defaults("image"), wake=wake)

    async with running() as server:
        for n in range(GROUPS):
            await server.put("consumergroups", manifest(f"group-{n}", suspend=True))
        operator = Operator(Options(Defaults("image"), identity="one", workers=16), server.configuration(), make_term)
        stop = asyncio.Event()
        task = asyncio.create_task(operator.run(stop))
        try:
            await until(lambda: statuses(server) == GROUPS, "every group has a status", within=200)

            def at_rest() -> bool:
                return operator.queue.waiting()[0] == 0 and operator.queue.busy == 0

            before = -1
            while before != len(server.writes()):  # what the first passes wrote is followed by second ones
                before = len(server.writes())
                await asyncio.sleep(2.0)
                await until(at_rest, "nothing is due", within=200)
            # Half a minute at rest, without the wait: each group is looked at once, as it would be then.
            passes, calls = Counted.passes, len(server.calls)
            for key in operator.view.keys():  # noqa: SIM118 - not a dict
                operator.queue.wake(key)
            await until(lambda: Counted.passes >= passes + GROUPS and at_rest(), "each was looked at", within=200)
            new = [call for call in server.calls[calls:] if call.plural != "leases"]
            assert new == []
            assert len(operator.view.groups) == GROUPS
        finally:
            stop.set()
            await task
