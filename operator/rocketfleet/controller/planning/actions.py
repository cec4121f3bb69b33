"""What the planner may want done. Each is idempotent: done twice, or begun by one operator and again by the next, it
ends in the same state.

They are done side by side, and one that fails keeps no other from being done: a preparation that fails must not starve
a drain. Only the end has an order: the group at the brokers goes when all else has worked, the finalizer after it.
Plans are made from caches, so an action on a pod is about the pod with that uid: where another has its name by now,
there is nothing to do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rocketfleet.controller.planning.snapshot import Pod


class EventReason(StrEnum):
    """Reasons of events: what people look for in `kubectl describe`."""

    CREATED = "PodCreated"
    DRAINING = "DrainStarted"
    DRAINED = "Drained"
    DRAIN_TIMED_OUT = "DrainTimedOut"
    OFFSETS_UNSAFE = "OffsetsUnsafe"
    REPLACED = "PodReplaced"
    STUCK = "PodStuck"
    RECREATING = "RecreateStarted"
    MIXED = "MembersMixed"
    SUBSCRIPTIONS_DIFFER = "SubscriptionsDiffer"
    REBALANCED = "RebalanceCompleted"
    UNREACHABLE = "BrokerUnreachable"
    TOPIC_NOT_FOUND = "TopicNotFound"
    NO_PERMISSION = "NoPermission"
    CREDENTIALS = "CredentialsUnavailable"
    INVALID = "InvalidSpec"
    UNKNOWN_FIELDS = "UnknownFields"
    CONFIG_MAP_MISSING = "ConfigMapNotFound"
    LIMITED_BY_QUEUES = "LimitedByQueues"
    EVICTIONS = "EvictionsNotLimited"
    TAKEN = "GroupTaken"
    RIVAL = "OperatorConflict"
    PREPARED = "GroupPrepared"
    LOCKS_RELEASED = "LocksReleased"
    DELETION_WAITS = "DeletionWaits"
    DELETION_GAVE_UP = "DeletionGaveUp"
    GROUP_REMOVED = "RemovingGroup"
    LAG_GROWING = "LagGrowing"
    LAG_STALLED = "LagStalled"
    LAG_STOPPED = "LagStopped"
    LAG_REWOUND = "LagRewound"
    LAG_FAILING = "LagFailing"
    LAG_SKEWED = "LagSkewed"
    IDLE_MEMBER = "IdleMember"
    LAG_RECOVERED = "LagRecovered"
    SCALED_OUT = "ScaledOut"
    SCALED_IN = "ScaledIn"
    SCALED_FROM_ZERO = "ScaledFromZero"
    SCALED_TO_ZERO = "ScaledToZero"
    SCALE_OUT_UNDONE = "ScaleOutUndone"


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell people, once."""

    reason: EventReason
    message: str
    warning: bool = False
    pod_uid: str = ""  # the pod that it is about: the same sentence about the next pod of that name is another event


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Nobody deletes the object before its pods are drained."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Nothing is left to look after. Whoever does this looks once more, past every cache, whether a pod is left."""


@dataclass(frozen=True, slots=True)
class PrepareGroup:
    """Create or update the group at the brokers that answer and, if Strict, write the start offsets that are missing.
    Whether that has worked is read back in the next look."""


@dataclass(frozen=True, slots=True)
class EnsureObjects:
    """What pods need beside them: the token's Secret."""


@dataclass(frozen=True, slots=True)
class LimitEvictions:
    """Have the PodDisruptionBudget keep so many pods. Nobody waits for it."""

    keep: int


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create the pod of this ordinal. If it is there, this is done."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class MarkDrain:
    """Write the mark to the pod, so that the drain survives us."""

    pod: Pod
    reason: str


@dataclass(frozen=True, slots=True)
class NoteShared:
    """Write to the pod what its members have to agree on with others, as it was made with. Nothing restarts."""

    pod: Pod
    shared: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RequestDrain:
    """Ask the worker. Its answer is seen in a later snapshot."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete it: within its grace period, or by force, which is for pods whose node does not answer."""

    pod: Pod
    force: bool = False


@dataclass(frozen=True, slots=True)
class TellMembers:
    """Have the members share out the queues anew."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class ReleaseLocks:
    """Release the locks that departed members still hold."""

    client_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Delete the group and its offsets at the brokers, and its retry and dead letter topics too, if that is wanted.
    Whoever does this looks once more, past every cache, whether the object is still to be deleted and nobody is in the
    group. `late`: the deletion has had its time, so the object goes even if this does not work.
    """

    topics_too: bool = False
    late: bool = False


@dataclass(frozen=True, slots=True)
class Emit:
    event: Event


Action = (
    AddFinalizer
    | RemoveFinalizer
    | PrepareGroup
    | EnsureObjects
    | LimitEvictions
    | CreatePod
    | MarkDrain
    | NoteShared
    | RequestDrain
    | DeletePod
    | TellMembers
    | ReleaseLocks
    | DeleteGroup
    | Emit
)
