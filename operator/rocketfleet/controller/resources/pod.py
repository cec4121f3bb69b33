"""A group's pods in Kubernetes, as plain data.

A pod is ours with the user's template laid over it: containers, environment, volumes and mounts are matched by name,
and what the template says wins. Where that would break the group, ours wins: what identifies a member (its client id,
from the pod's name and uid), the settings that all members must share, and the control port by which it is drained. So
variables of the template that the worker would read as settings are left out: the manifest itself has a field for each.

The worker's settings travel as an annotation of the pod and reach it as a file, by the downward API: they belong to
exactly this pod, live as long as it does, and need no ConfigMap for each revision.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import PurePosixPath
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import GROUP, GROUP_LABEL, ORDINAL_LABEL
from rocketfleet.api.spec import STARTUP_SECONDS, WAIT_GRACE, Engine, Spark, Tls, Worker
from rocketfleet.api.template import CONSUMER, Template
from rocketfleet.client.transport.keys import KEY_FILES
from rocketfleet.client.variables import (
    ACCESS_KEY_VARIABLE,
    NAME_SERVERS_VARIABLE,
    POD_NAME_VARIABLE,
    POD_UID_VARIABLE,
    SECRET_KEY_VARIABLE,
    SECURITY_TOKEN_VARIABLE,
)
from rocketfleet.control.budget import Margin
from rocketfleet.control.identity import CLIENT_ID_VARIABLE, PROCESSES_VARIABLE
from rocketfleet.controller.resources.code import parts_of
from rocketfleet.controller.resources.executor_pod import TEMPORARY, ExecutorDefaults, executor_template
from rocketfleet.controller.resources.metadata import Manifest, labels_of, metadata_of
from rocketfleet.controller.resources.pod_security import container_security, pod_security, secured
from rocketfleet.controller.resources.probes import probes
from rocketfleet.controller.resources.secret import TOKEN_KEY, control_secret_name
from rocketfleet.controller.resources.shared_settings import encode, shared_settings_of
from rocketfleet.controller.resources.worker_settings import room_prefix_of, settings_of
from rocketfleet.wire.enums import MessageModel
from rocketfleet.worker.configuration.setting_table import SETTINGS, OnTimeout
from rocketfleet.worker.configuration.settings_file import VERSION, VERSION_VARIABLE

REVISION_LABEL = f"{GROUP}/revision"
ENGINE_LABEL = f"{GROUP}/engine"
CODE_ANNOTATION = f"{GROUP}/code"  # a hash of what is in the ConfigMap
SETTINGS_ANNOTATION = f"{GROUP}/settings"
SHARED_ANNOTATION = f"{GROUP}/shared-settings"
CONTROL_ANNOTATION = f"{GROUP}/control"
EXECUTOR_ANNOTATION = f"{GROUP}/executor-template"
EXECUTOR_LABEL = f"{GROUP}/executor-of"

CONTROL_PORT = 9470
CONTROL_PORT_NAME = "control"
CONTROL_PROVED = "proof"  # what calls to the control port carry; a pod without the annotation wants the token itself
LAST_WORDS = "/dev/termination-log"

_DIRECTORY = "/etc/rocketfleet"
_CREDENTIALS = "credentials"
CREDENTIALS = f"{_DIRECTORY}/{_CREDENTIALS}"
_CODE = "/opt/rocketfleet-handler"
_OFFSETS = "/var/lib/rocketfleet"
_OFFSETS_VOLUME = "rocketfleet-offsets"
_NODE_GONE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_NODE_GONE_SECONDS = 10
_EXECUTOR_TEMPLATE = "executor.json"
_COMMANDS = {Engine.WORKER: ["rocketfleet", "worker"], Engine.SPARK: ["rocketfleet", "spark", "driver"]}
_SETTING_VARIABLES = frozenset(f"ROCKETFLEET_{setting.parameter.upper()}" for setting in SETTINGS)
# Cluster Autoscaler leaves nodes alone whose pods belong to a custom resource, or have local volumes, unless told so.
_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_MOST_ANNOTATIONS = 256 * 1024  # bytes: Kubernetes' limit for all annotations of an object together


class PodError(ValueError):
    """No pod can be made from this manifest; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the operator was started with."""

    worker_image: str
    image_pull_policy: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    spark_image: str = ""
    spark_service_account: str = ""  # of drivers whose executors are pods
    operator: str = ""  # its release, for the status
    most_rolling: int = 0  # groups on a default image that may roll at once; 0: all


NO_DEFAULTS = Defaults("")  # where every manifest names its images


def pod_name(group: ConsumerGroup, ordinal: int) -> str:
    return f"{group.metadata.name}-{ordinal}"


def grace_of(group: ConsumerGroup) -> float:
    """Seconds from SIGTERM to SIGKILL where nobody waits for ever: the drain, its last commits and, with Spark, the end
    of JVM and executors. The operator's own deletions get as much: it deletes what has drained, or is given up.
    """
    spark = Margin.SPARK_GRACE.seconds if group.spec.engine is Engine.SPARK else 0.0
    drain = Margin.POD_GRACE.after(group.spec.shutdown.drain_timeout_seconds) + spark
    return max(drain, _written_spec(group.spec.template).get("terminationGracePeriodSeconds") or 0)


def waits(group: ConsumerGroup) -> bool:
    """Whether a pod that is told to stop by anybody waits for its handlers as long as it takes."""
    return group.spec.shutdown.on_timeout is OnTimeout.WAIT and group.spec.engine.is_ours


def selector(group: ConsumerGroup) -> str:
    """The label selector of the group's pods, for the scale subresource and for lists."""
    return f"{GROUP_LABEL}={group.metadata.name}"


def image_of(group: ConsumerGroup, defaults: Defaults) -> str:
    """The consuming container's image: that of the engine's section, else the template's, else our default."""
    spec = group.spec
    written = _consumer(spec.template).get("image")
    if spec.engine is Engine.CONTAINER:
        if not written:
            raise PodError(
                f"engine Container needs an image: give the container named {CONSUMER} in spec.template.spec one"
            )
        return str(written)
    if spec.program is not None and spec.program.image:
        return spec.program.image
    return str(written or (defaults.spark_image if spec.engine is Engine.SPARK else defaults.worker_image))


def on_default_image(group: ConsumerGroup) -> bool:
    """Whether another default image would be a new revision of this group."""
    return group.spec.engine.is_ours and not image_of(group, NO_DEFAULTS)


def build(
    group: ConsumerGroup, ordinal: int, revision: str, defaults: Defaults, *, client_certificate: bool = False
) -> Manifest:
    """The pod's manifest. `client_certificate`: whether the TLS Secret has tls.crt and tls.key (a look tells)."""
    if group.spec.engine is Engine.WORKER and group.spec.worker is None:
        raise PodError("engine Worker needs spec.worker with a handler, as module:function")
    if group.spec.engine is Engine.SPARK and group.spec.spark is None:
        raise PodError("engine Spark needs spec.spark with a pipeline, as module:function")
    if not image_of(group, defaults):
        raise PodError("there is no image with Spark: give spark.image, or the operator a --spark-image of its own")
    metadata = _pod_metadata(group, ordinal, revision)
    if _has_executor_pods(group):
        metadata["annotations"][EXECUTOR_ANNOTATION] = _compact(_executors(group, defaults, client_certificate))
    _check_annotations(metadata["annotations"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": _pod_spec(group, ordinal, defaults, client_certificate),
    }


def _executors(group: ConsumerGroup, defaults: Defaults, client_certificate: bool) -> Manifest:
    """The template of a Spark driver's executors: credentials, certificates and code are where the driver has them."""
    written = _written_spec(group.spec.template)
    secrets = _secret_files(group, client_certificate)
    code = _code(group)
    read = [{"name": "rocketfleet", "mountPath": _DIRECTORY, "readOnly": True}] if secrets else []
    ours = ExecutorDefaults(
        image=image_of(group, defaults),
        labels=labels_of(group) | {"app.kubernetes.io/component": "executor", EXECUTOR_LABEL: group.metadata.name},
        security=pod_security(written.get("securityContext")),
        image_pull_secrets=defaults.image_pull_secrets,
        image_pull_policy=defaults.image_pull_policy,
        volumes=[
            {"name": "rocketfleet-tmp", "emptyDir": {}},
            *([{"name": "rocketfleet", "projected": {"sources": secrets}}] if secrets else []),
            *(volume for volume, _ in code),
        ],
        mounts=[TEMPORARY, *read, *(mount for _, mount in code)],
    )
    return executor_template(ours, written, _consumer(group.spec.template))


def _has_executor_pods(group: ConsumerGroup) -> bool:
    spark = group.spec.spark if group.spec.engine is Engine.SPARK else None
    return spark is not None and spark.master == "k8s"


def _compact(content: Mapping[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def _pod_metadata(group: ConsumerGroup, ordinal: int, revision: str) -> Manifest:
    metadata = metadata_of(group, pod_name(group, ordinal))
    of_manifest, code = parts_of(revision)
    written = group.spec.template.metadata if group.spec.template is not None else None
    metadata["labels"] = (
        labels_of(group)
        | _foreign(written.labels if written else None)
        | {
            GROUP_LABEL: group.metadata.name,
            ORDINAL_LABEL: str(ordinal),
            REVISION_LABEL: of_manifest,
            ENGINE_LABEL: group.spec.engine.value,
        }
    )
    metadata["annotations"] = (
        ({_SAFE_TO_EVICT: "true"} if _moves_freely(group) else {})
        | _foreign(written.annotations if written else None)
        | {
            SETTINGS_ANNOTATION: _compact(settings_of(group, ordinal)),
            SHARED_ANNOTATION: encode(shared_settings_of(group)),
            CONTROL_ANNOTATION: CONTROL_PROVED,
        }
    )
    if code is not None:
        metadata["annotations"][CODE_ANNOTATION] = code
    return metadata


def _moves_freely(group: ConsumerGroup) -> bool:
    """Whether an eviction costs a drain and nothing else. A pod that waits for its handlers would be killed when an
    autoscaler has waited long enough, and offsets that lie in the pod would be lost.
    """
    return not waits(group) and not (_keeps_offsets(group) and not _has_volume(group, _OFFSETS_VOLUME))


def _check_annotations(annotations: Mapping[str, str]) -> None:
    """Kubernetes' own words for it name no field of a ConsumerGroup."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MOST_ANNOTATIONS:
        raise PodError(
            f"the pod's annotations, in which its settings travel, would take {size:,} bytes, and Kubernetes allows "
            f"{_MOST_ANNOTATIONS:,}: shorten the expressions of spec.subscriptions, spec.allocation or the annotations "
            "of spec.template"
        )


def _foreign(written: Mapping[str, str] | None) -> dict[str, str]:
    """What is not ours: a template that marked its pods for a drain would have them drained for ever."""
    return {key: value for key, value in (written or {}).items() if not key.startswith(f"{GROUP}/")}


def _pod_spec(group: ConsumerGroup, ordinal: int, defaults: Defaults, client_certificate: bool) -> Manifest:
    written = _written_spec(group.spec.template)
    spec: Manifest = {"automountServiceAccountToken": False, "enableServiceLinks": False}
    if _has_executor_pods(group):  # the driver makes them itself, with the rights of its own account
        spec["automountServiceAccountToken"] = True
        if defaults.spark_service_account:
            spec["serviceAccountName"] = defaults.spark_service_account
    if defaults.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in defaults.image_pull_secrets]
    if "affinity" not in written:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {GROUP_LABEL: group.metadata.name}},
            }
        ]
    spec |= written
    spec["restartPolicy"] = "OnFailure"  # a drained worker has ended for good
    patient = WAIT_GRACE if waits(group) and not written.get("terminationGracePeriodSeconds") else 0
    spec["terminationGracePeriodSeconds"] = max(ceil(grace_of(group)), patient)
    spec["securityContext"] = pod_security(written.get("securityContext"))
    spec["tolerations"] = _tolerations(written.get("tolerations") or [])
    consumer = _consuming_container(group, ordinal, defaults, client_certificate)
    others = [container for container in written.get("containers") or () if container.get("name") != CONSUMER]
    spec["containers"] = [consumer, *secured(others)]
    if written.get("initContainers"):
        spec["initContainers"] = secured(written["initContainers"])
    spec["volumes"] = _by_key("name", written.get("volumes") or (), _volumes(group, client_certificate))
    return spec


def _tolerations(written: list[Manifest]) -> list[Manifest]:
    """A pod on a node that does not answer is given up after seconds, not after Kubernetes' five minutes."""
    keys = {toleration.get("key") for toleration in written}
    ours = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _NODE_GONE_SECONDS}
        for key in _NODE_GONE
        if key not in keys and None not in keys  # without a key, it is about every taint
    ]
    return [*written, *ours]


def _consuming_container(group: ConsumerGroup, ordinal: int, defaults: Defaults, client_certificate: bool) -> Manifest:
    written = _consumer(group.spec.template)
    is_ours = group.spec.engine.is_ours
    container: Manifest = {"terminationMessagePath": LAST_WORDS, "terminationMessagePolicy": "File"}
    if defaults.image_pull_policy:
        container["imagePullPolicy"] = defaults.image_pull_policy
    if is_ours:
        container["command"] = _COMMANDS[group.spec.engine]
    container |= written
    container["name"] = CONSUMER
    container["image"] = image_of(group, defaults)
    container["securityContext"] = container_security(written.get("securityContext"), read_only=is_ours)
    container["env"] = _environment(group, ordinal, written.get("env") or (), client_certificate)
    container["volumeMounts"] = _by_key("mountPath", written.get("volumeMounts") or (), _mounts(group))
    if is_ours:
        container["terminationMessagePath"] = LAST_WORDS
        port = {"name": CONTROL_PORT_NAME, "containerPort": CONTROL_PORT, "protocol": "TCP"}
        container["ports"] = _by_key("name", written.get("ports") or (), [port])
        # One that is stuck does not drain: nobody waits for it.
        stuck_grace = grace_of(group) if waits(group) else None
        container |= probes(CONTROL_PORT_NAME, written, _startup_seconds(group), stuck_grace)
    return container


def _startup_seconds(group: ConsumerGroup) -> int:
    worker = group.spec.worker
    return STARTUP_SECONDS if worker is None else worker.startup_seconds


def _environment(
    group: ConsumerGroup, ordinal: int, written: Iterable[Manifest], client_certificate: bool
) -> list[Manifest]:
    """Ours first, so that the template's variables can refer to the pod's name and uid."""
    room = _literal(room_prefix_of(group, ordinal))
    ours = [
        _variable(POD_NAME_VARIABLE, field="metadata.name"),
        _variable(POD_UID_VARIABLE, field="metadata.uid"),
        {"name": CLIENT_ID_VARIABLE, "value": f"{room}$({POD_NAME_VARIABLE})@$({POD_UID_VARIABLE})"},
        _variable("ROCKETFLEET_SETTINGS", f"{_DIRECTORY}/settings.json"),
        _variable(VERSION_VARIABLE, str(VERSION)),
        _variable(NAME_SERVERS_VARIABLE, ";".join(group.spec.cluster.name_servers)),
        *_tls(group.spec.cluster.tls, client_certificate),
    ]
    soft: list[Manifest] = []  # what the template may say otherwise
    if group.spec.cluster.credentials is not None:
        ours.append(_variable("ROCKETFLEET_CREDENTIALS_DIRECTORY", CREDENTIALS))
        soft += _keys(group.spec.cluster.credentials.secret_name)
    if group.spec.program is not None:
        ours += _program_variables(group, group.spec.program)
        soft.append(_variable("ROCKETFLEET_LOG_FORMAT", "json"))
        written = [variable for variable in written if variable.get("name") not in _SETTING_VARIABLES]
    else:
        # Somebody's own consumer has no need to read our file to learn the essentials.
        ours.append(_variable("ROCKETFLEET_GROUP", group.group_name))
        ours.append(_variable("ROCKETFLEET_TOPICS", ";".join(s.topic for s in group.spec.subscriptions)))
    names = {variable["name"] for variable in ours}
    theirs = [variable for variable in written if variable.get("name") not in names]
    chosen = {variable.get("name") for variable in theirs}
    return [*ours, *(variable for variable in soft if variable["name"] not in chosen), *theirs]


def _program_variables(group: ConsumerGroup, program: Worker | Spark) -> list[Manifest]:
    variables = [
        # Every address, of IPv6 too; not "::", which a worker of an older version would take for IPv6 alone.
        _variable("ROCKETFLEET_BIND", "0.0.0.0"),  # noqa: S104 - a pod's own address is not known before it runs
        _variable("ROCKETFLEET_BIND_PORT", str(CONTROL_PORT)),
        _variable("ROCKETFLEET_TOKEN_FILE", f"{_DIRECTORY}/{TOKEN_KEY}"),
        _variable("ROCKETFLEET_LAST_WORDS", LAST_WORDS),
    ]
    if isinstance(program, Worker):
        variables.append(_variable("ROCKETFLEET_HANDLER", program.handler))
        variables.append(_variable(PROCESSES_VARIABLE, str(program.processes)))
        variables.append(_variable("ROCKETFLEET_STARTUP_TIMEOUT", str(program.startup_seconds)))
    if _has_executor_pods(group):
        variables.append(_variable("ROCKETFLEET_EXECUTOR_TEMPLATE", f"{_DIRECTORY}/{_EXECUTOR_TEMPLATE}"))
        variables.append(_variable("POD_IP", field="status.podIP"))
        variables.append(_variable("POD_NAMESPACE", field="metadata.namespace"))
    path = _CODE if program.code_config_map else program.path
    if path:
        variables.append(_variable("ROCKETFLEET_PATH", path))
    if group.spec.message_model is MessageModel.BROADCASTING:
        variables.append(_variable("ROCKETFLEET_OFFSET_DIRECTORY", _OFFSETS))
    return variables


def _keys(secret: str) -> list[Manifest]:
    """The keys as variables, which never change while the pod runs. For somebody's own consumer; for pipelines that
    open sources of their own; and for a worker of the version before this one, which knows no directory. What version
    an image has cannot be told before it runs, so all get them, unless the template sets them to nothing.
    """
    return [
        _variable(ACCESS_KEY_VARIABLE, secret={"name": secret, "key": "accessKey"}),
        _variable(SECRET_KEY_VARIABLE, secret={"name": secret, "key": "secretKey"}),
        _variable(SECURITY_TOKEN_VARIABLE, secret={"name": secret, "key": "securityToken", "optional": True}),
    ]


def _tls(tls: Tls | None, client_certificate: bool) -> list[Manifest]:
    if tls is None or not tls.enabled:
        return []
    variables = [_variable("ROCKETFLEET_TLS", "true")]
    if tls.secret_name:
        variables += [
            _variable(f"ROCKETFLEET_{variable}", f"{_DIRECTORY}/tls/{key}")
            for variable, key in _tls_files(client_certificate)
        ]
    if tls.server_name:
        variables.append(_variable("ROCKETFLEET_SERVER_NAME", tls.server_name))
    if not tls.check_hostname:
        variables.append(_variable("ROCKETFLEET_CHECK_HOSTNAME", "false"))
    return variables


def _tls_files(client_certificate: bool) -> list[tuple[str, str]]:
    own = [("CERT_FILE", "tls.crt"), ("KEY_FILE", "tls.key")] if client_certificate else []
    return [("CA_FILE", "ca.crt"), *own]


def _variable(name: str, value: str | None = None, *, field: str = "", secret: Manifest | None = None) -> Manifest:
    if field:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}
    if secret is not None:
        return {"name": name, "valueFrom": {"secretKeyRef": secret}}
    return {"name": name, "value": _literal(value or "")}


def _literal(text: str) -> str:
    """Text of the user's as a value: there, $(…) would be replaced, and $$ is a dollar sign."""
    return text.replace("$", "$$")


def _volumes(group: ConsumerGroup, client_certificate: bool) -> list[Manifest]:
    """One volume for all that is read from us, so that no mount lies within another."""
    files = [("settings.json", SETTINGS_ANNOTATION)]
    if _has_executor_pods(group):
        files.append((_EXECUTOR_TEMPLATE, EXECUTOR_ANNOTATION))
    items = [
        {"path": path, "fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}} for path, annotation in files
    ]
    sources: list[Manifest] = [{"downwardAPI": {"items": items}}]
    if group.spec.program is not None:
        token = {"name": control_secret_name(group), "items": [{"key": TOKEN_KEY, "path": TOKEN_KEY}]}
        sources.append({"secret": token})
    sources += _secret_files(group, client_certificate)
    volumes: list[Manifest] = [{"name": "rocketfleet", "projected": {"sources": sources}}]
    if group.spec.program is not None:
        volumes.append({"name": "rocketfleet-tmp", "emptyDir": {}})
        volumes += [volume for volume, _ in _code(group)]
        if _keeps_offsets(group) and not _has_volume(group, _OFFSETS_VOLUME):
            volumes.append({"name": _OFFSETS_VOLUME, "emptyDir": {}})
    return volumes


def _secret_files(group: ConsumerGroup, client_certificate: bool) -> list[Manifest]:
    """Credentials and the files of TLS, as sources of a projected volume. Kubernetes renews them under a running pod,
    because no mount has a subPath, and the runtime follows them.
    """
    sources: list[Manifest] = []
    credentials, tls = group.spec.cluster.credentials, group.spec.cluster.tls
    if credentials is not None:
        for keys, optional in ((KEY_FILES[:2], False), (KEY_FILES[2:], True)):
            items = [{"key": key, "path": f"{_CREDENTIALS}/{key}"} for key in keys]
            secret: Manifest = {"name": credentials.secret_name, "items": items}
            sources.append({"secret": secret | ({"optional": True} if optional else {})})
    if tls is not None and tls.enabled and tls.secret_name:
        items = [{"key": key, "path": f"tls/{key}"} for _, key in _tls_files(client_certificate)]
        sources.append({"secret": {"name": tls.secret_name, "items": items}})
    return sources


def _code(group: ConsumerGroup) -> list[tuple[Manifest, Manifest]]:
    """The handler's or the pipeline's module out of a ConfigMap: a volume, and its mount."""
    program = group.spec.program
    if program is None or not program.code_config_map:
        return []
    volume = {"name": "rocketfleet-code", "configMap": {"name": program.code_config_map}}
    return [(volume, {"name": "rocketfleet-code", "mountPath": _CODE, "readOnly": True})]


def _mounts(group: ConsumerGroup) -> list[Manifest]:
    mounts: list[Manifest] = [{"name": "rocketfleet", "mountPath": _DIRECTORY, "readOnly": True}]
    if group.spec.program is not None:
        if not _has_mount(group, TEMPORARY["mountPath"]):
            mounts.append(TEMPORARY)
        mounts += [mount for _, mount in _code(group)]
        if _keeps_offsets(group):
            mounts.append({"name": _OFFSETS_VOLUME, "mountPath": _OFFSETS})
    return mounts


def _keeps_offsets(group: ConsumerGroup) -> bool:
    """Whether offsets lie in the pod (Broadcasting), at a place where the template mounts nothing, nor above it."""
    if group.spec.message_model is not MessageModel.BROADCASTING:
        return False
    offsets = PurePosixPath(_OFFSETS)
    return not any(_has_mount(group, str(place)) for place in (offsets, *offsets.parents))


def _has_mount(group: ConsumerGroup, path: str) -> bool:
    mounts = _consumer(group.spec.template).get("volumeMounts") or ()
    return any(str(mount.get("mountPath")).rstrip("/") == path for mount in mounts)


def _has_volume(group: ConsumerGroup, name: str) -> bool:
    return any(volume.get("name") == name for volume in _written_spec(group.spec.template).get("volumes") or ())


def _by_key(key: str, theirs: Iterable[Manifest], ours: list[Manifest]) -> list[Manifest]:
    """Ours, and theirs that are called otherwise: Kubernetes refuses a list with the same key twice."""
    taken = {entry[key] for entry in ours}
    return [*ours, *(entry for entry in theirs if entry.get(key) not in taken)]


def _written_spec(template: Template | None) -> Manifest:
    return dict(template.spec or {}) if template is not None else {}


def _consumer(template: Template | None) -> Manifest:
    """What the template says about the consuming container."""
    containers = _written_spec(template).get("containers") or ()
    return next((dict(container) for container in containers if container.get("name") == CONSUMER), {})
