"""A Kubernetes API as far as day-2 commands need one: objects in a dictionary behind HTTP, on loopback."""

import copy
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]
GROUPS = "/apis/rocketfleet.io/v1alpha1/namespaces/shop/consumergroups"
PODS = "/api/v1/namespaces/shop/pods"
SECRETS = "/api/v1/namespaces/shop/secrets"


class FakeApi:
    """Objects by path. `refusals` answers a path with a status and a message; `on_get` may change things meanwhile."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.refusals: dict[str, tuple[int, str]] = {}
        self.on_get: Callable[[str], None] = lambda _path: None
        self.patches: list[tuple[str, str, Object]] = []
        self.tokens: list[str | None] = []
        self.knows_groups = True
        self.page = 2  # small, so that lists have pages

    def add_group(self, name: str, **parts: Any) -> Object:
        made: Object = {
            "apiVersion": "rocketfleet.io/v1alpha1",
            "kind": "ConsumerGroup",
            "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": 1, "managedFields": []},
            "spec": {
                "cluster": {"nameServers": ["127.0.0.1:1"]},
                "subscriptions": [{"topic": "orders"}],
                **parts.pop("spec", {}),
            },
            **parts,
        }
        self.objects[f"{GROUPS}/{name}"] = made
        return made

    def add_pod(self, name: str, group: str | None = "orders", uid: str = "uid-1", **metadata: Any) -> Object:
        ordinal = name.rpartition("-")[2]
        labels = {} if group is None else {"rocketfleet.io/group": group, "rocketfleet.io/ordinal": ordinal}
        made: Object = {
            "metadata": {"name": name, "namespace": "shop", "uid": uid, "labels": labels, **metadata},
            "spec": {"nodeName": "node-1"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
        self.objects[f"{PODS}/{name}"] = made
        return made

    def get(self, path: str, query: dict[str, list[str]]) -> tuple[int, Object]:
        if path == "/version":
            return 200, {}
        self.on_get(path)
        if path in self.refusals:
            status, message = self.refusals[path]
            return status, {"kind": "Status", "message": message}
        if path.startswith("/apis") and not self.knows_groups:
            return 404, {}
        if path in self.objects:
            return 200, self.objects[path]
        kind = path.rpartition("/")[2]
        if kind not in ("consumergroups", "pods"):
            return 404, {"kind": "Status", "message": f"{path} not found", "reason": "NotFound"}
        found = [
            one
            for place, one in sorted(self.objects.items())
            if (place.startswith(path + "/") or ("/namespaces/" not in path and f"/{kind}/" in place))
            and _selected(one, query.get("labelSelector", [""])[0])
        ]
        begin = int(query.get("continue", ["0"])[0])
        rest = len(found) > begin + self.page
        metadata = {"continue": str(begin + self.page)} if rest else {}
        return 200, {"items": found[begin : begin + self.page], "metadata": metadata}

    def patch(self, path: str, kind: str, body: Object) -> tuple[int, Object]:
        self.patches.append((path, kind, copy.deepcopy(body)))
        if path in self.refusals:
            status, message = self.refusals[path]
            return status, {"kind": "Status", "message": message}
        found = self.objects.get(path)
        if found is None:
            return 404, {"message": "not found", "reason": "NotFound"}
        if "spec" in body:
            _merge(found["spec"], body["spec"])
            found["metadata"]["generation"] += 1
            return 200, found
        if body["metadata"].get("uid", found["metadata"]["uid"]) != found["metadata"]["uid"]:
            return 409, {"message": "the UID in the precondition does not match"}
        found["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
        return 200, found


def _merge(into: Object, change: Object) -> None:
    for key, value in change.items():
        if isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def _selected(found: Object, selector: str) -> bool:
    label, _, value = selector.partition("=")
    return not selector or found["metadata"].get("labels", {}).get(label) == value


@contextmanager
def serving(api: FakeApi, directory: Path) -> Iterator[Path]:
    """Serve it; what comes is a kubeconfig."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            api.tokens.append(self.headers.get("authorization"))
            self._answer(*api.get(parts.path, parse_qs(parts.query)))

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(*api.patch(urlsplit(self.path).path, self.headers["Content-Type"], body))

        def _answer(self, status: int, content: Object) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "shop"}},
            {"name": "other", "context": {"cluster": "c", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
    }
    path = directory / "kubeconfig"
    path.write_text(json.dumps(config))
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
