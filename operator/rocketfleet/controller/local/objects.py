"""The objects of a `rocketfleet run`, as an API server would keep them: uid, generation, finalizers, status, deletion.

They are on disk, so that a run which was killed is continued by the next one: an object that has left the manifest in
the meantime is still known, and its members are drained rather than forgotten.
"""

import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey, Metadata
from rocketfleet.api.names import FINALIZER
from rocketfleet.api.other_versions import known_part, read_status
from rocketfleet.api.status import ConsumerGroupStatus
from rocketfleet.controller.local.files import StateDirectory, read_json, write_json


@dataclass(frozen=True, slots=True)
class LocalObject:
    """A group, and the directory of the file it came from: paths in it start there."""

    group: ConsumerGroup
    base: Path


class LocalObjects:
    """The store. `changed` is called with the key of what has changed."""

    def __init__(self, state: StateDirectory, changed: Callable[[GroupKey], None] = lambda key: None) -> None:
        self._state = state
        self._changed = changed
        self._objects: dict[GroupKey, LocalObject] = {}

    def load(self) -> None:
        """Read what a former run has left."""
        for key, files in self._state.groups():
            content = read_json(files.object)
            if content is None:
                continue
            try:
                group = ConsumerGroup.model_validate(known_part(content["object"])[0])
            except (KeyError, ValueError):
                continue  # written by another version: the manifest brings it back
            status = read_status(content.get("status"))
            self._objects[key] = LocalObject(group.model_copy(update={"status": status}), Path(content["base"]))

    @property
    def keys(self) -> frozenset[GroupKey]:
        return frozenset(self._objects)

    def get(self, key: GroupKey) -> LocalObject | None:
        return self._objects.get(key)

    def put(self, given: ConsumerGroup, base: Path) -> None:
        """Create or update an object. One that is being deleted stays so: it is created again once it is gone."""
        before = self._objects.get(given.key)
        if before is not None and before.group.metadata.deletion_timestamp is not None:
            return
        if before is None:
            now = datetime.now(UTC).isoformat()
            metadata = _metadata(given, uid=str(uuid.uuid4()), generation=1, creation_timestamp=now)
            self._keep(LocalObject(given.model_copy(update={"metadata": metadata, "status": None}), base))
        elif before.group.spec != given.spec or before.base != base:
            old = before.group.metadata
            metadata = _metadata(
                given,
                uid=old.uid,
                generation=old.generation + 1,
                finalizers=old.finalizers,
                creation_timestamp=old.creation_timestamp,
            )
            group = given.model_copy(update={"metadata": metadata, "status": before.group.status})
            self._keep(LocalObject(group, base))
        elif before.group.metadata.annotations != given.metadata.annotations:
            metadata = before.group.metadata.model_copy(update={"annotations": given.metadata.annotations})
            self._update(given.key, metadata=metadata)

    def delete(self, key: GroupKey) -> None:
        """Ask for its deletion; it goes when its finalizer does."""
        held = self._objects.get(key)
        if held is None or held.group.metadata.deletion_timestamp is not None:
            return
        if FINALIZER not in held.group.metadata.finalizers:
            self._remove(key)
            return
        now = datetime.now(UTC).isoformat()
        self._update(key, metadata=held.group.metadata.model_copy(update={"deletion_timestamp": now}))

    def add_finalizer(self, key: GroupKey) -> None:
        held = self._objects.get(key)
        if held is not None and FINALIZER not in held.group.metadata.finalizers:
            metadata = held.group.metadata
            finalizers = [*metadata.finalizers, FINALIZER]
            self._update(key, metadata=metadata.model_copy(update={"finalizers": finalizers}))

    def remove_finalizer(self, key: GroupKey) -> None:
        held = self._objects.get(key)
        if held is not None and held.group.metadata.deletion_timestamp is not None:
            self._remove(key)

    def write_status(self, key: GroupKey, status: Mapping[str, Any]) -> None:
        held = self._objects.get(key)
        if held is not None:
            kept = ConsumerGroupStatus.model_validate(dict(status))
            self._keep(LocalObject(held.group.model_copy(update={"status": kept}), held.base), told=False)

    def _update(self, key: GroupKey, **changes: Any) -> None:
        held = self._objects[key]
        self._keep(LocalObject(held.group.model_copy(update=changes), held.base))

    def _keep(self, one: LocalObject, *, told: bool = True) -> None:
        key = one.group.key
        self._objects[key] = one
        status = one.group.status
        content = {
            "object": one.group.model_dump(mode="json", by_alias=True, exclude={"status"}, exclude_none=True),
            "status": None if status is None else status.model_dump(mode="json", by_alias=True, exclude_none=True),
            "base": str(one.base),
        }
        write_json(self._state.group(key).object, content)
        if told:
            self._changed(key)

    def _remove(self, key: GroupKey) -> None:
        del self._objects[key]
        shutil.rmtree(self._state.group(key).directory, ignore_errors=True)
        self._changed(key)


def _metadata(given: ConsumerGroup, **changes: Any) -> Metadata:
    return given.metadata.model_copy(update=changes)
