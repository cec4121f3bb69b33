"""The whole object, and the names by which Kubernetes knows it."""

from typing import Any

from pydantic import Field

from rocketfleet.api.model import Model
from rocketfleet.api.spec import ConsumerGroupSpec
from rocketfleet.api.status import ConsumerGroupStatus

GROUP = "rocketfleet.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ConsumerGroup"
PLURAL = "consumergroups"
FINALIZER = f"{GROUP}/drain"
REBALANCE_REQUESTED = f"{GROUP}/rebalance-requested"  # annotation; when it changes, the members are told
OFFSETS_MOVED = f"{GROUP}/offsets-moved"  # annotation; when it changes, what the lag was before counts no more
RECOMMENDED_REPLICAS = f"{GROUP}/recommended-replicas"  # annotation; autoscaling goes no lower, within its limits


class Metadata(Model):
    """What of an object's metadata we read."""

    model_config = Model.model_config | {"extra": "ignore"}

    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 1
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: list[str] = Field(default_factory=list)
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
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name


def read_status(raw: Any) -> ConsumerGroupStatus:
    """The status an object carries. One that an older or newer version wrote is not an error: it is made anew."""
    try:
        return ConsumerGroupStatus.model_validate(raw or {})
    except ValueError:
        return ConsumerGroupStatus()
