"""One pass over one group, from its key: read the object, then reconcile it, or say what is wrong with it.

Fields that this version does not know are ignored, and that is said once for each generation of the object.

A manifest that the API server took and we cannot follow (it was written for another version, or the resource's
definition is older than we are) is told in the status, and nothing is changed. If such an object is deleted, its
finalizer is taken off: its pods get SIGTERM from the garbage collector, on which workers drain by themselves.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rocketfleet.api.checking import ManifestError, read_stored_object
from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey, Metadata
from rocketfleet.api.other_versions import read_status
from rocketfleet.controller.kube.api import NotLeading
from rocketfleet.controller.kube.backend import KubeBackend
from rocketfleet.controller.kube.view import KubeView
from rocketfleet.controller.operator.rivals import Rivals
from rocketfleet.controller.operator.term import Term
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.reconciling.work_queue import Requeue
from rocketfleet.controller.reporting.status import differs, invalid_status

RESYNC = 30.0  # seconds after which every group is looked at, whatever has been heard of it
SHORTEST = 0.1
MOST_NAMED = 10  # unknown fields in a sentence


class GroupPass:
    """What the work queue does with a key."""

    def __init__(
        self,
        view: KubeView,
        backend: KubeBackend,
        may_act: Callable[[], bool],
        wall: Callable[[], float],
        rivals: Rivals | None = None,
    ) -> None:
        self._rivals = rivals or Rivals("", time.monotonic)
        self._view = view
        self._backend = backend
        self._may_act = may_act
        self._wall = wall
        self._term: Term | None = None  # there is one while we lead
        # Uid and generation whose unknown fields were told. Not in the group's state: that is there for one term.
        self._warned: dict[GroupKey, tuple[str, int]] = {}

    def begin_term(self, term: Term) -> None:
        self._term = term

    def end_term(self) -> None:
        self._term = None
        self._rivals.clear()

    async def __call__(self, key: GroupKey) -> Requeue | None:
        """When to look again; None: when something happens."""
        term = self._term
        if term is None or not self._may_act():
            return None
        raw = self._view.raw_group(key)
        if raw is None:
            self._warned.pop(key, None)
            self._backend.forget(key)
            self._rivals.forget(key)
            await term.forget(key)
            return None
        try:
            group, unknown = read_stored_object(raw)
        except ManifestError as error:
            await self._say_invalid(raw, error)
            return Requeue(RESYNC)
        if unknown:
            await self._say_unknown(group, unknown)
        if await self._left_to_another(key, group, raw):
            await term.forget(key)
            return Requeue(RESYNC)
        try:
            again = await term.reconcile(group)
        except NotLeading:
            return None
        return Requeue(min(max(again.after, SHORTEST), RESYNC))

    async def _say_unknown(self, group: ConsumerGroup, unknown: Sequence[str]) -> None:
        told = (group.metadata.uid, group.metadata.generation)
        if self._warned.get(group.key) == told:
            return
        self._warned[group.key] = told
        more = f" and {len(unknown) - MOST_NAMED} more" if len(unknown) > MOST_NAMED else ""
        sentence = (
            f"this version of the operator does not know {', '.join(unknown[:MOST_NAMED])}{more}: they are ignored. "
            "Upgrade the operator if they matter"
        )
        await self._backend.emit(group, Event(EventReason.UNKNOWN_FIELDS, sentence, warning=True))

    def well(self, key: GroupKey) -> bool:
        """Whether the last pass did all that it wanted to."""
        return self._term is None or not self._term.troubled(key)

    async def _left_to_another(self, key: GroupKey, group: ConsumerGroup, raw: Mapping[str, Any]) -> bool:
        rival = self._rivals.met(key, (raw.get("status") or {}).get("operator"))
        if rival is None:
            return False
        leaves = "; this one leaves it alone for now" if rival.leave else ""
        text = (
            f"the operator {rival.name} looks after this group too{leaves}: give each operator a class "
            "(spec.operatorClass, --operator-class) or namespaces of its own"
        )
        await self._backend.emit(group, Event(EventReason.RIVAL, text, warning=True))
        return rival.leave

    async def _say_invalid(self, raw: Mapping[str, Any], error: ManifestError) -> None:
        metadata = Metadata.model_validate(raw["metadata"])
        group = ConsumerGroup.model_construct(metadata=metadata)  # only its name is needed here
        sentence = "; ".join(error.problems)
        await self._backend.emit(group, Event(EventReason.INVALID, sentence, warning=True))
        if metadata.deletion_timestamp is not None:
            await self._backend.remove_finalizer_as_it_is(group)
            return
        before = read_status(raw.get("status"))
        status = invalid_status(metadata.generation, sentence, before, self._wall())
        if differs(before, status):
            await self._backend.write_status(group, status.model_dump(mode="json", by_alias=True, exclude_none=True))
