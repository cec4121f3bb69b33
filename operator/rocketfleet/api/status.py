"""`status` of a ConsumerGroup: what `kubectl get`, `kubectl wait`, an HPA and people read."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from rocketfleet.api.model import Model

MOST_MEMBERS = 1000
MOST_DECISIONS = 10
_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_CONDITION_TYPE = rf"^({_NAME}([.]{_NAME})*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
_CONDITION_REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class ConditionType(StrEnum):
    READY = "Ready"
    PROGRESSING = "Progressing"
    BALANCED = "Balanced"
    LAG_HEALTHY = "LagHealthy"
    BROKER_REACHABLE = "BrokerReachable"
    DRAINING = "Draining"
    SUBSCRIPTIONS_CONSISTENT = "SubscriptionsConsistent"


class Truth(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


def _known_type(given: str) -> str:
    return ConditionType(given) if given in set(ConditionType) else given


class Condition(Model):
    """One aspect of the group, as Kubernetes' own metav1.Condition."""

    # No enum: an operator that knows one type more than the definition in the cluster must be able to write it.
    type: Annotated[
        str, Field(max_length=316, pattern=_CONDITION_TYPE, description="Which aspect."), AfterValidator(_known_type)
    ]
    status: Annotated[Truth, Field(description="True, False or Unknown.")]
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=_CONDITION_REASON, description="One word for programs.")
    ]
    message: Annotated[str, Field(max_length=32_768, description="One sentence for people.")]
    last_transition_time: Annotated[
        str, Field(description="When status last changed.", json_schema_extra={"format": "date-time"})
    ]
    observed_generation: Annotated[int | None, Field(ge=0, description="The generation of the spec this is about.")] = (
        None
    )


class Queues(Model):
    """Ownership of the group's queues (without its retry topic)."""

    total: Annotated[int, Field(description="Queues of the subscribed topics.")]
    owned: Annotated[int, Field(description="Queues with exactly one owner.")]
    unowned: Annotated[int, Field(description="Queues with no owner.")]
    shared: Annotated[int, Field(description="Queues with two owners or more.")]


class Lag(Model):
    """How far behind the group is. What is not known is left out."""

    messages: Annotated[int | None, Field(description="Messages not yet consumed.")] = None
    seconds: Annotated[float | None, Field(description="How long the oldest of them has waited.")] = None
    worst_queue: Annotated[str | None, Field(description="The queue with the most.")] = None
    retry: Annotated[int | None, Field(description="Messages that are due to be tried again.")] = None
    delayed: Annotated[
        int | None,
        Field(description="Messages that failed and wait for their delay before they are tried again, as far as seen."),
    ] = None
    tried_per_minute: Annotated[
        int | None, Field(description="Attempts of handlers, in the last minute in which there were any.")
    ] = None
    failed_per_minute: Annotated[int | None, Field(description="Of those, the ones that failed.")] = None
    dlq: Annotated[int | None, Field(description="Messages among the dead letters.")] = None
    state: Annotated[str | None, Field(description="What the figures mean, in one word.")] = None
    observed_at: Annotated[
        str | None, Field(description="When the figures were read.", json_schema_extra={"format": "date-time"})
    ] = None


class Member(Model):
    """A member of the group, ours or a guest."""

    pod: Annotated[str | None, Field(description="Its pod. Left out: a guest, not ours.")] = None
    client_id: Annotated[str | None, Field(description="Its name at the broker.")] = None
    queues: Annotated[int | None, Field(description="Queues that it owns.")] = None
    state: Annotated[str, Field(description="What it is doing, in one word.")]
    lag: Annotated[int | None, Field(description="Messages not yet consumed in its queues.")] = None


class SparkProgress(Model):
    """How a Spark group's query gets on. What is not known is left out."""

    batch: Annotated[int | None, Field(description="The number of the last batch that is done.")] = None
    messages: Annotated[int | None, Field(description="Messages in it.")] = None
    messages_per_second: Annotated[float | None, Field(description="Messages per second that it processed.")] = None
    seconds: Annotated[float | None, Field(description="How long it took.")] = None
    executors: Annotated[int | None, Field(description="Executors that the driver has.")] = None
    lost: Annotated[int | None, Field(description="Messages that were gone before they could be read.")] = None
    completed_at: Annotated[
        str | None, Field(description="When it was done.", json_schema_extra={"format": "date-time"})
    ] = None


class ScalingDecision(Model):
    """A change of the number of replicas that autoscaling made."""

    at: Annotated[str, Field(description="When.", json_schema_extra={"format": "date-time"})]
    before: Annotated[int, Field(description="Replicas before.")]
    replicas: Annotated[int, Field(description="Replicas from then on.")]
    reason: Annotated[str, Field(max_length=128, description="One word for programs.")]
    message: Annotated[str, Field(max_length=1024, description="Why, in a sentence.")]


class Scaling(Model):
    """What autoscaling has decided. What is not known is left out."""

    replicas: Annotated[int, Field(description="Replicas that it wants.")]
    reason: Annotated[str, Field(max_length=128, description="Whether it could decide, in one word.")]
    message: Annotated[str, Field(max_length=1024, description="How it stood when this was written.")]
    replica_rate: Annotated[
        float | None, Field(description="Messages per second that one replica does while it has plenty to do.")
    ] = None
    ceiling: Annotated[int | None, Field(description="More than this did not help when it was tried.")] = None
    ceiling_until: Annotated[
        str | None, Field(description="Until when more are not tried.", json_schema_extra={"format": "date-time"})
    ] = None
    decisions: Annotated[
        list[ScalingDecision] | None, Field(max_length=MOST_DECISIONS, description="The last changes, newest first.")
    ] = None


class LastRebalance(Model):
    """The last time that queues changed hands."""

    generation: Annotated[int | None, Field(description="The generation of the spec at that time.")] = None
    reason: Annotated[str, Field(description="Why they did.")]
    moved: Annotated[int | None, Field(description="Queues that have another owner than before.")] = None
    seconds: Annotated[float, Field(description="From the change of members until each queue had one owner.")]
    completed_at: Annotated[
        str, Field(description="When each queue had one owner again.", json_schema_extra={"format": "date-time"})
    ]


class LastDrain(Model):
    """The last member that was let go."""

    pod: Annotated[str, Field(description="Its pod.")]
    verified: Annotated[bool, Field(description="Whether its offsets were read back from the broker.")]
    seconds: Annotated[float, Field(description="How long it took.")]
    queues: Annotated[int, Field(description="Queues that it gave back.")]
    unfinished: Annotated[
        int | None,
        Field(description="Messages whose handlers were cut short: they come again. Left out: none."),
    ] = None
    completed_at: Annotated[str, Field(description="When it was let go.", json_schema_extra={"format": "date-time"})]


class ConsumerGroupStatus(Model):
    """What is there now."""

    observed_generation: Annotated[int | None, Field(description="The generation of the spec this is about.")] = None
    operator: Annotated[
        str | None, Field(description="The operator that wrote this: namespace and name of its Lease.")
    ] = None
    group_name: Annotated[str | None, Field(description="The group at the broker.")] = None
    replicas: Annotated[int, Field(description="Pods there are.")] = 0
    ready_replicas: Annotated[int, Field(description="Pods that are ready.")] = 0
    updated_replicas: Annotated[int, Field(description="Pods of the present revision.")] = 0
    desired_replicas: Annotated[int, Field(description="Pods there should be.")] = 0
    revision: Annotated[str | None, Field(description="The present revision of the pods.")] = None
    code_revision: Annotated[
        str | None,
        Field(
            description="A hash of the code in the ConfigMap. While there are pods that say nothing of their own code, "
            "the one that they are taken to have."
        ),
    ] = None
    selector: Annotated[str | None, Field(description="Label selector of the pods, for the scale subresource.")] = None
    prepared: Annotated[
        str | None,
        Field(description="What was last seen at the brokers: group settings and start offsets, as a hash."),
    ] = None
    queues: Annotated[Queues | None, Field(description="Who owns the queues.")] = None
    ready_summary: Annotated[str | None, Field(description="Ready of desired, for kubectl get.")] = None
    state: Annotated[
        str | None, Field(max_length=128, description="Ready, or the worst that the conditions say, in one word.")
    ] = None
    lag: Annotated[Lag | None, Field(description="How far behind the group is.")] = None
    autoscaling: Annotated[Scaling | None, Field(description="What autoscaling has decided.")] = None
    spark: Annotated[SparkProgress | None, Field(description="Engine Spark: how the query gets on.")] = None
    members: Annotated[
        list[Member] | None, Field(max_length=MOST_MEMBERS, description="The members, ours and guests.")
    ] = None
    last_rebalance: Annotated[LastRebalance | None, Field(description="The last time that queues changed hands.")] = (
        None
    )
    last_drain: Annotated[LastDrain | None, Field(description="The last member that was let go.")] = None
    conditions: Annotated[
        list[Condition] | None,
        Field(
            max_length=16,
            description="The group's aspects, for kubectl wait.",
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = None
