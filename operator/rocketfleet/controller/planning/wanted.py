"""What a manifest asks for, given what is there: how many pods, with which ordinals, and which queues they are to own.

A member without a queue idles, so a group does not grow beyond the number of its queues. But it does not shrink for the
lack of them: queues go missing when a broker is away for a while, and the pods will be needed when it is back.
"""

from rocketfleet.allocation.machine_room import room_of_broker
from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.controller.planning.snapshot import Snapshot
from rocketfleet.wire.enums import MessageModel
from rocketfleet.wire.queue import MessageQueue


def replicas_asked_for(group: ConsumerGroup, snapshot: Snapshot) -> int:
    """How many pods the manifest or the autoscaler asks for, whatever there is for them to do."""
    spec = group.spec
    if spec.suspend or snapshot.deleting_since is not None or snapshot.taken_by is not None:
        return 0
    if spec.engine is Engine.SPARK:  # one driver has all queues; two would be at one checkpoint
        return 1 if spec.replicas is None else min(spec.replicas, 1)
    if spec.autoscaling is None:
        return 1 if spec.replicas is None else spec.replicas
    bounds = spec.autoscaling
    held = bounds.min_replicas if snapshot.last_desired is None else snapshot.last_desired
    advised = held if snapshot.advised is None else snapshot.advised
    return min(max(advised, bounds.min_replicas), bounds.max_replicas)


def wanted_ordinals(group: ConsumerGroup, snapshot: Snapshot) -> tuple[int, ...]:
    """The ordinals of the pods that there should be, without the extra one of an update."""
    spec = group.spec
    asked = replicas_asked_for(group, snapshot)
    if spec.engine is Engine.SPARK or spec.allow_idle_members or spec.message_model is MessageModel.BROADCASTING:
        return tuple(range(asked))
    if _strategy(group) is StrategyName.CONFIG:
        assigned = {assignment.ordinal for assignment in spec.allocation.assignments or ()}
        return tuple(sorted(ordinal for ordinal in assigned if ordinal < asked))
    there = [pod.ordinal for pod in snapshot.pods if pod.ordinal < asked and not pod.leaving]
    most = max(snapshot.last_desired or 0, max(there, default=-1) + 1)
    queues = queues_to_own(group, snapshot)
    if queues is not None:  # else it is not known how many would be too many, and we stay where we were
        most = max(most, -(-len(queues) // members_per_pod(group)))
    return tuple(range(min(asked, most)))


def desired_replicas(group: ConsumerGroup, snapshot: Snapshot) -> int:
    """How many pods there should be."""
    return len(wanted_ordinals(group, snapshot))


def ready_replicas(group: ConsumerGroup, snapshot: Snapshot) -> int:
    """Pods that do the group's work: an update's extra one, and those on their way out, are not counted on."""
    desired = desired_replicas(group, snapshot)
    return sum(pod.ready and not pod.leaving and pod.ordinal < desired for pod in snapshot.pods)


def limited_by_queues(group: ConsumerGroup, snapshot: Snapshot) -> tuple[int, int] | None:
    """How many pods there should be and how many were asked for, where it is for the lack of queues that they are
    fewer."""
    desired, asked = desired_replicas(group, snapshot), replicas_asked_for(group, snapshot)
    return (desired, asked) if snapshot.queues and 0 < desired < asked else None


def kept_through_evictions(group: ConsumerGroup, snapshot: Snapshot) -> int:
    """How many pods an eviction has to leave: all that there should be but one, so that one can always go.

    It is told as a number (`minAvailable`). With `maxUnavailable: 1` Kubernetes would take the number of pods from the
    scale subresource, that is from spec.replicas: where that is left out it allows no eviction at all, and neither does
    it where there are fewer pods than that, because there are fewer queues.
    """
    return max(0, desired_replicas(group, snapshot) - 1)


def members_per_pod(group: ConsumerGroup) -> int:
    worker = group.spec.worker if group.spec.engine is Engine.WORKER else None
    return worker.processes if worker is not None else 1


def queues_to_own(group: ConsumerGroup, snapshot: Snapshot) -> frozenset[MessageQueue] | None:
    """The queues that should have an owner: all, unless the strategy itself leaves some out. None: not known."""
    if snapshot.queues is None:
        return None
    allocation = group.spec.allocation
    if _strategy(group) is StrategyName.MACHINE_ROOM:
        rooms = set(allocation.rooms or ())
        return frozenset(queue for queue in snapshot.queues if room_of_broker(queue.broker) in rooms)
    if _strategy(group) is StrategyName.CONFIG:
        return snapshot.queues & assigned_queues(group)
    return snapshot.queues


def assigned_queues(group: ConsumerGroup) -> frozenset[MessageQueue]:
    """Config: every queue that the manifest gives to somebody."""
    return frozenset(
        MessageQueue(queue.topic, queue.broker, queue.queue_id)
        for assignment in group.spec.allocation.assignments or ()
        for queue in assignment.queues
    )


def balanced(group: ConsumerGroup, snapshot: Snapshot) -> bool:
    """Whether each queue has exactly one owner, as read back. A broadcasting group has nothing to share out."""
    if not shares_queues(group):
        return True
    queues = queues_to_own(group, snapshot)
    if queues is None or snapshot.ownership is None:
        return False
    return snapshot.ownership.owned_once(queues)


def shares_queues(group: ConsumerGroup) -> bool:
    """Whether a queue belongs to one member: not if each gets all messages."""
    return group.spec.message_model is MessageModel.CLUSTERING


def _strategy(group: ConsumerGroup) -> StrategyName | None:
    """The strategy, where it is ours to choose: somebody's own consumer brings its own."""
    return group.spec.allocation.strategy if group.spec.engine is Engine.WORKER else None


def surges(group: ConsumerGroup, snapshot: Snapshot) -> bool:
    """Whether an update begins with an extra pod. It must be able to stand in for others: with Config it would have no
    queues, and where queues limit the pods it would idle."""
    if group.spec.update.surge == 0 or group.spec.engine is Engine.SPARK or _strategy(group) is StrategyName.CONFIG:
        return False
    desired = desired_replicas(group, snapshot)
    return 0 < desired == replicas_asked_for(group, snapshot)
