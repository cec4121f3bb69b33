"""A pod's consuming container as a process of this machine: its command line and its environment.

It is made from the same pod that Kubernetes would get (`pod.py`): variables are resolved as the kubelet does, and what
would be a mounted file there is a file of the state directory here. So a manifest that runs here runs there.

Our own ROCKETFLEET_ variables are not handed down: they are about this command, and would win over the manifest.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.api.template import CONSUMER
from rocketfleet.controller.local.files import GroupFiles, PodFiles
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.controller.resources.metadata import Manifest
from rocketfleet.controller.resources.pod import CREDENTIALS, Defaults, PodError, build, pod_name

LOCAL_IMAGE = "this-machine"
LOCAL_DEFAULTS = Defaults(LOCAL_IMAGE, spark_image=LOCAL_IMAGE)  # for the revision: locally there are no images
LOCAL_PROGRAM = (sys.executable, "-P", "-m", "rocketfleet.cli.main")
LOOPBACK = "127.0.0.1"
_POD_PROGRAM = "rocketfleet"
_ONLY_IN_PODS = "ROCKETFLEET_EXECUTOR_TEMPLATE"  # without it, executors are processes of this machine
_POD_TLS = "/etc/rocketfleet/tls/"
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


@dataclass(frozen=True, slots=True)
class MemberCommand:
    """What to run. The environment may hold secrets, so it is in no repr."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class MemberFiles:
    """What a pod finds on its node: files, Secrets, ConfigMaps, the handler's directory."""

    pod: PodFiles
    group: GroupFiles
    path: Path | None  # of the handler
    secret: Callable[[str], Mapping[str, bytes] | None] = field(repr=False)
    config_map: Callable[[str], Mapping[str, str] | None]
    inherited: Mapping[str, str] = field(repr=False)


def command_of(group: ConsumerGroup, ordinal: int, uid: str, revision: str, around: MemberFiles) -> MemberCommand:
    """The process of one pod. BackendError says what of the manifest cannot be had on this machine."""
    certificate = "tls.crt" in _certificates(group, around)
    try:
        made = build(_with_image(group), ordinal, revision, LOCAL_DEFAULTS, client_certificate=certificate)
    except PodError as error:
        raise BackendError(str(error)) from error
    container = made["spec"]["containers"][0]
    identity = {
        "metadata.name": pod_name(group, ordinal),
        "metadata.uid": uid,
        "metadata.namespace": group.metadata.namespace,
        "spec.nodeName": "localhost",
        "status.podIP": LOOPBACK,
    }
    variables: dict[str, str] = {}
    for variable in container["env"]:
        value = _value(variable, variables, identity, around)
        if value is not None:
            variables[variable["name"]] = value
    variables |= _moved(group, container, variables, around)
    variables.pop(_ONLY_IN_PODS, None)
    inherited = {name: value for name, value in around.inherited.items() if not name.startswith("ROCKETFLEET_")}
    argv = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not argv:
        raise BackendError(
            f"the container named {CONSUMER} in spec.template.spec has no command: images are not run on this machine"
        )
    expanded = [_expanded(str(part), variables) for part in argv]
    if group.spec.engine.is_ours and expanded[0] == _POD_PROGRAM:
        expanded[:1] = LOCAL_PROGRAM
    return MemberCommand(tuple(expanded), {**inherited, **variables})


def _with_image(group: ConsumerGroup) -> ConsumerGroup:
    """On this machine no image is pulled, so somebody's own consumer may leave it out."""
    template = group.spec.template
    if group.spec.engine is not Engine.CONTAINER or template is None:
        return group
    containers = [
        {"image": LOCAL_IMAGE, **container} if container.get("name") == CONSUMER else container
        for container in (template.spec or {}).get("containers") or ()
    ]
    changed = template.model_copy(update={"spec": {**(template.spec or {}), "containers": containers}})
    return group.model_copy(update={"spec": group.spec.model_copy(update={"template": changed})})


def _value(
    variable: Manifest, before: Mapping[str, str], identity: Mapping[str, str], around: MemberFiles
) -> str | None:
    """A variable's value, as the kubelet finds it; None: it is optional, and there is none."""
    name, source = variable["name"], variable.get("valueFrom")
    if not source:
        return _expanded(str(variable.get("value") or ""), before)
    if "fieldRef" in source:
        path = source["fieldRef"].get("fieldPath")
        if path not in identity:
            raise BackendError(f"the variable {name} is taken from {path}, which there is only in a cluster")
        return identity[path]
    content: Mapping[str, Any] | None
    if "secretKeyRef" in source:
        reference, kind = source["secretKeyRef"], "Secret"
        content = around.secret(reference["name"])
    elif "configMapKeyRef" in source:
        reference, kind = source["configMapKeyRef"], "ConfigMap"
        content = around.config_map(reference["name"])
    else:
        raise BackendError(f"the variable {name} has a source that there is only in a cluster: give it a value")
    found = (content or {}).get(reference["key"])
    if found is None:
        if reference.get("optional"):
            return None
        raise BackendError(
            f"the {kind} {reference['name']} with {reference['key']} is missing: put it beside the group"
        )
    return found.decode() if isinstance(found, bytes) else str(found)


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` is replaced, `$$` is a dollar sign, and what is not known is left as it stands."""
    return _REFERENCE.sub(lambda m: "$" if m[1] is None else variables.get(m[1], m[0]), text)


def _moved(
    group: ConsumerGroup, container: Manifest, variables: Mapping[str, str], around: MemberFiles
) -> dict[str, str]:
    """The variables that say where files are, or where to listen, as it is on this machine."""
    moved = {"ROCKETFLEET_SETTINGS": str(around.pod.settings)}
    for name, value in variables.items():
        if value == CREDENTIALS:
            moved[name] = str(around.group.credentials)
        if value.startswith(_POD_TLS):
            moved[name] = str(around.group.mounted / "tls" / value.removeprefix(_POD_TLS))
    if not group.spec.engine.is_ours:
        return moved
    written = (group.spec.template.spec or {}).get("containers") or () if group.spec.template is not None else ()
    chosen = {
        variable.get("name") for one in written if one.get("name") == CONSUMER for variable in one.get("env") or ()
    }
    if "ROCKETFLEET_LOG_FORMAT" not in chosen:
        moved["ROCKETFLEET_LOG_FORMAT"] = "text"
    moved |= {
        "ROCKETFLEET_BIND": LOOPBACK,
        "ROCKETFLEET_BIND_PORT": "0",
        "ROCKETFLEET_PORT_FILE": str(around.pod.control),
        "ROCKETFLEET_TOKEN_FILE": str(around.group.token),
        "ROCKETFLEET_LAST_WORDS": str(around.pod.last_words),
    }
    if around.path is not None:
        moved["ROCKETFLEET_PATH"] = str(around.path)
    if "ROCKETFLEET_OFFSET_DIRECTORY" in variables:
        moved["ROCKETFLEET_OFFSET_DIRECTORY"] = str(around.pod.offsets)
    return moved


def _certificates(group: ConsumerGroup, around: MemberFiles) -> Mapping[str, bytes]:
    tls = group.spec.cluster.tls
    if tls is None or not tls.enabled or not tls.secret_name:
        return {}
    return around.secret(tls.secret_name) or {}
