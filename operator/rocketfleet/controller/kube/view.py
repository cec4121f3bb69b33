"""The cluster as far as it concerns us: ConsumerGroups, their pods and their disruption budgets, by name.

Watch events come in one by one (`saw_…`), lists as a whole (`sync`), answers to our own writes as they are given
(`wrote_…`). Each says which group it concerns, so that it can be woken; None if it was no news. A list is read when
this operator begins to lead, so that it sees all that the one before it has written, and now and then besides: the
watch that feeds us does not tell which objects vanished while it was interrupted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rocketfleet.api.consumer_group import API_VERSION, KIND, PLURAL
from rocketfleet.controller.backend import Seen
from rocketfleet.controller.kube.api import KubeApi, path_of
from rocketfleet.controller.kube.cache import Cache, Name, identity, number
from rocketfleet.controller.kube.pod import group_of, owner_of, pod_of
from rocketfleet.controller.pod import GROUP_LABEL

Key = tuple[str, str]  # namespace and name of a ConsumerGroup
DELETED = "DELETED"
_Raw = Mapping[str, Any]
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class HeldPod:
    """A pod, the group it is labelled with, and the uid of the object that owns it."""

    seen: Seen
    group: Key
    owner: str | None


@dataclass(frozen=True, slots=True)
class HeldBudget:
    """A PodDisruptionBudget."""

    spec: Mapping[str, Any]
    group: Key
    owner: str | None


def _group(raw: _Raw) -> dict[str, Any]:
    """The object without what only fills memory."""
    metadata = {key: value for key, value in raw["metadata"].items() if key != "managedFields"}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != _LAST_APPLIED}
    metadata["annotations"] = annotations
    kept = {"metadata": metadata, "spec": raw.get("spec") or {}, "status": raw.get("status") or {}}
    return {"apiVersion": API_VERSION, "kind": KIND, **kept}


def _pod(raw: _Raw) -> HeldPod | None:
    group, seen = group_of(raw), pod_of(raw)
    if group is None or seen is None:
        return None
    return HeldPod(seen, (identity(raw)[0][0], group), owner_of(raw))


def _budget(raw: _Raw) -> HeldBudget | None:
    group = group_of(raw)
    if group is None:
        return None
    return HeldBudget(raw.get("spec") or {}, (identity(raw)[0][0], group), owner_of(raw))


class KubeView:
    """What is known of the namespaces we look after; none named: of all."""

    def __init__(self, api: KubeApi, namespaces: Iterable[str] = ()) -> None:
        self._api = api
        self._namespaces: list[str | None] = list(namespaces) or [None]
        self.groups: Cache[dict[str, Any]] = Cache(_group)
        self.pods: Cache[HeldPod] = Cache(_pod)
        self.budgets: Cache[HeldBudget] = Cache(_budget)
        self._pods_of: dict[Key, set[Name]] = {}
        self.synced = False

    async def sync(self) -> set[Key]:
        """Read everything. Returns the groups for which something was new."""
        changed: set[Key] = set()
        labelled = {"labelSelector": GROUP_LABEL}
        for namespace in self._namespaces:
            items, version = await self._api.list_all(path_of(API_VERSION, PLURAL, namespace))
            changed |= self.groups.replace(items, version, namespace)
            items, version = await self._api.list_all(path_of("v1", "pods", namespace), **labelled)
            changed |= self._groups_of_pods(items, version, namespace)
            items, version = await self._api.list_all(
                path_of("policy/v1", "poddisruptionbudgets", namespace), **labelled
            )
            changed |= self.budgets.replace(items, version, namespace)  # a budget is called as its group
        self.synced = True
        return changed

    async def sync_pods(self, group: Key) -> None:
        """Read one group's pods past the cache."""
        namespace, name = group
        items, version = await self._api.list_all(
            path_of("v1", "pods", namespace), labelSelector=f"{GROUP_LABEL}={name}"
        )
        listed = {identity(raw)[0] for raw in items}
        for raw in items:
            self.saw_pod(None, raw)
        for held in self.pods_of(group):
            entry = self.pods.get((namespace, held.seen.pod.name))
            if entry is not None and entry.name not in listed and entry.version <= number(version):
                self.pods.drop(entry.name, entry.uid)

    def keys(self) -> list[Key]:
        return [entry.name for entry in self.groups]

    def raw_group(self, key: Key) -> Mapping[str, Any] | None:
        """The object as it is known."""
        entry = self.groups.get(key)
        return None if entry is None else entry.value

    def pods_of(self, key: Key) -> list[HeldPod]:
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

    def saw_group(self, kind: str | None, raw: _Raw) -> Key | None:
        name, uid, _ = identity(raw)
        news = self.groups.drop(name, uid) if kind == DELETED else self.groups.put(raw)
        return name if news else None

    def saw_pod(self, kind: str | None, raw: _Raw) -> Key | None:
        name, uid, _ = identity(raw)
        group = group_of(raw)
        if group is None:
            return None
        if kind == DELETED:
            news = self.pods.drop(name, uid)
        else:
            news = self.pods.put(raw)
            self._index(name)
        return (name[0], group) if news else None

    def saw_budget(self, kind: str | None, raw: _Raw) -> Key | None:
        name, uid, _ = identity(raw)
        news = self.budgets.drop(name, uid) if kind == DELETED else self.budgets.put(raw)
        return name if news else None

    def _groups_of_pods(self, items: list[dict[str, Any]], version: str, namespace: str | None) -> set[Key]:
        before = {entry.name: entry.value.group for entry in self.pods}
        changed = set()
        for name in self.pods.replace(items, version, namespace):
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
