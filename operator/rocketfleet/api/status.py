"""`status` of a ConsumerGroup: what `kubectl get`, `kubectl wait`, an HPA and people read."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from rocketfleet.api.model import Model

MOST_MEMBERS = 1000


class ConditionType(StrEnum):
    READY = "Ready"
    PROGRESSING = "Progressing"
    BALANCED = "Balanced"
    LAG_HEALTHY = "LagHealthy"
    BROKER_REACHABLE = "BrokerReachable"
    DRAINING = "Draining"


class Truth(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """One aspect of the group."""

    type: Annotated[ConditionType, Field(description="Which aspect.")]
    status: Truth
    reason: Annotated[str, Field(max_length=128, description="One word for programs.")]
    message: Annotated[str, Field(max_length=1024, description="One sentence for people.")] = ""
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    observed_generation: int | None = None


class Queues(Model):
    """Ownership of the group's queues (without its retry topic)."""

    total: int
    owned: Annotated[int, Field(description="Queues with exactly one owner.")]
    unowned: int
    shared: Annotated[int, Field(description="Queues with two owners or more.")]


class Lag(Model):
    """How far behind the group is. What is not known is left out."""

    messages: int | None = None
    seconds: float | None = None
    worst_queue: str | None = None
    retry: int | None = None
    dlq: int | None = None
    state: str | None = None
    observed_at: Annotated[str | None, Field(json_schema_extra={"format": "date-time"})] = None


class Member(Model):
    """A member of the group, ours or a guest."""

    pod: str | None = None
    client_id: str | None = None
    queues: int | None = None
    state: str
    lag: int | None = None


class LastRebalance(Model):
    """The last time that queues changed hands."""

    generation: int | None = None
    reason: str
    moved: Annotated[int | None, Field(description="Queues that have another owner than before.")] = None
    seconds: float
    completed_at: Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class LastDrain(Model):
    """The last member that was let go."""

    pod: str
    verified: Annotated[bool, Field(description="Whether its offsets were read back from the broker.")]
    seconds: float
    queues: int
    completed_at: Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class ConsumerGroupStatus(Model):
    """What is there now."""

    observed_generation: int | None = None
    group_name: Annotated[str | None, Field(description="The group at the broker.")] = None
    replicas: Annotated[int, Field(description="Pods there are.")] = 0
    ready_replicas: int = 0
    updated_replicas: Annotated[int, Field(description="Pods of the present revision.")] = 0
    desired_replicas: Annotated[int, Field(description="Pods there should be.")] = 0
    revision: Annotated[str | None, Field(description="The present revision of the pods.")] = None
    selector: Annotated[str | None, Field(description="Label selector of the pods, for the scale subresource.")] = None
    prepared: Annotated[
        str | None,
        Field(description="What was last written at the broker: group settings and start offsets, as a hash."),
    ] = None
    queues: Queues | None = None
    ready_summary: Annotated[str | None, Field(description="Ready of desired, for kubectl get.")] = None
    lag: Lag | None = None
    members: Annotated[list[Member] | None, Field(max_length=MOST_MEMBERS)] = None
    last_rebalance: LastRebalance | None = None
    last_drain: LastDrain | None = None
    conditions: Annotated[
        list[Condition] | None,
        Field(
            max_length=16, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
        ),
    ] = None
