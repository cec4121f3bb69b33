"""The template from which Spark's own scheduler makes the pods of a driver's executors.

They are the driver's, not the group's: it owns them, and they have no label by which we would take them for members.
They ask nothing of the API server. What the manifest's template says of where pods run, of volumes and of the consuming
container's environment holds for them too: a state store or a file sink writes from there, to the same places.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rocketfleet.controller.resources.metadata import Manifest

CONTAINER = "executor"
COMMAND = ("rocketfleet", "spark")  # Spark adds the argument: executor
TEMPORARY: Manifest = {"name": "rocketfleet-tmp", "mountPath": "/tmp"}  # noqa: S108 - the container's own
_PLACING = ("nodeSelector", "tolerations", "imagePullSecrets", "priorityClassName", "runtimeClassName")
_OF_THE_CONTAINER = ("env", "envFrom")


@dataclass(frozen=True, slots=True)
class ExecutorDefaults:
    """What executors get from us, as the driver does."""

    image: str
    labels: Mapping[str, str]
    security: Mapping[str, Any]
    image_pull_secrets: tuple[str, ...] = ()
    image_pull_policy: str | None = None
    volumes: Iterable[Manifest] = field(default_factory=tuple)
    mounts: Iterable[Manifest] = field(default_factory=tuple)


def executor_template(ours: ExecutorDefaults, written: Manifest, consumer: Manifest) -> Manifest:
    """The template. `written` is the pod spec of the manifest's template, `consumer` the consuming container in it."""
    spec: Manifest = {"automountServiceAccountToken": False, "enableServiceLinks": False}
    if ours.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in ours.image_pull_secrets]
    spec |= {key: written[key] for key in _PLACING if key in written}
    container: Manifest = {
        "name": CONTAINER,
        "image": ours.image,
        "command": list(COMMAND),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            **(consumer.get("securityContext") or {}),
        },
        **{key: consumer[key] for key in _OF_THE_CONTAINER if key in consumer},
        "volumeMounts": _merged("mountPath", ours.mounts, consumer.get("volumeMounts") or ()),
    }
    if ours.image_pull_policy:
        container["imagePullPolicy"] = ours.image_pull_policy
    spec["securityContext"] = dict(ours.security)
    spec["containers"] = [container]
    spec["volumes"] = _merged("name", ours.volumes, written.get("volumes") or ())
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": dict(ours.labels)}, "spec": spec}


def _merged(key: str, ours: Iterable[Manifest], theirs: Iterable[Manifest]) -> list[Manifest]:
    """Theirs, and ours that are called otherwise: a template may bring a /tmp of its own."""
    theirs = list(theirs)
    taken = {entry.get(key) for entry in theirs}
    return [*(entry for entry in ours if entry[key] not in taken), *theirs]
