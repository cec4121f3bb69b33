"""status_of(…): what there is, as the status of the object; and whether it is worth writing.

Its conditions are what `kubectl wait --for=condition=Ready` and helm's `--wait` go by: Ready is true only when the
status is about the present generation, all pods that should be there are there, ready and of the present revision, none
is left that should not be, and every queue has exactly one owner. A group that is suspended, or has no replicas, is as
its manifest wants it: ready too.

Nothing here changes with time alone. A condition keeps its lastTransitionTime while its status stays the same, and no
sentence holds a duration: a group at rest gets the same status at every look, and it is written once.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.status import (
    MOST_MEMBERS,
    Condition,
    ConditionType,
    ConsumerGroupStatus,
    Lag,
    LastDrain,
    LastRebalance,
    Member,
    Queues,
    Truth,
)
from rocketfleet.controller.conditions import Verdict, verdicts_of
from rocketfleet.controller.pod import selector
from rocketfleet.controller.snapshot import Phase, Pod, Snapshot
from rocketfleet.controller.wanted import desired_replicas, queues_to_own, shares_queues

MOST_MESSAGE = 1024
LAG_SECONDS = 30.0  # lag alone is no reason to write more often


@dataclass(frozen=True, slots=True)
class Memory:
    """What the controller knows of a group beside the snapshot."""

    prepared: str | None = None  # the hash of what is at the broker
    last_rebalance: LastRebalance | None = None
    last_drain: LastDrain | None = None
    lag: Lag | None = None
    broker_trouble: str | None = None  # why the brokers cannot be reached, in words
    trouble: str | None = None  # what else could not be done, in words: the API server said no


def status_of(
    group: ConsumerGroup, snapshot: Snapshot, memory: Memory, previous: ConsumerGroupStatus, now: float
) -> ConsumerGroupStatus:
    """The status of a group whose manifest is sound. `previous` is the one that the object has."""
    generation = group.metadata.generation
    desired = desired_replicas(group, snapshot)
    alive = [pod for pod in snapshot.pods if not pod.ended]
    ready = sum(pod.ready and pod.deleting is None for pod in alive)
    verdicts = verdicts_of(group, snapshot, memory.broker_trouble, memory.trouble, now)
    return ConsumerGroupStatus(
        observed_generation=generation,
        group_name=group.group_name,
        replicas=len(alive),
        ready_replicas=ready,
        updated_replicas=sum(pod.revision == snapshot.revision for pod in alive),
        desired_replicas=desired,
        revision=snapshot.revision or previous.revision,
        selector=selector(group),
        prepared=memory.prepared or previous.prepared,
        queues=_queues(group, snapshot, previous),
        ready_summary=f"{ready}/{desired}",
        lag=memory.lag or previous.lag,
        members=_members(snapshot)[:MOST_MEMBERS],
        last_rebalance=memory.last_rebalance or previous.last_rebalance,
        last_drain=memory.last_drain or previous.last_drain,
        conditions=_conditions(verdicts, generation, previous, now),
    )


def invalid_status(generation: int, sentence: str, previous: ConsumerGroupStatus, now: float) -> ConsumerGroupStatus:
    """The status of a manifest that cannot be followed. What runs goes on running, so the rest stays as it was."""
    verdicts = {
        ConditionType.READY: Verdict(Truth.FALSE, "InvalidSpec", sentence),
        ConditionType.PROGRESSING: Verdict(Truth.FALSE, "InvalidSpec", "Nothing is changed until the spec is valid."),
    }
    kept = {condition.type: condition for condition in previous.conditions or ()}
    made = {condition.type: condition for condition in _conditions(verdicts, generation, previous, now)}
    conditions = [(kept | made)[kind] for kind in ConditionType if kind in kept or kind in made]
    return previous.model_copy(update={"observed_generation": generation, "conditions": conditions})


def differs(old: ConsumerGroupStatus, new: ConsumerGroupStatus) -> bool:
    """Whether the new status says something that the old one does not. Lag moves all the time: it may come later."""
    if _without_lag(old) != _without_lag(new):
        return True
    was, is_now = old.lag, new.lag
    if was is None or is_now is None:
        return was != is_now
    if was.state != is_now.state:
        return True
    return was.model_copy(update={"observed_at": None}) != is_now.model_copy(update={"observed_at": None}) and (
        _seconds(is_now.observed_at) - _seconds(was.observed_at) >= LAG_SECONDS
    )


def timestamp(now: float) -> str:
    """A moment as Kubernetes writes it."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(moment: str | None) -> float:
    return 0.0 if moment is None else datetime.fromisoformat(moment).timestamp()


def _without_lag(status: ConsumerGroupStatus) -> ConsumerGroupStatus:
    members = [member.model_copy(update={"lag": None}) for member in status.members or ()]
    return status.model_copy(update={"lag": None, "members": members})


def _conditions(
    verdicts: dict[ConditionType, Verdict], generation: int, previous: ConsumerGroupStatus, now: float
) -> list[Condition]:
    before = {condition.type: condition for condition in previous.conditions or ()}
    conditions = []
    for kind, verdict in verdicts.items():
        old = before.get(kind)
        same = old is not None and old.status is verdict.status
        conditions.append(
            Condition(
                type=kind,
                status=verdict.status,
                reason=verdict.reason,
                message=_shortened(verdict.message),
                last_transition_time=old.last_transition_time if same and old is not None else timestamp(now),
                observed_generation=generation,
            )
        )
    return conditions


def _shortened(sentence: str) -> str:
    return sentence if len(sentence) <= MOST_MESSAGE else sentence[: MOST_MESSAGE - 1] + "…"


def _queues(group: ConsumerGroup, snapshot: Snapshot, previous: ConsumerGroupStatus) -> Queues | None:
    if not shares_queues(group):
        return None
    queues = queues_to_own(group, snapshot)
    if queues is None:
        return previous.queues
    if snapshot.ownership is None:
        if snapshot.pods:
            return previous.queues
        return Queues(total=len(queues), owned=0, unowned=len(queues), shared=0)
    counts = [len(snapshot.ownership.owners.get(queue, ())) for queue in queues]
    return Queues(
        total=len(queues),
        owned=sum(count == 1 for count in counts),
        unowned=sum(count == 0 for count in counts),
        shared=sum(count > 1 for count in counts),
    )


def _members(snapshot: Snapshot) -> list[Member]:
    """A line for each pod's members, in the order of ordinals, and then the guests."""
    held: dict[str, int] = {}
    silent: frozenset[str] = frozenset()
    if snapshot.ownership is not None:
        silent = snapshot.ownership.silent
        for queue, owners in snapshot.ownership.owners.items():
            if snapshot.queues is None or queue in snapshot.queues:
                for client_id in owners:
                    held[client_id] = held.get(client_id, 0) + 1

    def count(client_id: str) -> int | None:
        return None if snapshot.ownership is None or client_id in silent else held.get(client_id, 0)

    members = []
    ours: set[str] = set()
    for pod in sorted(snapshot.pods, key=lambda pod: (pod.ordinal, pod.name)):
        ours.update(pod.client_ids)
        if not pod.client_ids:
            members.append(Member(pod=pod.name, state=member_state(pod)))
        for client_id in pod.client_ids:
            queues = None if pod.ended else count(client_id)
            members.append(Member(pod=pod.name, client_id=client_id, queues=queues, state=member_state(pod)))
    gone = ours | snapshot.departed | snapshot.lingering
    guests = sorted((snapshot.members or frozenset()) - gone)
    return members + [Member(client_id=guest, queues=count(guest), state="Guest") for guest in guests]


def member_state(pod: Pod) -> str:
    """What a pod is doing, in one word."""
    if pod.phase is Phase.FAILED:
        return "Failed"
    if pod.phase is Phase.SUCCEEDED:
        return "Drained"
    if pod.deleting is not None:
        return "Ending"
    if pod.drain is not None:
        return "Draining"
    if pod.phase is Phase.PENDING:
        return "Pending"
    if pod.ready:
        return "Ready"
    return "NotRunning" if pod.trouble else "Joining"
