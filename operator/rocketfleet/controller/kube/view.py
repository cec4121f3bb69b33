"""The cluster as far as it concerns us: ConsumerGroups, their pods and their disruption budgets, by name.

Watch events and the answers to our own writes come in one by one (`saw_…`), lists as a whole (`sync`). Each says which
group it concerns, so that it can be woken; None if it was no news. A list is read when this operator begins to lead, so
that it sees all that the one before it has written, and now and then besides: the watch that feeds us does not tell
which objects vanished while it was interrupted.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.api.names import API_VERSION, GROUP_LABEL, KIND, PLURAL
from rocketfleet.controller.kube.api import KubeApi, path_of
from rocketfleet.controller.kube.cache import Cache, Name, identity, number
from rocketfleet.controller.kube.pod import group_of, owner_of, pod_of
from rocketfleet.controller.planning.claims import Claim, claim_of
from rocketfleet.controller.reconciling.backend import PodSighting

_log = logging.getLogger(__name__)
DELETED = "DELETED"
_Raw = Mapping[str, Any]
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class HeldPod:
    """A pod, the group it is labelled with, and the uid of the object that owns it."""

    seen: PodSighting
    group: GroupKey
    owner: str | None


@dataclass(frozen=True, slots=True)
class HeldBudget:
    """A PodDisruptionBudget."""

    spec: Mapping[str, Any]
    group: GroupKey
    owner: str | None


def _group(raw: _Raw) -> dict[str, Any]:
    """The object without what only fills memory."""
    metadata = {key: value for key, value in raw["metadata"].items() if key != "managedFields"}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != _LAST_APPLIED}
    metadata["annotations"] = annotations
    kept = {"metadata": metadata, "spec": raw.get("spec") or {}, "status": raw.get("status") or {}}
    return {"apiVersion": API_VERSION, "kind": KIND, **kept}


def _claim(raw: _Raw) -> Claim:
    return claim_of(raw["metadata"], raw["spec"])


def _pod(raw: _Raw) -> HeldPod | None:
    group, seen = group_of(raw), pod_of(raw)
    if group is None or seen is None:
        return None
    return HeldPod(seen, GroupKey(identity(raw)[0][0], group), owner_of(raw))


def _budget(raw: _Raw) -> HeldBudget | None:
    group = group_of(raw)
    if group is None:
        return None
    return HeldBudget(raw.get("spec") or {}, GroupKey(identity(raw)[0][0], group), owner_of(raw))


class KubeView:
    """What is known of the namespaces we look after; none named: of all. Groups of another operator's class are not
    looked after; but they have a claim to their name at the broker.
    """

    def __init__(self, api: KubeApi, namespaces: Iterable[str] = (), operator_class: str = "") -> None:
        self._api = api
        self._class = operator_class
        self._namespaces: list[str | None] = list(namespaces) or [None]
        self.groups: Cache[dict[str, Any]] = Cache(lambda raw: _group(raw) if self._is_ours(raw) else None)
        self._others: Cache[dict[str, Any]] = Cache(lambda raw: None if self._is_ours(raw) else _group(raw))
        self.pods: Cache[HeldPod] = Cache(_pod)
        self.budgets: Cache[HeldBudget] = Cache(_budget)
        self._pods_of: dict[GroupKey, set[Name]] = {}
        self._named: dict[str, set[Name]] = {}  # groups by their name at the broker
        self.synced = False

    def _is_ours(self, raw: _Raw) -> bool:
        return ((raw.get("spec") or {}).get("operatorClass") or "") == self._class

    async def sync(self, *, cached: bool = False) -> set[GroupKey]:
        """Read everything. Returns the groups for which something was new. `cached`: what the API server has in memory
        will do, which may be a moment old and spares etcd a read of all pods; what we hold that is newer stays.
        """
        changed: set[GroupKey] = set()
        version_of = {"resourceVersion": "0"} if cached else {}
        labelled = {"labelSelector": GROUP_LABEL, **version_of}
        for namespace in self._namespaces:
            asked_at = self.groups.newest(namespace)
            items, version = await self._api.list_all(path_of(API_VERSION, PLURAL, namespace), **version_of)
            if self.groups.goes_back(version, asked_at):
                _log.warning("the cluster's objects are older than before, as after a restore: all is read anew")
            changed |= {GroupKey(*name) for name in self.groups.replace(items, version, namespace, asked_at)}
            self._others.replace(items, version, namespace, asked_at)
            for raw in self.everybodys():
                self._note_claim(raw)
            asked_at = self.pods.newest(namespace)
            items, version = await self._api.list_all(path_of("v1", "pods", namespace), **labelled)
            changed |= self._groups_of_pods(items, version, namespace, asked_at)
            asked_at = self.budgets.newest(namespace)
            items, version = await self._api.list_all(
                path_of("policy/v1", "poddisruptionbudgets", namespace), **labelled
            )
            before = {entry.name: entry.value.group for entry in self.budgets}
            for name in self.budgets.replace(items, version, namespace, asked_at):
                budget = self.budgets.get(name)
                changed |= {before[name]} if name in before else set()
                changed |= {budget.value.group} if budget is not None else set()
        self.synced = True
        return changed

    async def sync_pods(self, group: GroupKey) -> None:
        """Read one group's pods past the cache."""
        namespace, name = group
        asked_at = self.pods.newest(namespace)
        items, version = await self._api.list_all(
            path_of("v1", "pods", namespace), labelSelector=f"{GROUP_LABEL}={name}"
        )
        if self.pods.goes_back(version, asked_at):
            await self.sync()
            return
        read_at = number(version)
        listed = {identity(raw)[0] for raw in items}
        for raw in items:
            self.saw_pod(None, raw)
        for held in self.pods_of(group):
            entry = self.pods.get((namespace, held.seen.pod.name))
            if entry is None or entry.name in listed or entry.version is None or read_at is None:
                continue
            if entry.version <= read_at:
                self.pods.drop(entry.name, entry.uid)

    def keys(self) -> list[GroupKey]:
        return [GroupKey(*entry.name) for entry in self.groups]

    def raw_group(self, key: GroupKey) -> Mapping[str, Any] | None:
        """The object as it is known."""
        entry = self.groups.get(key)
        return None if entry is None else entry.value

    def everybodys(self) -> list[Mapping[str, Any]]:
        """All objects in the namespaces we look after, those of other classes too."""
        return [entry.value for cache in (self.groups, self._others) for entry in cache]

    def claims(self, group_name: str) -> tuple[Claim, ...]:
        """All objects that name a group, of whatever class, in whatever namespace we look after."""
        names = self._named.get(group_name, set())
        found = []
        for name in list(names):
            entry = self.groups.get(name) or self._others.get(name)
            claim = None if entry is None else _claim(entry.value)
            if claim is None or claim.group_name != group_name:
                names.discard(name)
            else:
                found.append(claim)
        if not names:
            self._named.pop(group_name, None)
        return tuple(found)

    def _note_claim(self, raw: _Raw) -> None:
        claim = _claim(raw)
        self._named.setdefault(claim.group_name, set()).add(claim.key)

    def pods_of(self, key: GroupKey) -> list[HeldPod]:
        """All pods labelled with the group, by ordinal."""
        names = self._pods_of.get(key, set())
        held = []
        for name in list(names):
            entry = self.pods.get(name)
            if entry is None or entry.value.group != key:
                names.discard(name)
            else:
                held.append(entry.value)
        if not names:
            self._pods_of.pop(key, None)
        return sorted(held, key=lambda each: each.seen.pod.ordinal)

    def saw_group(self, kind: str | None, raw: _Raw) -> GroupKey | None:
        name, uid, _ = identity(raw)
        news = self.groups.drop(name, uid) if kind == DELETED else self.groups.put(raw)
        if kind == DELETED:
            self._others.drop(name, uid)
        else:
            self._others.put(raw)
        entry = self.groups.get(name) or self._others.get(name)
        if entry is not None:
            self._note_claim(entry.value)
        return GroupKey(*name) if news else None

    def saw_pod(self, kind: str | None, raw: _Raw) -> GroupKey | None:
        name, uid, _ = identity(raw)
        group = group_of(raw)
        if group is None:
            return None
        if kind == DELETED:
            news = self.pods.drop(name, uid)
        else:
            news = self.pods.put(raw)
            self._index(name)
        return GroupKey(name[0], group) if news else None

    def saw_budget(self, kind: str | None, raw: _Raw) -> GroupKey | None:
        name, uid, _ = identity(raw)
        group = group_of(raw)
        if group is None:
            return None
        news = self.budgets.drop(name, uid) if kind == DELETED else self.budgets.put(raw)
        return GroupKey(name[0], group) if news else None

    def _groups_of_pods(
        self, items: list[dict[str, Any]], version: str, namespace: str | None, asked_at: int
    ) -> set[GroupKey]:
        before = {entry.name: entry.value.group for entry in self.pods}
        changed = set()
        for name in self.pods.replace(items, version, namespace, asked_at):
            self._index(name)
            entry = self.pods.get(name)
            if entry is not None:
                changed.add(entry.value.group)
            if name in before:
                changed.add(before[name])
        return changed

    def _index(self, name: Name) -> None:
        entry = self.pods.get(name)
        if entry is not None:
            self._pods_of.setdefault(entry.value.group, set()).add(name)
