"""A pod of Kubernetes as the planner sees it: a pure reading of its JSON.

Two readings are not Kubernetes' own. A pod in phase Running whose consuming container waits to be started again counts
as Pending: its process is dead, it holds nothing and hears nothing. One whose consuming container has ended with code
0 counts as Succeeded, though sidecars may keep the pod alive: the worker has drained and will not come back.

What a worker says at its end (the termination message) is somebody's text until it has been checked.
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rocketfleet.api.names import DRAIN_ANNOTATION, GROUP_LABEL, ORDINAL_LABEL
from rocketfleet.api.spec import Engine
from rocketfleet.api.template import CONSUMER
from rocketfleet.client.variables import POD_NAME_VARIABLE, POD_UID_VARIABLE
from rocketfleet.control import exit_codes
from rocketfleet.control.identity import CLIENT_ID_VARIABLE, PROCESSES_VARIABLE, choose_client_id, process_client_id
from rocketfleet.control.last_words import decode, sentence_of
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.planning.snapshot import DrainMark, Pod, PodPhase
from rocketfleet.controller.reconciling.backend import PodSighting
from rocketfleet.controller.resources.code import with_code
from rocketfleet.controller.resources.pod import (
    CODE_ANNOTATION,
    CONTROL_ANNOTATION,
    CONTROL_PORT_NAME,
    CONTROL_PROVED,
    ENGINE_LABEL,
    REVISION_LABEL,
    SHARED_ANNOTATION,
)
from rocketfleet.controller.resources.shared_settings import decode as decode_shared

LONGEST_TROUBLE = 240
MOST_PROCESSES = 256
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing"})
_REFERENCE = re.compile(rf"\$\$|\$\(({POD_NAME_VARIABLE}|{POD_UID_VARIABLE})\)")
_Raw = Mapping[str, Any]


def pod_of(raw: _Raw) -> PodSighting | None:
    """The pod, or None if it is not one of a group's."""
    metadata, spec, status = _part(raw, "metadata"), _part(raw, "spec"), _part(raw, "status")
    labels = _part(metadata, "labels")
    if GROUP_LABEL not in labels:
        return None
    ordinal = str(labels.get(ORDINAL_LABEL, ""))
    engine = labels.get(ENGINE_LABEL)
    container = _named(status.get("containerStatuses"))
    annotations = _part(metadata, "annotations")
    mark = _mark(annotations.get(DRAIN_ANNOTATION))
    ready_since = _ready_since(status)
    phase = _phase(status, container)
    name, uid = str(metadata.get("name")), str(metadata.get("uid"))
    address = status.get("podIP") or None
    deleting = moment(metadata.get("deletionTimestamp"))  # Kubernetes puts the end of the grace period there
    pod = Pod(
        name=name,
        ordinal=int(ordinal) if ordinal.isascii() and ordinal.isdecimal() else -1,
        uid=uid,
        revision=with_code(str(labels.get(REVISION_LABEL, "")), annotations.get(CODE_ANNOTATION) or None),
        created=moment(metadata.get("creationTimestamp")) or 0.0,
        phase=phase,
        ready=ready_since is not None,
        ready_since=ready_since,
        deleting=deleting,
        deleting_since=None if deleting is None else deleting - _grace(metadata),
        lost=deleting is not None and _driven_off(status),
        node=spec.get("nodeName") or None,
        drain=mark,
        ended_run=_run(_state(container, "terminated") or _state(container, "terminated", "lastState")),
        outcome=_outcome(container, mark),
        client_ids=_client_ids(spec, name, uid),
        trouble=_trouble(status, phase),
        starting_since=_starting_since(status, phase),
        engine=Engine(engine) if engine in set(Engine) else None,
        image=str(_named(spec.get("containers")).get("image") or "") or None,
        shared=decode_shared(_part(metadata, "annotations").get(SHARED_ANNOTATION)),
    )
    return PodSighting(
        pod,
        control=_control(spec, address),
        # A pod that an earlier version has made knows the token alone.
        proves=_part(metadata, "annotations").get(CONTROL_ANNOTATION) == CONTROL_PROVED,
        image_id=str(container.get("imageID") or "") or None,
        host=address,
        node=status.get("hostIP") or None,
    )


def group_of(raw: _Raw) -> str | None:
    """The name of the ConsumerGroup that an object is labelled with."""
    found = _part(_part(raw, "metadata"), "labels").get(GROUP_LABEL)
    return str(found) if found else None


def owner_of(raw: _Raw) -> str | None:
    """The uid of the object that owns this one."""
    for reference in _part(raw, "metadata").get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference.get("uid"))
    return None


def moment(text: object) -> float | None:
    """Seconds since the epoch for one of Kubernetes' times."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _part(raw: _Raw, key: str) -> _Raw:
    found = raw.get(key)
    return found if isinstance(found, Mapping) else {}


def _named(statuses: Iterable[_Raw] | None) -> _Raw:
    return next((each for each in statuses or () if each.get("name") == CONSUMER), {})


def _state(container: _Raw, which: str, key: str = "state") -> _Raw:
    return _part(_part(container, key), which)


def _is_in(container: _Raw, which: str) -> bool:
    return which in _part(container, "state")


def _phase(status: _Raw, container: _Raw) -> PodPhase:
    said = status.get("phase")
    if said in (PodPhase.SUCCEEDED, PodPhase.FAILED):
        return PodPhase(said)
    if said == PodPhase.PENDING or said is None:
        return PodPhase.PENDING
    # Running, or Unknown: then its node does not answer, and it may well go on consuming.
    if _is_in(container, "waiting"):
        return PodPhase.PENDING
    if _is_in(container, "terminated"):
        ended_well = _state(container, "terminated").get("exitCode") == exit_codes.DRAINED
        return PodPhase.SUCCEEDED if ended_well else PodPhase.PENDING
    return PodPhase.RUNNING


def _ready_since(status: _Raw) -> float | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            return moment(condition.get("lastTransitionTime")) or 0.0
    return None


def _grace(metadata: _Raw) -> float:
    """The grace period that its deletion was asked for with."""
    given = metadata.get("deletionGracePeriodSeconds")
    return float(given) if isinstance(given, int | float) else 0.0


def _driven_off(status: _Raw) -> bool:
    """Whether Kubernetes deletes it because of a taint of its node, as it does where a node does not answer."""
    return any(
        condition.get("type") == "DisruptionTarget"
        and condition.get("status") == "True"
        and condition.get("reason") == "DeletionByTaintManager"
        for condition in status.get("conditions") or ()
    )


def _mark(text: object) -> DrainMark | None:
    """The mark. One that cannot be read still is one: somebody wants the pod gone, and when was not said."""
    if not isinstance(text, str):
        return None
    try:
        content = json.loads(text)
        before = content.get("endedBefore")
        known = before if isinstance(before, str) else None
        return DrainMark(float(content["since"]), str(content.get("reason") or "not said"), known)
    except (ValueError, TypeError, KeyError, AttributeError):
        return DrainMark(0.0, "the mark cannot be read")


def mark_text(mark: DrainMark) -> str:
    """The annotation's value."""
    before = {} if mark.ended_before is None else {"endedBefore": mark.ended_before}
    return json.dumps({"since": mark.since, "reason": mark.reason, **before})


def _outcome(container: _Raw, mark: DrainMark | None) -> DrainOutcome | None:
    ended = _state(container, "terminated")
    if not ended:
        ended = _state(container, "terminated", "lastState")
        if mark is None or not ended:
            return None
        if mark.ended_before is None:
            # An earlier version's mark, or somebody's own. A container that runs is asked again, which is always safe;
            # of one that waits to be started again, these are the last words there are.
            if _is_in(container, "running"):
                return None
        elif mark.ended_before == _run(ended):
            return None  # it ended before the drain was asked for
    said = decode(str(ended.get("message") or ""))
    if said is not None:
        return said
    code = ended.get("exitCode")
    if code == exit_codes.DRAINED:
        return DrainOutcome(confirmed=True)
    if code == exit_codes.CUT_SHORT:
        return DrainOutcome(confirmed=True, unfinished=1)  # at least
    if code == exit_codes.NOT_CONFIRMED:
        return DrainOutcome(confirmed=False)
    return None  # a crash, or a worker that never joined: nothing that could be read back


def _run(ended: _Raw) -> str:
    """Which run of the container it was that ended: a name to compare, though it may look like a time."""
    if not ended:
        return ""
    return str(ended.get("containerID") or ended.get("finishedAt") or "not named")


def _consumer(spec: _Raw) -> _Raw:
    return _named(spec.get("containers"))


def _control(spec: _Raw, address: str | None) -> str | None:
    if address is None:
        return None
    for port in _consumer(spec).get("ports") or ():
        if port.get("name") == CONTROL_PORT_NAME:
            host = f"[{address}]" if ":" in address else address
            return f"{host}:{port.get('containerPort')}"
    return None


def _client_ids(spec: _Raw, name: str, uid: str) -> tuple[str, ...]:
    """The names of its members at the broker. Only a worker's are known; it is told by its control port."""
    container = _consumer(spec)
    if not any(port.get("name") == CONTROL_PORT_NAME for port in container.get("ports") or ()):
        return ()
    values = {each.get("name"): each.get("value") for each in container.get("env") or ()}
    given = values.get(CLIENT_ID_VARIABLE)
    known = {POD_NAME_VARIABLE: name, POD_UID_VARIABLE: uid}
    if isinstance(given, str):  # the kubelet's own expansion, which is nowhere to be read
        given = _REFERENCE.sub(lambda found: known[found[1]] if found[1] else "$", given)
    client_id = choose_client_id(given, known)
    processes = values.get(PROCESSES_VARIABLE)
    if not isinstance(processes, str) or not processes.isdecimal() or not 1 < int(processes) <= MOST_PROCESSES:
        return (client_id,)
    return tuple(process_client_id(client_id, process) for process in range(int(processes)))


def _trouble(status: _Raw, phase: PodPhase) -> str | None:
    """Why it does not run now, in words; the first thing that stands in the way.

    While the consuming container runs there is none, whatever its neighbours do: it holds queues, and is to be drained.
    """
    if phase in (PodPhase.SUCCEEDED, PodPhase.RUNNING):
        return None
    if status.get("reason"):  # Evicted, NodeLost, …
        return _said(status.get("reason"), status.get("message"))
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _said(condition.get("reason"), condition.get("message"))
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        waiting = _state(container, "waiting")
        ended = _state(container, "terminated") or _state(container, "terminated", "lastState")
        if waiting and waiting.get("reason") not in _ON_ITS_WAY:
            after = f" after {_ending(ended)}" if ended else ""
            text = None if ended else waiting.get("message")  # for a crash it only repeats the back-off
            return _cut(f"{_said(waiting.get('reason'), text)}{after}")
        if _is_in(container, "terminated") and ended.get("exitCode") != 0:
            return _ending(ended)
    return None


def _starting_since(status: _Raw, phase: PodPhase) -> float | None:
    """Since when it has had a node, while its containers wait to be made: what they mount, and their network, come
    first. A volume that cannot be mounted is told in an event only, not in the pod's status.
    """
    if phase is not PodPhase.PENDING:
        return None
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waiting = {_state(container, "waiting").get("reason") for container in containers}
    if not containers or not waiting <= _ON_ITS_WAY or status.get("podIP"):
        return None  # with an address its network is there, and images are pulled
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return moment(condition.get("lastTransitionTime"))
    return None


def _ending(ended: _Raw) -> str:
    code = ended.get("exitCode")
    meaning = {
        exit_codes.SETTINGS: ": its settings, or the handler or pipeline, are wrong, see its log",
        exit_codes.NOT_JOINED: ": it could not join its group in time",
        exit_codes.NOT_CONFIRMED: ": it stopped without all its offsets confirmed",
        exit_codes.CUT_SHORT: ": it drained, but handlers were cut short: their messages come again",
    }.get(code if isinstance(code, int) else -1, "")
    if ended.get("reason") == "OOMKilled":
        return f"OOMKilled (exit code {code}): it needs a higher memory limit"
    sentence = sentence_of(str(ended.get("message") or ""))
    return _cut(f"exit code {code}: {sentence}" if sentence else f"exit code {code}{meaning}")


def _said(reason: object, message: object) -> str:
    return _cut(f"{reason or 'Unknown'}: {message}" if message else str(reason or "Unknown"))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TROUBLE else text[: LONGEST_TROUBLE - 1] + "…"
