"""The whole object."""

from typing import NamedTuple

from pydantic import Field

from rocketfleet.api.model import Model
from rocketfleet.api.names import API_VERSION, KIND
from rocketfleet.api.spec import ConsumerGroupSpec
from rocketfleet.api.status import ConsumerGroupStatus


class GroupKey(NamedTuple):
    """Which ConsumerGroup: by this it is queued, watched and remembered."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Metadata(Model):
    """The part of an object's metadata that we read."""

    model_config = Model.model_config | {"extra": "ignore"}

    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 1
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: list[str] = Field(default_factory=list)
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class ConsumerGroup(Model):
    """A ConsumerGroup manifest, or the object in a cluster."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: Metadata
    spec: ConsumerGroupSpec
    status: ConsumerGroupStatus | None = None

    @property
    def group_name(self) -> str:
        return self.spec.group_name or self.metadata.name

    @property
    def key(self) -> GroupKey:
        return GroupKey(self.metadata.namespace, self.metadata.name)
