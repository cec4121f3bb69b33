"""A group on a stage: a backend, brokers and workers that do what they are told and can be made to fail.

Pods start at once and join at once unless told otherwise; queues are owned as `deal` says. Nothing here decides.
"""

import asyncio
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import FINALIZER
from rocketfleet.api.status import ConsumerGroupStatus
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConnectError, RocketMQError
from rocketfleet.control.http_call import CallFailed, Credential
from rocketfleet.control.messages import Assignment, DrainOutcome, QueueReport, QueueState, WorkerPhase
from rocketfleet.controller.planning.actions import Event
from rocketfleet.controller.planning.claims import Claim
from rocketfleet.controller.planning.preparation import Preparation, PreparationState
from rocketfleet.controller.planning.snapshot import DrainMark, NodeState, Ownership, Pod, PodPhase
from rocketfleet.controller.reconciling.backend import BackendError, NameTaken, PodSighting
from rocketfleet.controller.reconciling.worker_calls import WorkerCalls
from rocketfleet.controller.resources.code import Code
from rocketfleet.controller.resources.shared_settings import shared_settings_of
from rocketfleet.controller.rocketmq.brokers import Members
from rocketfleet.controller.rocketmq.group_preparation import Prepared
from rocketfleet.controller.rocketmq.group_removal import Confirm, Leftovers
from rocketfleet.lag.target import Target
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.queue import MessageQueue

QUEUES = tuple(MessageQueue("orders", "broker-a", number) for number in range(4))


def group_of(replicas: int = 2, **spec: Any) -> ConsumerGroup:
    given = {
        "cluster": {"nameServers": ["127.0.0.1:9876"]},
        "subscriptions": [{"topic": "orders"}],
        "replicas": replicas,
        "worker": {"handler": "orders:handle"},
        **spec,
    }
    return ConsumerGroup.model_validate({"metadata": {"name": "orders", "uid": "u1"}, "spec": given})


@dataclass
class Stage:
    """All that there is. `owners` has the member of each queue."""

    group: ConsumerGroup = field(default_factory=group_of)
    now: float = 1_000_000.0
    pods: dict[str, Pod] = field(default_factory=dict)  # by uid
    members: set[str] = field(default_factory=set)  # client ids at the broker
    owners: dict[MessageQueue, set[str]] = field(default_factory=dict)
    offsets: dict[MessageQueue, int] = field(default_factory=dict)
    broker_error: RocketMQError | None = None
    backend_error: str | None = None
    registered: set[str] = field(default_factory=lambda: {queue.broker for queue in QUEUES})  # at the name servers
    unreachable: set[str] = field(default_factory=set)  # uids whose control port does not answer
    deaf: set[str] = field(default_factory=set)  # client ids that do not answer through the broker
    joining: set[str] = field(default_factory=set)  # uids that have not joined yet
    hosts: dict[str, str] = field(default_factory=dict)  # uid → host
    java: dict[str, str] = field(default_factory=dict)  # members with client ids of Java's → host
    calls: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    written: list[Mapping[str, Any]] = field(default_factory=list)
    released: set[str] = field(default_factory=set)
    drained: "asyncio.Event" = field(default_factory=asyncio.Event)  # drains are answered once it is set
    nodes: dict[str, NodeState] = field(default_factory=dict)
    filters: dict[str, str] = field(default_factory=lambda: {"orders": "*"})  # what the broker filters by
    wants: dict[str, dict[str, str]] = field(default_factory=dict)  # by client id: what members say, if asked
    claims: list[Claim] = field(default_factory=list)
    objects: bool = False
    code: Code = field(default_factory=Code)
    kept: int | None = None  # as many pods as evictions leave
    started: int = 0
    known: Preparation | None = None  # what was remembered of the brokers at the last look
    lacking: set[str] = field(default_factory=lambda: {"broker-a"})  # brokers at which the group is not prepared
    leftovers: Leftovers = field(default_factory=Leftovers)
    refusal: BackendError | None = None  # why the group must not be deleted, as a last look at the object shows
    joins: bool = True  # whether pods that are created join
    proves: bool = False  # whether control ports take proofs
    credentials: list[Credential] = field(default_factory=list)  # that control ports were shown
    quota: int | None = None  # pods beyond this are refused
    taken: set[int] = field(default_factory=set)  # ordinals whose pod's name is somebody else's

    def clock(self) -> float:
        return self.now

    def add_pod(self, ordinal: int, *, member: bool = True, **facts: Any) -> Pod:
        uid = facts.pop("uid", f"uid-{ordinal}")
        defaults = {"revision": "r", "created": self.now, "phase": PodPhase.RUNNING, "ready": True}
        pod = Pod(name=f"orders-{ordinal}", ordinal=ordinal, uid=uid, **{**defaults, **facts})
        self.pods[uid] = pod
        if member:
            self.members.add(client_id(pod))
        return pod

    def deal(self) -> None:
        """Share the queues out between the pods that run and do not leave."""
        able = [client_id(pod) for pod in self.pods.values() if not pod.leaving and client_id(pod) in self.members]
        self.owners = {queue: {able[n % len(able)]} for n, queue in enumerate(QUEUES)} if able else {}

    def change(self, pod: Pod, **facts: Any) -> None:
        self.pods[pod.uid] = replace(self.pods[pod.uid], **facts)


def client_id(pod: Pod) -> str:
    return f"{pod.name}@{pod.uid}"


class StageBackend:
    """A Backend."""

    guard = None  # always allowed to write

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def _note(self, what: str) -> None:
        self._stage.calls.append(what)
        if self._stage.backend_error is not None:
            raise BackendError(self._stage.backend_error)

    async def look(self, group: ConsumerGroup) -> tuple[PodSighting, ...]:
        if self._stage.backend_error is not None:
            raise BackendError(self._stage.backend_error)
        return tuple(
            PodSighting(pod, pod.uid, self._stage.hosts.get(pod.uid), proves=self._stage.proves)
            for pod in self._stage.pods.values()
        )

    async def objects_ready(self, group: ConsumerGroup) -> bool:
        return self._stage.objects

    async def ensure_objects(self, group: ConsumerGroup) -> None:
        self._note("objects")
        self._stage.objects = True

    async def evictions_kept(self, group: ConsumerGroup) -> int | None:
        return self._stage.kept

    async def limit_evictions(self, group: ConsumerGroup, keep: int) -> None:
        self._note(f"keep {keep}")
        self._stage.kept = keep

    async def code(self, group: ConsumerGroup) -> Code:
        return self._stage.code

    async def connection(self, group: ConsumerGroup) -> ClientConfig:
        return ClientConfig("127.0.0.1:9876")

    async def control_token(self, group: ConsumerGroup) -> str | None:
        return "token"

    async def create_pod(self, group: ConsumerGroup, ordinal: int, revision: str) -> str:
        self._note(f"create {ordinal}")
        if self._stage.quota is not None and len(self._stage.pods) >= self._stage.quota:
            raise BackendError("exceeded quota")
        if ordinal in self._stage.taken:
            raise NameTaken(f"orders-{ordinal} belongs to somebody else")
        self._stage.started += 1
        uid = f"uid-{ordinal}-{self._stage.started}"
        shared = shared_settings_of(group)
        self._stage.add_pod(ordinal, uid=uid, revision=revision, member=self._stage.joins, shared=shared)
        self._stage.deal()
        return uid

    async def mark_drain(self, group: ConsumerGroup, pod: Pod, mark: DrainMark) -> None:
        self._note(f"mark {pod.name}")
        self._stage.change(pod, drain=mark)

    async def note_shared(self, group: ConsumerGroup, pod: Pod, shared: Mapping[str, str]) -> None:
        self._note(f"note {pod.name}")
        self._stage.change(pod, shared=shared)

    async def delete_pod(self, group: ConsumerGroup, pod: Pod, force: bool) -> None:
        self._note(f"delete {pod.name}")
        if pod.uid in self._stage.pods:
            del self._stage.pods[pod.uid]

    async def nodes(self, names: Collection[str]) -> Mapping[str, NodeState]:
        self._note(f"nodes {' '.join(sorted(names))}")
        return {name: self._stage.nodes[name] for name in names if name in self._stage.nodes}

    async def claims(self, group: ConsumerGroup) -> tuple[Claim, ...]:
        return tuple(self._stage.claims)

    async def add_finalizer(self, group: ConsumerGroup) -> None:
        self._note("finalizer")
        metadata = self._stage.group.metadata.model_copy(update={"finalizers": [FINALIZER]})
        self._stage.group = self._stage.group.model_copy(update={"metadata": metadata})

    async def remove_finalizer(self, group: ConsumerGroup) -> None:
        self._note("no finalizer")

    async def confirm_deletion(self, group: ConsumerGroup) -> None:
        self._note("confirm deletion")
        if self._stage.refusal is not None:
            raise self._stage.refusal

    async def write_status(self, group: ConsumerGroup, status: Mapping[str, Any]) -> None:
        self._note("status")
        self._stage.written.append(status)
        kept = ConsumerGroupStatus.model_validate(dict(status))
        self._stage.group = self._stage.group.model_copy(update={"status": kept})

    async def emit(self, group: ConsumerGroup, event: Event) -> None:
        self._stage.events.append(event)


class StageBrokers:
    """A BrokerAccess, and the GroupAccess of its one group."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.forgotten: list[Hashable] = []
        self.client = Client(ClientConfig("127.0.0.1:9876"))  # never started

    async def of(self, group: ConsumerGroup, config: ClientConfig) -> "StageBrokers":
        return self

    async def forget(self, holder: Hashable) -> None:
        self.forgotten.append(holder)

    async def close(self) -> None: ...

    def _ask(self, what: str) -> None:
        self._stage.calls.append(what)
        if self._stage.broker_error is not None:
            raise self._stage.broker_error

    async def queues(self) -> frozenset[MessageQueue]:
        self._ask("queues")
        return frozenset(QUEUES)

    async def registered_brokers(self) -> frozenset[str]:
        return frozenset(self._stage.registered)

    async def members(self, *, with_hosts: bool) -> Members:
        self._ask("members")
        hosts = {client_id(pod): self._stage.hosts.get(pod.uid, "") for pod in self._stage.pods.values()}
        ours = {one: frozenset({hosts.get(one, "10.9.9.9")}) for one in self._stage.members}
        return Members(ours | {one: frozenset({host}) for one, host in self._stage.java.items()})

    async def ownership(self, client_ids: Iterable[str]) -> Ownership:
        wanted = set(client_ids)
        self._ask(f"ownership of {len(wanted)}")
        owners = {q: frozenset(them & wanted - self._stage.deaf) for q, them in self._stage.owners.items()}
        wants = {one: self._stage.wants[one] for one in wanted if one in self._stage.wants}
        return Ownership({q: them for q, them in owners.items() if them}, frozenset(wanted & self._stage.deaf), wants)

    async def subscribed(self) -> dict[str, dict[str, str]]:
        self._ask("subscribed")
        return {"broker-a": dict(self._stage.filters)}

    async def committed(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        return {queue: self._stage.offsets[queue] for queue in queues if queue in self._stage.offsets}

    def lag_target(self) -> Target:
        return Target(self.client, "orders", ("orders",), ConsumeFromWhere.LAST_OFFSET, name="orders")

    async def standing(self, known: Preparation, now: float, *, nobody: bool) -> PreparationState:
        self._ask("standing")
        self._stage.known = known
        return PreparationState("broker-a" not in self._stage.lacking, frozenset(self._stage.lacking))

    async def prepare(self) -> Prepared:
        self._ask("prepare")
        self._stage.lacking.clear()
        return Prepared(("broker-a",), len(QUEUES))

    async def release_locks(self, client_ids: Collection[str]) -> frozenset[str]:
        self._ask("release")
        gone = frozenset(client_ids) - self._stage.members - self._stage.java.keys()
        self._stage.released |= gone
        return gone

    async def delete_group(self, confirm: Confirm, *, topics_too: bool) -> None:
        self._ask("count leftovers")
        await confirm(self._stage.leftovers)
        self._ask("delete group and topics" if topics_too else "delete group")


class StageWorkers(WorkerCalls):
    """Control ports; an address is a pod's uid."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def _pod(self, address: str) -> Pod:
        if address in self._stage.unreachable or address not in self._stage.pods:
            raise CallFailed(f"{address} does not answer")
        return self._stage.pods[address]

    async def assignment(self, address: str, token: Credential, limit: float = 1.0) -> Assignment:
        pod = self._pod(address)
        self._stage.credentials.append(token)
        me = client_id(pod)
        joined = address not in self._stage.joining
        return Assignment(
            client_ids=(me,),
            phase=WorkerPhase.RUNNING if joined else WorkerPhase.JOINING,
            ready=pod.ready,
            settled=True,
            members=tuple(self._stage.members),
            queues=tuple(
                QueueReport(queue, me, QueueState.OWNED) for queue, them in self._stage.owners.items() if me in them
            ),
        )

    async def rebalance(self, address: str, token: Credential, limit: float = 1.0) -> None:
        self._pod(address)
        self._stage.credentials.append(token)
        self._stage.calls.append(f"tell {address}")

    async def drain(self, address: str, token: Credential, limit: float) -> DrainOutcome:
        pod = self._pod(address)
        self._stage.credentials.append(token)
        self._stage.calls.append(f"drain {pod.name}")
        await self._stage.drained.wait()
        held = [queue for queue, them in self._stage.owners.items() if client_id(pod) in them]
        self._stage.members.discard(client_id(pod))
        self._stage.deal()
        self._stage.offsets |= dict.fromkeys(held, 10)
        self._stage.change(pod, phase=PodPhase.SUCCEEDED, ready=False)
        return DrainOutcome(confirmed=True, offsets=dict.fromkeys(held, 10), seconds=0.1)


def away() -> RocketMQError:
    return ConnectError("127.0.0.1:9876", "connection refused", 0.4)
