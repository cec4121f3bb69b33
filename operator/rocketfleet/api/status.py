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
        str,
        Field(max_length=316, pattern=_CONDITION_TYPE, description="The type of the condition."),
        AfterValidator(_known_type),
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
    seconds: Annotated[float | None, Field(description="How long the oldest of them has waited, in seconds.")] = None
    worst_queue: Annotated[str | None, Field(description="The queue with the most lag.")] = None
    retry: Annotated[int | None, Field(description="Messages that are due for a retry.")] = None
    delayed: Annotated[
        int | None,
        Field(description="Messages that failed and wait for the delay before their retry, as far as observed."),
    ] = None
    tried_per_minute: Annotated[int | None, Field(description="Handler attempts in the last minute that had any.")] = (
        None
    )
    failed_per_minute: Annotated[int | None, Field(description="Handler attempts that failed in that minute.")] = None
    dlq: Annotated[int | None, Field(description="Messages among the dead letters.")] = None
    state: Annotated[str | None, Field(description="What the lag figures mean, in one word.")] = None
    observed_at: Annotated[
        str | None, Field(description="When the figures were read.", json_schema_extra={"format": "date-time"})
    ] = None


class MemberStatus(Model):
    """A member of the group, ours or a guest."""

    pod: Annotated[str | None, Field(description="Its pod. Left out: a guest, not ours.")] = None
    client_id: Annotated[str | None, Field(description="Its name at the broker.")] = None
    queues: Annotated[int | None, Field(description="Queues that it owns.")] = None
    state: Annotated[str, Field(description="What it is doing, in one word.")]
    lag: Annotated[int | None, Field(description="Messages not yet consumed in its queues.")] = None


class SparkProgress(Model):
    """Progress of a Spark group's query. What is not known is left out."""

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
    before: Annotated[int, Field(description="Replicas before the decision.")]
    replicas: Annotated[int, Field(description="Replicas after the decision.")]
    reason: Annotated[str, Field(max_length=128, description="One word for programs.")]
    message: Annotated[str, Field(max_length=1024, description="Why, in a sentence.")]


class Scaling(Model):
    """What autoscaling has decided. What is not known is left out."""

    replicas: Annotated[int, Field(description="Replicas that it wants.")]
    reason: Annotated[str, Field(max_length=128, description="The outcome of the decision, in one word.")]
    message: Annotated[str, Field(max_length=1024, description="Explanation of the current decision.")]
    replica_rate: Annotated[
        float | None, Field(description="Messages per second that one replica consumes while it has enough to do.")
    ] = None
    ceiling: Annotated[
        int | None, Field(description="Number of replicas beyond which scaling out did not help when it was tried.")
    ] = None
    ceiling_until: Annotated[
        str | None,
        Field(description="Time before which more replicas are not tried.", json_schema_extra={"format": "date-time"}),
    ] = None
    decisions: Annotated[
        list[ScalingDecision] | None, Field(max_length=MOST_DECISIONS, description="The last changes, newest first.")
    ] = None


class LastRebalance(Model):
    """The last rebalance."""

    generation: Annotated[int | None, Field(description="The generation of the spec at that time.")] = None
    reason: Annotated[str, Field(description="What caused the rebalance.")]
    moved: Annotated[int | None, Field(description="Queues that have another owner than before.")] = None
    seconds: Annotated[float, Field(description="Seconds from the change of members until each queue had one owner.")]
    completed_at: Annotated[
        str, Field(description="When each queue had one owner again.", json_schema_extra={"format": "date-time"})
    ]


class LastDrain(Model):
    """The last drained member."""

    pod: Annotated[str, Field(description="Its pod.")]
    verified: Annotated[bool, Field(description="Whether its offsets were read back from the broker.")]
    seconds: Annotated[float, Field(description="How long it took.")]
    queues: Annotated[int, Field(description="Queues that it released.")]
    unfinished: Annotated[
        int | None,
        Field(description="Messages whose handlers were cut short: they are delivered again. Left out: none."),
    ] = None
    completed_at: Annotated[
        str, Field(description="When the drain was completed.", json_schema_extra={"format": "date-time"})
    ]


class ConsumerGroupStatus(Model):
    """What is there now."""

    observed_generation: Annotated[int | None, Field(description="The generation of the spec this is about.")] = None
    operator: Annotated[
        str | None, Field(description="The operator that wrote this: namespace and name of its Lease.")
    ] = None
    group_name: Annotated[str | None, Field(description="The group at the broker.")] = None
    replicas: Annotated[int, Field(description="Number of pods.")] = 0
    ready_replicas: Annotated[int, Field(description="Pods that are ready.")] = 0
    updated_replicas: Annotated[int, Field(description="Pods of the current revision.")] = 0
    desired_replicas: Annotated[int, Field(description="Desired number of pods.")] = 0
    revision: Annotated[str | None, Field(description="The current revision of the pods.")] = None
    code_revision: Annotated[
        str | None,
        Field(
            description="A hash of the code in the ConfigMap. While some pods do not report the code they run, the "
            "hash that they are assumed to have."
        ),
    ] = None
    selector: Annotated[str | None, Field(description="Label selector of the pods, for the scale subresource.")] = None
    prepared: Annotated[
        str | None,
        Field(description="A hash of the group settings and start offsets last observed at the brokers."),
    ] = None
    queues: Annotated[Queues | None, Field(description="Ownership of the queues.")] = None
    ready_summary: Annotated[str | None, Field(description="Ready of desired, for kubectl get.")] = None
    state: Annotated[
        str | None,
        Field(max_length=128, description="Ready, or the reason of the most serious condition, in one word."),
    ] = None
    lag: Annotated[Lag | None, Field(description="How far behind the group is.")] = None
    autoscaling: Annotated[Scaling | None, Field(description="What autoscaling has decided.")] = None
    spark: Annotated[SparkProgress | None, Field(description="Engine Spark: progress of the query.")] = None
    members: Annotated[
        list[MemberStatus] | None, Field(max_length=MOST_MEMBERS, description="The members, ours and guests.")
    ] = None
    last_rebalance: Annotated[LastRebalance | None, Field(description="The last rebalance.")] = None
    last_drain: Annotated[LastDrain | None, Field(description="The last drained member.")] = None
    conditions: Annotated[
        list[Condition] | None,
        Field(
            max_length=16,
            description="The conditions of the group, for kubectl wait.",
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = None
