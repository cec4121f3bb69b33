"""Who may run a group that several ConsumerGroups name: the oldest of them. A pure decision.

Two objects with one group name at one RocketMQ would have their members mixed: different subscriptions skip each
other's messages, two autoscalers follow one lag, settings are written over each other. So the older object keeps the
group, and the other runs nothing until the older one is gone. An object that is being deleted keeps it to its end: its
members are still there. Age is what the API server says, compared with nothing but itself; of two made in the same
second the name decides.

Whoever deletes a group at its brokers asks here too: it stays while another object, older or younger, is for it.

Two objects are at one RocketMQ if they name a common name server. What has two names (a short host name and a full one)
cannot be told to be one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.spec import DeletionPolicy
from rocketfleet.base.timestamps import moment_of

_RETAIN = DeletionPolicy.RETAIN.value


@dataclass(frozen=True, slots=True)
class Claim:
    """An object that names a group."""

    key: GroupKey
    group_name: str
    name_servers: frozenset[str]
    created: float | None = None
    removes: bool = False  # it is being deleted, and takes the group with it

    @property
    def rank(self) -> tuple[float, GroupKey]:
        """The lowest has the group. One whose age is not known is the youngest."""
        return inf if self.created is None else self.created, self.key

    def __str__(self) -> str:
        return "/".join(self.key)


def holder(mine: Claim, all_claims: Iterable[Claim]) -> Claim | None:
    """Whose the group is, if it is not mine."""
    older = [one for one in all_claims if one.rank < mine.rank and one.key != mine.key and _same_group(mine, one)]
    return min(older, key=lambda one: one.rank, default=None)


def needed_by(mine: Claim, all_claims: Iterable[Claim]) -> Claim | None:
    """An object that would miss the group if it were deleted at its brokers with mine. One that goes too, and would
    take the group with it, does not count: they would wait for each other.
    """
    users = [one for one in all_claims if one.key != mine.key and not one.removes and _same_group(mine, one)]
    return min(users, key=lambda one: one.rank, default=None)


def _same_group(one: Claim, other: Claim) -> bool:
    return one.group_name == other.group_name and bool(one.name_servers & other.name_servers)


def claim_of(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Claim:
    """An object's claim, from its JSON: also of one that cannot be read otherwise, for its pods may well run."""
    name = str(metadata.get("name") or "")
    cluster = spec.get("cluster")
    servers = cluster.get("nameServers") if isinstance(cluster, Mapping) else None
    created = metadata.get("creationTimestamp")
    try:
        moment = moment_of(created) if isinstance(created, str) else None
    except ValueError:
        moment = None
    return Claim(
        key=GroupKey(str(metadata.get("namespace") or "default"), name),
        group_name=str(spec.get("groupName") or name),
        name_servers=frozenset(str(each).strip().lower() for each in (servers if isinstance(servers, list) else ())),
        created=moment,
        removes=metadata.get("deletionTimestamp") is not None and spec.get("deletionPolicy", _RETAIN) != _RETAIN,
    )


def claim_of_group(group: ConsumerGroup) -> Claim:
    """The same of an object that was read."""
    spec = group.spec.model_dump(mode="json", by_alias=True, include={"group_name", "cluster", "deletion_policy"})
    return claim_of(group.metadata.model_dump(mode="json", by_alias=True), spec)
