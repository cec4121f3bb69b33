"""A group's PodDisruptionBudget: created under a name of its own, and changed only while it is ours.

A budget of that name that belongs to somebody else is left as it is, and said so: with our selector it would stop to
protect what it was made for, and with our owner it would be gone with the group.
"""

from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.controller.kube.api import KubeApi, KubeError, path_of
from rocketfleet.controller.kube.pod import owner_of
from rocketfleet.controller.kube.view import KubeView
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.controller.resources.disruption_budget import budget_name, disruption_budget

_API, _PLURAL = "policy/v1", "poddisruptionbudgets"


class Budgets:
    """The budgets of all groups."""

    def __init__(self, api: KubeApi, view: KubeView) -> None:
        self._api = api
        self._view = view

    def kept(self, group: ConsumerGroup) -> int | None:
        """How many pods it keeps, if there is exactly one of ours and the rest of it is as we would write it. Two over
        one pod would allow no eviction.
        """
        entry = self._view.budgets.get((group.metadata.namespace, budget_name(group)))
        if entry is None or entry.value.owner != group.metadata.uid or self._old_name(group) is not None:
            return None
        keep = entry.value.spec.get("minAvailable")
        if not isinstance(keep, int):
            return None  # a percentage: not ours
        wanted = disruption_budget(group, keep)["spec"]
        return keep if all(entry.value.spec.get(key) == value for key, value in wanted.items()) else None

    async def limit(self, group: ConsumerGroup, keep: int) -> None:
        await self._remove_old_name(group)  # first: with both, no pod could be evicted
        namespace, name = group.metadata.namespace, budget_name(group)
        wanted = disruption_budget(group, keep)
        entry = self._view.budgets.get((namespace, name))
        if entry is not None and entry.value.owner == group.metadata.uid:
            wanted["metadata"]["uid"] = entry.uid  # if another has the name by now, the API refuses
            self._view.saw_budget(None, await self._api.apply(path_of(_API, _PLURAL, namespace, name), wanted))
        else:
            self._view.saw_budget(None, await self._created(group, wanted))

    async def _created(self, group: ConsumerGroup, wanted: dict[str, Any]) -> dict[str, Any]:
        namespace, name = group.metadata.namespace, budget_name(group)
        try:
            return await self._api.create(path_of(_API, _PLURAL, namespace), wanted)
        except KubeError as error:
            if error.reason != "AlreadyExists":
                raise
        found = await self._api.get(path_of(_API, _PLURAL, namespace, name))
        if owner_of(found) != group.metadata.uid:
            raise BackendError(
                f"the PodDisruptionBudget {name} belongs to an earlier object or to somebody else and is left alone: "
                "until it is deleted or renamed, evictions of this group's pods are not limited"
            )
        return found

    def _old_name(self, group: ConsumerGroup) -> str | None:
        """The uid of one that an earlier version of the operator made, under the group's own name."""
        entry = self._view.budgets.get(group.key)
        return entry.uid if entry is not None and entry.value.owner == group.metadata.uid else None

    async def _remove_old_name(self, group: ConsumerGroup) -> None:
        uid = self._old_name(group)
        if uid is None:
            return
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        try:
            await self._api.delete(path_of(_API, _PLURAL, *group.key), options)
        except KubeError as error:
            if error.status == 403:
                name = group.metadata.name
                raise BackendError(
                    f"the PodDisruptionBudget {name}, which an earlier version made, stays as it is: {error}"
                ) from error
            if not error.not_found and not error.conflict:
                raise
        self._view.budgets.drop(group.key, uid)
