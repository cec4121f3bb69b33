"""The whole operator, kopf included, against an API server in this process."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.support.waiting import until
from tests.unit.controller.kube_objects import manifest
from tests.unit.controller.kube_server import Fault, KubeServer, running

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.controller.kube.backend import KubeBackend
from rocketfleet.controller.operator import leader, operator
from rocketfleet.controller.operator.metrics import Metrics
from rocketfleet.controller.operator.operator import Operator, OperatorError, Options
from rocketfleet.controller.reconciling.work_queue import Requeue
from rocketfleet.controller.resources.pod import Defaults

LIMIT = 40.0


class Recorder:
    """A term that creates one pod per group and notes what it saw."""

    def __init__(self, backend: KubeBackend) -> None:
        self.backend = backend
        self.passes: list[GroupKey] = []
        self.pods: dict[GroupKey, list[str]] = {}
        self.suspended: dict[GroupKey, bool] = {}
        self.forgotten: list[GroupKey] = []
        self.refused: set[GroupKey] = set()
        self.closed = False
        self.hold: asyncio.Event | None = None
        self.holding = 0

    async def reconcile(self, group: ConsumerGroup) -> Requeue:
        self.passes.append(group.key)
        if self.hold is not None:
            self.holding += 1
            await self.hold.wait()
        self.suspended[group.key] = group.spec.suspend
        seen = await self.backend.look(group)
        self.pods[group.key] = [one.pod.name for one in seen]
        if not seen and not group.spec.suspend:
            await self.backend.ensure_objects(group)
            await self.backend.create_pod(group, 0, "r1")
            return Requeue(0.1)
        return Requeue(30.0)

    async def forget(self, key: GroupKey) -> None:
        self.forgotten.append(key)

    def troubled(self, key: GroupKey) -> bool:
        return key in self.refused

    def metrics(self) -> bytes:
        return b"of_the_groups 1\n"

    async def close(self) -> None:
        self.closed = True


class Running:
    """An operator that runs."""

    def __init__(self, server: KubeServer, name: str, **options: Any) -> None:
        self.terms: list[Recorder] = []
        self.operator = Operator(
            Options(Defaults("image"), identity=name, **options), server.configuration(), self._make
        )
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.operator.run(self.stop), name=f"operator {name}")

    def _make(self, backend: KubeBackend, wake: Callable[[GroupKey], None], _: Metrics) -> Any:
        self.terms.append(Recorder(backend))
        return self.terms[-1]

    @property
    def term(self) -> Recorder:
        return self.terms[-1]

    @property
    def leads(self) -> bool:
        return bool(self.terms) and not self.term.closed and self.operator.leadership.may_act()

    async def end(self) -> None:
        self.stop.set()
        async with asyncio.timeout(LIMIT):
            await self.task


@contextlib.asynccontextmanager
async def started(server: KubeServer, name: str = "one", **options: Any) -> AsyncIterator[Running]:
    made = Running(server, name, **options)
    try:
        yield made
    finally:
        made.stop.set()
        with contextlib.suppress(OperatorError, asyncio.CancelledError):
            async with asyncio.timeout(LIMIT):
                await made.task


@pytest.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with running() as made:
        yield made


ORDERS = GroupKey("default", "orders")


async def test_each_class_is_looked_after_by_its_own_operator(server: KubeServer) -> None:
    await server.put("consumergroups", manifest("plain"))
    await server.put("consumergroups", manifest("blue", operatorClass="blue"))
    plain_key, blue_key = ("default", "plain"), ("default", "blue")
    async with (
        started(server, lease_name="a") as plain,
        started(server, "two", lease_name="b", operator_class="blue") as blue,
    ):
        await until(lambda: plain.leads and blue.leads, "both lead")
        await until(lambda: server.names("pods") == ["blue-0", "plain-0"], "each has made its pod")
        assert (set(plain.term.passes), set(blue.term.passes)) == ({plain_key}, {blue_key})
        await server.change("consumergroups", "default", "plain", {"spec": {"operatorClass": "blue"}})
        await until(lambda: plain_key in plain.term.forgotten, "the one lets it go")
        await until(lambda: plain_key in blue.term.passes, "the other takes it over")


async def test_a_claim_counts_whatever_the_class(server: KubeServer) -> None:
    blue = manifest("blue", operatorClass="blue", groupName="shared")
    await server.put("consumergroups", blue)
    await server.put("consumergroups", manifest("plain", groupName="shared"))
    async with started(server, lease_name="a") as one:
        await until(lambda: one.leads, "it leads")
        view = one.operator.view
        assert {claim.key for claim in view.claims("shared")} == {("default", "blue"), ("default", "plain")}
        assert view.keys() == [("default", "plain")]
        await server.change("consumergroups", "default", "plain", {"spec": {"operatorClass": "blue"}})
        await until(lambda: view.keys() == [], "it is another's")
        assert len(view.claims("shared")) == 2, "and claims the name as before"
        await server.change("consumergroups", "default", "blue", {"spec": {"operatorClass": None}})
        await until(lambda: view.keys() == [("default", "blue")], "the other is ours")
        assert len(view.claims("shared")) == 2


async def test_of_two_operators_over_one_group_one_stands_back_and_says_so(server: KubeServer) -> None:
    async with started(server, lease_namespace="default", lease_name="rf") as one:
        await until(lambda: one.leads, "it leads")
        await server.put("consumergroups", manifest())
        await until(lambda: one.term.pods.get(ORDERS) == ["orders-0"], "its pod was seen")
        await server.change("consumergroups", "default", "orders", {"status": {"operator": "default/rf"}})
        await until(lambda: ORDERS in one.operator._pass._rivals._ours, "its own name was seen")
        await server.change("consumergroups", "default", "orders", {"status": {"operator": "another/rf"}})
        await until(lambda: bool(server.names("events")), "it is told")
        (event,) = [body for (plural, _, _), body in server.objects.items() if plural == "events"]
        assert event["reason"] == "OperatorConflict"
        assert "another/rf looks after this group too; this one leaves it alone" in event["note"]
        await until(lambda: ORDERS in one.term.forgotten, "it is left alone")


async def test_an_object_leads_to_a_pass_and_a_pod_and_kopf_writes_nothing(server: KubeServer) -> None:
    async with started(server) as one:
        await until(lambda: one.leads, "it leads")
        await server.put("consumergroups", manifest())
        await until(lambda: one.term.pods.get(ORDERS) == ["orders-0"], "its pod was seen")
        assert server.names("pods") == ["orders-0"]
        await server.change("consumergroups", "default", "orders", {"spec": {"suspend": True}})
        await until(lambda: one.term.suspended.get(ORDERS, False), "the change was seen")
        await server.remove("consumergroups", "default", "orders")
        await until(lambda: ORDERS in one.term.forgotten, "it was forgotten")
        own = [call for call in server.calls if "rocketfleet" in call.agent]
        watches = [call for call in server.calls if call.watch]
        assert {call.plural for call in watches} == {"consumergroups", "pods", "poddisruptionbudgets"}
        assert all(call in own for call in server.calls if call.method != "GET")
        # Nothing of kopf's is in an object: no annotation, no finalizer.
        assert "kopf" not in str(server.objects)


async def test_events_of_pods_wake_their_group_and_our_own_writes_do_not(server: KubeServer) -> None:
    await server.put("consumergroups", manifest())
    async with started(server) as one:
        await until(lambda: server.names("pods") == ["orders-0"], "the pod is there")
        await until(lambda: one.operator.queue.busy == 0, "it rests")
        before = len(one.term.passes)
        await server.change("pods", "default", "orders-0", {"status": {"phase": "Running"}})
        await until(lambda: len(one.term.passes) > before, "the pod's change led to a pass")


async def test_a_pod_that_vanished_while_the_watch_was_away_is_replaced(server: KubeServer) -> None:
    await server.put("consumergroups", manifest())
    async with started(server) as one:
        await until(lambda: server.names("pods") == ["orders-0"], "the pod is there")
        await asyncio.sleep(0)
        old = server.get("pods", "default", "orders-0")["metadata"]["uid"]
        await server.remove("pods", "default", "orders-0", silently=True)
        await server.end_watches(too_old=True)
        await until(lambda: server.names("pods") == ["orders-0"], "another pod is there")
        assert server.get("pods", "default", "orders-0")["metadata"]["uid"] != old
        assert one.leads


async def test_watches_that_end_and_errors_of_the_api_are_survived(server: KubeServer) -> None:
    async with started(server) as one:
        await until(lambda: one.leads, "it leads")
        server.faults += [
            Fault("POST", "pods", 500, times=2),
            Fault("POST", "secrets", 409, "AlreadyExists", times=0),
            Fault("PATCH", "poddisruptionbudgets", 409, "Conflict"),
        ]
        await server.put("consumergroups", manifest())
        for _ in range(3):
            await server.end_watches()
            await asyncio.sleep(0.05)
        await until(lambda: server.names("pods") == ["orders-0"], "the pod is there in the end")
        await server.put("consumergroups", manifest("invoices"))
        await until(lambda: "invoices-0" in server.names("pods"), "watching goes on")


async def test_watching_begins_anew_when_kopf_gives_up(
    server: KubeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(operator, "TRY_AGAIN", 0.05)
    async with started(server) as one:
        await until(lambda: one.leads, "it leads")
        await until(lambda: len([call for call in server.calls if call.watch]) == 3, "it watches")
        server.watch_error = 500
        await server.end_watches()
        await until(lambda: "watching ended" in caplog.text, "kopf gave up")
        await server.put("consumergroups", manifest())
        await until(lambda: server.names("pods") == ["orders-0"], "the pod is there")
        assert len(one.terms) == 1


async def test_a_standby_takes_over_at_once_when_the_leader_stops(server: KubeServer) -> None:
    await server.put("consumergroups", manifest())
    async with started(server, "one") as one:
        await until(lambda: server.names("pods") == ["orders-0"], "the pod is there")
        async with started(server, "two") as two:
            await until(lambda: two.operator.view.synced, "the standby knows the cluster")
            await asyncio.sleep(0.3)
            assert two.terms == []
            assert two.operator.queue.busy == 0
            began = asyncio.get_running_loop().time()
            await one.end()
            await until(lambda: two.leads and ORDERS in two.term.passes, "the standby leads")
            # By the Lease being given back, not by its running out.
            assert asyncio.get_running_loop().time() - began < leader.LEASE
            assert one.term.closed
            assert server.names("pods") == ["orders-0"]
            assert server.get("leases", "default", "rocketfleet")["spec"]["holderIdentity"] == "two"


async def test_a_leader_that_loses_the_lease_stops_what_is_under_way(server: KubeServer) -> None:
    async with started(server) as one:
        await until(lambda: one.leads, "it leads")
        one.term.hold = asyncio.Event()
        await server.put("consumergroups", manifest())
        await until(lambda: one.term.holding == 1, "a pass is under way")
        taken = {"holderIdentity": "somebody", "leaseDurationSeconds": 60}
        await server.change("leases", "default", "rocketfleet", {"spec": taken})
        await until(lambda: one.term.closed, "its term is over")
        assert one.operator.queue.busy == 0
        assert server.names("pods") == []
        # It is given back: a new term begins, and the pass is made up for.
        await server.change("leases", "default", "rocketfleet", {"spec": {"holderIdentity": ""}})
        await until(lambda: len(one.terms) == 2 and one.leads, "it leads again")
        await until(lambda: server.names("pods") == ["orders-0"], "the pod is there")


async def test_stopping_waits_for_the_pass_at_hand(server: KubeServer) -> None:
    one = Running(server, "one")
    await until(lambda: one.leads, "it leads")
    one.term.hold = asyncio.Event()
    await server.put("consumergroups", manifest())
    await until(lambda: one.term.holding == 1, "a pass is under way")
    one.stop.set()
    await until(lambda: bool(one.operator._stopping), "it stops")
    one.term.hold.set()
    async with asyncio.timeout(LIMIT):
        await one.task
    assert server.names("pods") == ["orders-0"]  # the pass was finished, and was allowed to write
    assert server.get("leases", "default", "rocketfleet")["spec"]["holderIdentity"] == ""


async def test_a_signal_stops_it_in_good_order(server: KubeServer) -> None:
    one = Running(server, "one")
    await until(lambda: one.leads, "it leads")
    await until(lambda: any(call.watch for call in server.calls), "kopf has started")
    operator._take_signals(one.stop)
    signal.raise_signal(signal.SIGTERM)
    async with asyncio.timeout(LIMIT):
        await one.task
    assert server.get("leases", "default", "rocketfleet")["spec"]["holderIdentity"] == ""


async def test_an_object_that_cannot_be_followed_says_so_and_can_be_deleted(server: KubeServer) -> None:
    wrong = manifest(consumeFromWhere="Timestamp")
    wrong["metadata"]["finalizers"] = ["rocketfleet.io/drain"]
    await server.put("consumergroups", wrong)
    async with started(server) as one:
        await until(lambda: bool(server.get("consumergroups", "default", "orders").get("status")), "its status says it")
        conditions = server.get("consumergroups", "default", "orders")["status"]["conditions"]
        ready = next(one for one in conditions if one["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
        assert "consumeTimestamp" in ready["message"]
        assert ORDERS not in one.term.passes
        await server.change(
            "consumergroups", "default", "orders", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
        )
        await until(lambda: server.names("consumergroups") == [], "it is gone")


async def test_only_its_namespaces_are_looked_after(server: KubeServer) -> None:
    async with started(server, namespaces=("default",)) as one:
        await until(lambda: one.leads, "it leads")
        elsewhere = manifest("elsewhere")
        elsewhere["metadata"]["namespace"] = "other"
        await server.put("consumergroups", elsewhere)
        await server.put("consumergroups", manifest())
        await until(lambda: server.names("pods") == ["orders-0"], "the pod is there")
        assert {key[0] for key in one.term.passes} == {"default"}


async def test_it_waits_for_the_resource_to_be_installed(
    server: KubeServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "TRY_AGAIN", 0.05)
    server.faults.append(Fault("GET", "consumergroups", 404, "NotFound", times=3))
    async with started(server) as one:
        await until(lambda: one.leads, "it leads")
    assert "Is ConsumerGroup installed?" in caplog.text
