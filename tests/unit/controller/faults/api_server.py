"""An API server in memory, without a socket: the real `KubeApi` calls it in place of the official client.

It is as much of Kubernetes as the operator can tell: versions, uids, preconditions, merge and JSON patches, the status
subresource, generations, finalizers, deletion with a grace period, the garbage collector, and a log of all changes from
which watches are told and older states can be read. Objects are never changed in place, so that a whole cluster can be
forked at any moment for next to nothing.

What goes wrong is decided by whoever asks, one level up: see `Faults` in operator_process.py.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict
from tests.unit.controller.kube_server import KINDS, merged

from rocketfleet.api.crd import object_schema
from rocketfleet.api.schema import Schema
from rocketfleet.base.timestamps import timestamp

Object = dict[str, Any]
Key = tuple[str, str, str]  # plural, namespace, name
GROUPS = "consumergroups"
CLUSTER_WIDE = frozenset({"nodes", "namespaces"})
GRACE = 30


class Refused(Exception):
    """The API server says no."""

    def __init__(self, status: int, reason: str, message: str = "", retry_after: str | None = None) -> None:
        super().__init__(message or reason)
        self.status, self.reason, self.retry_after = status, reason, retry_after


@dataclass(frozen=True)
class Change:
    """A line of the log; `kind` is a watch's: ADDED, MODIFIED, DELETED."""

    version: int
    kind: str
    key: Key
    body: Object


@dataclass(frozen=True)
class Asked:
    """A request, taken apart."""

    method: str
    api: str
    key: Key  # without a name: all of them
    part: str
    query: Mapping[str, str]
    kind: str  # of the body
    body: Any

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    def __str__(self) -> str:
        plural, _, name = self.key
        return f"{self.method} {plural}{f'/{name}' if name else ''}{f'/{self.part}' if self.part else ''}"


@dataclass
class ApiServer:
    """What etcd holds, and what may be done to it. `wall` is the time of day."""

    wall: Callable[[], float]
    objects: dict[Key, Object] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    version: int = 0
    born: int = 0  # how many objects there have been
    heard: Callable[[Change], object] = lambda change: None

    def fork(self, wall: Callable[[], float]) -> "ApiServer":
        """Another one, with all that is in this one."""
        return ApiServer(wall, dict(self.objects), list(self.log), self.version, self.born)

    # -- what people, the kubelet and tests do ------------------------------------------------------------------------

    def get(self, plural: str, name: str, namespace: str = "default") -> Object | None:
        return self.objects.get((plural, namespace, name))

    def all(self, plural: str) -> list[Object]:
        return [body for key, body in sorted(self.objects.items()) if key[0] == plural]

    def change(self, plural: str, name: str, patch: Object, part: str = "", namespace: str = "default") -> Object:
        """A merge patch by somebody else."""
        return self._patch((plural, namespace, name), patch, part)

    def put(self, plural: str, body: Object) -> Object:
        """Create, or replace the spec."""
        metadata = body["metadata"]
        key = (plural, metadata.get("namespace", "default"), metadata["name"])
        if key not in self.objects:
            return self._create(key, json.loads(json.dumps(body)))
        old = self.objects[key]
        return self._replace(key, old, {**old, "spec": body["spec"]})

    def delete(self, plural: str, name: str, options: Object | None = None, namespace: str = "default") -> Object:
        return self._delete((plural, namespace, name), options or {})

    def vanish(self, key: Key) -> None:
        """Its grace period is over, or it ended within it: the kubelet says that it is gone."""
        self._remove(key, self.objects[key])

    def at(self, version: int) -> "ApiServer":
        """As it was then."""
        objects: dict[Key, Object] = {}
        for change in self.log:
            if change.version > version:
                break
            if change.kind == "DELETED":
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.body
        return ApiServer(self.wall, objects, [], version, self.born)

    # -- what the operator does ---------------------------------------------------------------------------------------

    def answer(self, asked: Asked) -> Object:
        """Do what is asked."""
        plural, namespace, name = asked.key
        if asked.method == "GET" and not name:
            return self._list(asked)
        if asked.method == "POST":
            body = {"apiVersion": asked.api, "kind": KINDS[asked.api, plural], **asked.body}
            key = (plural, namespace, body["metadata"]["name"])
            if key in self.objects:
                raise Refused(409, "AlreadyExists", f"{key[2]} already exists")
            return self._create(key, body)
        if asked.key not in self.objects:
            if asked.method == "PATCH" and "apply" in asked.kind:
                return self._create(
                    asked.key, {"apiVersion": asked.api, "kind": KINDS[asked.api, plural], **asked.body}
                )
            raise Refused(404, "NotFound", f"{plural} {name} not found")
        if asked.method == "GET":
            return self.objects[asked.key]
        if asked.method == "DELETE":
            return self._delete(asked.key, asked.body)
        return self._patch(asked.key, asked.body, asked.part)

    def _list(self, asked: Asked) -> Object:
        plural, namespace, _ = asked.key
        label, _, value = asked.query.get("labelSelector", "").partition("=")
        items = []
        for body in self.all(plural):
            labels = body["metadata"].get("labels") or {}
            here = namespace in ("", body["metadata"]["namespace"])
            if here and (not label or (label in labels and value in ("", labels[label]))):
                items.append(body)
        return {"metadata": {"resourceVersion": str(self.version)}, "items": items}

    def _create(self, key: Key, body: Object) -> Object:
        self.born += 1
        metadata = {
            **body["metadata"],
            "namespace": key[1],
            "uid": f"{key[0]}-{self.born:04}",
            "creationTimestamp": timestamp(self.wall()),
            "generation": 1,
        }
        body = {**body, "metadata": metadata}
        if key[0] == "pods":
            body["status"] = {"phase": "Pending"}
        if key[0] == GROUPS:
            body["spec"] = defaulted(body["spec"], _schema()["properties"]["spec"])
        return self._store("ADDED", key, body)

    def _patch(self, key: Key, patch: Any, part: str) -> Object:
        old = self.objects[key]
        if isinstance(patch, list):
            new = _json_patched(old, patch)
        else:
            given = patch.get("metadata") or {}
            if given.get("uid") not in (None, old["metadata"]["uid"]):
                raise Refused(409, "Conflict", "the UID in the precondition does not match")
            if given.get("resourceVersion") not in (None, old["metadata"]["resourceVersion"]):
                raise Refused(409, "Conflict", "the object has been modified")
            new = merged(old, patch)
        if part == "status":
            new = {**old, "status": new.get("status", {})}
        elif key[0] == GROUPS:
            new = {**new, "status": old.get("status", {})}
        return self._replace(key, old, new)

    def _replace(self, key: Key, old: Object, new: Object) -> Object:
        if key[0] == GROUPS:
            new = {**new, "spec": defaulted(new["spec"], _schema()["properties"]["spec"])}
        if key[0] == GROUPS and new.get("spec") != old.get("spec"):
            new = {**new, "metadata": {**new["metadata"], "generation": old["metadata"]["generation"] + 1}}
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": old["metadata"]["resourceVersion"]}}
        if new == old:
            return old  # nothing to write, nothing to tell
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers") and key[0] != "pods":
            return self._remove(key, new)
        return self._store("MODIFIED", key, new)

    def _delete(self, key: Key, options: Object) -> Object:
        old = self.objects[key]
        for key_, held_ in (options.get("preconditions") or {}).items():
            if held_ != old["metadata"][key_]:
                raise Refused(409, "Conflict", f"the precondition {key_} does not match")
        given = old.get("spec", {}).get("terminationGracePeriodSeconds", GRACE) if key[0] == "pods" else 0
        grace = options.get("gracePeriodSeconds", given)
        held = old["metadata"].get("finalizers")
        if key[0] == "pods" and not old["spec"].get("nodeName"):
            grace = 0  # nobody runs it yet
        if grace == 0 and not held:
            return self._remove(key, old)
        if old["metadata"].get("deletionTimestamp"):
            grace = min(grace, old["metadata"]["deletionGracePeriodSeconds"])
        elif key[0] != "pods" and not held:
            return self._remove(key, old)
        marks = {"deletionTimestamp": timestamp(self.wall() + grace), "deletionGracePeriodSeconds": grace}
        if old["metadata"].get("deletionTimestamp") and old["metadata"]["deletionGracePeriodSeconds"] <= grace:
            return old
        return self._store("MODIFIED", key, {**old, "metadata": {**old["metadata"], **marks}})

    def _store(self, kind: str, key: Key, body: Object) -> Object:
        self.version += 1
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self.objects[key] = body
        return self._note(kind, key, body)

    def _note(self, kind: str, key: Key, body: Object) -> Object:
        self.log.append(Change(self.version, kind, key, body))
        self.heard(self.log[-1])
        return body

    def _remove(self, key: Key, body: Object) -> Object:
        """It is gone, and the garbage collector takes what it owned."""
        self.version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.version)}
        if key[0] == "pods":
            metadata = {"deletionTimestamp": timestamp(self.wall()), **metadata, "deletionGracePeriodSeconds": 0}
        body = {**body, "metadata": metadata}
        del self.objects[key]
        self._note("DELETED", key, body)
        for other, owned in list(self.objects.items()):
            references = owned["metadata"].get("ownerReferences") or ()
            if any(reference["uid"] == metadata["uid"] for reference in references):
                self._delete(other, {})
        return body


class LocalClient:
    """In place of the official `ApiClient`: what it sends goes to `reach`, which answers a status and an object."""

    def __init__(self, reach: Callable[[Asked, float], Any]) -> None:
        self._reach = reach

    async def param_serialize(self, method: str, path: str, **given: Any) -> tuple[Any, ...]:
        kind = given["header_params"]["Content-Type"]
        body = given["body"]
        body = None if body is None else json.loads(json.dumps(body))
        return method, _asked(method, path, dict(given["query_params"]), kind, body), {}, None, None

    async def call_api(self, _method: str, asked: Asked, *_: Any, **given: Any) -> "Response":
        status, headers, body = await self._reach(asked, given["_request_timeout"].total)
        return Response(status, headers, json.dumps(body).encode())

    async def close(self) -> None: ...


@dataclass
class Response:
    """As aiohttp's."""

    status: int
    given: Mapping[str, str]
    content: bytes

    @property
    def headers(self) -> CIMultiDict[str]:
        return CIMultiDict(self.given)

    async def read(self) -> bytes:
        return self.content


def refusal(refused: Refused) -> tuple[int, dict[str, str], Object]:
    """What a refusal looks like."""
    headers = {} if refused.retry_after is None else {"Retry-After": refused.retry_after}
    return refused.status, headers, {"kind": "Status", "reason": refused.reason, "message": str(refused)}


def _asked(method: str, path: str, query: Mapping[str, str], kind: str, body: Any) -> Asked:
    parts = path.strip("/").split("/")
    api, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, part = (*rest, "", "")[:3]
    return Asked(method, api, (plural, namespace, name), part, query, kind, body)


def _json_patched(old: Object, operations: list[Object]) -> Object:
    new = json.loads(json.dumps(old))
    for operation in operations:
        *path, last = operation["path"].strip("/").split("/")
        place = new
        for segment in path:
            place = place[segment]
        if operation["op"] == "test":
            if place.get(last) != operation["value"]:
                raise Refused(422, "Invalid", "the test operation failed")
        else:
            place[last] = operation["value"]
    assert isinstance(new, dict)
    return new


_SCHEMA: list[Schema] = []


def _schema() -> Schema:
    if not _SCHEMA:
        _SCHEMA.append(object_schema())
    return _SCHEMA[0]


def defaulted(raw: Any, schema: Schema) -> Any:
    """What the API server makes of an object before it looks at it: defaults filled in, what it does not know left out
    where nothing says otherwise, nulls as if they had not been given."""
    if isinstance(raw, dict) and "properties" in schema:
        keeps = schema.get("x-kubernetes-preserve-unknown-fields", False)
        known = schema["properties"]
        filled = {name: held for name, held in raw.items() if name in known or keeps}
        for name, part in known.items():
            if filled.get(name) is None and "default" in part:
                filled[name] = part["default"]
            if name in filled and filled[name] is None and not keeps:
                del filled[name]
            if name in filled:
                filled[name] = defaulted(filled[name], part)
        return filled
    if isinstance(raw, list) and "items" in schema:
        return [defaulted(item, schema["items"]) for item in raw]
    return raw
