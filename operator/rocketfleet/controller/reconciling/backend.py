"""Where pods live: the one interface between the controller and Kubernetes, or the processes of this machine.

A backend does single things and decides nothing. Everything it is asked to do is idempotent: a pod that is already
there is created, one that is gone is deleted. What it cannot do it says with a BackendError, whose text is for
people.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.client.config import ClientConfig
from rocketfleet.controller.planning.actions import Event
from rocketfleet.controller.planning.claims import Claim
from rocketfleet.controller.planning.snapshot import DrainMark, Evictions, NodeState, Pod
from rocketfleet.controller.resources.code import Code


class BackendError(Exception):
    """Something could not be done; it is tried again later."""


class ObjectChanged(BackendError):
    """The object is not what was planned for: the next pass sees it is."""


class NameTaken(BackendError):
    """A pod of this name is there and not the group's: the next one's name may well be free."""


class NameServerNotAllowed(BackendError):
    """The operator may not connect to what the manifest names. Nothing was connected."""


@dataclass(frozen=True, slots=True)
class PodSighting:
    """A pod, and how its members are reached or recognised."""

    pod: Pod
    control: str | None = None  # host:port of its worker's control port
    host: str | None = None  # the address its connections come from: how members of a foreign engine are told apart
    node: str | None = None  # its node's, which they may come from too
    proves: bool = False  # whether it takes a proof of the control token for its uid, instead of the token itself
    image_id: str | None = None  # which image it runs, by its node's word


class Backend(Protocol):
    """One place where groups run."""

    async def look(self, group: ConsumerGroup) -> tuple[PodSighting, ...]:
        """The group's pods, those on their way out included. From a cache that a watch keeps: it costs nothing."""
        ...

    async def objects_ready(self, group: ConsumerGroup) -> bool:
        """Whether what pods need beside them is there as this spec wants it."""
        ...

    async def ensure_objects(self, group: ConsumerGroup) -> None: ...

    async def evictions_kept(self, group: ConsumerGroup) -> int | Evictions | None:
        """How many pods whoever evicts some has to leave. None: nothing that we made says so, or not as it should."""
        ...

    async def limit_evictions(self, group: ConsumerGroup, keep: int) -> None: ...

    async def code(self, group: ConsumerGroup) -> Code:
        """What is in the ConfigMap that the group's code comes from, as it was lately."""
        ...

    async def connection(self, group: ConsumerGroup) -> ClientConfig:
        """How the controller itself reaches the group's RocketMQ, credentials and certificates included."""
        ...

    async def control_token(self, group: ConsumerGroup) -> str | None:
        """What the workers' control ports ask for."""
        ...

    async def create_pod(self, group: ConsumerGroup, ordinal: int, revision: str) -> str:
        """The uid of the pod, whether it was created now or is there already."""
        ...

    async def mark_drain(self, group: ConsumerGroup, pod: Pod, mark: DrainMark) -> None: ...

    async def note_shared(self, group: ConsumerGroup, pod: Pod, shared: Mapping[str, str]) -> None:
        """Keep with the pod what its members have to agree on with others."""
        ...

    async def delete_pod(self, group: ConsumerGroup, pod: Pod, force: bool) -> None: ...

    async def nodes(self, names: Collection[str]) -> Mapping[str, NodeState]:
        """What is known of these nodes. One of which nothing can be said now is left out."""
        ...

    async def claims(self, group: ConsumerGroup) -> tuple[Claim, ...]:
        """The objects that name the same group, as far as we see them; this one may be among them."""
        ...

    async def add_finalizer(self, group: ConsumerGroup) -> None: ...

    async def remove_finalizer(self, group: ConsumerGroup) -> None: ...

    async def confirm_deletion(self, group: ConsumerGroup) -> None:
        """Look past every cache whether the object is still this one, is being deleted, and says of the group what we
        have read: else ObjectChanged. BackendError if another object is for the same group.
        """
        ...

    async def write_status(self, group: ConsumerGroup, status: Mapping[str, Any]) -> None:
        """Replace the object's status. Called only when it has changed."""
        ...

    async def emit(self, group: ConsumerGroup, event: Event) -> None: ...
