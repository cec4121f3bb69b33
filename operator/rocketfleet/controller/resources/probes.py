"""The probes of a container with our runtime in it, on its control port. The template may change or replace them.

The port opens before the handler's module is imported, and /healthz is well while that goes on, up to a limit. The
startup probe is for what comes before: an image's own entrypoint, an interpreter on a throttled processor, a worker of
an older version, which listens only after the import. Until it has passed once nobody else asks.
"""

from math import ceil
from typing import Any

_Manifest = dict[str, Any]
_KINDS = ("httpGet", "exec", "tcpSocket", "grpc")


def probes(port: str, written: _Manifest, startup_seconds: int, stuck_grace: float | None) -> _Manifest:
    """startupProbe, readinessProbe and livenessProbe. `written` is the template's container. `stuck_grace`: seconds
    from SIGTERM to SIGKILL of one that is stuck, where a pod may otherwise take much longer: it does not drain.
    """
    start: _Manifest = {"initialDelaySeconds": 1, "periodSeconds": 1, "timeoutSeconds": 3}
    start["failureThreshold"] = startup_seconds
    ready: _Manifest = {"periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 2}
    alive: _Manifest = {"initialDelaySeconds": 10, "periodSeconds": 10, "timeoutSeconds": 3, "failureThreshold": 3}
    if stuck_grace is not None:
        start["terminationGracePeriodSeconds"] = alive["terminationGracePeriodSeconds"] = ceil(stuck_grace)
    return {
        "startupProbe": _probe(port, "/healthz", start, written.get("startupProbe")),
        "readinessProbe": _probe(port, "/readyz", ready, written.get("readinessProbe")),
        "livenessProbe": _probe(port, "/healthz", alive, written.get("livenessProbe")),
    }


def _probe(port: str, path: str, times: _Manifest, written: _Manifest | None) -> _Manifest:
    """Ours with the template's times; or the template's, if it says how to probe."""
    if written and any(kind in written for kind in _KINDS):
        return written
    return {"httpGet": {"path": path, "port": port}, **times, **(written or {})}
