"""What `rocketfleet lag --explain` adds: what the rules say of a group, and what autoscaling made of its lag. Pure.

Both stand in the object's status: the operator writes them down, or `rocketfleet run` in its state directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rocketfleet.base.counting import counted
from rocketfleet.cli.output import details, table
from rocketfleet.cli.rows.lag_rows import span_text
from rocketfleet.cli.rows.status_rows import Object, conditions, part, parts, seconds_since

if TYPE_CHECKING:
    from collections.abc import Sequence


class Change(TypedDict):
    """A change that autoscaling made."""

    ago_seconds: float | None
    before: int | None
    replicas: int | None
    reason: str | None
    why: str | None


class Explanation(TypedDict):
    """None is not known, or not so."""

    state: str | None
    healthy: str | None
    sentence: str | None
    since_seconds: float | None
    attempts: str | None
    delayed: int | None
    autoscaling: bool
    replicas: int | None
    limits: str | None
    targets: str | None
    recommended: str | None
    standing: str | None
    replica_rate: float | None
    in_vain: str | None
    changes: list[Change]


def explanation(group: Object, now: float) -> Explanation:
    """Of an object as the Kubernetes API gives it."""
    from rocketfleet.api.names import RECOMMENDED_REPLICAS

    healthy = conditions(group).get("LagHealthy") or {}
    spec, told = part(group, "spec", "autoscaling"), part(group, "status", "autoscaling")
    ceiling, until = part(told, "ceiling"), part(told, "ceilingUntil")
    least = part(spec, "minReplicas")
    return Explanation(
        state=part(group, "status", "lag", "state"),
        healthy=part(healthy, "status"),
        sentence=part(healthy, "message"),
        since_seconds=seconds_since(part(healthy, "lastTransitionTime"), now),
        attempts=_attempts(part(group, "status", "lag")),
        delayed=part(group, "status", "lag", "delayed"),
        autoscaling=spec is not None,
        replicas=part(told, "replicas"),
        limits=None if spec is None else f"{1 if least is None else least} to {part(spec, 'maxReplicas')}",
        targets=_targets(spec),
        recommended=part(group, "metadata", "annotations", RECOMMENDED_REPLICAS),
        standing=part(told, "message"),
        replica_rate=part(told, "replicaRate"),
        in_vain=None if ceiling is None else f"more than {ceiling}; not tried again before {until}",
        changes=[
            Change(
                ago_seconds=seconds_since(part(one, "at"), now),
                before=part(one, "before"),
                replicas=part(one, "replicas"),
                reason=part(one, "reason"),
                why=part(one, "message"),
            )
            for one in parts(told, "decisions")
        ],
    )


def _attempts(lag: object) -> str | None:
    tried, failed = part(lag, "triedPerMinute"), part(lag, "failedPerMinute")
    return None if tried is None or failed is None else f"{failed} of {tried} failed in the last minute of work"


def _targets(spec: object) -> str | None:
    lag, seconds = part(spec, "targetLag"), part(spec, "targetSeconds")
    found = [f"{counted(lag)} per member"] if lag is not None else []
    found += [f"{seconds:g} s"] if isinstance(seconds, int | float) else []
    return ", ".join(found) or None


def explained(one: Explanation) -> str:
    """The same for people."""
    facts: dict[str, object] = {
        "state": one["state"],
        "healthy": f"{one['healthy']}, for {span_text(one['since_seconds'])}: {one['sentence']}"
        if one["healthy"] is not None
        else None,
    }
    facts |= {"attempts": one["attempts"]} if one["attempts"] else {}
    facts |= {"wait for a try": one["delayed"]} if one["delayed"] else {}
    if one["autoscaling"]:
        rate = one["replica_rate"]
        facts |= {
            "replicas": f"{one['replicas']}, of {one['limits']}" if one["replicas"] is not None else one["limits"],
            "targets": one["targets"],
            "now": one["standing"],
            "a replica does": None if rate is None else f"{rate:g} messages per second",
        }
        facts |= {"recommended": one["recommended"]} if one["recommended"] else {}
        facts |= {"in vain": one["in_vain"]} if one["in_vain"] else {}
    else:
        facts["autoscaling"] = "none: spec.replicas says how many members there are"
    text = details(facts)
    return f"{text}\n\n{_changes(one['changes'])}" if one["changes"] else text


def _changes(changes: Sequence[Change]) -> str:
    rows = [
        [span_text(one["ago_seconds"]), one["before"], one["replicas"], one["reason"], _reasoning(one["why"])]
        for one in changes
    ]
    return table(["AGO", "FROM", "TO", "REASON", "WHY"], rows)


def _reasoning(sentence: str | None) -> str | None:
    """Without the numbers that have columns of their own."""
    return None if sentence is None else sentence.split(": ", 1)[-1]
