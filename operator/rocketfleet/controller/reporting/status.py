"""status_of(…): what there is, as the status of the object; and whether it is worth writing.

Its conditions are what `kubectl wait --for=condition=Ready` and helm's `--wait` go by: Ready is true only when the
status is about the present generation, all pods that should be there are there, ready and of the present revision, none
is left that should not be, and every queue has exactly one owner. A group that is suspended, or has no replicas, is as
its manifest wants it: ready too.

Nothing here changes with time alone. A condition keeps its lastTransitionTime while its status stays the same, and no
sentence holds a duration: a group at rest gets the same status at every look, and it is written once. The exception is
lag, which changes all the time while messages flow: figures are written when they mean something else than before, and
otherwise now and then; a Spark group's batches go with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Autoscaling, Engine
from rocketfleet.api.status import (
    MOST_MEMBERS,
    Condition,
    ConditionType,
    ConsumerGroupStatus,
    Lag,
    LastDrain,
    LastRebalance,
    MemberStatus,
    Queues,
    Scaling,
    SparkProgress,
    Truth,
)
from rocketfleet.base.timestamps import moment_of, timestamp
from rocketfleet.controller.planning.snapshot import Pod, PodPhase, Snapshot
from rocketfleet.controller.planning.wanted import desired_replicas, queues_to_own, replicas_asked_for, shares_queues
from rocketfleet.controller.reporting.conditions import ConditionVerdict, verdicts_of
from rocketfleet.controller.reporting.state_word import state_of
from rocketfleet.controller.resources.pod import selector

MOST_MESSAGE = 1024
LAG_SECONDS = 30.0  # lag alone is no reason to write more often
LAG_SOON = 10.0  # unless it has changed a lot


@dataclass(frozen=True, slots=True)
class StatusInputs:
    """What the controller knows of a group beside the snapshot."""

    prepared: str | None = None  # the hash of what is at the broker
    code: str | None = None  # the hash of the code that pods have, or are taken to have
    last_rebalance: LastRebalance | None = None
    last_drain: LastDrain | None = None
    lag: Lag | None = None
    lag_health: ConditionVerdict | None = None
    lag_of_members: Mapping[str, int] = field(default_factory=dict)  # by client id
    scaling: Scaling | None = None
    progress: SparkProgress | None = None
    broker_trouble: str | None = None  # why the brokers cannot be reached, in words
    operator: str | None = None  # who writes it
    trouble: str | None = None  # what else could not be done, in words: the API server said no
    refused: bool = False  # or the brokers did, for lack of rights


def status_of(
    group: ConsumerGroup,
    snapshot: Snapshot,
    memory: StatusInputs,
    previous: ConsumerGroupStatus,
    now: float,
    ticks: float | None = None,
) -> ConsumerGroupStatus:
    """The status of a group whose manifest is sound. `previous` is the one that the object has, `now` the time of day,
    `ticks` the same by the snapshot's clock, if that is another one.
    """
    ticks = now if ticks is None else ticks
    generation = group.metadata.generation
    desired = desired_replicas(group, snapshot)
    alive = [pod for pod in snapshot.pods if not pod.ended]
    ready = sum(pod.ready and pod.deleting is None for pod in alive)
    verdicts = verdicts_of(
        group, snapshot, memory.broker_trouble, memory.trouble, ticks, memory.lag_health, refused=memory.refused
    )
    return ConsumerGroupStatus(
        observed_generation=generation,
        operator=memory.operator,
        group_name=group.group_name,
        replicas=len(alive),
        ready_replicas=ready,
        updated_replicas=sum(pod.revision == snapshot.revision for pod in alive),
        desired_replicas=desired,
        revision=snapshot.revision or previous.revision,
        code_revision=memory.code or previous.code_revision,
        selector=selector(group),
        prepared=memory.prepared or previous.prepared,
        queues=_queues(group, snapshot, previous),
        # Where no queue is seen, no pod is made: what was asked for is said all the same.
        ready_summary=f"{ready}/{desired if snapshot.queues else max(desired, replicas_asked_for(group, snapshot))}",
        state=state_of(verdicts),
        lag=memory.lag or previous.lag,
        autoscaling=memory.scaling or (previous.autoscaling if group.spec.autoscaling is not None else None),
        spark=_progress(group, memory.progress, previous),
        members=_members(snapshot, memory.lag_of_members)[:MOST_MEMBERS],
        last_rebalance=memory.last_rebalance or previous.last_rebalance,
        last_drain=memory.last_drain or previous.last_drain,
        conditions=_conditions(verdicts, generation, previous, now),
    )


def invalid_status(generation: int, sentence: str, previous: ConsumerGroupStatus, now: float) -> ConsumerGroupStatus:
    """The status of a manifest that cannot be followed. What runs goes on running, so the rest stays as it was."""
    verdicts = {
        ConditionType.READY: ConditionVerdict(Truth.FALSE, "InvalidSpec", sentence),
        ConditionType.PROGRESSING: ConditionVerdict(
            Truth.FALSE, "InvalidSpec", "Nothing is changed until the spec is valid."
        ),
    }
    kept = {condition.type: condition for condition in previous.conditions or ()}
    made = {condition.type: condition for condition in _conditions(verdicts, generation, previous, now)}
    conditions = [(kept | made)[kind] for kind in ConditionType if kind in kept or kind in made]
    update = {"observed_generation": generation, "conditions": conditions, "state": "InvalidSpec"}
    return previous.model_copy(update=update)


def differs(
    old: ConsumerGroupStatus, new: ConsumerGroupStatus, targets: Autoscaling | None = None, groups: int = 1
) -> bool:
    """Whether the new status says something that the old one does not. Lag moves all the time: it may come later, the
    more groups there are that want to write theirs.
    """
    if _without_lag(old) != _without_lag(new):
        return True
    was, is_now = old.lag, new.lag
    if was is None or is_now is None:
        return was != is_now
    if was.state != is_now.state:
        return True
    same = was.model_copy(update={"observed_at": None}) == is_now.model_copy(update={"observed_at": None})
    if same and old.spark == new.spark:
        return False
    since = (moment_of(is_now.observed_at) or 0.0) - (moment_of(was.observed_at) or 0.0)
    if _much_else(was, is_now, targets, new.desired_replicas):
        return since >= max(LAG_SOON, groups / 20)
    return since >= max(LAG_SECONDS, groups / 10)


def _much_else(was: Lag, is_now: Lag, targets: Autoscaling | None, replicas: int) -> bool:
    """Whether lag has doubled, halved or crossed a target, or is known now and was not."""
    if (was.messages is None) != (is_now.messages is None) or was.dlq != is_now.dlq:
        return True
    for before, after, little in (
        (was.messages or 0, is_now.messages or 0, 10.0),
        (was.seconds or 0, is_now.seconds or 0, 5.0),
    ):
        if max(before, after) + little >= 2 * (min(before, after) + little):
            return True
    if targets is None:
        return False
    limits = (targets.target_seconds, was.seconds, is_now.seconds), (
        None if targets.target_lag is None else targets.target_lag * max(replicas, 1), was.messages, is_now.messages,
    )  # fmt: skip
    return any(limit is not None and ((a or 0) > limit) != ((b or 0) > limit) for limit, a, b in limits)


def _without_lag(status: ConsumerGroupStatus) -> ConsumerGroupStatus:
    members = [member.model_copy(update={"lag": None}) for member in status.members or ()]
    scaling = status.autoscaling
    if scaling is not None:
        scaling = scaling.model_copy(update={"message": "", "replica_rate": None})
    # Batches come all the time too; how many executors there are is news, and what was lost.
    spark = status.spark
    if spark is not None:
        spark = SparkProgress(executors=spark.executors, lost=spark.lost)
    return status.model_copy(update={"lag": None, "members": members, "autoscaling": scaling, "spark": spark})


def _progress(group: ConsumerGroup, known: SparkProgress | None, previous: ConsumerGroupStatus) -> SparkProgress | None:
    """The query's progress; while nobody can be asked, the last that was known."""
    return known or previous.spark if group.spec.engine is Engine.SPARK else None


def _conditions(
    verdicts: dict[ConditionType, ConditionVerdict], generation: int, previous: ConsumerGroupStatus, now: float
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


def _members(snapshot: Snapshot, lags: Mapping[str, int]) -> list[MemberStatus]:
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
            members.append(MemberStatus(pod=pod.name, state=member_state(pod)))
        for client_id in pod.client_ids:
            queues = None if pod.ended else count(client_id)
            lag = None if pod.ended else lags.get(client_id)
            members.append(
                MemberStatus(pod=pod.name, client_id=client_id, queues=queues, state=member_state(pod), lag=lag)
            )
    gone = ours | snapshot.departed | snapshot.lingering
    guests = sorted((snapshot.members or frozenset()) - gone)
    return members + [
        MemberStatus(client_id=guest, queues=count(guest), state="Guest", lag=lags.get(guest)) for guest in guests
    ]


def member_state(pod: Pod) -> str:
    """What a pod is doing, in one word."""
    if pod.phase is PodPhase.FAILED:
        return "Failed"
    if pod.phase is PodPhase.SUCCEEDED:
        return "Drained"
    if pod.deleting is not None:
        return "Ending"
    if pod.drain is not None:
        return "Draining"
    if pod.phase is PodPhase.PENDING:
        return "Pending"
    if pod.ready:
        return "Ready"
    return "NotRunning" if pod.trouble else "Joining"
