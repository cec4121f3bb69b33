"""Where pods live: the one interface between the controller and Kubernetes, or the processes of this machine.

A backend does single things and decides nothing. Everything it is asked to do is idempotent: a pod that is already
there is created, one that is gone is deleted. What it cannot do it says with a BackendError, whose text is for
people.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.client.config import ClientConfig
from rocketfleet.controller.actions import Event
from rocketfleet.controller.snapshot import DrainMark, Pod


class BackendError(Exception):
    """Something could not be done; it is tried again later."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A pod, and how its members are reached or recognised."""

    pod: Pod
    control: str | None = None  # host:port of its worker's control port
    host: str | None = None  # the address its connections come from: how members of a foreign engine are told apart
    node: str | None = None  # its node's, which they may come from too


class Backend(Protocol):
    """One place where groups run."""

    async def look(self, group: ConsumerGroup) -> tuple[Seen, ...]:
        """The group's pods, those on their way out included. From a cache that a watch keeps: it costs nothing."""
        ...

    async def objects_ready(self, group: ConsumerGroup) -> bool:
        """Whether what pods need beside them is there as this spec wants it."""
        ...

    async def ensure_objects(self, group: ConsumerGroup) -> None: ...

    async def evictions_limited(self, group: ConsumerGroup, keep: int) -> bool:
        """Whether whoever evicts pods has to leave just so many. True where nobody evicts any."""
        ...

    async def limit_evictions(self, group: ConsumerGroup, keep: int) -> None: ...

    async def connection(self, group: ConsumerGroup) -> ClientConfig:
        """How the controller itself reaches the group's RocketMQ, credentials and certificates included."""
        ...

    async def control_token(self, group: ConsumerGroup) -> str | None:
        """What the workers' control ports ask for."""
        ...

    async def create_pod(self, group: ConsumerGroup, ordinal: int, revision: str) -> None: ...

    async def mark_drain(self, group: ConsumerGroup, pod: Pod, mark: DrainMark) -> None: ...

    async def delete_pod(self, group: ConsumerGroup, pod: Pod, force: bool) -> None: ...

    async def add_finalizer(self, group: ConsumerGroup) -> None: ...

    async def remove_finalizer(self, group: ConsumerGroup) -> None: ...

    async def write_status(self, group: ConsumerGroup, status: Mapping[str, Any]) -> None:
        """Replace the object's status. Called only when it has changed."""
        ...

    async def emit(self, group: ConsumerGroup, event: Event) -> None: ...
