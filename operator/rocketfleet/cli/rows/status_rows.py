"""What `rocketfleet status` and `members` show, made from objects as the Kubernetes API gives them. Pure.

Objects are read leniently: a field that is missing, or that another version wrote differently, is shown as not known.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from rocketfleet.allocation.strategies import DEFAULT_STRATEGY
from rocketfleet.api.names import DRAIN_ANNOTATION, ORDINAL_LABEL
from rocketfleet.base.counting import counted
from rocketfleet.cli.rows.lag_rows import span_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Object = dict[str, Any]


class GroupRow(TypedDict):
    """A ConsumerGroup in a list."""

    namespace: str
    name: str
    group: str
    state: str
    ready: str | None
    queues: str | None
    lag: int | None
    lag_seconds: float | None
    strategy: str
    age_seconds: float | None


class PodRow(TypedDict):
    """A member: a pod of ours, or a guest that is at the broker only."""

    pod: str | None
    state: str
    ready: bool | None
    queues: int | None
    lag: int | None
    client_id: str | None
    restarts: int | None
    node: str | None
    age_seconds: float | None


def part(content: object, *path: str) -> Any:
    """A field deep in an object; None if it, or anything above it, is not there."""
    for key in path:
        if not isinstance(content, dict):
            return None
        content = content.get(key)
    return content


def parts(content: object, *path: str) -> list[Object]:
    """A list of objects deep in an object; none if it is not there."""
    found = part(content, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def seconds_since(text: object, now: float) -> float | None:
    """How long ago an RFC 3339 time was."""
    if not isinstance(text, str):
        return None
    try:
        return max(0.0, round(now - datetime.fromisoformat(text).timestamp(), 3))
    except ValueError:
        return None


def conditions(group: Object) -> dict[str, Object]:
    """The group's conditions by their type."""
    return {str(one.get("type")): one for one in parts(group, "status", "conditions")}


def is_stale(group: Object) -> bool:
    """Whether the operator has not yet seen what the object says now."""
    generation, observed = part(group, "metadata", "generation"), part(group, "status", "observedGeneration")
    return isinstance(generation, int) and (not isinstance(observed, int) or observed < generation)


def state_of(group: Object) -> str:
    """A group's state in a word: what matters most about it now."""
    known = conditions(group)
    if part(group, "metadata", "deletionTimestamp"):
        return "Deleting"
    if not known:
        return "Unknown"
    said = part(group, "status", "state")
    if said:
        return str(said)
    # An operator that does not say it yet.
    if part(known.get("Ready"), "status") == "True":
        return "Suspended" if part(group, "spec", "suspend") else "Ready"
    if part(known.get("BrokerReachable"), "status") == "False":
        return "BrokerUnreachable"
    if part(group, "spec", "suspend"):
        return "Suspending" if part(group, "status", "replicas") else "Suspended"
    return str(part(known.get("Ready"), "reason") or "NotReady")


def group_row(group: Object, now: float) -> GroupRow:
    """One ConsumerGroup as a row."""
    owned, total = part(group, "status", "queues", "owned"), part(group, "status", "queues", "total")
    name = str(part(group, "metadata", "name"))
    return GroupRow(
        namespace=str(part(group, "metadata", "namespace") or "default"),
        name=name,
        group=str(part(group, "spec", "groupName") or name),
        state=state_of(group),
        ready=_ready(group),
        queues=None if owned is None or total is None else f"{owned}/{total}",
        lag=part(group, "status", "lag", "messages"),
        lag_seconds=part(group, "status", "lag", "seconds"),
        strategy=str(part(group, "spec", "allocation", "strategy") or DEFAULT_STRATEGY),
        age_seconds=seconds_since(part(group, "metadata", "creationTimestamp"), now),
    )


def _ready(group: Object) -> str | None:
    said = part(group, "status", "readySummary")
    if isinstance(said, str):
        return said
    ready, desired = part(group, "status", "readyReplicas"), part(group, "status", "desiredReplicas")
    return None if ready is None or desired is None else f"{ready}/{desired}"


def group_cells(row: GroupRow) -> dict[str, object]:
    """The same for a table."""
    shown: dict[str, object] = {key: value for key, value in row.items() if key not in ("age_seconds", "lag_seconds")}
    shown["lag_age"] = span_text(row["lag_seconds"])
    shown["age"] = span_text(row["age_seconds"])
    return shown


def facts(group: Object, now: float) -> dict[str, object]:
    """What is worth knowing about one group, a line each."""
    row = group_row(group, now)
    queues, lag = part(group, "status", "queues") or {}, part(group, "status", "lag") or {}
    rebalance, drain = part(group, "status", "lastRebalance"), part(group, "status", "lastDrain")
    found: dict[str, object] = {
        "name": f"{row['namespace']}/{row['name']}",
        "group": row["group"],
        "state": row["state"],
        "ready": row["ready"],
        "topics": [one.get("topic") for one in parts(group, "spec", "subscriptions")],
        "strategy": row["strategy"],
        "queues": f"{queues.get('owned')} of {queues.get('total')} with one owner, {queues.get('unowned')} with none, "
        f"{queues.get('shared')} with several"
        if queues
        else None,
        "lag": _lag_text(lag, now),
    }
    if rebalance:
        found["last rebalance"] = (
            f"{_ago(part(rebalance, 'completedAt'), now)}, in {part(rebalance, 'seconds')} s, "
            f"{_moved(part(rebalance, 'moved'))} moved ({part(rebalance, 'reason')})"
        )
    if drain:
        safe = "offsets read back" if part(drain, "verified") else "offsets NOT verified"
        cut = part(drain, "unfinished")
        found["last drain"] = (
            f"{part(drain, 'pod')} {_ago(part(drain, 'completedAt'), now)}, in {part(drain, 'seconds')} s, {safe}"
            + (f", {counted(cut, 'message was', 'messages were')} cut short" if cut else "")
        )
    return found


def _lag_text(lag: Mapping[str, Any], now: float) -> str | None:
    if lag.get("messages") is None:
        return None
    text = counted(lag["messages"])
    if lag.get("seconds") is not None:
        text += f", the oldest {span_text(lag['seconds'])} old"
    for key, one, many in (
        ("retry", "due for retry", ""),
        ("delayed", "waiting for its next try", "waiting for their next try"),
        ("dlq", "dead letter", "dead letters"),
    ):
        if lag.get(key):
            text += f", {counted(lag[key], one, many or one)}"
    failed, tried = lag.get("failedPerMinute"), lag.get("triedPerMinute")
    if failed and tried:
        text += f", {failed} of {counted(tried, 'attempt')} failed in a minute"
    # It is written when it changes, so an old figure is one that has not changed.
    return f"{text} (no change since {_ago(lag.get('observedAt'), now)})" if lag.get("observedAt") else text


def _ago(text: object, now: float) -> str:
    seconds = seconds_since(text, now)
    return "at an unknown time" if seconds is None else f"{span_text(seconds)} ago"


def _moved(queues: object) -> str:
    return counted(queues, "queue") if isinstance(queues, int) else "an unknown number of queues"


def condition_rows(group: Object, now: float) -> list[dict[str, object]]:
    """One row a condition."""
    return [
        {
            "condition": kind,
            "status": condition.get("status"),
            "reason": condition.get("reason"),
            "since": span_text(seconds_since(condition.get("lastTransitionTime"), now)),
            "message": condition.get("message"),
        }
        for kind, condition in conditions(group).items()
    ]


def pod_rows(group: Object, pods: Iterable[Object], now: float) -> list[PodRow]:
    """One row per member: the group's pods by ordinal, then guests."""
    told = parts(group, "status", "members")
    by_pod: dict[str, list[Object]] = {}
    for member in told:
        by_pod.setdefault(str(member.get("pod") or ""), []).append(member)
    rows = [
        _pod_row(pod, by_pod.pop(str(part(pod, "metadata", "name")), []), now) for pod in sorted(pods, key=_ordinal)
    ]
    return rows + [_guest_row(member) for members in by_pod.values() for member in members]


def _ordinal(pod: Object) -> tuple[int, str]:
    text = str(part(pod, "metadata", "labels", ORDINAL_LABEL) or "")
    return int(text) if text.isdecimal() else 1 << 30, str(part(pod, "metadata", "name"))


def _pod_row(pod: Object, members: list[Object], now: float) -> PodRow:
    containers = parts(pod, "status", "containerStatuses")
    ready = next(
        (one.get("status") == "True" for one in parts(pod, "status", "conditions") if one.get("type") == "Ready"), None
    )
    return PodRow(
        pod=str(part(pod, "metadata", "name")),
        state=pod_state(pod, str(members[0].get("state")) if members else None),
        ready=ready,
        queues=_sum(members, "queues"),
        lag=_sum(members, "lag"),
        client_id=", ".join(str(one["clientId"]) for one in members if one.get("clientId")) or None,
        restarts=sum(int(one.get("restartCount") or 0) for one in containers) if containers else None,
        node=part(pod, "spec", "nodeName"),
        age_seconds=seconds_since(part(pod, "metadata", "creationTimestamp"), now),
    )


def pod_state(pod: Object, told: str | None = None) -> str:
    """What a pod is about: on its way out if it is, else what its group's status says, else what Kubernetes says."""
    if part(pod, "metadata", "deletionTimestamp"):
        return "Terminating"
    mark = drain_mark(pod)
    if mark is not None:
        return f"Draining ({mark.get('reason')})" if mark.get("reason") else "Draining"
    for container in parts(pod, "status", "containerStatuses"):
        waiting = part(container, "state", "waiting", "reason")
        if waiting and waiting != "ContainerCreating":
            return str(waiting)
    return told or str(part(pod, "status", "phase") or "Unknown")


def drain_mark(pod: Object) -> Object | None:
    """The mark of a pod that is to be drained. One that cannot be read is a mark all the same."""
    text = part(pod, "metadata", "annotations", DRAIN_ANNOTATION)
    if text is None:
        return None
    try:
        mark = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return mark if isinstance(mark, dict) else {}


def _guest_row(member: Object) -> PodRow:
    return PodRow(
        pod=member.get("pod"),
        state=str(member.get("state") or "Unknown"),
        ready=None,
        queues=member.get("queues"),
        lag=member.get("lag"),
        client_id=member.get("clientId"),
        restarts=None,
        node=None,
        age_seconds=None,
    )


def _sum(members: list[Object], key: str) -> int | None:
    """The sum over a pod's processes; not known if it is not known of one."""
    values = [one.get(key) for one in members]
    if not values or not all(isinstance(value, int) for value in values):
        return None
    return sum(value for value in values if isinstance(value, int))


def pod_cells(row: PodRow) -> dict[str, object]:
    """The same for a table."""
    shown: dict[str, object] = {key: value for key, value in row.items() if key != "age_seconds"}
    shown["age"] = span_text(row["age_seconds"])
    return shown
