"""What is there, as plain data: all that the planner and the status are made from.

Pods here are pods of Kubernetes or local processes; the planner cannot tell. A field that is None is not known, which
is never the same as empty: the planner waits, or does without, but draws no conclusion from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rocketfleet.api.spec import Engine
from rocketfleet.wire.queue import MessageQueue


class Phase(StrEnum):
    """Kubernetes' phases. Under restartPolicy OnFailure, SUCCEEDED is a worker that drained and ended."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Joining(StrEnum):
    """What the brokers show of a ready pod with somebody's own consumer in it (joining.py). The first two of these are
    not counted as ready."""

    AWAITED = "Awaited"  # not seen yet, and it may be that it cannot be seen
    MISSING = "Missing"  # certainly no member
    JOINED = "Joined"
    ASSUMED = "Assumed"  # not seen, and given up on: it counts by its own readiness


@dataclass(frozen=True, slots=True)
class DrainMark:
    """Somebody wants this pod gone. It is kept with the pod, so an operator that starts anew goes on with the drain."""

    since: float
    reason: str


@dataclass(frozen=True, slots=True)
class DrainOutcome:
    """What a drained worker said at its end. `offsets` is None where only its exit code is known."""

    confirmed: bool
    offsets: Mapping[MessageQueue, int] | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod or process."""

    name: str
    ordinal: int  # below 0: its label cannot be read
    uid: str
    revision: str
    created: float
    phase: Phase = Phase.PENDING
    ready: bool = False
    ready_since: float | None = None
    deleting: float | None = None  # when its grace period is over, once its deletion was asked for
    drain: DrainMark | None = None
    outcome: DrainOutcome | None = None
    client_ids: tuple[str, ...] = ()  # its members, as far as they are known
    trouble: str | None = None  # why it does not run now, in words: ImagePullBackOff, exit code 2
    joining: Joining | None = None  # None: it says itself whether it has joined, or is not ready anyway
    engine: Engine | None = None  # what it was made for; None: what the manifest says. An engine can be changed

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out, or over."""
        return self.drain is not None or self.deleting is not None or self.ended

    @property
    def ended(self) -> bool:
        return self.phase in (Phase.SUCCEEDED, Phase.FAILED)

    @property
    def idle(self) -> bool:
        """Whether it does not run yet, or not now: it holds no queue, and there is nothing in it to drain."""
        return self.phase is Phase.PENDING or (self.trouble is not None and not self.ready and not self.ended)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who has which queue, read back from the members. `silent` are members that could not be asked."""

    owners: Mapping[MessageQueue, frozenset[str]]
    silent: frozenset[str] = frozenset()

    def owned_once(self, queues: frozenset[MessageQueue]) -> bool:
        """Whether each queue has exactly one owner, and nobody is left who might have one too."""
        return not self.silent and all(len(self.owners.get(queue, ())) == 1 for queue in queues)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A group at one moment."""

    pods: tuple[Pod, ...] = ()
    revision: str = ""  # the one that pods should have
    finalizer: bool = False
    deleting_since: float | None = None  # the object's deletion was asked for
    prepared: bool = False  # group settings and start offsets are at the broker, as this spec wants them
    objects: bool = False  # what pods need beside them (a Secret) is there, as this spec wants it
    budget: bool = True  # evictions are limited as they should be (`wanted.kept_through_evictions`)
    reachable: bool | None = None  # the brokers
    queues: frozenset[MessageQueue] | None = None  # of the subscribed topics
    members: frozenset[str] | None = None  # client ids at the brokers
    ownership: Ownership | None = None
    committed: Mapping[MessageQueue, int] = field(default_factory=dict)  # for the queues of drained pods
    told: frozenset[str] = frozenset()  # uids of pods that know of the present membership
    lingering: frozenset[str] = frozenset()  # client ids of pods that are gone, but members still, for all we know
    departed: frozenset[str] = frozenset()  # client ids of pods that are gone, and of no member: their locks are free
    last_desired: int | None = None  # as many as there should have been last time
    advised: int | None = None  # replicas, by the autoscaler
