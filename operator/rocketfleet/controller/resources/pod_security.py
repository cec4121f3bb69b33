"""What keeps a pod's containers within the restricted pod security level, wherever the user's template says nothing.

Defaults only: what the template sets is taken as it is, key by key. A container that asks to be privileged is left
alone, for the API server refuses a privileged one that may not gain privileges.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_Manifest = dict[str, Any]


def pod_security(written: Mapping[str, Any] | None) -> _Manifest:
    """The securityContext of a pod. There is no user in it: the image has one, or the cluster gives one (OpenShift)."""
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}} | dict(written or {})


def container_security(written: Mapping[str, Any] | None, *, read_only: bool = False) -> _Manifest:
    """The securityContext of one container. `read_only`: ours, which writes to its volumes only."""
    written = dict(written or {})
    if written.get("privileged"):
        return written
    ours: _Manifest = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    if read_only:
        ours["readOnlyRootFilesystem"] = True
    return ours | written


def secured(containers: Iterable[Mapping[str, Any]]) -> list[_Manifest]:
    """The template's own containers, sidecars and those that run first, with these defaults."""
    return [{**each, "securityContext": container_security(each.get("securityContext"))} for each in containers]
