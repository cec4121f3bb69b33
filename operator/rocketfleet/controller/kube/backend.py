"""The backend on Kubernetes: pods owned directly by their ConsumerGroup, and what they need beside them.

What is there comes from `KubeView`, which costs no call. Every write is idempotent, guarded by the uid of the object it
means, and its answer goes into the view before it returns, so that the next pass knows of it whatever the watch has to
say. Pods and Secrets are created, never applied: an apply that met an existing pod would change it (and take away its
drain mark, which has the same field manager); one that met an existing Secret would replace a token in use. The
disruption budget follows the manifest: budgets.py.
"""

import base64
import secrets as random_secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.names import API_VERSION, DRAIN_ANNOTATION, FINALIZER, PLURAL
from rocketfleet.api.spec import DeletionPolicy
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.transport.address import parse, parse_list
from rocketfleet.controller.kube.api import KubeApi, KubeError, path_of
from rocketfleet.controller.kube.budgets import Budgets
from rocketfleet.controller.kube.config_maps import ConfigMaps
from rocketfleet.controller.kube.events import Events
from rocketfleet.controller.kube.nodes import Nodes
from rocketfleet.controller.kube.pod import mark_text, owner_of
from rocketfleet.controller.kube.secrets import Connections, Secrets
from rocketfleet.controller.kube.view import DELETED, KubeView
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.planning.claims import Claim, claim_of_group, needed_by
from rocketfleet.controller.planning.snapshot import DrainMark, NodeState, Pod
from rocketfleet.controller.reconciling.backend import (
    BackendError,
    NameServerNotAllowed,
    NameTaken,
    ObjectChanged,
    PodSighting,
)
from rocketfleet.controller.resources.code import Code
from rocketfleet.controller.resources.pod import (
    SHARED_ANNOTATION,
    Defaults,
    PodError,
    build,
    grace_of,
    pod_name,
)
from rocketfleet.controller.resources.secret import TOKEN_KEY, control_secret, control_secret_name
from rocketfleet.controller.resources.shared_settings import encode
from rocketfleet.controller.rocketmq.allowed_hosts import ANY_HOST, AllowedHosts
from rocketfleet.controller.rocketmq.fence import WriteGuard

TOKEN_FRESH = 300.0  # seconds: the Secret is our own, and nobody else has a reason to change it
TOKEN_BYTES = 32
RETAIN = DeletionPolicy.RETAIN.value
CONFLICT_TRIES = 4  # of a change, while others change the object too


class KubeBackend:
    """Groups whose members are pods. See `backend.Backend` for what each method promises."""

    def __init__(
        self,
        api: KubeApi,
        view: KubeView,
        defaults: Defaults,
        *,
        instance: str,
        clock: Callable[[], float],
        wall: Callable[[], float],
        hosts: AllowedHosts = ANY_HOST,
        told: Callable[[Event], None] = lambda event: None,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._view = view
        self._defaults = defaults
        self._hosts = hosts
        self._budgets = Budgets(api, view)
        self._secrets = Secrets(api, clock)
        self._connections = Connections(self._secrets)
        self._config_maps = ConfigMaps(api, clock)
        self._nodes = Nodes(api, clock)
        self._events = Events(api, instance, clock, wall)
        self._told = told
        self._lost = lost  # a group that we knew is not there, the API says: a list tells whether that is so
        # Group → the uid for which its token was made or found. It is not in the group's state: a backend outlives
        # terms, and only it knows of Secrets.
        self._token_of: dict[GroupKey, str] = {}

    @property
    def guard(self) -> WriteGuard | None:
        """Who is asked before each write."""
        return self._api.guard

    def close(self) -> None:
        self._connections.close()

    def forget(self, key: GroupKey) -> None:
        """The group is gone."""
        self._token_of.pop(key, None)

    async def look(self, group: ConsumerGroup) -> tuple[PodSighting, ...]:
        # Pods of an earlier object with the same name are the garbage collector's.
        return tuple(held.seen for held in self._view.pods_of(group.key) if held.owner == group.metadata.uid)

    async def objects_ready(self, group: ConsumerGroup) -> bool:
        return self._token_ready(group)

    async def ensure_objects(self, group: ConsumerGroup) -> None:
        if not self._token_ready(group):
            await self._ensure_token(group)

    async def evictions_kept(self, group: ConsumerGroup) -> int | None:
        return self._budgets.kept(group)

    async def limit_evictions(self, group: ConsumerGroup, keep: int) -> None:
        await self._budgets.limit(group, keep)

    async def code(self, group: ConsumerGroup) -> Code:
        program = group.spec.program
        if program is None or program.code_config_map is None:
            return Code()
        return await self._config_maps.code(group.metadata.namespace, program.code_config_map)

    async def connection(self, group: ConsumerGroup) -> ClientConfig:
        try:
            servers = parse_list(";".join(group.spec.cluster.name_servers))  # as the client reads them
        except ValueError as error:
            raise BackendError(f"spec.cluster: {error}") from error
        for server in servers:
            refusal = self._hosts.refused_name_server(parse(server).host)
            if refusal is not None:
                raise NameServerNotAllowed(refusal)
        return replace(await self._connections.of(group), refused_address=self._hosts.refused_address)

    async def control_token(self, group: ConsumerGroup) -> str | None:
        # Not by the engine, which may have been changed: the pods of the last one have to be asked to drain.
        content = await self._secrets.read(group.metadata.namespace, control_secret_name(group), TOKEN_FRESH)
        token = (content or {}).get(TOKEN_KEY, b"").decode(errors="replace")
        if not token:
            self._token_of.pop(group.key, None)  # somebody removed it: it is made again in the next pass
            return None
        return token

    async def create_pod(self, group: ConsumerGroup, ordinal: int, revision: str) -> str:
        namespace, name = group.metadata.namespace, pod_name(group, ordinal)
        if (there := self._own_pod(group, name)) is not None:
            return there
        if _has_control_port(group) and await self.control_token(group) is None:
            raise BackendError(f"the Secret {control_secret_name(group)} is gone; it is made again before {name}")
        try:
            manifest = build(
                group, ordinal, revision, self._defaults, client_certificate=await self._has_certificate(group)
            )
        except PodError as error:
            raise BackendError(str(error)) from error
        unknown: list[str] = []
        try:
            made = await self._api.create(path_of("v1", "pods", namespace), manifest, unknown.append)
        except KubeError as error:
            if error.reason != "AlreadyExists":
                raise
            made = await self._api.get(path_of("v1", "pods", namespace, name))
        self._view.saw_pod(None, made)
        self._own_pod(group, name)
        if unknown:
            text = f"Kubernetes does not know these fields of the pods, and ignores them: {', '.join(unknown[:5])}"
            await self.emit(group, Event(EventReason.UNKNOWN_FIELDS, f"{text}. Correct spec.template", warning=True))
        return str(made["metadata"]["uid"])

    def _own_pod(self, group: ConsumerGroup, name: str) -> str | None:
        """The uid of the group's own pod of this name, if it is there. Somebody else's is an error that says so."""
        entry = self._view.pods.get((group.metadata.namespace, name))
        if entry is None:
            return None
        if entry.value.owner != group.metadata.uid:
            whose = "an earlier object of this name" if entry.value.group == group.key else "somebody else"
            raise NameTaken(f"the pod {name} belongs to {whose}: it has to go before {name} can be created")
        return entry.uid

    async def mark_drain(self, group: ConsumerGroup, pod: Pod, mark: DrainMark) -> None:
        """Mark it, and note which run of its container had ended before. Guarded by the version that this was seen in:
        one that ends meanwhile, for a reason of its own, would be taken for drained.
        """
        name = (group.metadata.namespace, pod.name)
        for _ in range(CONFLICT_TRIES):
            entry = self._view.pods.get(name)
            if entry is None or entry.uid != pod.uid:
                return  # gone, or another has its name
            noted = replace(mark, ended_before=entry.value.seen.pod.ended_run)
            try:
                await self._annotate(group, pod, {DRAIN_ANNOTATION: mark_text(noted)}, version=entry.text)
            except KubeError as error:
                if error.reason != "Conflict":
                    raise
            else:
                return
        raise BackendError(f"the pod {pod.name} could not be marked: others change it too")

    async def note_shared(self, group: ConsumerGroup, pod: Pod, shared: Mapping[str, str]) -> None:
        await self._annotate(group, pod, {SHARED_ANNOTATION: encode(shared)})

    async def _annotate(
        self, group: ConsumerGroup, pod: Pod, annotations: Mapping[str, str], version: str | None = None
    ) -> None:
        path = path_of("v1", "pods", group.metadata.namespace, pod.name)
        metadata: dict[str, Any] = {"uid": pod.uid, "annotations": annotations}
        if version is not None:
            metadata["resourceVersion"] = version
        try:
            marked = await self._api.merge(path, {"metadata": metadata})
        except KubeError as error:
            await self._gone_or(error, group, pod)
            return
        self._view.saw_pod(None, marked)

    async def delete_pod(self, group: ConsumerGroup, pod: Pod, force: bool) -> None:
        options: dict[str, Any] = {"preconditions": {"uid": pod.uid}, "propagationPolicy": "Background"}
        ours = (pod.engine or group.spec.engine).is_ours
        if force:
            options["gracePeriodSeconds"] = 0
        elif ours:
            # It has drained, or is given up: the pod's own grace period may be a day, for deletions by others.
            options["gracePeriodSeconds"] = ceil(grace_of(group))
        if ours and not force and pod.idle and pod.outcome is None:
            await self._delete_idle(group, pod, options)
            return
        try:
            await self._delete(group, pod, options)
        except KubeError as error:
            await self._gone_or(error, group, pod)

    async def _delete_idle(self, group: ConsumerGroup, pod: Pod, options: dict[str, Any]) -> None:
        """A pod that goes undrained because it does not run. Guarded by the version that this was seen in: one that
        has begun to run, and nobody has told us yet, is left to the next plan, which drains it.
        """
        name = (group.metadata.namespace, pod.name)
        for _ in range(CONFLICT_TRIES):
            entry = self._view.pods.get(name)
            if entry is None or entry.uid != pod.uid:
                return
            if not entry.value.seen.pod.idle:
                raise ObjectChanged(f"the pod {pod.name} has begun to run: it is drained first")
            try:
                await self._delete(
                    group, pod, {**options, "preconditions": {"uid": pod.uid, "resourceVersion": entry.text}}
                )
            except KubeError as error:
                try:
                    await self._gone_or(error, group, pod)
                except KubeError as still:
                    if still.reason != "Conflict":
                        raise
                    continue
            return
        raise BackendError(f"the pod {pod.name} could not be deleted: others change it too")

    async def _delete(self, group: ConsumerGroup, pod: Pod, options: Mapping[str, Any]) -> None:
        path = path_of("v1", "pods", group.metadata.namespace, pod.name)
        answer = await self._api.delete(path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})
        metadata = answer.get("metadata") or {}
        if metadata.get("uid") != pod.uid or (
            metadata.get("deletionGracePeriodSeconds") == 0 and not metadata.get("finalizers")
        ):
            self._view.pods.drop((group.metadata.namespace, pod.name), pod.uid)  # gone already
        else:
            self._view.saw_pod(None, answer)

    async def _gone_or(self, error: KubeError, group: ConsumerGroup, pod: Pod) -> None:
        """The pod that was meant is gone, or another has its name: there is nothing to do. Else it is an error."""
        name = (group.metadata.namespace, pod.name)
        if not error.not_found:
            if error.status not in (409, 422):  # how the API refuses a uid that is not the object's
                raise error
            try:
                found = await self._api.get(path_of("v1", "pods", *name))
            except KubeError as now:
                if not now.not_found:
                    raise
            else:
                self._view.saw_pod(None, found)
                if (found.get("metadata") or {}).get("uid") == pod.uid:
                    raise error
                self._view.pods.drop(name, pod.uid)
                return
        self._view.pods.lose(name, pod.uid)  # should it be there after all, its creation is refused, and shows it

    async def nodes(self, names: Collection[str]) -> Mapping[str, NodeState]:
        return await self._nodes.states(names)

    async def claims(self, group: ConsumerGroup) -> tuple[Claim, ...]:
        return self._view.claims(group.group_name)

    async def add_finalizer(self, group: ConsumerGroup) -> None:
        await self._set_finalizers(group, lambda found: found if FINALIZER in found else [*found, FINALIZER])

    async def remove_finalizer(self, group: ConsumerGroup) -> None:
        # What the watch has not told yet would be left to the garbage collector, undrained.
        await self._view.sync_pods(group.key)
        left = [seen.pod.name for seen in await self.look(group)]
        if left:
            raise BackendError(f"{', '.join(left[:5])} of {group.metadata.name} are still there: they go first")
        await self.remove_finalizer_as_it_is(group)

    async def remove_finalizer_as_it_is(self, group: ConsumerGroup) -> None:
        """Let the object go, pods or not."""
        await self._set_finalizers(group, lambda found: [each for each in found if each != FINALIZER])

    async def _set_finalizers(self, group: ConsumerGroup, change: Callable[[list[str]], list[str]]) -> None:
        """Change our own entry; the version in the patch makes sure that nobody else's is lost."""
        path = path_of(API_VERSION, PLURAL, *group.key)
        entry = self._view.groups.get(group.key)
        raw: Mapping[str, Any] | None = None if entry is None else entry.value
        for _ in range(CONFLICT_TRIES):
            try:
                if raw is None:
                    raw = await self._api.get(path)
                metadata = raw["metadata"]
                found = list(metadata.get("finalizers") or [])
                wanted = change(found)
                if metadata.get("uid") != group.metadata.uid or wanted == found:
                    return
                patch = {"finalizers": wanted, "resourceVersion": metadata.get("resourceVersion")}
                answer = await self._api.merge(path, {"metadata": patch})
            except KubeError as error:
                if error.not_found:
                    self._lose(group)
                    return
                if not error.conflict:
                    raise
                raw = None
                continue
            self._take_in(answer)
            return
        raise BackendError(f"the finalizers of {group.metadata.name} could not be set: others change the object too")

    def _lose(self, group: ConsumerGroup) -> None:
        """There is no such object, the API says. Nothing is done about it until it is seen again."""
        if self._view.groups.lose(group.key, group.metadata.uid):
            self._lost()

    def _take_in(self, raw: Mapping[str, Any]) -> None:
        metadata = raw.get("metadata") or {}
        over = bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")
        self._view.saw_group(DELETED if over else None, raw)

    async def confirm_deletion(self, group: ConsumerGroup) -> None:
        name = group.metadata.name
        try:
            raw = await self._api.get(path_of(API_VERSION, PLURAL, *group.key))
        except KubeError as error:
            if not error.not_found:
                raise
            self._lose(group)
            raise ObjectChanged(f"{name} is gone already: the group is left alone") from error
        self._take_in(raw)
        metadata = raw.get("metadata") or {}
        if metadata.get("uid") != group.metadata.uid or not metadata.get("deletionTimestamp"):
            raise ObjectChanged(f"{name} is another object now: the group is left alone")
        policy = (raw.get("spec") or {}).get("deletionPolicy", RETAIN)
        if policy != group.spec.deletion_policy.value:
            raise ObjectChanged(f"deletionPolicy of {name} is {policy} now")
        other = needed_by(claim_of_group(group), await self.claims(group))
        if other is not None:
            raise BackendError(f"the ConsumerGroup {other} is for the same group {group.group_name}")

    async def write_status(self, group: ConsumerGroup, status: Mapping[str, Any]) -> None:
        operations: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": group.metadata.uid},
            {"op": "add", "path": "/status", "value": dict(status)},
        ]
        try:
            answer = await self._api.patch(path_of(API_VERSION, PLURAL, *group.key, "status"), operations)
        except KubeError as error:
            if not error.not_found:
                raise
            self._lose(group)
            return
        self._take_in(answer)

    async def emit(self, group: ConsumerGroup, event: Event) -> None:
        if await self._events.emit(group, event):
            self._told(event)

    def _token_ready(self, group: ConsumerGroup) -> bool:
        return not _has_control_port(group) or self._token_of.get(group.key) == group.metadata.uid

    async def _ensure_token(self, group: ConsumerGroup) -> None:
        """Find the token, or make one. Of two who make one at the same time, the API lets one through."""
        namespace, name = group.metadata.namespace, control_secret_name(group)
        path = path_of("v1", "secrets", namespace, name)
        try:
            found = await self._api.get(path)
        except KubeError as error:
            if not error.not_found:
                raise
            found = await self._create_token(group, namespace, path)
        if owner_of(found) != group.metadata.uid:
            raise BackendError(
                f"the Secret {name} belongs to an earlier object or to somebody else: it has to go first"
            )
        if not (found.get("data") or {}).get(TOKEN_KEY):
            version = _version(found)
            found = await self._api.merge(path, {"metadata": {"resourceVersion": version}, "data": _new_token()})
        self._secrets.keep(namespace, name, {TOKEN_KEY: base64.b64decode(found["data"][TOKEN_KEY])})
        self._token_of[group.key] = group.metadata.uid

    async def _create_token(self, group: ConsumerGroup, namespace: str, path: str) -> dict[str, Any]:
        try:
            return await self._api.create(
                path_of("v1", "secrets", namespace), {**control_secret(group), "data": _new_token()}
            )
        except KubeError as error:
            if error.reason != "AlreadyExists":
                raise
            return await self._api.get(path)

    async def _has_certificate(self, group: ConsumerGroup) -> bool:
        tls = group.spec.cluster.tls
        if tls is None or not tls.enabled or tls.secret_name is None:
            return False
        content = await self._secrets.read(group.metadata.namespace, tls.secret_name)
        if content is None:
            raise BackendError(f"the Secret {tls.secret_name} with the certificates is not there: create it")
        return bool(content.get("tls.crt")) and bool(content.get("tls.key"))


def _has_control_port(group: ConsumerGroup) -> bool:
    return group.spec.engine.is_ours


def _new_token() -> dict[str, str]:
    return {TOKEN_KEY: base64.b64encode(random_secrets.token_urlsafe(TOKEN_BYTES).encode()).decode()}


def _version(raw: Mapping[str, Any]) -> str:
    return str((raw.get("metadata") or {}).get("resourceVersion") or "")
