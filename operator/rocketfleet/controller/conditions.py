"""What is true of a group, condition by condition: a status, one word for programs, one sentence for people.

Ready is the sum of the others, and its reason is the first thing that stands in its way, the most basic one first: a
group whose brokers cannot be reached is not ready for that reason, even though its pods are not well either.
"""

from collections.abc import Iterable
from typing import NamedTuple

from rocketfleet.api.allocation import Strategy
from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.controller.drain import describe_unsafe, drain_limit, outcome_of, unsafe_offsets
from rocketfleet.controller.joining import JOIN_LIMIT
from rocketfleet.controller.snapshot import Joining, Snapshot
from rocketfleet.controller.wanted import (
    assigned_queues,
    queues_to_own,
    replicas_asked_for,
    shares_queues,
    wanted_ordinals,
)


class Verdict(NamedTuple):
    """A condition without its times."""

    status: Truth
    reason: str
    message: str


# Reasons that waiting does not mend: they need help from outside.
_FOR_OTHERS = frozenset(
    {"BrokerUnreachable", "NoQueues", "ReconcileFailed", "QueuesUnassigned", "PodTrouble", "OtherMembers"}
)
NOT_MEASURED = Verdict(Truth.UNKNOWN, "NotMeasured", "The lag is not measured.")


def verdicts_of(
    group: ConsumerGroup,
    snapshot: Snapshot,
    broker_trouble: str | None,
    trouble: str | None,
    now: float,
    lag: Verdict | None = None,
) -> dict[ConditionType, Verdict]:
    """Every condition. `now` only decides whether a drain is late; of the lag others have judged."""
    reachable = _broker_reachable(snapshot, broker_trouble)
    balanced = _balanced(group, snapshot)
    draining = _draining(group, snapshot, now)
    ready = _ready(group, snapshot, trouble, reachable, balanced, draining)
    return {
        ConditionType.READY: ready,
        ConditionType.PROGRESSING: _progressing(ready),
        ConditionType.BALANCED: balanced,
        ConditionType.LAG_HEALTHY: lag or NOT_MEASURED,
        ConditionType.BROKER_REACHABLE: reachable,
        ConditionType.DRAINING: draining,
    }


def _broker_reachable(snapshot: Snapshot, broker_trouble: str | None) -> Verdict:
    if snapshot.reachable is None:
        return Verdict(Truth.UNKNOWN, "NotAsked", "The brokers have not been asked yet.")
    if snapshot.reachable:
        return Verdict(Truth.TRUE, "Reachable", "The name servers and brokers answer.")
    why = broker_trouble or "no answer"
    return Verdict(Truth.FALSE, "BrokerUnreachable", f"The name servers or brokers cannot be reached: {why}")


def _balanced(group: ConsumerGroup, snapshot: Snapshot) -> Verdict:
    if not shares_queues(group):
        return Verdict(Truth.TRUE, "NothingToShare", "Every member gets all messages.")
    queues = queues_to_own(group, snapshot)
    if queues is None:
        return Verdict(Truth.UNKNOWN, "NotObserved", "It is not known which queues there are.")
    if not queues:
        topics = ", ".join(subscription.topic for subscription in group.spec.subscriptions)
        return Verdict(Truth.FALSE, "NoQueues", f"There is no queue to consume from: create the topics {topics}.")
    if not wanted_ordinals(group, snapshot) and not snapshot.pods:
        return Verdict(Truth.FALSE, "NoMembers", "There are no members, so nobody owns a queue.")
    if snapshot.ownership is None:
        return Verdict(Truth.UNKNOWN, "NotObserved", "It is not known who owns which queue.")
    others = _others(group, snapshot)
    if others:
        text = (
            f"Engine Spark reads every queue itself, and others are in the group too: {_names(others)}. Messages go to "
            "both: give one of them another groupName."
        )
        return Verdict(Truth.FALSE, "OtherMembers", text)
    unowned = sum(not snapshot.ownership.owners.get(queue) for queue in queues)
    shared = sum(len(snapshot.ownership.owners.get(queue, ())) > 1 for queue in queues)
    if snapshot.ownership.silent:
        silent = _names(snapshot.ownership.silent)
        return Verdict(Truth.FALSE, "MembersSilent", f"It is not known what these members own: {silent}.")
    if unowned or shared:
        text = f"Of {len(queues)} queues {unowned} have no owner and {shared} have several."
        return Verdict(Truth.FALSE, "Rebalancing", text)
    waited_for = _waited_for(snapshot, wanted_ordinals(group, snapshot))
    if waited_for is not None:
        return Verdict(Truth.FALSE, "MembersJoining", waited_for)
    if group.spec.engine is Engine.WORKER and group.spec.allocation.strategy is Strategy.CONFIG:
        left_out = (snapshot.queues or frozenset()) - assigned_queues(group)
        if left_out:
            text = (
                f"Nobody consumes {_names(str(queue) for queue in left_out)}: allocation.assignments leaves them out."
            )
            return Verdict(Truth.FALSE, "QueuesUnassigned", text)
    text = f"Each of {len(queues)} queues has exactly one owner.{_assumed(snapshot)}"
    return Verdict(Truth.TRUE, "EachQueueOwnedOnce", text)


def _others(group: ConsumerGroup, snapshot: Snapshot) -> frozenset[str]:
    """Members of a Spark group that are not ours. Elsewhere guests have their share, and are welcome."""
    if group.spec.engine is not Engine.SPARK or snapshot.members is None:
        return frozenset()
    ours = {client_id for pod in snapshot.pods for client_id in pod.client_ids}
    return snapshot.members - ours - snapshot.lingering - snapshot.departed


def _draining(group: ConsumerGroup, snapshot: Snapshot, now: float) -> Verdict:
    going = sorted((pod for pod in snapshot.pods if pod.drain is not None), key=lambda pod: pod.ordinal)
    for pod in going:
        late = pod.drain is not None and pod.deleting is None and now - pod.drain.since > drain_limit(group)
        outcome = outcome_of(pod)
        if late and outcome is None:
            return Verdict(Truth.TRUE, "DrainTimedOut", f"{pod.name} has not drained within {drain_limit(group):g} s.")
        if late and outcome is not None:
            unsafe = describe_unsafe(unsafe_offsets(group, outcome, snapshot.committed) or None)
            return Verdict(Truth.TRUE, "OffsetsUnsafe", f"The offsets of {pod.name} are not safe: {unsafe}.")
    if going:
        reasons = _names({pod.drain.reason for pod in going if pod.drain is not None})
        names = _names(pod.name for pod in going)
        return Verdict(Truth.TRUE, "Draining", f"{names}: {reasons}.")
    return Verdict(Truth.FALSE, "NoDrain", "No member is being drained.")


def _ready(
    group: ConsumerGroup,
    snapshot: Snapshot,
    trouble: str | None,
    reachable: Verdict,
    balanced: Verdict,
    draining: Verdict,
) -> Verdict:
    ordinals = wanted_ordinals(group, snapshot)
    if snapshot.deleting_since is not None:
        return Verdict(Truth.FALSE, "Deleting", f"The group is being deleted; {len(snapshot.pods)} pods are left.")
    if trouble is not None:
        return Verdict(Truth.FALSE, "ReconcileFailed", trouble)
    if group.spec.suspend:
        if snapshot.pods:
            return Verdict(Truth.FALSE, "Suspending", f"{len(snapshot.pods)} pods are still being drained.")
        return Verdict(Truth.TRUE, "Suspended", "The group is suspended, and no pod runs.")
    if reachable.status is Truth.FALSE:
        return Verdict(Truth.FALSE, reachable.reason, reachable.message)
    if not snapshot.prepared:
        return Verdict(Truth.FALSE, "Preparing", "The group and its start offsets are not written at the brokers yet.")
    asked = replicas_asked_for(group, snapshot)
    if asked == 0 and not snapshot.pods:
        return Verdict(Truth.TRUE, "NoReplicas", "No replicas are wanted, and no pod runs.")
    if balanced.reason == "NoQueues" or (balanced.status is Truth.UNKNOWN and not ordinals):
        return Verdict(balanced.status, balanced.reason, balanced.message)
    pods = _pods(snapshot, ordinals, draining)
    if pods is not None:
        return pods
    if balanced.status is not Truth.TRUE and ordinals:
        reason = "NotBalanced" if balanced.reason == "Rebalancing" else balanced.reason
        return Verdict(balanced.status, reason, balanced.message)
    if len(ordinals) < asked:
        text = f"{len(ordinals)} pods run, not {asked}: more would have no queue to consume from."
        return Verdict(Truth.TRUE, "LimitedByQueues", text)
    if group.spec.engine is Engine.SPARK:
        return Verdict(Truth.TRUE, "AllReady", "The driver is ready, and its query reads every queue.")
    text = f"All {len(ordinals)} pods are ready and share the queues.{_assumed(snapshot)}"
    return Verdict(Truth.TRUE, "AllReady", text)


def _pods(snapshot: Snapshot, ordinals: tuple[int, ...], draining: Verdict) -> Verdict | None:
    """What is amiss with the pods; None: nothing."""
    wanted = [pod for pod in snapshot.pods if pod.ordinal in ordinals]
    broken = [pod for pod in wanted if pod.trouble and not pod.ready and pod.deleting is None]
    if broken:
        return Verdict(Truth.FALSE, "PodTrouble", "; ".join(f"{pod.name}: {pod.trouble}" for pod in broken[:5]))
    current = [pod for pod in wanted if pod.revision == snapshot.revision and not pod.leaving]
    if any(pod.revision != snapshot.revision for pod in wanted):
        text = f"{len(current)} of {len(ordinals)} pods are of the present revision."
        return Verdict(Truth.FALSE, "RollingUpdate", text)
    ready = [pod for pod in current if pod.ready]
    waited_for = _waited_for(snapshot, ordinals)
    if waited_for is not None and len(current) == len(ordinals):
        return Verdict(Truth.FALSE, "MembersJoining", waited_for)
    if len(ready) < len(ordinals):
        return Verdict(Truth.FALSE, "PodsNotReady", f"{len(ready)} of {len(ordinals)} pods are ready.")
    if len(snapshot.pods) > len(ordinals):
        over = _names(pod.name for pod in snapshot.pods if pod not in ready)
        reason = draining.reason if draining.status is Truth.TRUE else "ScalingIn"
        return Verdict(Truth.FALSE, reason, f"There should be {len(ordinals)} pods; these are to go: {over}.")
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


def _progressing(ready: Verdict) -> Verdict:
    if ready.status is Truth.TRUE:
        return Verdict(Truth.FALSE, "Settled", "Everything is as the manifest wants it.")
    if ready.reason in _FOR_OTHERS:
        return Verdict(Truth.FALSE, ready.reason, ready.message)
    return Verdict(Truth.TRUE, ready.reason, ready.message)


def _names(names: Iterable[str], most: int = 5) -> str:
    found = sorted(names)
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
