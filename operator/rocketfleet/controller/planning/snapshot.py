"""What is there, as plain data: all that the planner and the status are made from.

Pods here are pods of Kubernetes or local processes; the planner cannot tell. A field that is None is not known, which
is never the same as empty: the planner waits, or does without, but draws no conclusion from it.

Moments are on the clock of whoever looks: those of others are translated when they are seen (sightings.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from rocketfleet.api.spec import Engine
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.planning.broker_trouble import BrokerTrouble
from rocketfleet.wire.queue import MessageQueue


class PodPhase(StrEnum):
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


class NodeState(StrEnum):
    """What is known of the node of a pod that should have ended (stuck.py)."""

    ANSWERS = "Answers"
    SILENT = "Silent"  # NotReady, or unreachable: what runs there may go on
    OUT_OF_SERVICE = "OutOfService"  # so somebody says, by a taint: nothing runs there any more
    GONE = "Gone"
    HIDDEN = "Hidden"  # we may not look


@dataclass(frozen=True, slots=True)
class DrainMark:
    """Somebody wants this pod gone. It is kept with the pod, so an operator that starts anew goes on with the drain.

    `ended_before` names the run of its container that had ended last when it was marked, and is empty if none had: what
    another run said at its end was said after the mark, and no two clocks are compared to know it. None: not noted.
    """

    since: float
    reason: str
    ended_before: str | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod or process."""

    name: str
    ordinal: int  # below 0: its label cannot be read
    uid: str
    revision: str
    created: float
    phase: PodPhase = PodPhase.PENDING
    ready: bool = False
    ready_since: float | None = None
    deleting: float | None = None  # when its grace period is over, once its deletion was asked for
    deleting_since: float | None = None
    lost: bool = False  # it is deleted because its node does not answer, and it does not answer either
    node: str | None = None  # the name of the node it is on
    node_state: NodeState | None = None  # asked only where a pod should have ended
    node_since: float | None = None  # since when we have seen the node in that state
    ended_run: str = ""  # the run of its container that ended last; empty: none has
    drain: DrainMark | None = None
    outcome: DrainOutcome | None = None
    client_ids: tuple[str, ...] = ()  # its members, as far as they are known
    trouble: str | None = None  # why it does not run now, in words: ImagePullBackOff, exit code 2
    joining: Joining | None = None  # None: it says itself whether it has joined, or is not ready anyway
    starting_since: float | None = (
        None  # it has a node, and its containers are yet to be made: what it mounts is awaited
    )
    engine: Engine | None = None  # what it was made for; None: what the manifest says. An engine can be changed
    shared: Mapping[str, str] | None = None  # what it has to agree on with others (shared_settings.py); None: not said
    image: str | None = None  # of the container that consumes, as the pod asks for it; None: there is none
    failures: int = 0  # pods of its ordinal before it that failed in a row

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out, or over."""
        return self.drain is not None or self.deleting is not None or self.ended

    @property
    def ended(self) -> bool:
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)

    @property
    def idle(self) -> bool:
        """Whether it does not run yet, or not now: it holds no queue, and there is nothing in it to drain."""
        return self.phase is PodPhase.PENDING or (self.trouble is not None and not self.ready and not self.ended)


@dataclass(frozen=True, slots=True)
class Subscribed:
    """What the group subscribes to, as topic → expression in words (subscriptions.py): by what each broker filters, and
    what members say that were asked through a broker. Our own workers are not among those.
    """

    brokers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    members: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who has which queue, read back from the members. `silent` are members that could not be asked."""

    owners: Mapping[MessageQueue, frozenset[str]]
    silent: frozenset[str] = frozenset()
    wants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by client id: topic → expression, where told

    def owned_once(self, queues: frozenset[MessageQueue]) -> bool:
        """Whether each queue has exactly one owner, and nobody is left who might have one too."""
        return not self.silent and all(len(self.owners.get(queue, ())) == 1 for queue in queues)


class Evictions(Enum):
    """What there is in place of a number of pods that evictions have to leave."""

    NONE = "None"  # nobody evicts pods here: there is nothing to limit


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A group at one moment."""

    pods: tuple[Pod, ...] = ()
    revision: str = ""  # the one that pods should have
    shared: Mapping[str, str] | None = None  # what the members have to agree on, as the manifest has it
    finalizer: bool = False
    deleting_since: float | None = None  # the object's deletion was asked for
    prepared: bool = False  # group settings and start offsets are at a broker, as this spec wants them: pods can come
    lacking: frozenset[str] = frozenset()  # brokers that answer and lack some of that
    code_missing: str | None = None  # why no pod could start: the ConfigMap with its code is not there, in words
    taken_by: str | None = None  # another object has the group (claims.py): namespace and name
    objects: bool = False  # what pods need beside them (a Secret) is there, as this spec wants it
    budget: int | Evictions | None = Evictions.NONE  # as many pods as evictions leave; None: no budget of ours says so
    reachable: bool | None = None  # the brokers: whether all of them could be asked
    hindrance: BrokerTrouble | None = None  # why not
    allowed: bool = True  # whether we may connect to them at all
    queues: frozenset[MessageQueue] | None = None  # of the subscribed topics
    members: frozenset[str] | None = None  # client ids at the brokers
    ownership: Ownership | None = None
    subscribed: Subscribed | None = None
    states: Mapping[MessageQueue, frozenset[str]] = field(default_factory=dict)  # of queues, as our workers say
    committed: Mapping[MessageQueue, int] = field(default_factory=dict)  # for the queues of drained pods
    told: frozenset[str] = frozenset()  # uids of pods that know of the present membership
    lingering: frozenset[str] = frozenset()  # client ids of pods that are gone, but members still, for all we know
    departed: frozenset[str] = frozenset()  # client ids of pods that are gone, and of no member: their locks are free
    last_desired: int | None = None  # as many as there should have been last time
    advised: int | None = None  # replicas, by the autoscaler
    may_roll: bool = True  # else pods of an old revision that are well are left alone for now (rolling_budget.py)
