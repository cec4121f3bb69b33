"""The backend against an API server in this process: idempotent, guarded, and never behind its own writes."""

import base64
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.controller.kube_objects import manifest
from tests.unit.controller.kube_server import Fault, KubeServer, running

from rocketfleet.api.checking import read_object
from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.names import FINALIZER
from rocketfleet.api.spec import DeletionPolicy, Engine
from rocketfleet.controller.kube.api import KubeApi, KubeError, NotLeading
from rocketfleet.controller.kube.backend import KubeBackend
from rocketfleet.controller.kube.view import KubeView
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.planning.snapshot import DrainMark, NodeState, Pod
from rocketfleet.controller.reconciling.backend import BackendError, NameServerNotAllowed
from rocketfleet.controller.resources.code import Code
from rocketfleet.controller.resources.pod import SHARED_ANNOTATION, Defaults
from rocketfleet.controller.resources.shared_settings import shared_settings_of
from rocketfleet.controller.rocketmq.allowed_hosts import allowed_hosts
from rocketfleet.worker.configuration.setting_table import OnTimeout


class Guard:
    def __init__(self) -> None:
        self.acts = True

    def may_act(self) -> bool:
        return self.acts

    def seconds_left(self) -> float:
        return 8.0


class Setup:
    def __init__(self, server: KubeServer) -> None:
        self.server = server
        self.guard = Guard()
        self.now = 0.0
        self.api = KubeApi(server.client(), self.guard)
        self.view = KubeView(self.api)
        self.told: list[Event] = []
        self.backend = KubeBackend(
            self.api,
            self.view,
            Defaults("image"),
            instance="test",
            clock=lambda: self.now,
            wall=lambda: 1_700_000_000.0,
            told=self.told.append,
        )

    async def group(self, name: str = "orders", **spec: Any) -> ConsumerGroup:
        await self.server.put("consumergroups", manifest(name, **spec))
        await self.view.sync()
        return self.seen(name)

    def seen(self, name: str = "orders") -> ConsumerGroup:
        raw = self.view.raw_group(GroupKey("default", name))
        assert raw is not None
        return read_object(raw)

    async def pods(self, group: ConsumerGroup) -> list[Pod]:
        return [seen.pod for seen in await self.backend.look(group)]


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    async with running() as server:
        made = Setup(server)
        try:
            yield made
        finally:
            made.backend.close()
            await made.api.close()


async def ready(setup: Setup) -> ConsumerGroup:
    group = await setup.group()
    await setup.backend.ensure_objects(group)
    await setup.backend.limit_evictions(group, 1)
    return group


class TestClaims:
    async def test_objects_of_any_namespace_that_name_a_group_are_known_until_they_go(self, setup: Setup) -> None:
        mine = await setup.group("orders", groupName="g")
        for namespace, name, group_name in (("shop", "orders", "g"), ("shop", "other", "x")):
            raw = manifest(name, groupName=group_name)
            raw["metadata"] |= {"namespace": namespace, "uid": f"{namespace}-{name}"}
            raw["metadata"]["creationTimestamp"] = "1970-01-01T00:00:09Z"
            assert setup.view.saw_group("ADDED", await setup.server.put("consumergroups", raw))
        found = {claim.key: claim.created for claim in await setup.backend.claims(mine)}
        assert found.keys() == {("default", "orders"), ("shop", "orders")}
        assert found[GroupKey("shop", "orders")] == 9.0
        await setup.server.remove("consumergroups", "shop", "orders")
        await setup.view.sync()
        assert [claim.key for claim in await setup.backend.claims(mine)] == [("default", "orders")]


def node(name: str, ready: str | None, *taints: str) -> dict[str, Any]:
    conditions = (
        [] if ready is None else [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]
    )
    return {
        "metadata": {"name": name},
        "spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]},
        "status": {"conditions": conditions},
    }


class TestNodes:
    async def test_what_a_node_says_of_itself(self, setup: Setup) -> None:
        unreachable = "node.kubernetes.io/unreachable"
        for made in (
            node("well", "True"),
            node("not-ready", "False"),
            node("unreachable", "Unknown", unreachable),
            node("new", None),
            node("out", "Unknown", unreachable, "node.kubernetes.io/out-of-service"),
        ):
            await setup.server.put("nodes", made)
        states = await setup.backend.nodes(["well", "not-ready", "unreachable", "new", "out", "no-such"])
        assert states == {
            "well": NodeState.ANSWERS,
            "not-ready": NodeState.SILENT,
            "unreachable": NodeState.SILENT,
            "new": NodeState.SILENT,
            "out": NodeState.OUT_OF_SERVICE,
            "no-such": NodeState.GONE,
        }

    async def test_without_the_right_to_nodes_nothing_is_known_and_little_asked(self, setup: Setup) -> None:
        setup.server.faults.append(Fault("GET", "nodes", 403, "Forbidden", times=100))
        for _ in range(20):
            assert await setup.backend.nodes(["w1"]) == {"w1": NodeState.HIDDEN}
            setup.now += 1.0
        assert len([call for call in setup.server.calls if call.plural == "nodes"]) == 1

    async def test_an_api_server_in_trouble_says_nothing_about_a_node(self, setup: Setup) -> None:
        setup.server.faults.append(Fault("GET", "nodes", 500))
        assert await setup.backend.nodes(["w1"]) == {}
        assert await setup.backend.nodes(["w1"]) == {"w1": NodeState.GONE}


class TestPods:
    async def test_a_pod_that_was_created_is_known_before_any_watch_tells(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        pods = await setup.pods(group)
        assert [(pod.name, pod.ordinal, pod.revision) for pod in pods] == [("orders-0", 0, "r1")]
        assert pods[0].uid == setup.server.get("pods", "default", "orders-0")["metadata"]["uid"]

    async def test_creating_twice_makes_one(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        await setup.backend.create_pod(group, 0, "r1")
        posts = [call for call in setup.server.calls if (call.method, call.plural) == ("POST", "pods")]
        assert len(posts) == 1

    async def test_a_creation_whose_answer_was_lost_is_found_and_not_repeated(self, setup: Setup) -> None:
        group = await ready(setup)
        setup.server.faults.append(Fault("POST", "pods", 500, done=True))
        with pytest.raises(KubeError):
            await setup.backend.create_pod(group, 0, "r1")
        uid = setup.server.get("pods", "default", "orders-0")["metadata"]["uid"]
        await setup.backend.create_pod(group, 0, "r1")
        assert [pod.uid for pod in await setup.pods(group)] == [uid]

    async def test_a_slip_of_the_pen_in_the_template_is_told(self, setup: Setup) -> None:
        group = await ready(setup)
        setup.server.warnings["POST", "pods"] = [
            '299 - "unknown field \\"spec.containers[0].resouces\\""',
            '299 - "would violate PodSecurity \\"restricted:latest\\""',
        ]
        await setup.backend.create_pod(group, 0, "r1")
        await setup.backend.create_pod(group, 1, "r1")
        (told,) = setup.told
        assert told.reason is EventReason.UNKNOWN_FIELDS
        assert "ignores them: spec.containers[0].resouces. Correct spec.template" in told.message
        assert len(await setup.pods(group)) == 2, "they run all the same"

    async def test_an_existing_pod_is_not_changed_by_creating_it(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        pod = (await setup.pods(group))[0]
        await setup.backend.mark_drain(group, pod, DrainMark(5.0, "scale-in"))
        fresh = Setup(setup.server)
        await fresh.backend.ensure_objects(group)
        await fresh.backend.create_pod(group, 0, "r2")
        (kept,) = await fresh.pods(group)
        assert (kept.revision, kept.drain) == ("r1", DrainMark(5.0, "scale-in", ""))
        await fresh.api.close()

    async def test_a_name_taken_by_somebody_else_is_waited_for(self, setup: Setup) -> None:
        group = await ready(setup)
        foreign = {"metadata": {"name": "orders-0", "labels": {"rocketfleet.io/group": "orders"}}}
        await setup.server.put("pods", foreign)
        with pytest.raises(BackendError, match="an earlier object"):
            await setup.backend.create_pod(group, 0, "r1")
        assert await setup.pods(group) == []

    async def test_a_mark_is_known_at_once_and_meant_for_this_pod_only(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        pod = (await setup.pods(group))[0]
        await setup.backend.mark_drain(group, pod, DrainMark(7.0, "why"))
        assert (await setup.pods(group))[0].drain == DrainMark(7.0, "why", "")
        await setup.server.remove("pods", "default", "orders-0")
        await setup.server.put("pods", {"metadata": {"name": "orders-0", "labels": {}}})
        await setup.backend.mark_drain(group, pod, DrainMark(8.0, "why"))
        assert "annotations" not in setup.server.get("pods", "default", "orders-0")["metadata"]
        assert await setup.pods(group) == []

    async def test_a_mark_notes_what_had_ended_though_we_had_not_heard_of_it(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        (pod,) = await setup.pods(group)
        state = {"terminated": {"exitCode": 5, "containerID": "containerd://first"}}
        container = {"name": "consumer", "state": {"running": {}}, "lastState": state}
        status = {"phase": "Running", "containerStatuses": [container]}
        await setup.server.change("pods", "default", "orders-0", {"status": status})
        await setup.backend.mark_drain(group, pod, DrainMark(7.0, "why"))
        (marked,) = await setup.pods(group)
        assert marked.drain == DrainMark(7.0, "why", "containerd://first")
        assert marked.outcome is None, "it ended for a reason of its own, and consumes again"

    async def test_a_note_that_a_pod_lacks_is_written_and_known_at_once(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        made = (await setup.pods(group))[0]
        assert made.shared == shared_settings_of(group)
        annotations = setup.server.get("pods", "default", "orders-0")["metadata"]["annotations"]
        await setup.server.change(
            "pods", "default", "orders-0", {"metadata": {"annotations": {SHARED_ANNOTATION: None}}}
        )
        await setup.view.sync()
        (older,) = await setup.pods(group)
        assert older.shared is None
        await setup.backend.note_shared(group, older, {"consumeMode": "Orderly"})
        assert (await setup.pods(group))[0].shared == {"consumeMode": "Orderly"}
        left = setup.server.get("pods", "default", "orders-0")["metadata"]["annotations"]
        assert left.keys() == annotations.keys(), "the settings are as they were"

    async def test_deletion_shows_at_once_and_twice_is_once(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        pod = (await setup.pods(group))[0]
        await setup.backend.delete_pod(group, pod, force=False)
        assert (await setup.pods(group))[0].deleting is not None
        await setup.backend.delete_pod(group, pod, force=True)
        assert await setup.pods(group) == []
        await setup.backend.delete_pod(group, pod, force=True)
        # A late event of the pod that is gone does not bring it back.
        late = {"metadata": {**setup.server._log[-1][3]["metadata"]}}
        assert setup.view.saw_pod("MODIFIED", late) is None

    async def test_what_we_delete_gets_the_time_of_a_drain_though_the_pod_may_wait_for_a_day(
        self, setup: Setup
    ) -> None:
        group = await ready(setup)
        shutdown = group.spec.shutdown.model_copy(update={"on_timeout": OnTimeout.WAIT})
        group = group.model_copy(update={"spec": group.spec.model_copy(update={"shutdown": shutdown})})
        await setup.backend.create_pod(group, 0, "r1")
        pod = (await setup.pods(group))[0]
        await setup.backend.delete_pod(group, pod, force=False)
        found = setup.server.get("pods", "default", "orders-0")
        assert found["spec"]["terminationGracePeriodSeconds"] == 86_400
        assert found["metadata"]["deletionGracePeriodSeconds"] == shutdown.drain_timeout_seconds + 10

    async def test_the_pod_that_took_its_place_is_not_deleted(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        old = (await setup.pods(group))[0]
        await setup.server.remove("pods", "default", "orders-0", silently=True)
        another = Setup(setup.server)
        await another.backend.ensure_objects(group)
        await another.backend.create_pod(group, 0, "r1")
        await setup.backend.delete_pod(group, old, force=False)
        assert "deletionTimestamp" not in setup.server.get("pods", "default", "orders-0")["metadata"]
        await another.api.close()

    @pytest.mark.parametrize("status", [409, 422])
    async def test_a_refusal_that_is_not_about_the_uid_does_not_make_a_pod_vanish(
        self, setup: Setup, status: int
    ) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        pod = (await setup.pods(group))[0]
        setup.server.faults += [Fault("PATCH", "pods", status), Fault("DELETE", "pods", status)]
        with pytest.raises(KubeError):
            await setup.backend.mark_drain(group, pod, DrainMark(1.0, "why"))
        with pytest.raises(KubeError):
            await setup.backend.delete_pod(group, pod, force=False)
        assert [one.uid for one in await setup.pods(group)] == [pod.uid]

    async def test_who_does_not_lead_writes_nothing(self, setup: Setup) -> None:
        group = await ready(setup)
        before = len(setup.server.writes())
        setup.guard.acts = False
        with pytest.raises(NotLeading):
            await setup.backend.create_pod(group, 0, "r1")
        with pytest.raises(NotLeading):
            await setup.backend.write_status(group, {})
        with pytest.raises(NotLeading):
            await setup.backend.add_finalizer(group)
        assert len(setup.server.writes()) == before

    async def test_what_the_api_refuses_is_a_sentence(self, setup: Setup) -> None:
        group = await ready(setup)
        setup.server.faults.append(Fault("POST", "pods", 403, "Forbidden"))
        with pytest.raises(BackendError, match="403"):
            await setup.backend.create_pod(group, 0, "r1")

    async def test_an_api_that_is_away_is_a_sentence(self, setup: Setup) -> None:
        group = await ready(setup)
        setup.api._client.configuration.host = "http://127.0.0.1:1"
        with pytest.raises(BackendError, match="could not be reached"):
            await setup.backend.create_pod(group, 0, "r1")


class TestNameServers:
    async def test_one_that_is_not_allowed_is_refused_before_any_secret_is_read(self, setup: Setup) -> None:
        cluster = {"nameServers": ["mq.allowed:9876", "10.0.0.9:9876"], "credentials": {"secretName": "acl"}}
        group = await setup.group(cluster=cluster)
        hosts = allowed_hosts([".allowed"])
        careful = KubeBackend(
            setup.api, setup.view, Defaults("image"), instance="t", clock=lambda: 0.0, wall=lambda: 0.0, hosts=hosts
        )
        with pytest.raises(NameServerNotAllowed, match=r"10\.0\.0\.9 is not among the name servers"):
            await careful.connection(group)
        assert not [call for call in setup.server.calls if call.plural == "secrets"]

    async def test_a_list_in_one_item_is_judged_as_the_client_reads_it(self, setup: Setup) -> None:
        group = await setup.group()
        group.spec.cluster.name_servers[:] = ["mq.evil:9876;mq.allowed:9876"]  # which no manifest may have
        careful = KubeBackend(
            *(setup.api, setup.view, Defaults("image")),
            instance="t",
            clock=lambda: 0.0,
            wall=lambda: 0.0,
            hosts=allowed_hosts([".allowed"]),
        )
        with pytest.raises(NameServerNotAllowed, match=r"mq\.evil is not among the name servers"):
            await careful.connection(group)

    async def test_what_brokers_are_called_is_checked_when_they_are_connected_to(self, setup: Setup) -> None:
        config = await setup.backend.connection(await setup.group())
        assert config.refused_address is not None
        assert "link-local" in str(config.refused_address("169.254.169.254"))
        assert config == await setup.backend.connection(setup.seen()), "so that connections are shared"


class TestObjects:
    async def test_a_token_is_made_once_and_found_by_the_next(self, setup: Setup) -> None:
        group = await setup.group()
        assert not await setup.backend.objects_ready(group)
        await setup.backend.ensure_objects(group)
        assert await setup.backend.objects_ready(group)
        token = await setup.backend.control_token(group)
        assert token is not None
        assert len(token) >= 32
        next_one = Setup(setup.server)
        await next_one.view.sync()
        assert not await next_one.backend.objects_ready(group)
        before = len(setup.server.writes())
        await next_one.backend.ensure_objects(group)
        assert await next_one.backend.objects_ready(group)
        assert await next_one.backend.control_token(group) == token
        assert len(setup.server.writes()) == before
        await next_one.api.close()

    async def test_a_secret_that_somebody_removed_is_made_again(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.server.remove("secrets", "default", "orders-control")
        setup.now += 301.0
        with pytest.raises(BackendError, match="made again"):
            await setup.backend.create_pod(group, 0, "r1")
        assert not await setup.backend.objects_ready(group)
        await setup.backend.ensure_objects(group)
        await setup.backend.create_pod(group, 0, "r1")

    async def test_a_budget_that_somebody_changed_is_put_right(self, setup: Setup) -> None:
        group = await ready(setup)
        changed = await setup.server.change(
            "poddisruptionbudgets", "default", "orders-consumers", {"spec": {"minAvailable": 5}}
        )
        assert setup.view.saw_budget("MODIFIED", changed) == ("default", "orders")
        assert await setup.backend.evictions_kept(group) == 5
        await setup.backend.limit_evictions(group, 1)
        assert await setup.backend.evictions_kept(group) == 1
        assert setup.server.get("poddisruptionbudgets", "default", "orders-consumers")["spec"]["minAvailable"] == 1

    @pytest.mark.parametrize("changed", [{"minAvailable": "50%"}, {"unhealthyPodEvictionPolicy": "IfHealthyBudget"}])
    async def test_a_budget_that_is_changed_in_another_way_counts_as_none(
        self, setup: Setup, changed: dict[str, str]
    ) -> None:
        group = await ready(setup)
        written = await setup.server.change("poddisruptionbudgets", "default", "orders-consumers", {"spec": changed})
        setup.view.saw_budget("MODIFIED", written)
        assert await setup.backend.evictions_kept(group) is None
        await setup.backend.limit_evictions(group, 1)
        assert await setup.backend.evictions_kept(group) == 1

    async def test_somebody_else_s_budget_is_left_alone(self, setup: Setup) -> None:
        group = await setup.group()
        foreign = {"metadata": {"name": "orders-consumers"}, "spec": {"maxUnavailable": 1}}
        foreign = await setup.server.put("poddisruptionbudgets", foreign)
        namesake = {"metadata": {"name": "orders"}, "spec": {"maxUnavailable": 1}}
        namesake = await setup.server.put("poddisruptionbudgets", namesake)
        await setup.view.sync()
        with pytest.raises(BackendError, match="belongs to an earlier object or to somebody else and is left alone"):
            await setup.backend.limit_evictions(group, 1)
        assert await setup.backend.evictions_kept(group) is None
        assert setup.server.get("poddisruptionbudgets", "default", "orders-consumers") == foreign
        await setup.server.remove("poddisruptionbudgets", "default", "orders-consumers")
        await setup.backend.limit_evictions(group, 1)
        assert await setup.backend.evictions_kept(group) == 1
        assert setup.server.get("poddisruptionbudgets", "default", "orders") == namesake

    async def test_a_budget_under_the_name_of_earlier_versions_is_replaced(self, setup: Setup) -> None:
        group = await ready(setup)
        ours = setup.server.get("poddisruptionbudgets", "default", "orders-consumers")
        old = {"metadata": {**ours["metadata"], "name": "orders", "uid": "old"}, "spec": ours["spec"]}
        old = await setup.server.put("poddisruptionbudgets", old)
        assert setup.view.saw_budget("ADDED", old) == ("default", "orders")
        assert await setup.backend.evictions_kept(group) is None
        await setup.backend.limit_evictions(group, 1)
        assert await setup.backend.evictions_kept(group) == 1
        assert setup.server.names("poddisruptionbudgets") == ["orders-consumers"]

    async def test_a_list_wakes_the_group_of_a_budget_that_has_gone(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.server.remove("poddisruptionbudgets", "default", "orders-consumers", silently=True)
        assert group.key in await setup.view.sync()
        assert await setup.backend.evictions_kept(group) is None

    async def test_a_budget_follows_the_number_of_pods_and_is_written_only_then(self, setup: Setup) -> None:
        group = await ready(setup)
        assert await setup.backend.evictions_kept(group) == 1
        await setup.backend.limit_evictions(group, 5)
        assert await setup.backend.evictions_kept(group) == 5
        assert setup.server.get("poddisruptionbudgets", "default", "orders-consumers")["spec"]["minAvailable"] == 5

    async def test_an_object_of_the_same_name_does_not_inherit_a_token(self, setup: Setup) -> None:
        await ready(setup)
        await setup.server.remove("consumergroups", "default", "orders")
        group = await setup.group()
        assert not await setup.backend.objects_ready(group)
        with pytest.raises(BackendError, match="earlier object"):
            await setup.backend.ensure_objects(group)

    async def test_workers_can_be_asked_to_drain_after_the_engine_was_changed(self, setup: Setup) -> None:
        group = await ready(setup)
        token = await setup.backend.control_token(group)
        theirs = group.model_copy(update={"spec": group.spec.model_copy(update={"engine": Engine.CONTAINER})})
        assert token is not None
        assert await setup.backend.control_token(theirs) == token

    async def test_the_token_shows_nowhere_but_in_its_secret(
        self, setup: Setup, caplog: pytest.LogCaptureFixture
    ) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        token = await setup.backend.control_token(group)
        assert token is not None
        for (plural, _, _), body in setup.server.objects.items():
            if plural != "secrets":
                assert token not in str(body)
                assert base64.b64encode(token.encode()).decode() not in str(body)
        assert token not in caplog.text
        assert token not in repr(setup.backend._secrets)

    async def test_a_foreign_consumer_needs_no_token(self, setup: Setup) -> None:
        template = {"spec": {"containers": [{"name": "consumer", "image": "java"}]}}
        group = await setup.group(engine="Container", worker=None, template=template)
        await setup.backend.ensure_objects(group)
        assert await setup.backend.objects_ready(group)
        assert await setup.backend.control_token(group) is None
        assert setup.server.names("secrets") == []


def config_map(name: str, **files: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": files}


class TestCode:
    """The ConfigMap that a handler comes from."""

    async def group(self, setup: Setup) -> ConsumerGroup:
        return await setup.group(worker={"handler": "app:handle", "codeConfigMap": "code"})

    async def test_a_group_without_one_costs_no_call(self, setup: Setup) -> None:
        group = await setup.group()
        before = len(setup.server.calls)
        assert await setup.backend.code(group) == Code()
        assert len(setup.server.calls) == before

    async def test_an_edit_is_noticed_within_a_minute_and_not_asked_for_at_every_look(self, setup: Setup) -> None:
        group = await self.group(setup)
        await setup.server.put("configmaps", config_map("code", handler="one"))
        first = await setup.backend.code(group)
        await setup.server.put("configmaps", config_map("code", handler="two"))
        before = len(setup.server.calls)
        for _ in range(20):
            setup.now += 1.0
            assert await setup.backend.code(group) == first
        assert len(setup.server.calls) == before
        setup.now += 10.0
        second = await setup.backend.code(group)
        assert None not in (first.digest, second.digest)
        assert first != second

    async def test_one_that_is_missing_is_named_and_found_soon_after_it_is_made(self, setup: Setup) -> None:
        group = await self.group(setup)
        found = await setup.backend.code(group)
        assert found.digest is None
        assert found.missing is not None
        assert "ConfigMap code" in found.missing
        await setup.server.put("configmaps", config_map("code", handler="one"))
        setup.now += 5.0
        assert (await setup.backend.code(group)).digest is not None

    async def test_without_the_right_to_read_it_the_group_goes_on_and_that_is_said_once(
        self, setup: Setup, caplog: pytest.LogCaptureFixture
    ) -> None:
        group = await self.group(setup)
        await setup.server.put("configmaps", config_map("code", handler="one"))
        known = await setup.backend.code(group)
        for _ in range(2):
            setup.server.faults.append(Fault("GET", "configmaps", 403))
            setup.now += 60.0
            assert await setup.backend.code(group) == known
        said = [record for record in caplog.records if "the right to get configmaps" in record.getMessage()]
        assert len(said) == 1

    async def test_a_pod_says_which_code_it_has(self, setup: Setup) -> None:
        group = await self.group(setup)
        await setup.backend.ensure_objects(group)
        await setup.backend.create_pod(group, 0, "abc.code1")
        (pod,) = await setup.pods(group)
        assert pod.revision == "abc.code1"


class TestConnection:
    async def test_credentials_are_read_and_believed_for_a_minute(self, setup: Setup) -> None:
        group = await setup.group(
            cluster={"nameServers": ["namesrv.example:9876"], "credentials": {"secretName": "acl"}}
        )
        with pytest.raises(BackendError, match="Secret acl"):
            await setup.backend.connection(group)
        await setup.server.put("secrets", secret("acl", accessKey="ak"))
        with pytest.raises(BackendError, match="no secretKey"):
            await setup.backend.connection(group)
        await setup.server.put("secrets", secret("acl", accessKey="ak", secretKey="s3cret"))
        setup.now += 61.0
        first = await setup.backend.connection(group)
        assert first.credentials is not None
        assert first.credentials.secret_key == "s3cret"
        assert "s3cret" not in repr(first)
        before = len(setup.server.calls)
        assert await setup.backend.connection(group) == first
        assert len(setup.server.calls) == before
        await setup.server.put("secrets", secret("acl", accessKey="ak", secretKey="other"))
        setup.now += 61.0
        assert await setup.backend.connection(group) != first

    async def test_certificates_are_files_that_only_we_read_and_that_go_with_us(self, setup: Setup) -> None:
        group = await setup.group(cluster={"nameServers": ["namesrv.example:9876"], "tls": {"secretName": "tls"}})
        await setup.server.put("secrets", secret("tls", **{"ca.crt": "CA", "tls.crt": "CERT"}))
        with pytest.raises(BackendError, match="only one of"):
            await setup.backend.connection(group)
        await setup.server.put("secrets", secret("tls", **{"ca.crt": "CA", "tls.crt": "CERT", "tls.key": "KEY"}))
        setup.now += 61.0
        tls = (await setup.backend.connection(group)).tls
        assert tls is not None
        assert tls.key_file is not None
        key = Path(tls.key_file)
        assert content_and_mode(key) == ("KEY", 0o700)
        assert (await setup.backend.connection(group)).tls == tls
        setup.backend.close()
        assert not is_there(key.parent)


class TestFinalizers:
    async def test_nobody_elses_finalizer_is_lost(self, setup: Setup) -> None:
        group = await setup.group()
        await setup.server.change("consumergroups", "default", "orders", {"metadata": {"finalizers": ["other/one"]}})
        await setup.backend.add_finalizer(group)  # from a view that is behind
        assert setup.server.get("consumergroups", "default", "orders")["metadata"]["finalizers"] == [
            "other/one",
            FINALIZER,
        ]
        assert FINALIZER in setup.seen().metadata.finalizers
        await setup.backend.remove_finalizer(group)
        assert setup.server.get("consumergroups", "default", "orders")["metadata"]["finalizers"] == ["other/one"]

    async def test_an_object_with_a_pod_that_only_the_api_knows_is_not_let_go(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.add_finalizer(group)
        another = Setup(setup.server)
        await another.backend.ensure_objects(group)
        await another.backend.create_pod(group, 0, "r1")
        with pytest.raises(BackendError, match="orders-0"):
            await setup.backend.remove_finalizer(setup.seen())
        assert [pod.name for pod in await setup.pods(group)] == ["orders-0"]
        await another.api.close()

    async def test_the_object_goes_with_its_last_finalizer(self, setup: Setup) -> None:
        group = await setup.group()
        await setup.backend.add_finalizer(group)
        await setup.server.change(
            "consumergroups", "default", "orders", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
        )
        await setup.view.sync()
        await setup.backend.remove_finalizer(setup.seen())
        assert setup.view.raw_group(GroupKey("default", "orders")) is None
        await setup.backend.remove_finalizer(group)  # again: nothing to do


class TestStatus:
    async def test_it_is_replaced_as_a_whole_and_known_at_once(self, setup: Setup) -> None:
        group = await setup.group()
        await setup.backend.write_status(group, {"replicas": 1, "lag": {"messages": 3}})
        await setup.backend.write_status(group, {"replicas": 2})
        assert setup.server.get("consumergroups", "default", "orders")["status"] == {"replicas": 2}
        status = setup.seen().status
        assert status is not None
        assert status.replicas == 2
        # The watch event of our own write is no news, so it wakes nobody.
        assert setup.view.saw_group("MODIFIED", setup.server.get("consumergroups", "default", "orders")) is None

    async def test_another_object_of_the_same_name_does_not_get_it(self, setup: Setup) -> None:
        group = await setup.group()
        await setup.server.remove("consumergroups", "default", "orders")
        await setup.backend.write_status(group, {"replicas": 1})  # gone: nothing to do
        await setup.server.put("consumergroups", manifest())
        with pytest.raises(BackendError):
            await setup.backend.write_status(group, {"replicas": 1})

    async def test_events_are_told_once_and_never_fail(self, setup: Setup) -> None:
        group = await setup.group()
        event = Event(EventReason.DRAINED, "orders-1 drained")
        await setup.backend.emit(group, event)
        await setup.backend.emit(group, event)
        assert len(setup.server.names("events")) == 1
        assert setup.told == [event]
        setup.server.faults.append(Fault("POST", "events", 500))
        await setup.backend.emit(group, Event(EventReason.STUCK, "x", warning=True))


class TestConfirmingADeletion:
    """Before a group is removed at its brokers, past every cache."""

    async def deleted(self, setup: Setup, **spec: Any) -> ConsumerGroup:
        await setup.group(deletionPolicy="DeleteAll", **spec)
        await self.change(setup, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]})
        await setup.view.sync()
        return setup.seen()

    async def change(self, setup: Setup, **parts: Any) -> None:
        await setup.server.change("consumergroups", "default", "orders", parts)

    async def test_what_is_as_it_was_is_confirmed(self, setup: Setup) -> None:
        await setup.backend.confirm_deletion(await self.deleted(setup))

    async def test_a_policy_that_was_changed_while_it_waited_counts(self, setup: Setup) -> None:
        group = await self.deleted(setup)
        await self.change(setup, spec={"deletionPolicy": "Retain"})
        with pytest.raises(BackendError, match="is Retain now"):
            await setup.backend.confirm_deletion(group)
        assert setup.seen().spec.deletion_policy is DeletionPolicy.RETAIN, "the next pass knows"

    async def test_another_object_of_the_name_is_not_this_one(self, setup: Setup) -> None:
        group = await self.deleted(setup)
        await setup.server.remove("consumergroups", "default", "orders")
        with pytest.raises(BackendError, match="gone already"):
            await setup.backend.confirm_deletion(group)
        await setup.server.put("consumergroups", manifest("orders", deletionPolicy="DeleteAll"))
        with pytest.raises(BackendError, match="another object"):
            await setup.backend.confirm_deletion(group)

    async def test_a_group_that_another_object_is_for_too_stays(self, setup: Setup) -> None:
        group = await self.deleted(setup)
        await setup.group("second", groupName="orders", replicas=0)
        with pytest.raises(BackendError, match="default/second is for the same group orders"):
            await setup.backend.confirm_deletion(group)
        shouted = [server.upper() for server in group.spec.cluster.name_servers]
        await setup.group("second", groupName="orders", cluster={"nameServers": shouted})
        with pytest.raises(BackendError, match="default/second"):
            await setup.backend.confirm_deletion(group)
        elsewhere = {"nameServers": ["elsewhere:9876"]}
        await setup.group("second", groupName="orders", cluster=elsewhere)
        await setup.backend.confirm_deletion(group)

    @pytest.mark.parametrize(("policy", "waits"), [("DeleteOffsets", False), ("Retain", True)])
    async def test_two_that_go_do_not_wait_for_each_other(self, setup: Setup, policy: str, waits: bool) -> None:
        group = await self.deleted(setup)
        await setup.group("second", groupName="orders", deletionPolicy=policy)
        gone = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}}
        await setup.server.change("consumergroups", "default", "second", gone)
        await setup.view.sync()
        if waits:
            with pytest.raises(BackendError, match="default/second"):
                await setup.backend.confirm_deletion(group)
        else:
            await setup.backend.confirm_deletion(group)


class TestView:
    async def test_what_vanished_unseen_is_found_by_the_next_list(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        await setup.backend.create_pod(group, 1, "r1")
        await setup.server.remove("pods", "default", "orders-0", silently=True)
        assert await setup.view.sync() == {("default", "orders")}
        assert [pod.name for pod in await setup.pods(group)] == ["orders-1"]
        assert await setup.view.sync() == set()

    async def test_after_a_restore_from_a_backup_the_lists_count_though_their_versions_are_lower(
        self, setup: Setup
    ) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        backup = setup.server.backup()
        (old,) = await setup.pods(group)
        await setup.backend.delete_pod(group, old, force=True)
        for ordinal in range(1, 4):
            await setup.backend.create_pod(group, ordinal, "r2")
        await setup.view.sync()
        setup.server.restore(backup)
        assert await setup.view.sync() == {("default", "orders")}
        assert [(pod.name, pod.uid) for pod in await setup.pods(group)] == [("orders-0", old.uid)]
        await setup.server.change("pods", "default", "orders-0", {"metadata": {"labels": {"a": "b"}}})
        assert await setup.view.sync() == {("default", "orders")}  # and changes are seen again

    async def test_a_group_s_own_list_shows_a_restore_too(self, setup: Setup) -> None:
        group = await ready(setup)
        backup = setup.server.backup()
        await setup.backend.create_pod(group, 0, "r1")
        setup.server.restore(backup)
        await setup.backend.remove_finalizer(group)  # it looks past the cache, and finds no pod

    async def test_looking_costs_no_call(self, setup: Setup) -> None:
        group = await ready(setup)
        await setup.backend.create_pod(group, 0, "r1")
        before = len(setup.server.calls)
        for _ in range(100):
            await setup.backend.look(group)
            await setup.backend.objects_ready(group)
            await setup.backend.control_token(group)
            await setup.backend.connection(group)
        assert len(setup.server.calls) == before


def content_and_mode(path: Path) -> tuple[str, int]:
    """A file's content, and the mode of its directory."""
    return path.read_text(), stat.S_IMODE(path.parent.stat().st_mode)


def is_there(path: Path) -> bool:
    return path.exists()


def secret(name: str, **values: str) -> dict[str, Any]:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {"metadata": {"name": name}, "data": data}
