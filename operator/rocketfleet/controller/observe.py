"""What is there: from the backend, the brokers and the workers into one Snapshot.

Everybody is asked at once and nobody is waited for longer than a few seconds. What could not be found out is None, or
missing, and `trouble` says why; it never stops the look, because a group whose brokers are away still has pods.

Who owns what is asked of our workers directly. Members that cannot be asked that way (another engine, a guest in the
group, a worker whose control port does not answer) are asked through the broker, and not often: each such question
occupies a thread of the broker that also serves locks.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rocketfleet.api.consumer_group import FINALIZER, ConsumerGroup
from rocketfleet.api.status import SparkProgress
from rocketfleet.client.errors import RocketMQError
from rocketfleet.controller.backend import Backend, BackendError, Seen
from rocketfleet.controller.brokers import BrokerAccess, GroupAccess, Members
from rocketfleet.controller.drain import outcome_of
from rocketfleet.controller.group_memory import Asked, Memory
from rocketfleet.controller.group_preparation import preparation_of
from rocketfleet.controller.joining import Candidate, with_members
from rocketfleet.controller.moments import moment_of
from rocketfleet.controller.pod import NO_DEFAULTS, Defaults
from rocketfleet.controller.rebalance_tracking import Tracking
from rocketfleet.controller.revision import revision_of
from rocketfleet.controller.snapshot import Ownership, Phase, Pod, Snapshot
from rocketfleet.controller.wanted import kept_through_evictions, shares_queues
from rocketfleet.controller.worker_calls import Assignment, WorkerCalls
from rocketfleet.controller.worker_settings import client_ids_of
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.http_call import CallFailed

BROKER_SECONDS = 8.0  # for all questions to brokers in one look
ASK_AGAIN = 1.0  # seconds between two questions through the broker, while something moves
ASK_AGAIN_AT_REST = 25.0
CACHE_SECONDS = 10.0  # how long a deletion that we asked for is believed before a cache has shown it
GRACE = 10.0
SHARING_SECONDS = 30.0  # Java shares queues out anew every 20 s


@dataclass(frozen=True, slots=True)
class Observation:
    """A snapshot, and what else the look brought up for those who act on it."""

    snapshot: Snapshot
    access: GroupAccess | None = None
    token: str | None = None
    controls: Mapping[str, str] = field(default_factory=dict)  # pod uid → its control port
    joined: frozenset[str] = frozenset()  # uids of pods whose members have all joined
    progress: SparkProgress | None = None  # of a Spark group's query
    agreed: bool = False  # all members know of each other, and have what they were given
    trouble: str | None = None  # why the brokers could not be asked, as a sentence that stays the same


@dataclass(slots=True)
class _AtBrokers:
    """What the brokers say. Each field is what it is when nobody answers."""

    access: GroupAccess | None = None
    reachable: bool = False
    trouble: str | None = None
    queues: frozenset[MessageQueue] | None = None
    members: Members | None = None
    committed: dict[MessageQueue, int] = field(default_factory=dict)


class Observer:
    """Looks at groups."""

    def __init__(
        self,
        backend: Backend,
        brokers: BrokerAccess,
        workers: WorkerCalls,
        defaults: Defaults = NO_DEFAULTS,
    ) -> None:
        self._backend = backend
        self._brokers = brokers
        self._workers = workers
        self._defaults = defaults

    async def look(self, group: ConsumerGroup, memory: Memory, now: float) -> Observation:
        """One look. BackendError if not even the pods can be seen."""
        seen, objects = await asyncio.gather(self._backend.look(group), self._backend.objects_ready(group))
        pods = tuple(sorted((_pod(group, one, memory, now) for one in seen), key=lambda pod: pod.ordinal))
        _note_gone(memory, {pod.uid: pod for pod in pods})
        controls = {one.pod.uid: one.control for one in seen if one.control is not None}
        token = await self._token(group) if controls else None
        at_brokers, assignments = await asyncio.gather(
            self._ask_brokers(group, pods), self._ask_workers(group, pods, controls, token)
        )
        pods = _identified(group, pods, assignments, seen, at_brokers.members, memory, now)
        _note_pods(memory, pods)
        ownership = await self._ownership(group, memory, at_brokers, assignments, now)
        members = None if at_brokers.members is None else at_brokers.members.ids
        departed = _departed(memory, at_brokers.members)
        snapshot = Snapshot(
            pods=pods,
            revision=revision_of(group, self._defaults),
            finalizer=FINALIZER in group.metadata.finalizers,
            deleting_since=moment_of(group.metadata.deletion_timestamp),
            prepared=_prepared(group, memory),
            objects=objects,
            reachable=at_brokers.reachable,
            queues=at_brokers.queues,
            members=members,
            ownership=ownership,
            committed=at_brokers.committed,
            told=memory.told,
            lingering=memory.gone - departed,
            departed=departed,
            last_desired=_last_desired(group, memory),
        )
        keep = kept_through_evictions(group, snapshot)
        snapshot = replace(snapshot, budget=await self._backend.evictions_limited(group, keep))
        return Observation(
            snapshot=snapshot,
            access=at_brokers.access,
            token=token,
            controls=controls,
            joined=frozenset(uid for uid, answer in assignments.items() if answer.joined),
            progress=next((answer.progress for answer in assignments.values() if answer.progress is not None), None),
            agreed=_agreed(snapshot, assignments) and not _still_sharing(snapshot, assignments, memory.tracking, now),
            trouble=at_brokers.trouble,
        )

    # -- asking -------------------------------------------------------------------------------------------------------

    async def _token(self, group: ConsumerGroup) -> str | None:
        try:
            return await self._backend.control_token(group)
        except BackendError:
            return None

    async def _ask_brokers(self, group: ConsumerGroup, pods: tuple[Pod, ...]) -> _AtBrokers:
        found = _AtBrokers()
        try:
            async with asyncio.timeout(BROKER_SECONDS):
                config = await self._backend.connection(group)
                found.access = await self._brokers.of(group, config)
                found.queues = await found.access.queues()
                members, found.committed = await asyncio.gather(
                    found.access.members(with_hosts=any(not _is_ours(group, pod) for pod in pods)),
                    found.access.committed(_to_read_back(pods)),
                )
                found.members = members
                found.trouble = None if members.error is None else stable(members.error)
                found.reachable = found.trouble is None
        except TimeoutError as error:
            # A RequestTimeout is one too, and says more.
            found.trouble = stable(str(error)) or f"the brokers did not answer within {BROKER_SECONDS:g} s"
        except (RocketMQError, BackendError) as error:
            found.trouble = stable(str(error))
        return found

    async def _ask_workers(
        self, group: ConsumerGroup, pods: tuple[Pod, ...], controls: Mapping[str, str], token: str | None
    ) -> dict[str, Assignment]:
        async def one(pod: Pod) -> tuple[str, Assignment | None]:
            try:
                return pod.uid, await self._workers.assignment(controls[pod.uid], token)
            except CallFailed:
                return pod.uid, None

        able = (pod for pod in pods if pod.phase is Phase.RUNNING and _is_ours(group, pod))
        asked = (one(pod) for pod in able if pod.uid in controls)
        return {uid: answer for uid, answer in await asyncio.gather(*asked) if answer is not None}

    async def _ownership(
        self,
        group: ConsumerGroup,
        memory: Memory,
        at_brokers: _AtBrokers,
        assignments: Mapping[str, Assignment],
        now: float,
    ) -> Ownership | None:
        if at_brokers.members is None or at_brokers.access is None or not shares_queues(group):
            return None
        told = {one for answer in assignments.values() for one in answer.client_ids}
        others = at_brokers.members.ids - told
        through_broker = await self._ask_members(at_brokers.access, others, memory, at_brokers.queues, now)
        owners: dict[MessageQueue, set[str]] = {}
        for table in (*(answer.owners for answer in assignments.values()), through_broker.owners):
            for queue, them in table.items():
                owners.setdefault(queue, set()).update(them)
        return Ownership({queue: frozenset(them) for queue, them in owners.items()}, through_broker.silent)

    async def _ask_members(
        self,
        access: GroupAccess,
        client_ids: frozenset[str],
        memory: Memory,
        queues: frozenset[MessageQueue] | None,
        now: float,
    ) -> Ownership:
        if not client_ids:
            return Ownership({})
        asked = memory.asked
        if asked is not None and asked.client_ids == client_ids:
            at_rest = memory.unbalanced_since is None and queues is not None
            if 0 <= now - asked.at < (ASK_AGAIN_AT_REST if at_rest else ASK_AGAIN):
                return asked.ownership
        try:
            async with asyncio.timeout(BROKER_SECONDS):
                ownership = await access.ownership(client_ids)
        except (RocketMQError, TimeoutError):
            return Ownership({}, client_ids)
        memory.asked = Asked(now, client_ids, ownership)
        return ownership


# -- single facts -----------------------------------------------------------------------------------------------------


def _pod(group: ConsumerGroup, seen: Seen, memory: Memory, now: float) -> Pod:
    """The pod, with what we know of it that the backend does not show, or not yet."""
    pod = seen.pod
    outcome = memory.outcomes.get(pod.uid) or pod.outcome
    deleting = pod.deleting
    asked = memory.deletions.get(pod.uid)
    if deleting is None and asked is not None and now - asked < CACHE_SECONDS:
        deleting = asked + group.spec.shutdown.drain_timeout_seconds + GRACE
    return replace(pod, outcome=outcome, deleting=deleting)


def _identified(
    group: ConsumerGroup,
    pods: tuple[Pod, ...],
    assignments: Mapping[str, Assignment],
    seen: tuple[Seen, ...],
    members: Members | None,
    memory: Memory,
    now: float,
) -> tuple[Pod, ...]:
    """The pods with their client ids: as our runtime says, or as it will; those of others by what the brokers show."""
    places = {one.pod.uid: one for one in seen}
    known: dict[str, Pod] = {}
    others: list[Candidate] = []
    for pod in pods:
        if _is_ours(group, pod):
            answer = assignments.get(pod.uid)
            told = None if answer is None else answer.client_ids
            ids = told or pod.client_ids or client_ids_of(group, pod.ordinal, pod.name, pod.uid)
            known[pod.uid] = replace(pod, client_ids=ids)
        else:
            others.append(Candidate(pod, places[pod.uid].host, places[pod.uid].node))
    ours = memory.gone.union(*(pod.client_ids for pod in known.values()))
    hosts = {one: where for one, where in (members.hosts if members else {}).items() if one not in ours}
    complete = members is not None and members.error is None
    known |= {pod.uid: pod for pod in with_members(others, hosts, now, complete=complete)}
    return tuple(known[pod.uid] for pod in pods)


def _is_ours(group: ConsumerGroup, pod: Pod) -> bool:
    """Whether our own runtime is in it, which says itself what it holds: an engine may have been changed since."""
    return (pod.engine or group.spec.engine).is_ours


def _note_gone(memory: Memory, present: Mapping[str, Pod]) -> None:
    """Members of pods that are no more, and of which nobody has said that they gave back what they held."""
    for uid, pod in memory.pods.items():
        now = present.get(uid)
        if now is None or now.ended:
            outcome = outcome_of(now or pod) or memory.outcomes.get(uid)
            if outcome is None or not outcome.confirmed:
                memory.gone |= frozenset(pod.client_ids) - memory.released
    memory.forget_pods(present)


def _note_pods(memory: Memory, pods: tuple[Pod, ...]) -> None:
    """Keep the pods, for the day they are gone. One that shows no member now keeps those it had; one that shows others
    was started again, and those it had are gone: a Java client has a new id at each start, and its locks the old one.
    """
    before, memory.pods = memory.pods, {}
    for pod in pods:
        had = before[pod.uid].client_ids if pod.uid in before else ()
        if had and pod.client_ids and not set(had) & set(pod.client_ids):
            memory.gone |= frozenset(had) - memory.released
        memory.pods[pod.uid] = pod if pod.client_ids else replace(pod, client_ids=had)


def _departed(memory: Memory, members: Members | None) -> frozenset[str]:
    if members is None or members.error is not None:
        return frozenset()
    return memory.gone - members.ids


def _to_read_back(pods: tuple[Pod, ...]) -> frozenset[MessageQueue]:
    """The queues of drained pods that are about to be let go."""
    waiting = [pod.outcome for pod in pods if pod.drain is not None and pod.deleting is None]
    return frozenset(queue for outcome in waiting if outcome is not None for queue in outcome.offsets or ())


def _agreed(snapshot: Snapshot, assignments: Mapping[str, Assignment]) -> bool:
    if snapshot.members is None:
        return False
    running = (assignments.get(pod.uid) for pod in snapshot.pods if not pod.leaving)
    return all(answer.settled and answer.members == snapshot.members for answer in running if answer is not None)


def _still_sharing(snapshot: Snapshot, assignments: Mapping[str, Assignment], before: Tracking, now: float) -> bool:
    """Whether members have come that cannot be asked what they know of each other, and have no queue yet. Then others
    have not given up theirs; but not for ever: what their own strategy gives them may be nothing.
    """
    if snapshot.members is None or snapshot.ownership is None or not before.known:
        return False
    told = {one for answer in assignments.values() for one in answer.client_ids}
    come = snapshot.members - before.members - told
    having = {one for queue in snapshot.queues or () for one in snapshot.ownership.owners.get(queue, ())}
    enough = len(snapshot.members) <= len(snapshot.queues or ())
    return bool(come - having) and enough and (before.since is None or now - before.since < SHARING_SECONDS)


def _prepared(group: ConsumerGroup, memory: Memory) -> bool:
    known = memory.prepared or (group.status.prepared if group.status is not None else None)
    return known == preparation_of(group)


def _last_desired(group: ConsumerGroup, memory: Memory) -> int | None:
    if memory.last_desired is not None:
        return memory.last_desired
    status = group.status
    return None if status is None or status.observed_generation is None else status.desired_replicas


def stable(sentence: str) -> str:
    """A client's sentence without what changes from one try to the next: it goes into a status."""
    sentence = re.sub(r" \(next attempt in [^)]*\)", "", sentence)
    return re.sub(r"it failed (once|\d+ times in a row) and is left alone for now; last: ", "", sentence)
