"""One pass over one group, from its key: read the object, then reconcile it, or say what is wrong with it.

A manifest that the API server took and we cannot follow (it was written for another version, or the resource's
definition is older than we are) is told in the status, and nothing is changed. If such an object is deleted, its
finalizer is taken off: its pods get SIGTERM from the garbage collector, on which workers drain by themselves.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rocketfleet.api.checking import ManifestError, read_object
from rocketfleet.api.consumer_group import ConsumerGroup, Metadata, read_status
from rocketfleet.controller.actions import Event, Reason
from rocketfleet.controller.kube.api import NotLeading
from rocketfleet.controller.kube.backend import KubeBackend
from rocketfleet.controller.kube.view import Key, KubeView
from rocketfleet.controller.status import differs, invalid_status

RESYNC = 30.0  # seconds after which every group is looked at, whatever has been heard of it
SHORTEST = 0.1


class Reconciles(Protocol):
    """As much of the reconciler as a pass needs."""

    async def reconcile(self, group: ConsumerGroup) -> float: ...

    async def forget(self, key: Key) -> None: ...


class GroupPass:
    """What the work queue does with a key."""

    def __init__(
        self, view: KubeView, backend: KubeBackend, may_act: Callable[[], bool], wall: Callable[[], float]
    ) -> None:
        self._view = view
        self._backend = backend
        self._may_act = may_act
        self._wall = wall
        self.reconciler: Reconciles | None = None  # there is one while we lead

    async def __call__(self, key: Key) -> float | None:
        """Seconds until the next look; None: when something happens."""
        reconciler = self.reconciler
        if reconciler is None or not self._may_act():
            return None
        raw = self._view.raw_group(key)
        if raw is None:
            self._backend.forget(key)
            await reconciler.forget(key)
            return None
        try:
            group = read_object(raw)
        except ManifestError as error:
            await self._say_invalid(raw, error)
            return RESYNC
        try:
            again = await reconciler.reconcile(group)
        except NotLeading:
            return None
        return min(max(again, SHORTEST), RESYNC)

    async def _say_invalid(self, raw: Mapping[str, Any], error: ManifestError) -> None:
        metadata = Metadata.model_validate(raw["metadata"])
        group = ConsumerGroup.model_construct(metadata=metadata)  # only its name is needed here
        sentence = "; ".join(error.problems)
        await self._backend.emit(group, Event(Reason.INVALID, sentence, warning=True))
        if metadata.deletion_timestamp is not None:
            await self._backend.remove_finalizer_as_it_is(group)
            return
        before = read_status(raw.get("status"))
        status = invalid_status(metadata.generation, sentence, before, self._wall())
        if differs(before, status):
            await self._backend.write_status(group, status.model_dump(mode="json", by_alias=True, exclude_none=True))
