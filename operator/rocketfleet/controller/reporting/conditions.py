"""What is true of a group, condition by condition: a status, one word for programs, one sentence for people.

Ready is the sum of what hinders the group, of Balanced and of Draining; LagHealthy and SubscriptionsConsistent stand
beside it. Its reason is the first thing that stands in its way, the most basic one first: a group whose brokers cannot
be reached is not ready for that reason, even though its pods are not well either.
"""

from collections.abc import Iterable
from typing import NamedTuple

from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.base.counting import counted
from rocketfleet.control.messages import IN_VAIN, QueueState
from rocketfleet.controller.planning.broker_trouble import BrokerTrouble
from rocketfleet.controller.planning.deletion import waits_because, waits_for
from rocketfleet.controller.planning.drain import describe_unsafe, drain_limit, outcome_of, unsafe_offsets
from rocketfleet.controller.planning.joining import JOIN_LIMIT
from rocketfleet.controller.planning.plan import taken_text
from rocketfleet.controller.planning.snapshot import Joining, Snapshot
from rocketfleet.controller.planning.update import mixed_aspects, shuts_out, why_recreated
from rocketfleet.controller.planning.wanted import (
    assigned_queues,
    queues_to_own,
    replicas_asked_for,
    shares_queues,
    wanted_ordinals,
)
from rocketfleet.controller.reporting.subscriptions import disagreements
from rocketfleet.controller.resources.shared_settings import SUBSCRIPTIONS, differing
from rocketfleet.wire.topics import RETRY_PREFIX


class ConditionVerdict(NamedTuple):
    """A condition without its times."""

    status: Truth
    reason: str
    message: str


GROUP_TAKEN = "GroupTaken"
MEMBERS_DIFFER = "MembersDiffer"
# Reasons that waiting does not mend: they need help from outside.
_FOR_OTHERS = frozenset(
    {
        *(one.value for one in BrokerTrouble),
        "MasterAway",
        "NoQueues",
        "ReconcileFailed",
        "QueuesUnassigned",
        "PodTrouble",
        "OtherMembers",
        "DeletionWaits",
        "ConfigMapNotFound",
        GROUP_TAKEN,
        "NameServerNotAllowed",
    }
)
START_SECONDS = 15.0  # that a pod on a node is given before its containers are made: volumes are mounted in one or two
ROLL_WAITS = ConditionVerdict(
    Truth.TRUE,
    "RollWaits",
    "The operator has a new default image, and as many groups as may (--max-rolling-groups) are being moved to it.",
)
NOT_MEASURED = ConditionVerdict(Truth.UNKNOWN, "NotMeasured", "The lag is not measured.")


def verdicts_of(
    group: ConsumerGroup,
    snapshot: Snapshot,
    broker_trouble: str | None,
    trouble: str | None,
    now: float,
    lag: ConditionVerdict | None = None,
    *,
    refused: bool = False,
) -> dict[ConditionType, ConditionVerdict]:
    """Every condition. `now` only decides whether a drain or a start is late; the verdict on the lag comes from outside
    (`lag`). `trouble` is what could not be done, `refused`: because the brokers did not allow it.
    """
    reachable = _broker_reachable(snapshot, broker_trouble)
    balanced = _balanced(group, snapshot)
    draining = _draining(group, snapshot, now)
    hindered = _hindered(group, snapshot, broker_trouble, reachable)
    if trouble is not None:
        reason = BrokerTrouble.NO_PERMISSION.value if refused else "ReconcileFailed"
        hindered = ConditionVerdict(Truth.FALSE, reason, f"{trouble}{_on_rights(group)}" if refused else trouble)
    if snapshot.taken_by is not None:  # also while it is deleted: see observe.py
        ready = ConditionVerdict(Truth.FALSE, GROUP_TAKEN, _sentence(taken_text(group, snapshot)))
    elif snapshot.deleting_since is not None:
        ready = _deleting(group, snapshot, trouble)
    else:
        ready = _ready(group, snapshot, hindered, balanced, draining, now)
    return {
        ConditionType.READY: ready,
        ConditionType.PROGRESSING: _progressing(ready, snapshot),
        ConditionType.BALANCED: balanced,
        ConditionType.LAG_HEALTHY: lag or NOT_MEASURED,
        ConditionType.BROKER_REACHABLE: reachable,
        ConditionType.DRAINING: draining,
        ConditionType.SUBSCRIPTIONS_CONSISTENT: subscriptions_verdict(group, snapshot),
    }


def _broker_reachable(snapshot: Snapshot, broker_trouble: str | None) -> ConditionVerdict:
    if snapshot.reachable is None:
        return ConditionVerdict(Truth.UNKNOWN, "NotAsked", "The brokers have not been asked yet.")
    if snapshot.hindrance is BrokerTrouble.CREDENTIALS:
        return ConditionVerdict(Truth.UNKNOWN, "NotAsked", f"The brokers cannot be asked: {broker_trouble}")
    if snapshot.hindrance is not None and snapshot.hindrance.answered:
        return ConditionVerdict(
            Truth.TRUE, "Reachable", "The name servers and brokers answer, though not as they should."
        )
    if not snapshot.allowed:
        return ConditionVerdict(
            Truth.FALSE, "NameServerNotAllowed", broker_trouble or "This name server is not allowed."
        )
    away = masters_away(snapshot)
    if away:
        return ConditionVerdict(Truth.FALSE, "MasterAway", _without_masters(snapshot, away, broker_trouble))
    if snapshot.reachable:
        return ConditionVerdict(Truth.TRUE, "Reachable", "The name servers and brokers answer.")
    why = broker_trouble or "no answer"
    return ConditionVerdict(Truth.FALSE, "BrokerUnreachable", f"The name servers or brokers cannot be reached: {why}")


def _hindered(
    group: ConsumerGroup, snapshot: Snapshot, trouble: str | None, reachable: ConditionVerdict
) -> ConditionVerdict | None:
    """What the brokers have against the group's being ready; None: nothing."""
    why = trouble or "no answer"
    match snapshot.hindrance:
        case BrokerTrouble.TOPIC_NOT_FOUND:
            return ConditionVerdict(Truth.FALSE, "TopicNotFound", f"A topic is missing: {why}.")
        case BrokerTrouble.NO_PERMISSION:
            return ConditionVerdict(Truth.FALSE, "NoPermission", f"The brokers refuse: {why}{_on_rights(group)}")
        case BrokerTrouble.CREDENTIALS:
            return ConditionVerdict(Truth.FALSE, "CredentialsUnavailable", f"The brokers cannot be asked: {why}.")
    return reachable if reachable.status is Truth.FALSE else None


def _on_rights(group: ConsumerGroup) -> str:
    if group.spec.cluster.credentials is None:
        return ". These brokers ask for credentials: give spec.cluster.credentials."
    return ". Check the credentials, and what their user may do with the group and its topics."


def masters_away(snapshot: Snapshot) -> frozenset[str]:
    """The brokers whose masters are away, by what members say of their queues: one is consumed from a slave; or, while
    we do not reach all brokers either, none of a broker's queues is owned and some are held in vain.
    """
    standby = {queue.broker for queue, states in snapshot.states.items() if QueueState.STANDBY in states}
    if snapshot.reachable:
        return frozenset(standby)
    in_vain = {queue.broker for queue, states in snapshot.states.items() if states & IN_VAIN}
    owned = {queue.broker for queue, states in snapshot.states.items() if QueueState.OWNED in states}
    return frozenset(standby | (in_vain - owned))


def _without_masters(snapshot: Snapshot, away: frozenset[str], trouble: str | None) -> str:
    states = [
        states
        for queue, states in snapshot.states.items()
        if queue.broker in away and not queue.topic.startswith(RETRY_PREFIX)
    ]
    standby = sum(QueueState.STANDBY in each for each in states)
    text = (
        f"The master of {_names(away)} is away. Of its queues {standby} are consumed from a slave, by whoever had them "
        f"last, and {len(states) - standby} are not consumed."
    )
    return text if trouble is None else f"{text} {trouble}"


def _balanced(group: ConsumerGroup, snapshot: Snapshot) -> ConditionVerdict:
    if not shares_queues(group):
        return ConditionVerdict(Truth.TRUE, "NothingToShare", "Every member gets all messages.")
    queues = queues_to_own(group, snapshot)
    if queues is None:
        return ConditionVerdict(Truth.UNKNOWN, "NotObserved", "It is not known which queues there are.")
    if not queues:
        topics = ", ".join(subscription.topic for subscription in group.spec.subscriptions)
        return ConditionVerdict(
            Truth.FALSE, "NoQueues", f"There is no queue to consume from: create the topics {topics}."
        )
    if not wanted_ordinals(group, snapshot) and not snapshot.pods:
        return ConditionVerdict(Truth.FALSE, "NoMembers", "There are no members, so nobody owns a queue.")
    if snapshot.ownership is None:
        return ConditionVerdict(Truth.UNKNOWN, "NotObserved", "It is not known who owns which queue.")
    others = _others(group, snapshot)
    if others:
        text = (
            f"Engine Spark reads every queue itself, and others are in the group too: {_names(others)}. Messages go to "
            "both: give one of them another groupName."
        )
        return ConditionVerdict(Truth.FALSE, "OtherMembers", text)
    unowned = sum(not snapshot.ownership.owners.get(queue) for queue in queues)
    shared = sum(len(snapshot.ownership.owners.get(queue, ())) > 1 for queue in queues)
    if snapshot.ownership.silent:
        silent = _names(snapshot.ownership.silent)
        return ConditionVerdict(Truth.FALSE, "MembersSilent", f"It is not known what these members own: {silent}.")
    if unowned or shared:
        text = f"Of {counted(len(queues), 'queue')} {_have(unowned)} no owner and {_have(shared)} several."
        return ConditionVerdict(Truth.FALSE, "Rebalancing", text)
    waited_for = _waited_for(snapshot, wanted_ordinals(group, snapshot))
    if waited_for is not None:
        return ConditionVerdict(Truth.FALSE, "MembersJoining", waited_for)
    if group.spec.engine is Engine.WORKER and group.spec.allocation.strategy is StrategyName.CONFIG:
        left_out = (snapshot.queues or frozenset()) - assigned_queues(group)
        if left_out:
            text = (
                f"Nobody consumes {_names(str(queue) for queue in left_out)}: allocation.assignments leaves them out."
            )
            return ConditionVerdict(Truth.FALSE, "QueuesUnassigned", text)
    each = "The one queue has" if len(queues) == 1 else f"Each of {len(queues)} queues has"
    text = f"{each} exactly one owner.{_assumed(snapshot)}"
    return ConditionVerdict(Truth.TRUE, "EachQueueOwnedOnce", text)


def _others(group: ConsumerGroup, snapshot: Snapshot) -> frozenset[str]:
    """Members of a Spark group that are not ours. Elsewhere guests have their share, and are welcome."""
    if group.spec.engine is not Engine.SPARK or snapshot.members is None:
        return frozenset()
    ours = {client_id for pod in snapshot.pods for client_id in pod.client_ids}
    return snapshot.members - ours - snapshot.lingering - snapshot.departed


def subscriptions_verdict(group: ConsumerGroup, snapshot: Snapshot) -> ConditionVerdict:
    """Whether all members subscribe to what the manifest says."""
    if snapshot.subscribed is None:
        return ConditionVerdict(Truth.UNKNOWN, "NotObserved", "Nobody is in the group, or the brokers have not said.")
    before = [pod.name for pod in snapshot.pods if SUBSCRIPTIONS in differing(pod.shared, snapshot.shared)]
    if before:
        text = f"These pods have the subscriptions of an earlier manifest, and are to be replaced: {_names(before)}."
        return ConditionVerdict(Truth.FALSE, "UpdateUnderWay", text)
    found = disagreements(group, snapshot.subscribed)
    if found:
        text = "; ".join(found[:3]) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")
        advice = "Members that do not agree skip each other's messages: give all the same subscriptions"
        return ConditionVerdict(Truth.FALSE, MEMBERS_DIFFER, f"{text}. {advice}.")
    return ConditionVerdict(Truth.TRUE, "AsInManifest", "The members subscribe to what the manifest says.")


def _draining(group: ConsumerGroup, snapshot: Snapshot, now: float) -> ConditionVerdict:
    going = sorted((pod for pod in snapshot.pods if pod.drain is not None), key=lambda pod: pod.ordinal)
    for pod in going:
        late = pod.drain is not None and pod.deleting is None and now - pod.drain.since > drain_limit(group)
        outcome = outcome_of(pod)
        if late and outcome is None:
            return ConditionVerdict(
                Truth.TRUE, "DrainTimedOut", f"{pod.name} has not drained within {drain_limit(group):g} s."
            )
        if late and outcome is not None:
            unsafe = describe_unsafe(unsafe_offsets(group, snapshot, pod, outcome) or None)
            return ConditionVerdict(Truth.TRUE, "OffsetsUnsafe", f"The offsets of {pod.name} are not safe: {unsafe}.")
    if going:
        reasons = _names({pod.drain.reason for pod in going if pod.drain is not None})
        names = _names(pod.name for pod in going)
        return ConditionVerdict(Truth.TRUE, "Draining", f"{names}: {reasons}.")
    return ConditionVerdict(Truth.FALSE, "NoDrain", "No member is being drained.")


def _ready(
    group: ConsumerGroup,
    snapshot: Snapshot,
    hindered: ConditionVerdict | None,
    balanced: ConditionVerdict,
    draining: ConditionVerdict,
    now: float,
) -> ConditionVerdict:
    ordinals = wanted_ordinals(group, snapshot)
    if hindered is not None and (not group.spec.suspend or hindered.reason == "ReconcileFailed"):
        return hindered
    if group.spec.suspend:
        if snapshot.pods:
            return ConditionVerdict(Truth.FALSE, "Suspending", f"{_pods_are(len(snapshot.pods))} still being drained.")
        return ConditionVerdict(Truth.TRUE, "Suspended", "The group is suspended, and no pod runs.")
    if not snapshot.prepared:
        where = _names(snapshot.lacking) or "the brokers"
        return ConditionVerdict(
            Truth.FALSE, "Preparing", f"The group and its start offsets are not written at {where} yet."
        )
    asked = replicas_asked_for(group, snapshot)
    if asked == 0 and not snapshot.pods:
        return ConditionVerdict(Truth.TRUE, "NoReplicas", "No replicas are wanted, and no pod runs.")
    if balanced.reason == "NoQueues" or (balanced.status is Truth.UNKNOWN and not ordinals):
        return ConditionVerdict(balanced.status, balanced.reason, balanced.message)
    pods = _pods(group, snapshot, ordinals, draining, now)
    if pods is not None and snapshot.code_missing is not None:
        return ConditionVerdict(Truth.FALSE, "ConfigMapNotFound", _sentence(snapshot.code_missing))
    if pods is not None:
        return pods
    if balanced.status is not Truth.TRUE and ordinals:
        reason = "NotBalanced" if balanced.reason == "Rebalancing" else balanced.reason
        return ConditionVerdict(balanced.status, reason, balanced.message)
    if len(ordinals) < asked:
        return ConditionVerdict(Truth.TRUE, "LimitedByQueues", f"{limited_text(len(ordinals), asked)}.")
    if group.spec.engine is Engine.SPARK:
        return ConditionVerdict(Truth.TRUE, "AllReady", "The driver is ready, and its query reads every queue.")
    pods_are = "The one pod is ready and has every queue"
    if len(ordinals) != 1:
        pods_are = f"All {len(ordinals)} pods are ready and share the queues"
    text = f"{pods_are}.{_assumed(snapshot)}"
    return ConditionVerdict(Truth.TRUE, "AllReady", text)


def limited_text(desired: int, asked: int) -> str:
    """That there are fewer pods than were asked for, and why."""
    return f"{counted(desired, 'pod runs', 'pods run')}, not {asked}: more would have no queue to consume from"


def _deleting(group: ConsumerGroup, snapshot: Snapshot, trouble: str | None) -> ConditionVerdict:
    """The object is deleted: what it waits for."""
    if snapshot.pods:
        names = _names(pod.name for pod in snapshot.pods)
        text = f"The group is being deleted; {_pods_are(len(snapshot.pods))} left, to be drained first: {names}."
        return ConditionVerdict(Truth.FALSE, "Deleting", text)
    waits = waits_for(group, snapshot)
    if waits is None and trouble is not None:
        waits = waits_because(group, trouble)
    if waits is None:
        return ConditionVerdict(Truth.FALSE, "Deleting", "The group is being deleted; no pod is left.")
    own = bool(snapshot.departed or snapshot.lingering)
    return ConditionVerdict(Truth.FALSE, "Deleting" if own else "DeletionWaits", waits)


def _pods(
    group: ConsumerGroup, snapshot: Snapshot, ordinals: tuple[int, ...], draining: ConditionVerdict, now: float
) -> ConditionVerdict | None:
    """What is amiss with the pods; None: nothing."""
    wanted = [pod for pod in snapshot.pods if pod.ordinal in ordinals]
    broken = [pod for pod in wanted if pod.trouble and not pod.ready and pod.deleting is None]
    if broken:
        return ConditionVerdict(
            Truth.FALSE, "PodTrouble", "; ".join(f"{pod.name}: {pod.trouble}" for pod in broken[:5])
        )
    slow = [pod.name for pod in wanted if pod.starting_since is not None and now - pod.starting_since > START_SECONDS]
    if slow:
        text = (
            f"The containers of {_names(slow)} are not made: something that they mount may be missing, a ConfigMap or "
            f"a Secret. `kubectl describe pod {min(slow)}` says what."
        )
        return ConditionVerdict(Truth.FALSE, "PodTrouble", text)
    current = [pod for pod in wanted if pod.revision == snapshot.revision and not pod.leaving]
    in_the_way = [pod for pod in snapshot.pods if shuts_out(group, snapshot, pod)]
    if in_the_way:
        old = counted(len(in_the_way), "pod with the old settings is", "pods with the old settings are")
        text = (
            f"{why_recreated(group, snapshot)}: {old} to go before the "
            "first new one starts. Between the two nothing is consumed."
        )
        return ConditionVerdict(Truth.FALSE, "Recreate", text)
    if any(pod.revision != snapshot.revision for pod in wanted):
        text = f"{_some_pods(len(current), len(ordinals))} of the present revision."
        mixed = mixed_aspects(snapshot)
        if mixed:
            text += f" Members with different {_names(mixed)} are in the group side by side (update.type: Rolling)."
        return ConditionVerdict(Truth.FALSE, "RollingUpdate", text)
    ready = [pod for pod in current if pod.ready]
    waited_for = _waited_for(snapshot, ordinals)
    if waited_for is not None and len(current) == len(ordinals):
        return ConditionVerdict(Truth.FALSE, "MembersJoining", waited_for)
    if len(ready) < len(ordinals):
        return ConditionVerdict(Truth.FALSE, "PodsNotReady", f"{_some_pods(len(ready), len(ordinals))} ready.")
    if len(snapshot.pods) > len(ordinals):
        over = _names(pod.name for pod in snapshot.pods if pod not in ready)
        reason = draining.reason if draining.status is Truth.TRUE else "ScalingIn"
        return ConditionVerdict(
            Truth.FALSE, reason, f"There should be {counted(len(ordinals), 'pod')}; these are to go: {over}."
        )
    return None


def _waited_for(snapshot: Snapshot, ordinals: tuple[int, ...]) -> str | None:
    """Pods with somebody's own consumer that run, but are not seen to be members; None: there are none."""
    wanted = [pod for pod in snapshot.pods if pod.ordinal in ordinals and not pod.leaving]
    missing = [pod.name for pod in wanted if pod.joining is Joining.MISSING]
    if missing:
        return (
            f"Ready, but without a member at the broker: {_names(missing)}. If that stays so, the consumer there has "
            "not started, or is in another group or at other brokers."
        )
    awaited = [pod.name for pod in wanted if pod.joining is Joining.AWAITED]
    if awaited:
        return (
            f"Ready, but not seen among the members at the broker: {_names(awaited)}. Where pods cannot be told there, "
            f"they count {JOIN_LIMIT:g} s after they were ready."
        )
    return None


def _assumed(snapshot: Snapshot) -> str:
    """What is taken on trust, as a sentence more."""
    names = [pod.name for pod in snapshot.pods if pod.joining is Joining.ASSUMED and not pod.leaving]
    if not names:
        return ""
    return f" {_names(names)} cannot be told among the members at the broker, and count by their readiness alone."


def _progressing(ready: ConditionVerdict, snapshot: Snapshot) -> ConditionVerdict:
    if ready.status is Truth.TRUE and not snapshot.may_roll:
        return ROLL_WAITS
    if ready.status is Truth.TRUE:
        return ConditionVerdict(Truth.FALSE, "Settled", "Everything is as the manifest wants it.")
    if ready.reason in _FOR_OTHERS:
        return ConditionVerdict(Truth.FALSE, ready.reason, ready.message)
    return ConditionVerdict(Truth.TRUE, ready.reason, ready.message)


def _have(queues: int) -> str:
    return counted(queues, "has", "have")


def _pods_are(pods: int) -> str:
    return counted(pods, "pod is", "pods are")


def _some_pods(pods: int, of: int) -> str:
    """`1 of 3 pods is`, `0 of 1 pod is`."""
    return f"{pods} of {counted(of, 'pod')} {'is' if pods == 1 or of == 1 else 'are'}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _names(names: Iterable[str], most: int = 5) -> str:
    found = sorted(names)
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
