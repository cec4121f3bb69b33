"""Which recommendation goes to which object, and why one gets none. Pure.

A history knows groups by their name at the broker and the name servers they were read from; an object says both. A
group for which nothing is recommended in this hour must not keep the floor of another: it is taken away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rocketfleet.api.names import RECOMMENDED_REPLICAS
from rocketfleet.base.counting import counted
from rocketfleet.cli.rows.status_rows import Object, part
from rocketfleet.spark.analytics.figures import ClusterGroupKey
from rocketfleet.spark.analytics.recommendation_file import replicas_for
from rocketfleet.wire.enums import MessageModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocketfleet.spark.analytics.recommendation_file import Floor


@dataclass(frozen=True, slots=True)
class Placement:
    """An object and its floor; `replicas` None if it gets none, and `told` says why or what."""

    name: str
    replicas: int | None
    told: str
    taken_away: bool = False


def placed(groups: Iterable[Object], floors: Sequence[Floor]) -> list[Placement]:
    """One for each object, by name."""
    by_key = {floor.key: floor for floor in floors}
    return sorted((_placed(group, by_key) for group in groups), key=lambda one: one.name)


def _placed(group: Object, floors: dict[ClusterGroupKey, Floor]) -> Placement:
    name = str(part(group, "metadata", "name"))
    if part(group, "spec", "autoscaling") is None:
        return Placement(name, None, "left alone: it has no autoscaling that could go by it")
    if part(group, "spec", "messageModel") == MessageModel.BROADCASTING.value:
        return Placement(name, None, "left alone: it is a broadcasting group")
    servers = part(group, "spec", "cluster", "nameServers") or []
    floor = floors.get(ClusterGroupKey(";".join(servers), part(group, "spec", "groupName") or name))
    if floor is None:
        return Placement(name, None, "left alone: there is nothing about it in the history")
    if floor.members is None:
        stale = part(group, "metadata", "annotations", RECOMMENDED_REPLICAS) is not None
        told = f"{'its floor is taken away' if stale else 'left alone'}: nothing is recommended for it in this hour"
        return Placement(name, None, told, taken_away=stale)
    replicas = replicas_for(floor.members, _members_per_pod(group))
    return Placement(name, replicas, f"at least {counted(replicas, 'replica')} in this hour")


def _members_per_pod(group: Object) -> int:
    processes: Any = part(group, "spec", "worker", "processes")
    return processes if isinstance(processes, int) and part(group, "spec", "engine") in {None, "Worker"} else 1
