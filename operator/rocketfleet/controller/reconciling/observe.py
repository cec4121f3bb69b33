"""What is there: from the backend, the brokers and the workers into one Snapshot.

Everybody is asked at once and nobody is waited for longer than a few seconds. What could not be found out is None, or
missing, and `trouble` says why; it never stops the look, because a group whose brokers are away still has pods.

Who owns what is asked of our workers directly. Members that cannot be asked that way (another engine, a guest in the
group, a worker whose control port does not answer) are asked through the broker, and not often: each such question
occupies a thread of the broker that also serves locks.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import FINALIZER
from rocketfleet.api.spec import CodeUpdate
from rocketfleet.api.status import ConditionType, SparkProgress
from rocketfleet.client.errors import RocketMQError
from rocketfleet.control.budget import Margin
from rocketfleet.control.http_call import CallFailed, Credential
from rocketfleet.control.messages import Assignment
from rocketfleet.control.proof import Proof
from rocketfleet.controller.planning.broker_trouble import BrokerTrouble, brokers_lost, hindrance_of
from rocketfleet.controller.planning.claims import claim_of_group, holder
from rocketfleet.controller.planning.drain import outcome_of
from rocketfleet.controller.planning.joining import Candidate, with_members
from rocketfleet.controller.planning.preparation import PreparationState, preparation_of
from rocketfleet.controller.planning.rebalance_tracking import Tracking
from rocketfleet.controller.planning.snapshot import Ownership, Pod, PodPhase, Snapshot, Subscribed
from rocketfleet.controller.planning.stuck import over_at
from rocketfleet.controller.planning.wanted import shares_queues
from rocketfleet.controller.reconciling.backend import Backend, BackendError, NameServerNotAllowed, PodSighting
from rocketfleet.controller.reconciling.group_state import Applied, Asked, Filters, GroupState, Observed, Tracked
from rocketfleet.controller.reconciling.sightings import OBJECT
from rocketfleet.controller.reconciling.worker_calls import WorkerCalls
from rocketfleet.controller.reporting.conditions import GROUP_TAKEN
from rocketfleet.controller.resources.code import seen_revision, unmarked_code, with_code
from rocketfleet.controller.resources.pod import NO_DEFAULTS, Defaults
from rocketfleet.controller.resources.revision import revision_of
from rocketfleet.controller.resources.shared_settings import SUBSCRIPTIONS, shared_settings_of
from rocketfleet.controller.resources.worker_settings import client_ids_of
from rocketfleet.controller.rocketmq.brokers import BrokerAccess, GroupAccess, Members
from rocketfleet.lag.figures import Work
from rocketfleet.wire.queue import MessageQueue

BROKER_SECONDS = 8.0  # for all questions to brokers in one look
ASK_AGAIN = 1.0  # seconds between two questions through the broker, while something moves
ASK_AGAIN_AT_REST = 25.0
FILTERS_AGAIN = 10.0  # seconds between two questions for what the brokers filter by
CACHE_SECONDS = 10.0  # how long a deletion that we asked for is believed before a cache has shown it
WELL_AGAIN = 60.0  # seconds of readiness after which an ordinal's earlier failures are forgotten
SHARING_SECONDS = 30.0  # Java shares queues out anew every 20 s


@dataclass(frozen=True, slots=True)
class Observation:
    """A snapshot, and what else the look brought up for those who act on it."""

    snapshot: Snapshot
    access: GroupAccess | None = None
    controls: Mapping[str, str] = field(default_factory=dict)  # pod uid → its control port
    credentials: Mapping[str, Credential] = field(default_factory=dict)  # pod uid → what that port asks for
    joined: frozenset[str] = frozenset()  # uids of pods whose members have all joined
    progress: SparkProgress | None = None  # of a Spark group's query
    work: Mapping[str, Work] = field(default_factory=dict)  # what handlers did, by pod uid and client id
    agreed: bool = False  # all members know of each other, and have what they were given
    trouble: str | None = None  # why the brokers could not be asked, as a sentence that stays the same
    observed: Observed = field(default_factory=Observed)  # for the next look


@dataclass(slots=True)
class _AtBrokers:
    """What the brokers say. Defaults describe a cluster that did not answer."""

    access: GroupAccess | None = None
    reachable: bool | None = False
    hindrance: BrokerTrouble | None = None
    allowed: bool = True
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

    async def look(self, group: ConsumerGroup, state: GroupState, now: float, wall: float) -> Observation:
        """One look. BackendError if not even the pods can be seen. `now` is by the clock that durations are measured
        with, `wall` the time of day. `state` is only read: what the next look has to know is in the observation.
        """
        noted = state.observed.copy()
        if noted.preparations != state.applied.preparations:
            noted.preparation.looks.clear()
            noted.preparations = state.applied.preparations
        noted.gone -= state.applied.released
        seen, objects, budget, code = await asyncio.gather(
            self._backend.look(group),
            self._backend.objects_ready(group),
            self._backend.evictions_kept(group),
            self._backend.code(group),
        )
        revision = with_code(revision_of(group, self._defaults), code.digest)
        found = (_pod(group, one, noted, state.applied, now, wall) for one in seen)
        pods = tuple(sorted(found, key=lambda pod: pod.ordinal))
        pods = _with_revisions(group, pods, revision, noted)
        _note_gone(noted, state.applied, {pod.uid: pod for pod in pods})
        controls = {one.pod.uid: one.control for one in seen if one.control is not None}
        token = await self._token(group) if controls else None
        taken_by = await self._taken_by(group, noted)
        credentials = {
            one.pod.uid: Proof(token, one.pod.uid, one.image_id) if one.proves and token is not None else token
            for one in seen
        }
        at_brokers, assignments = await asyncio.gather(
            self._ask_brokers(group, pods, noted, taken_by), self._ask_workers(group, pods, controls, credentials)
        )
        pods = tuple(replace(pod, lost=False) if pod.uid in assignments else pod for pod in pods)
        pods = await self._with_nodes(group, pods, assignments, noted, now)
        noted.sightings.keep(pod.uid for pod in pods)
        pods = _identified(group, pods, assignments, seen, at_brokers.members, noted, now)
        _note_pods(noted, state.applied, pods)
        ownership, standing = await asyncio.gather(
            self._ownership(group, state.tracked, noted, at_brokers, assignments, now),
            self._standing(group, noted, at_brokers, now),
        )
        subscribed = await self._subscribed(group, noted, at_brokers, ownership, now)
        members = None if at_brokers.members is None else at_brokers.members.ids
        departed = _departed(noted, at_brokers.members)
        snapshot = Snapshot(
            pods=pods,
            revision=revision,
            code_missing=code.missing,
            shared=shared_settings_of(group),
            finalizer=FINALIZER in group.metadata.finalizers,
            deleting_since=_deleting_since(group, noted, now),
            taken_by=taken_by,
            prepared=_prepared(group, noted, standing),
            lacking=standing.lacking,
            objects=objects,
            budget=budget,
            reachable=at_brokers.reachable,
            hindrance=at_brokers.hindrance,
            allowed=at_brokers.allowed,
            queues=at_brokers.queues,
            members=members,
            ownership=ownership,
            subscribed=subscribed,
            states=_states(assignments.values()),
            committed=at_brokers.committed,
            told=state.applied.told,
            lingering=noted.gone - departed,
            departed=departed,
            last_desired=_last_desired(group, state.tracked.last_desired, pods),
        )
        sharing = _still_sharing(snapshot, assignments, state.tracked.tracking, now)
        return Observation(
            snapshot=snapshot,
            access=at_brokers.access,
            controls=controls,
            credentials=credentials,
            joined=frozenset(uid for uid, answer in assignments.items() if answer.joined),
            progress=_progress(assignments.values()),
            work={
                f"{uid}/{one.client_id}": Work(one.tried, one.failed, one.sent_back)
                for uid, answer in assignments.items()
                for one in answer.work
            },
            agreed=_agreed(snapshot, assignments) and not sharing,
            trouble=at_brokers.trouble,
            observed=noted,
        )

    # -- asking -------------------------------------------------------------------------------------------------------

    async def _token(self, group: ConsumerGroup) -> str | None:
        try:
            return await self._backend.control_token(group)
        except BackendError:
            return None

    async def _taken_by(self, group: ConsumerGroup, noted: Observed) -> str | None:
        """Whose the group is, if another's. An object that is deleted while it does not have the group never gets it:
        it would delete what it never had, should the other one go first.
        """
        found = holder(claim_of_group(group), await self._backend.claims(group))
        if found is None and group.metadata.deletion_timestamp is not None and _was_taken(group, noted):
            return noted.taken_by or "another one"
        noted.taken_by = None if found is None else str(found)
        return noted.taken_by

    async def _ask_brokers(
        self, group: ConsumerGroup, pods: tuple[Pod, ...], noted: Observed, taken_by: str | None
    ) -> _AtBrokers:
        if taken_by is not None and not pods:
            return _AtBrokers(reachable=None)  # they are none of our business
        found = _AtBrokers()
        try:
            async with asyncio.timeout(BROKER_SECONDS):
                config = await self._backend.connection(group)
                found.access = await self._brokers.of(group, config)
                found.queues = await found.access.queues()
                noted.brokers = frozenset(queue.broker for queue in found.queues)
                members, found.committed = await asyncio.gather(
                    found.access.members(with_hosts=any(not _is_ours(group, pod) for pod in pods)),
                    found.access.committed(_to_read_back(pods)),
                )
                found.members = members
                found.trouble = None if members.error is None else stable(members.error)
                found.hindrance = members.hindrance
                found.reachable = found.trouble is None
        except TimeoutError as error:
            # A RequestTimeout is one too, and says more.
            found.trouble = stable(str(error)) or f"the brokers did not answer within {BROKER_SECONDS:g} s"
            found.hindrance = BrokerTrouble.UNREACHABLE
        except NameServerNotAllowed as error:
            found.allowed, found.trouble = False, str(error)
        except (RocketMQError, BackendError) as error:
            found.trouble, found.hindrance = stable(str(error)), hindrance_of(error)
        if found.hindrance is BrokerTrouble.TOPIC_NOT_FOUND and found.access is not None:
            lost = brokers_lost(noted.brokers, await self._registered(found.access))
            if lost is not None:
                found.trouble, found.hindrance = lost, BrokerTrouble.UNREACHABLE
        return found

    async def _registered(self, access: GroupAccess) -> frozenset[str]:
        try:
            async with asyncio.timeout(BROKER_SECONDS):
                return await access.registered_brokers()
        except (RocketMQError, TimeoutError):
            return frozenset()

    async def _with_nodes(
        self,
        group: ConsumerGroup,
        pods: tuple[Pod, ...],
        assignments: Mapping[str, Assignment],
        noted: Observed,
        now: float,
    ) -> tuple[Pod, ...]:
        """The pods that should have ended and do not answer, with what is known of their nodes."""
        overdue = {
            pod.uid: pod.node
            for pod in pods
            if pod.node is not None and pod.uid not in assignments
            if pod.deleting is not None and (pod.lost or now > over_at(group, pod, pod.deleting))
        }
        states = await self._backend.nodes(frozenset(overdue.values())) if overdue else {}
        found = {uid: states.get(node) for uid, node in overdue.items()}
        return tuple(noted.sightings.node(pod, found.get(pod.uid), now) for pod in pods)

    async def _ask_workers(
        self,
        group: ConsumerGroup,
        pods: tuple[Pod, ...],
        controls: Mapping[str, str],
        credentials: Mapping[str, Credential],
    ) -> dict[str, Assignment]:
        async def one(pod: Pod) -> tuple[str, Assignment | None]:
            try:
                return pod.uid, await self._workers.assignment(controls[pod.uid], credentials.get(pod.uid))
            except CallFailed:
                return pod.uid, None

        able = (pod for pod in pods if pod.phase is PodPhase.RUNNING and _is_ours(group, pod))
        asked = (one(pod) for pod in able if pod.uid in controls)
        return {uid: answer for uid, answer in await asyncio.gather(*asked) if answer is not None}

    async def _standing(
        self, group: ConsumerGroup, noted: Observed, at_brokers: _AtBrokers, now: float
    ) -> PreparationState:
        """What a group that runs, or is about to, has at its brokers. One of them that is away leaves the others."""
        if at_brokers.access is None or at_brokers.queues is None or group.spec.suspend:
            return PreparationState()
        if group.metadata.deletion_timestamp is not None:
            return PreparationState()
        members = at_brokers.members
        nobody = members is not None and members.error is None and not members.ids
        try:
            async with asyncio.timeout(BROKER_SECONDS):
                return await at_brokers.access.standing(noted.preparation, now, nobody=nobody)
        except (RocketMQError, TimeoutError):
            return PreparationState()

    async def _ownership(
        self,
        group: ConsumerGroup,
        tracked: Tracked,
        noted: Observed,
        at_brokers: _AtBrokers,
        assignments: Mapping[str, Assignment],
        now: float,
    ) -> Ownership | None:
        if at_brokers.members is None or at_brokers.access is None or not shares_queues(group):
            return None
        told = {one for answer in assignments.values() for one in answer.client_ids}
        others = at_brokers.members.ids - told
        at_rest = tracked.unbalanced_since is None and at_brokers.queues is not None
        through_broker = await self._ask_members(at_brokers.access, others, noted, at_rest, now)
        owners: dict[MessageQueue, set[str]] = {}
        for table in (*(answer.owners for answer in assignments.values()), through_broker.owners):
            for queue, them in table.items():
                owners.setdefault(queue, set()).update(them)
        all_owners = {queue: frozenset(them) for queue, them in owners.items()}
        return Ownership(all_owners, through_broker.silent, through_broker.wants)

    async def _subscribed(
        self, group: ConsumerGroup, noted: Observed, at_brokers: _AtBrokers, ownership: Ownership | None, now: float
    ) -> Subscribed | None:
        """What the group subscribes to. The brokers are asked now and then: nothing waits for it."""
        members = at_brokers.members
        if at_brokers.access is None or members is None or not members.ids:
            noted.filters = None
            return None
        known, wanted = noted.filters, shared_settings_of(group)[SUBSCRIPTIONS]
        same = known is not None and (known.members, known.wanted) == (members.ids, wanted)
        if known is None or not same or now - known.at >= FILTERS_AGAIN:
            try:
                async with asyncio.timeout(BROKER_SECONDS):
                    known = Filters(now, members.ids, wanted, await at_brokers.access.subscribed())
            except (RocketMQError, TimeoutError):
                return None
        noted.filters = known
        wants = {} if ownership is None else ownership.wants
        return Subscribed(known.found, {one: theirs for one, theirs in wants.items() if one in members.ids})

    async def _ask_members(
        self,
        access: GroupAccess,
        client_ids: frozenset[str],
        noted: Observed,
        at_rest: bool,
        now: float,
    ) -> Ownership:
        if not client_ids:
            return Ownership({})
        asked = noted.asked
        again = ASK_AGAIN_AT_REST if at_rest else ASK_AGAIN
        if asked is not None and asked.client_ids == client_ids and 0 <= now - asked.at < again:
            return asked.ownership
        try:
            async with asyncio.timeout(BROKER_SECONDS):
                ownership = await access.ownership(client_ids)
        except (RocketMQError, TimeoutError):
            return Ownership({}, client_ids)
        noted.asked = Asked(now, client_ids, ownership)
        return ownership


# -- single facts -----------------------------------------------------------------------------------------------------


def _pod(group: ConsumerGroup, seen: PodSighting, noted: Observed, applied: Applied, now: float, wall: float) -> Pod:
    """The pod by our own clock, with what we know of it that the backend does not show, or not yet."""
    pod = noted.sightings.pod(seen.pod, now, wall)
    outcome = applied.outcomes.get(pod.uid) or pod.outcome
    deleting = pod.deleting
    asked = applied.deletions.get(pod.uid)
    if deleting is None and asked is not None and now - asked < CACHE_SECONDS:
        deleting = asked + Margin.POD_GRACE.after(group.spec.shutdown.drain_timeout_seconds)
    return replace(pod, outcome=outcome, deleting=deleting, failures=_failures_before(noted, pod, now))


def _failures_before(noted: Observed, pod: Pod, now: float) -> int:
    """How many pods of its ordinal failed in a row before this one. One that has been well for a while ends the row,
    and so does another revision, which may well be the cure.
    """
    count, last, revision = noted.failed.get(pod.ordinal, (0, "", pod.revision))
    if revision != pod.revision:
        count = 0
    if pod.phase is PodPhase.FAILED:
        if pod.uid != last:
            count += 1
            noted.failed[pod.ordinal] = (count, pod.uid, pod.revision)
        return count - 1
    if pod.ready_since is not None and now - pod.ready_since > WELL_AGAIN:
        noted.failed.pop(pod.ordinal, None)
        return 0
    return count


def _with_revisions(group: ConsumerGroup, pods: tuple[Pod, ...], wanted: str, noted: Observed) -> tuple[Pod, ...]:
    """The pods, those that need not be replaced with the revision that is wanted."""
    known = noted.code or (group.status.code_revision if group.status is not None else None)
    noted.code = unmarked_code(known, wanted, [pod.revision for pod in pods])
    program = group.spec.program
    rolls = program is None or program.code_update is not CodeUpdate.IGNORE
    return tuple(replace(pod, revision=seen_revision(pod.revision, wanted, noted.code, rolls=rolls)) for pod in pods)


def _was_taken(group: ConsumerGroup, noted: Observed) -> bool:
    conditions = (group.status.conditions if group.status is not None else None) or ()
    said = any(one.type is ConditionType.READY and one.reason == GROUP_TAKEN for one in conditions)
    return noted.taken_by is not None or said


def _deleting_since(group: ConsumerGroup, noted: Observed, now: float) -> float | None:
    return None if group.metadata.deletion_timestamp is None else noted.sightings.since(OBJECT, "deleting", now)


def _identified(
    group: ConsumerGroup,
    pods: tuple[Pod, ...],
    assignments: Mapping[str, Assignment],
    seen: tuple[PodSighting, ...],
    members: Members | None,
    noted: Observed,
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
    ours = noted.gone.union(*(pod.client_ids for pod in known.values()))
    hosts = {one: where for one, where in (members.hosts if members else {}).items() if one not in ours}
    complete = members is not None and members.error is None
    known |= {pod.uid: pod for pod in with_members(others, hosts, now, complete=complete)}
    return tuple(known[pod.uid] for pod in pods)


def _is_ours(group: ConsumerGroup, pod: Pod) -> bool:
    """Whether our own runtime is in it, which says itself what it holds: an engine may have been changed since."""
    return (pod.engine or group.spec.engine).is_ours


def _note_gone(noted: Observed, applied: Applied, present: Mapping[str, Pod]) -> None:
    """Members of pods that are no more, and of which nobody has said that they gave back what they held."""
    for uid, pod in noted.pods.items():
        now = present.get(uid)
        if now is None or now.ended:
            outcome = outcome_of(now or pod) or applied.outcomes.get(uid)
            if outcome is None or not outcome.confirmed:
                noted.gone |= frozenset(pod.client_ids) - applied.released


def _note_pods(noted: Observed, applied: Applied, pods: tuple[Pod, ...]) -> None:
    """Keep the pods, for the day they are gone. One that shows no member now keeps those it had; one that shows others
    was started again, and those it had are gone: a Java client has a new id at each start, and its locks the old one.
    """
    before, noted.pods = noted.pods, {}
    for pod in pods:
        had = before[pod.uid].client_ids if pod.uid in before else ()
        if had and pod.client_ids and not set(had) & set(pod.client_ids):
            noted.gone |= frozenset(had) - applied.released
        noted.pods[pod.uid] = pod if pod.client_ids else replace(pod, client_ids=had)


def _departed(noted: Observed, members: Members | None) -> frozenset[str]:
    if members is None or members.error is not None:
        return frozenset()
    return noted.gone - members.ids


def _to_read_back(pods: tuple[Pod, ...]) -> frozenset[MessageQueue]:
    """The queues of drained pods that are about to be let go."""
    waiting = [pod.outcome for pod in pods if pod.drain is not None and pod.deleting is None]
    return frozenset(queue for outcome in waiting if outcome is not None for queue in outcome.offsets or ())


def _agreed(snapshot: Snapshot, assignments: Mapping[str, Assignment]) -> bool:
    if snapshot.members is None:
        return False
    running = (assignments.get(pod.uid) for pod in snapshot.pods if not pod.leaving)
    return all(answer.settled and set(answer.members) == snapshot.members for answer in running if answer is not None)


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


def _states(assignments: Iterable[Assignment]) -> dict[MessageQueue, frozenset[str]]:
    """What our workers say of each queue, all together."""
    states: dict[MessageQueue, frozenset[str]] = {}
    for assignment in assignments:
        for queue, them in assignment.states.items():
            states[queue] = states.get(queue, frozenset()) | them
    return states


def _progress(assignments: Iterable[Assignment]) -> SparkProgress | None:
    """How the query of a group's one driver gets on."""
    told = next((one.progress for one in assignments if one.progress is not None), None)
    return None if told is None else SparkProgress.model_validate(told.to_json())


def _prepared(group: ConsumerGroup, noted: Observed, standing: PreparationState) -> bool:
    """Whether pods can come, by what the brokers say; where none can be asked, by what they said last."""
    wanted = preparation_of(group)
    if standing.prepared is None:
        return wanted == (noted.prepared or (group.status.prepared if group.status is not None else None))
    if standing.prepared:
        noted.prepared = wanted
    return standing.prepared


def _last_desired(group: ConsumerGroup, before: int | None, pods: Iterable[Pod]) -> int | None:
    """As many as were wanted last. Where the status that said so is lost, the pods say it: all that nobody has marked
    to go are wanted. Else a group that autoscaling has grown would shrink for the lack of a note.
    """
    if before is not None:
        return before
    status = group.status
    if status is not None and status.observed_generation is not None and "desired_replicas" in status.model_fields_set:
        return status.desired_replicas
    return max((pod.ordinal + 1 for pod in pods if pod.drain is None and pod.ordinal >= 0), default=None)


def stable(sentence: str) -> str:
    """A client's sentence as it goes into a status: without what changes from one try to the next, and without what a
    host has answered that is no RocketMQ. Whoever wrote the manifest may not be one who reaches that host.
    """
    sentence = re.sub(r"the peer announced .*\)\. (Check that)", r"what it answers is not RocketMQ's. \1", sentence)
    return re.sub(r"it failed (once|\d+ times in a row) and is left alone for now; last: ", "", sentence)
