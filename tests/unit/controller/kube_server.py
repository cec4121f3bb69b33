"""An API server in this process: as much of Kubernetes' REST as the operator and kopf use, over a real socket.

It keeps objects in a dict, gives out versions and uids, checks preconditions, and serves watches. It knows no schema,
no owners and no kubelet. Faults can be put in: an answer with any status, one that is lost after the write was done,
watches that end, and versions that are too old to be watched from.
"""

import asyncio
import copy
import itertools
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

Object = dict[str, Any]
KINDS = {
    ("v1", "pods"): "Pod",
    ("v1", "secrets"): "Secret",
    ("v1", "configmaps"): "ConfigMap",
    ("v1", "namespaces"): "Namespace",
    ("v1", "nodes"): "Node",
    ("v1", "events"): "Event",
    ("policy/v1", "poddisruptionbudgets"): "PodDisruptionBudget",
    ("events.k8s.io/v1", "events"): "Event",
    ("coordination.k8s.io/v1", "leases"): "Lease",
    ("apiextensions.k8s.io/v1", "customresourcedefinitions"): "CustomResourceDefinition",
    ("rocketfleet.io/v1alpha1", "consumergroups"): "ConsumerGroup",
}
CLUSTER_WIDE = {"namespaces", "nodes", "customresourcedefinitions"}
GRACE = 30


@dataclass
class Fault:
    """What goes wrong. `done`: the write happens all the same, only its answer is lost."""

    method: str
    plural: str
    status: int
    reason: str = "InternalError"
    times: int = 1
    done: bool = False
    retry_after: str | None = None
    message: str = ""


@dataclass(frozen=True)
class Call:
    method: str
    plural: str
    name: str
    watch: bool
    agent: str


class Refusal(Exception):
    def __init__(self, status: int, reason: str, message: str = "", retry_after: str | None = None) -> None:
        self.status, self.reason, self.message = status, reason, message or reason
        self.retry_after = retry_after


class KubeServer:
    """The server. `url` is known once it is started."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.warnings: dict[tuple[str, str], list[str]] = {}  # headers by method and plural
        self.url = ""
        self._version = itertools.count(1)
        self.version = 0
        self._log: list[tuple[int, str, str, Object]] = []  # version, plural, type, object
        self._oldest = 0
        self._news = asyncio.Condition()
        self._watch_generation = 0
        self.watch_error: int | None = None  # what the next watch says instead of events
        self.bodies: list[tuple[str, str, Any]] = []

    # -- what tests do ------------------------------------------------------------------------------------------------

    def configuration(self) -> Configuration:
        configuration = Configuration(host=self.url)
        configuration.retries = None
        return configuration

    def client(self) -> ApiClient:
        return ApiClient(self.configuration())

    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.method != "GET" and call.plural not in ("leases",)]

    def get(self, plural: str, namespace: str, name: str) -> Object:
        return self.objects[plural, namespace, name]

    def names(self, plural: str) -> list[str]:
        return sorted(name for kind, _, name in self.objects if kind == plural)

    async def put(self, plural: str, body: Object) -> Object:
        """Create or replace, as somebody else would."""
        metadata = body.setdefault("metadata", {})
        namespace = metadata.setdefault("namespace", "" if plural in CLUSTER_WIDE else "default")
        key = (plural, namespace, metadata["name"])
        old = self.objects.get(key)
        metadata.setdefault("uid", old["metadata"]["uid"] if old else str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", _now())
        return await self._store(key, copy.deepcopy(body), "MODIFIED" if old else "ADDED")

    async def change(self, plural: str, namespace: str, name: str, patch: Object) -> Object:
        key = (plural, namespace, name)
        return await self._store(key, merged(self.objects[key], patch), "MODIFIED")

    async def remove(self, plural: str, namespace: str, name: str, *, silently: bool = False) -> None:
        """Remove; silently: no watch will ever tell."""
        body = self.objects.pop((plural, namespace, name))
        if silently:
            self.version = next(self._version)
        else:
            await self._tell(plural, "DELETED", body)

    def backup(self) -> tuple[dict[tuple[str, str, str], Object], int]:
        """Everything, to be restored later."""
        return copy.deepcopy(self.objects), self.version

    def restore(self, backup: tuple[dict[tuple[str, str, str], Object], int]) -> None:
        """As etcd from a backup: objects and versions are those of then."""
        self.objects, self.version = copy.deepcopy(backup[0]), backup[1]
        self._version = itertools.count(self.version + 1)

    async def end_watches(self, *, too_old: bool = False) -> None:
        """Close all watches; too_old: and refuse to go on from where they were."""
        async with self._news:
            self._watch_generation += 1
            if too_old:
                self.version = next(self._version)
                self._oldest = self.version
            self._news.notify_all()

    # -- storage ------------------------------------------------------------------------------------------------------

    async def _store(self, key: tuple[str, str, str], body: Object, kind: str) -> Object:
        metadata = body["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers") and key[0] != "pods":
            self.objects.pop(key, None)
            await self._tell(key[0], "DELETED", body)
            return body
        self.objects[key] = body
        await self._tell(key[0], kind, body)
        return body

    async def _tell(self, plural: str, kind: str, body: Object) -> None:
        self.version = next(self._version)
        body["metadata"]["resourceVersion"] = str(self.version)
        async with self._news:
            self._log.append((self.version, plural, kind, copy.deepcopy(body)))
            self._news.notify_all()

    # -- HTTP ---------------------------------------------------------------------------------------------------------

    async def handle(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        discovered = _discovery(parts)
        if discovered is not None:
            self.calls.append(Call("GET", "discovery", "", False, request.headers.get("User-Agent", "")))
            return web.json_response(discovered)
        api, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, part = (*rest, "", "")[:3]
        watch = request.query.get("watch") == "true"
        self.calls.append(Call(request.method, plural, name, watch, request.headers.get("User-Agent", "")))
        if (api, plural) not in KINDS:
            return _refused(Refusal(404, "NotFound", "the server could not find the requested resource"))
        text = await request.text()
        body = json.loads(text) if text else None
        fault = self._fault(request.method, plural)
        try:
            _fail(fault, done=False)
            if watch:
                return await self._watch(request, plural, namespace)
            if body is not None:
                self.bodies.append((request.method, plural, body))
            answer = await self._do(request, api, plural, namespace, name, part, body)
            _fail(fault, done=True)
        except Refusal as refusal:
            return _refused(refusal)
        response = web.json_response(answer)
        for warning in self.warnings.get((request.method, plural), ()):
            response.headers.add("Warning", warning)
        return response

    def _fault(self, method: str, plural: str) -> Fault | None:
        for fault in self.faults:
            if fault.method == method and fault.plural == plural and fault.times > 0:
                fault.times -= 1
                return fault
        return None

    async def _do(
        self, request: web.Request, api: str, plural: str, namespace: str, name: str, part: str, body: Any
    ) -> Object:
        key = (plural, namespace, name)
        if request.method == "POST":
            return await self._create(plural, namespace, {"apiVersion": api, "kind": KINDS[api, plural], **body})
        if not name:
            return self._list(api, plural, namespace, request.query.get("labelSelector", ""))
        kind = request.headers["Content-Type"]
        if key not in self.objects:
            if request.method == "PATCH" and kind.startswith("application/apply"):
                return await self._create(plural, namespace, body)
            raise Refusal(404, "NotFound", f'{plural} "{name}" not found')
        old = self.objects[key]
        match request.method:
            case "GET":
                return old
            case "PUT":
                new = {**body, "metadata": {**old["metadata"], **body["metadata"]}}
            case "PATCH" if kind.startswith("application/json-patch"):
                new = _json_patched(old, body)
            case "PATCH":
                new = merged(old, body)
            case "DELETE":
                return await self._delete(key, old, body or {})
            case _:
                raise Refusal(405, "MethodNotAllowed")
        if new["metadata"].get("uid") != old["metadata"]["uid"]:
            raise Refusal(409, "Conflict", "the UID in the precondition does not match")
        given = (body.get("metadata") or {}).get("resourceVersion") if isinstance(body, dict) else None
        if given not in (None, old["metadata"]["resourceVersion"]):
            raise Refusal(409, "Conflict", "the object has been modified")
        if part == "status":
            new = {**old, "status": new.get("status", {})}
        elif plural == "consumergroups":
            new = {**new, "status": old.get("status", {})}
            if new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        if _same(new, old):
            return old  # nothing to write, nothing to tell
        return await self._store(key, new, "MODIFIED")

    async def _create(self, plural: str, namespace: str, body: Object) -> Object:
        metadata = body["metadata"]
        key = (plural, namespace, metadata["name"])
        if key in self.objects:
            raise Refusal(409, "AlreadyExists", f'{plural} "{metadata["name"]}" already exists')
        metadata = {**metadata, "namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": _now()}
        new = {**copy.deepcopy(body), "metadata": metadata}
        if plural == "pods":
            new["status"] = {"phase": "Pending"}
        return await self._store(key, new, "ADDED")

    async def _delete(self, key: tuple[str, str, str], old: Object, options: Object) -> Object:
        uid = (options.get("preconditions") or {}).get("uid")
        if uid not in (None, old["metadata"]["uid"]):
            raise Refusal(409, "Conflict", "the UID in the precondition does not match")
        grace = options.get("gracePeriodSeconds", GRACE if key[0] == "pods" else 0)
        if grace == 0 and not old["metadata"].get("finalizers"):
            del self.objects[key]
            metadata = {**old["metadata"], "deletionTimestamp": _now(), "deletionGracePeriodSeconds": 0}
            gone = {**old, "metadata": metadata}
            await self._tell(key[0], "DELETED", gone)
            return gone
        metadata = {**old["metadata"], "deletionTimestamp": _now(grace), "deletionGracePeriodSeconds": grace}
        return await self._store(key, {**old, "metadata": metadata}, "MODIFIED")

    def _list(self, api: str, plural: str, namespace: str, selector: str) -> Object:
        items = [
            body
            for (kind, where, _), body in sorted(self.objects.items())
            if kind == plural and namespace in ("", where) and _selected(body, selector)
        ]
        metadata = {"resourceVersion": str(self.version)}
        return {"apiVersion": api, "kind": f"{KINDS[api, plural]}List", "metadata": metadata, "items": items}

    async def _watch(self, request: web.Request, plural: str, namespace: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        position = int(request.query.get("resourceVersion") or self.version)
        selector = request.query.get("labelSelector", "")
        generation = self._watch_generation
        if position < self._oldest:
            gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
            await response.write(json.dumps(gone).encode() + b"\n")
            return response
        if self.watch_error is not None:
            error = {"type": "ERROR", "object": {"kind": "Status", "code": self.watch_error, "message": "overloaded"}}
            self.watch_error = None
            await response.write(json.dumps(error).encode() + b"\n")
            return response
        while True:
            async with self._news:
                fresh = [entry for entry in self._log if entry[0] > position]
                if not fresh:
                    if generation != self._watch_generation:
                        return response
                    await self._news.wait()
                    continue
            for version, kind, what, body in fresh:
                position = version
                here = kind == plural and namespace in ("", body["metadata"].get("namespace", ""))
                if here and _selected(body, selector):
                    await response.write(json.dumps({"type": what, "object": body}).encode() + b"\n")


@asynccontextmanager
async def running() -> AsyncIterator[KubeServer]:
    """A server on a free port of this machine."""
    server = KubeServer()
    application = web.Application(client_max_size=1 << 24)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await server.end_watches()
        await runner.cleanup()


def no_right(method: str, verb: str, plural: str) -> Fault:
    """What the API says, for good, to one whose role lacks a verb."""
    who = 'User "system:serviceaccount:rocketfleet-system:rocketfleet"'
    message = f'{plural} is forbidden: {who} cannot {verb} resource "{plural}" in the namespace "default"'
    return Fault(method, plural, 403, "Forbidden", times=1_000_000, message=message)


def _fail(fault: Fault | None, *, done: bool) -> None:
    if fault is not None and fault.done is done:
        raise Refusal(fault.status, fault.reason, fault.message, retry_after=fault.retry_after)


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _json_patched(old: Object, operations: list[Object]) -> Object:
    new = copy.deepcopy(old)
    for operation in operations:
        *path, last = operation["path"].strip("/").split("/")
        place = new
        for segment in path:
            place = place[segment]
        if operation["op"] == "test":
            if place.get(last) != operation["value"]:
                raise Refusal(422, "Invalid", "the test operation failed")
        elif operation["op"] == "add":
            place[last] = operation["value"]
        else:
            raise AssertionError(f"the fake does not know {operation['op']}")
    return new


def _same(new: Object, old: Object) -> bool:
    def without(body: Object) -> Object:
        metadata = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
        return {**body, "metadata": metadata}

    return without(new) == without(old)


def _selected(body: Object, selector: str) -> bool:
    labels = body["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        key, _, value = term.partition("=")
        if key not in labels or (value and labels[key] != value):
            return False
    return True


def _refused(refusal: Refusal) -> web.Response:
    status = {"kind": "Status", "status": "Failure", "reason": refusal.reason, "message": refusal.message}
    headers = {} if refusal.retry_after is None else {"Retry-After": refusal.retry_after}
    return web.json_response({**status, "code": refusal.status}, status=refusal.status, headers=headers)


def _discovery(parts: list[str]) -> Object | None:
    if parts == ["version"]:
        return {"major": "1", "minor": "34"}
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"]}
    groups = sorted({api for api, _ in KINDS if "/" in api})
    if parts == ["apis"]:
        listed = []
        for api in groups:
            version = {"groupVersion": api, "version": api.split("/")[1]}
            listed.append({"name": api.split("/")[0], "versions": [version], "preferredVersion": version})
        return {"kind": "APIGroupList", "groups": listed}
    api = "v1" if parts == ["api", "v1"] else "/".join(parts[1:])
    if (parts[0] == "apis" and len(parts) == 3) or parts == ["api", "v1"]:
        verbs = ["get", "list", "watch", "create", "patch", "delete"]
        resources = [
            {"name": plural, "kind": kind, "singularName": "", "namespaced": plural not in CLUSTER_WIDE, "verbs": verbs}
            for (where, plural), kind in KINDS.items()
            if where == api
        ]
        return {"kind": "APIResourceList", "groupVersion": api, "resources": resources}
    return None


def _now(plus: float = 0) -> str:
    return (datetime.now(UTC) + timedelta(seconds=plus)).strftime("%Y-%m-%dT%H:%M:%SZ")
