"""Calls to the Kubernetes API: plain JSON in and out, over the official client's connections and credentials.

The client's typed methods are not used. What we read is a watch's raw JSON anyway, what we write is built as JSON, and
reading a thousand objects into models costs more memory than everything else here together. Its ApiClient brings what
is worth having: TLS, proxies, and tokens that are read again when they rotate.

Every write asks `may_act` first and is given up before the term of a leader can end: see leader.py. fence.py does the
same for writes at the brokers. Calls are paced (pace.py), but for those to the Lease.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import aiohttp
from kubernetes.aio.client import ApiClient

from rocketfleet.controller.kube.pace import CallRate
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.controller.rocketmq.fence import WriteGuard

_log = logging.getLogger(__name__)
FIELD_MANAGER: Final = "rocketfleet"
CALL_SECONDS: Final = 10.0
PAGE: Final = 500  # objects of a list that are fetched at once

JSON: Final = "application/json"
_UNKNOWN_FIELD = re.compile(r'unknown field \\?"([^"\\]+)')  # in a header, where quotes may be escaped
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"


class KubeError(BackendError):
    """The API said no, or nothing. `status` is its HTTP status, 0 if there was no answer."""

    def __init__(self, what: str, status: int = 0, reason: str = "") -> None:
        super().__init__(what)
        self.status = status
        self.reason = reason

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def conflict(self) -> bool:
        return self.status == 409


class NotLeading(BackendError):
    """Another operator may lead now: nothing is written."""


class KubeApi:
    """One cluster's API. `count` hears the method and the status of each call, 0 for one without an answer."""

    def __init__(
        self,
        client: ApiClient,
        guard: WriteGuard | None = None,
        count: Callable[[str, int], None] | None = None,
        pace: CallRate | None = None,
    ) -> None:
        self._client = client
        self.guard = guard
        self._count = count
        self._pace = pace

    async def get(self, path: str, timeout: float = CALL_SECONDS, **query: str) -> dict[str, Any]:
        return await self._call("GET", path, query, None, JSON, timeout)

    async def list_all(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        """All items, and the version they were read at."""
        items: list[dict[str, Any]] = []
        query = {**query, "limit": str(PAGE)}
        while True:
            page = await self.get(path, 30.0, **query)
            items += page.get("items") or []
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return items, str(metadata.get("resourceVersion") or "")
            query["continue"] = str(metadata["continue"])
            query.pop("resourceVersion", None)  # the token names it

    async def create(
        self, path: str, body: Mapping[str, Any], unknown: Callable[[str], None] = lambda field: None
    ) -> dict[str, Any]:
        """`unknown` is told each field of it that the API does not know, and leaves out."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Warn"}
        return await self._write("POST", path, query, body, JSON, unknown)

    async def apply(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply. We are the only ones who should say this, so our word goes over others'."""
        return await self._write("PATCH", path, {"fieldManager": FIELD_MANAGER, "force": "true"}, body, APPLY)

    async def merge(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._write("PATCH", path, {"fieldManager": FIELD_MANAGER}, body, MERGE_PATCH)

    async def patch(self, path: str, operations: list[dict[str, Any]]) -> dict[str, Any]:
        return await self._write("PATCH", path, {"fieldManager": FIELD_MANAGER}, operations, JSON_PATCH)

    async def delete(self, path: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return await self._write("DELETE", path, {}, options, JSON)

    async def write_freely(self, method: str, path: str, body: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """A write that needs no leadership, because it is how leadership is won."""
        return await self._call(method, path, {}, body, JSON, timeout)

    async def _write(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object,
        kind: str,
        unknown: Callable[[str], None] = lambda field: None,
    ) -> dict[str, Any]:
        timeout = CALL_SECONDS
        if self.guard is not None:
            if not self.guard.may_act():
                raise NotLeading("this operator does not lead: nothing is written")
            timeout = min(timeout, self.guard.seconds_left())
        return await self._call(method, path, query, body, kind, timeout, unknown)

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object,
        kind: str,
        timeout: float,
        unknown: Callable[[str], None] = lambda field: None,
    ) -> dict[str, Any]:
        if self._pace is not None:
            left = await self._pace.turn(timeout)
            if left is None:
                raise KubeError(
                    f"{method} {path} waits: the Kubernetes API is called too often, or asked us to wait", 429
                )
            if self.guard is not None and method != "GET" and not self.guard.may_act():
                raise NotLeading("this operator does not lead any more: nothing is written")
            timeout = left
        status = 0
        try:
            method_out, url, headers, body_out, _ = await self._client.param_serialize(
                method,
                path,
                query_params=list(query.items()),
                header_params={"Accept": JSON, "Content-Type": kind},
                body=body,
                auth_settings=["BearerToken"],
            )
            response = await self._client.call_api(
                method_out, url, headers, body_out, _request_timeout=aiohttp.ClientTimeout(total=timeout)
            )
            status = int(response.status)
            asked = response.headers.get("Retry-After")
            if self._pace is not None and (status == 429 or (status == 503 and asked)):
                self._pace.hold(asked)
            for warning in response.headers.getall("Warning", ()):
                for field in _UNKNOWN_FIELD.findall(warning):
                    unknown(field)
            data = await response.read()  # type: ignore[no-untyped-call] # the package has few annotations
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = f"no answer within {timeout:.1f} s" if isinstance(error, TimeoutError) else str(error)
            raise KubeError(f"the Kubernetes API could not be reached for {method} {path}: {why}") from error
        finally:
            if self._count is not None:
                self._count(method, status)
        content = _json(data)
        if not 200 <= status <= 299:
            raise KubeError(_sentence(method, path, status, content), status, str(content.get("reason") or ""))
        return content

    async def close(self) -> None:
        await self._client.close()  # type: ignore[no-untyped-call] # as above


def _json(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _sentence(method: str, path: str, status: int, content: Mapping[str, Any]) -> str:
    """The API's own message, which is written for people; never the object that was sent."""
    said = str(content.get("message") or "no reason given")[:500]
    # Quotas and admission answer 403 too. That it is about rights is in the words alone: 'User "x" cannot get …'.
    lacks = status == 403 and 'User "' in said and " cannot " in said
    advice = '. The operator\'s role lacks this right: docs/install.md, "Rights", lists what it needs' if lacks else ""
    return f"the Kubernetes API answered {status} to {method} {path}: {said}{advice}"


def path_of(api: str, plural: str, namespace: str | None = None, name: str = "", part: str = "") -> str:
    """The path of objects or of one; `api` is v1 or group/version."""
    segments = ["api" if "/" not in api else "apis", *api.split("/")]
    if namespace is not None:
        segments += ["namespaces", quote(namespace, safe="")]
    segments.append(plural)
    segments += [quote(segment, safe="") for segment in (name, part) if segment]
    return "/" + "/".join(segments)
