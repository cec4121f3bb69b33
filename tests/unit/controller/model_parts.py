"""The parts of the model: manifests, pods with their fates, the object in the API server, the broker."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.controller.planning.snapshot import NodeState, Pod
from rocketfleet.wire.queue import MessageQueue

NAME = "orders"
QUEUES = frozenset(MessageQueue("orders", "broker-a", number) for number in range(4))
DRAIN_TIMEOUT = 5.0
GRACE = DRAIN_TIMEOUT + 10


class DrainFate(Enum):
    QUICK = "drains within a second"
    SLOW = "takes longer than it may"
    HANGS = "never ends"
    UNCONFIRMED = "ends once without a confirmation, comes back, and then drains well"
    LOST = "is confirmed, but the broker loses what it confirmed"
    DEAF = "cannot be called, but ends well on SIGTERM"


class StartFate(Enum):
    QUICK = 2.0
    SLOW = 12.0
    PENDING = -1.0  # never gets a node
    CRASHES = -2.0  # starts and ends, over and over
    UNREADY = -3.0  # runs, and is never ready


@dataclass(frozen=True)
class Fate:
    start: StartFate = StartFate.QUICK
    drain: DrainFate = DrainFate.QUICK
    joins: float = 0.0  # seconds from readiness to membership, for somebody's own consumer
    hidden: bool = False  # the broker sees its connection come from an address that is nobody's


GOOD = Fate()


@dataclass
class ModelPod:
    """What is true of a pod, beside what can be seen of it."""

    seen: Pod
    fate: Fate
    born: float
    node_alive: bool = True
    node_state: NodeState = NodeState.ANSWERS  # as the API server has it
    drain_ends: float | None = None
    drained: bool = False
    stopped: bool = False  # its process has ended or is cut off
    held: bool = False  # somebody's finalizer keeps it, ended or not, even from a deletion by force
    member: bool = False
    starts: int = 1

    @property
    def client_id(self) -> str:
        """Our worker's is made of the pod's, Java's is another one at each start."""
        if self.seen.engine is Engine.CONTAINER:
            return f"{address_of(self.seen.uid)}@{self.starts}#7"
        return f"{self.seen.name}@{self.seen.uid}"

    @property
    def host(self) -> str:
        return "172.17.0.1" if self.fate.hidden else address_of(self.seen.uid)

    @property
    def consumes(self) -> bool:
        return self.member and not self.stopped and self.drain_ends is None

    def start_again(self, now: float) -> None:
        self.stopped, self.member, self.born, self.drain_ends = False, False, now, None
        self.starts += 1


@dataclass
class Object:
    """The ConsumerGroup in the API server."""

    group: ConsumerGroup
    revision: int = 0
    finalizer: bool = False
    deleting_since: float | None = None
    taken_by: str | None = None  # an older object has the group
    gone: bool = False
    by_force: bool = False  # it went without us
    prepared: bool = False
    objects: bool = False
    kept: int | None = None  # by the disruption budget, once there is one


@dataclass
class Broker:
    up: bool = True
    committed: dict[MessageQueue, int] = field(default_factory=lambda: dict.fromkeys(QUEUES, 0))
    locks: dict[MessageQueue, str] = field(default_factory=dict)
    members: dict[str, float | None] = field(default_factory=dict)  # until when, for those that fell silent
    group_deleted: bool = False


def address_of(uid: str) -> str:
    return f"10.0.0.{int(uid.removeprefix('u'))}"


def group_of(**spec: Any) -> ConsumerGroup:
    """A sound manifest, with these parts of its spec."""
    whole = {
        "cluster": {"nameServers": ["127.0.0.1:9876"]},
        "subscriptions": [{"topic": "orders"}],
        "worker": {"handler": "app:handle"},
        **spec,
    }
    return ConsumerGroup.model_validate({"metadata": {"name": NAME, "uid": "group"}, "spec": whole})


def manifest(replicas: int = 2, **spec: Any) -> ConsumerGroup:
    return group_of(replicas=replicas, shutdown={"drainTimeoutSeconds": DRAIN_TIMEOUT}, **spec)
