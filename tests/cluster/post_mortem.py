"""What the cluster has to say when a test has failed: logs, objects, events. It never fails itself."""

import subprocess
from collections.abc import Callable

from tests.cluster.kube import Kube
from tests.cluster.operator_release import NAMESPACE

_TAIL = 200  # lines of each log


def collect(kube: Kube, namespaces: list[str]) -> str:
    """One text, for the report."""
    parts = [
        _said("nodes", lambda: kube.kubectl("get", "nodes", "-o", "wide")),
        _said("operator's pods", lambda: kube.kubectl("get", "pods", "-n", NAMESPACE, "-o", "wide")),
        _said("operator's logs", lambda: _logs(kube, NAMESPACE, "app.kubernetes.io/component=operator")),
    ]
    for name in namespaces:
        parts += [
            _said(f"{name}: groups", lambda n=name: kube.kubectl("get", "cg", "-n", n, "-o", "yaml")),
            _said(f"{name}: pods", lambda n=name: kube.kubectl("get", "pods", "-n", n, "-o", "wide")),
            _said(f"{name}: pods described", lambda n=name: kube.kubectl("describe", "pods", "-n", n)),
            _said(f"{name}: events", lambda n=name: kube.kubectl("get", "events", "-n", n, "--sort-by=.lastTimestamp")),
            _said(f"{name}: workers' logs", lambda n=name: _logs(kube, n, "rocketfleet.io/group")),
            _said(f"{name}: traffic's log", lambda n=name: _logs(kube, n, "app=traffic")),
        ]
    return "\n".join(parts)


def _logs(kube: Kube, namespace: str, selector: str) -> str:
    return kube.kubectl("logs", "-n", namespace, "-l", selector, "--prefix", f"--tail={_TAIL}", "--max-log-requests=20")


def _said(title: str, ask: Callable[..., str]) -> str:
    try:
        return f"---- {title}\n{ask()}"
    except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
        return f"---- {title}: {error}"
