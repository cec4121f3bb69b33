"""plan(group, snapshot, now) → actions: what to do next, as a pure function of what is there.

It is level-based: which event woke us does not matter, and neither does what we did before, except where it left its
mark in the snapshot. An operator may be killed after any action; the next one sees what is there and goes on.

The order of the rules is that of their importance:

1. The finalizer is there before anything that would have to be cleaned up.
2. Group settings and start offsets are at the broker before the first pod.
3. Pods that cannot be helped are removed: ended by themselves, or stuck on a node that does not answer.
4. A pod that should go is *marked*, then asked to drain, then its offsets are read back from the broker, then it is
   deleted. No step is taken before the one in front of it is seen to have worked, or has run out of time.
5. Pods that are missing are created, but never while one with the same ordinal is still there.
6. The members are told of each other until every queue has exactly one owner.

Which pods should go: ordinals beyond the wanted number, all at once (one by one, queues would move several times);
pods of an old revision, one at a time, and the next only when the group is whole again. A pod of an old revision that
is not well goes first: waiting for it to become well would block the very update that heals it.
"""

from collections.abc import Iterator, Mapping

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import DeletionPolicy, Engine, MessageModel, OnTimeout
from rocketfleet.controller.actions import (
    Action,
    AddFinalizer,
    CreatePod,
    DeleteGroup,
    DeletePod,
    Emit,
    EnsureObjects,
    Event,
    MarkDrain,
    PrepareGroup,
    Reason,
    ReleaseLocks,
    RemoveFinalizer,
    RequestDrain,
    TellMembers,
)
from rocketfleet.controller.snapshot import DrainOutcome, Phase, Pod, Snapshot
from rocketfleet.wire.queue import MessageQueue

DRAIN_MARGIN = 15.0  # seconds beyond the handlers' time: commits, the read back, a slow API server
DELETION_MARGIN = 60.0  # seconds that an object's deletion may take beyond one drain
STUCK_AFTER = 15.0  # seconds past its grace period after which a pod's node is taken for dead
FAILED_PAUSE = 10.0  # seconds a failed pod is left alone after its creation: no loop of creation and failure
SETTLE_LIMIT = 60.0  # seconds an update waits for the group to be whole, before it goes on with the next pod


def plan(group: ConsumerGroup, snapshot: Snapshot, now: float) -> list[Action]:
    """The actions that bring the group nearer to its manifest. Empty: there is nothing to do but to look again."""
    return list(_plan(group, snapshot, now))


def desired_replicas(group: ConsumerGroup, snapshot: Snapshot) -> int:
    """How many pods there should be. Members without a queue would idle, so there are no more of them than queues."""
    spec = group.spec
    if spec.suspend or snapshot.deleting_since is not None:
        return 0
    if spec.engine is Engine.SPARK:
        return 1
    if spec.autoscaling is None:
        wanted = 1 if spec.replicas is None else spec.replicas
    elif snapshot.advised is not None:
        wanted = snapshot.advised
    else:
        held = spec.autoscaling.min_replicas if snapshot.last_desired is None else snapshot.last_desired
        wanted = min(max(held, spec.autoscaling.min_replicas), spec.autoscaling.max_replicas)
    if spec.allow_idle_members or spec.message_model is MessageModel.BROADCASTING:
        return wanted
    if snapshot.queues is None:  # not known how many would be too many: stay where we were
        return wanted if snapshot.last_desired is None else min(wanted, snapshot.last_desired)
    per_pod = spec.worker.processes if spec.worker is not None else 1
    return min(wanted, -(-len(snapshot.queues) // per_pod))


def _plan(group: ConsumerGroup, snapshot: Snapshot, now: float) -> Iterator[Action]:
    deleting = snapshot.deleting_since is not None
    if not snapshot.finalizer:
        if not deleting:
            yield AddFinalizer()
        return  # without it the object may vanish at any moment: nothing is begun

    if not deleting and not group.spec.suspend and not snapshot.prepared and snapshot.reachable is not False:
        yield PrepareGroup()  # running pods go on as they are meanwhile; only new ones wait
    if not deleting and not snapshot.objects:
        yield EnsureObjects()

    for pod in snapshot.pods:
        yield from _remove_what_is_over(pod, now)
        yield from _drain(group, snapshot, pod, now)

    desired = desired_replicas(group, snapshot)
    yield from _mark(group, snapshot, desired, now)
    if not deleting and snapshot.prepared and snapshot.objects:
        yield from _create(group, snapshot, desired)
    if snapshot.departed:
        yield ReleaseLocks(snapshot.departed)
    yield from _tell(group, snapshot)
    if deleting and not snapshot.pods:
        yield from _finish(group, snapshot, now)


def _remove_what_is_over(pod: Pod, now: float) -> Iterator[Action]:
    if pod.deleting is not None:
        if now > pod.deleting + STUCK_AFTER:
            yield Emit(
                Event(
                    Reason.STUCK,
                    f"{pod.name} should have ended {now - pod.deleting:.0f} s ago: its node does not answer, so it is "
                    "removed by force. Its leases on queues are over, or will be before others take them",
                    warning=True,
                )
            )
            yield DeletePod(pod, force=True)
    elif pod.drain is not None:
        return
    elif pod.phase is Phase.SUCCEEDED:
        yield Emit(Event(Reason.REPLACED, f"{pod.name} drained and ended by itself; another takes its place"))
        yield DeletePod(pod)
    elif pod.phase is Phase.FAILED and now >= pod.created + FAILED_PAUSE:
        why = f": {pod.trouble}" if pod.trouble else ""
        yield Emit(Event(Reason.REPLACED, f"{pod.name} failed{why}; another takes its place", warning=True))
        yield DeletePod(pod)


def _drain(group: ConsumerGroup, snapshot: Snapshot, pod: Pod, now: float) -> Iterator[Action]:
    """The next step for a pod that is marked."""
    if pod.drain is None or pod.deleting is not None:
        return
    if not _drains_by_call(group):
        # Somebody's own consumer drains on SIGTERM, by its own means.
        yield DeletePod(pod)
        return
    if pod.outcome is None and (pod.phase is Phase.PENDING or pod.phase is Phase.FAILED):
        yield DeletePod(pod)  # it holds nothing
        return
    waited = now - pod.drain.since
    late = waited > drain_limit(group)
    if pod.outcome is None:
        if late:
            yield from _too_late(group, pod, Reason.DRAIN_TIMED_OUT, f"{pod.name} has not drained after {waited:.0f} s")
        else:
            yield RequestDrain(pod)
        return
    unsafe = unsafe_queues(pod.outcome, snapshot.committed)
    if pod.outcome.confirmed and unsafe == []:
        count = "its queues" if pod.outcome.offsets is None else f"{len(pod.outcome.offsets)} queues"
        yield Emit(
            Event(
                Reason.DRAINED, f"{pod.name} drained in {waited:.1f} s; the offsets of {count} are safe at the broker"
            )
        )
        yield DeletePod(pod)
    elif late:
        named = "its offsets could not be read back" if unsafe is None else "; ".join(unsafe[:5]) or "not all confirmed"
        yield from _too_late(group, pod, Reason.OFFSETS_UNSAFE, f"the offsets of {pod.name} are not safe: {named}")
    elif pod.phase is Phase.RUNNING:
        yield RequestDrain(pod)  # it came back after a drain that was not confirmed


def _too_late(group: ConsumerGroup, pod: Pod, reason: Reason, what: str) -> Iterator[Action]:
    if group.spec.shutdown.on_timeout is OnTimeout.WAIT:
        advice = "It is kept (shutdown.onTimeout: Wait): delete the pod to go on"
        yield Emit(Event(reason, f"{what}. {advice}", warning=True))
        return
    yield Emit(Event(reason, f"{what}. It is deleted all the same (shutdown.onTimeout: Proceed)", warning=True))
    yield DeletePod(pod)


def drain_limit(group: ConsumerGroup) -> float:
    """Seconds from a pod's mark to the point where its drain has failed."""
    return group.spec.shutdown.drain_timeout_seconds + DRAIN_MARGIN


def unsafe_queues(outcome: DrainOutcome, committed: Mapping[MessageQueue, int]) -> list[str] | None:
    """The queues whose offset at the broker is behind what the member says it reached; None: it cannot be told."""
    if outcome.offsets is None:
        return [] if outcome.confirmed else None
    unsafe = []
    for queue, offset in sorted(outcome.offsets.items()):
        stored = committed.get(queue)
        if stored is None:
            return None
        if stored < offset:
            unsafe.append(f"{queue.topic}/{queue.broker}/{queue.queue_id} is {offset - stored} behind")
    return unsafe


def _drains_by_call(group: ConsumerGroup) -> bool:
    return group.spec.engine is not Engine.CONTAINER


def _mark(group: ConsumerGroup, snapshot: Snapshot, desired: int, now: float) -> Iterator[Action]:
    """Which pods should begin to go."""
    if snapshot.deleting_since is not None:
        why = "the group is deleted"
    elif group.spec.suspend:
        why = "the group is suspended"
    else:
        why = f"scale-in to {desired}"
    outdated = [pod for pod in snapshot.pods if pod.revision != snapshot.revision and pod.ordinal < desired]
    most = desired + (1 if outdated and _surges(group) else 0)
    for pod in snapshot.pods:
        if pod.ordinal >= most and not pod.leaving:
            yield MarkDrain(pod, why)
    if desired == 0 or not snapshot.prepared:
        return
    chosen = _next_outdated(group, snapshot, outdated, most, now)
    if chosen is not None:
        yield MarkDrain(chosen, "rolling update")


def _next_outdated(group: ConsumerGroup, snapshot: Snapshot, outdated: list[Pod], most: int, now: float) -> Pod | None:
    """One pod of an old revision, if the group can do without it now."""
    waiting = [pod for pod in outdated if not pod.leaving]
    if not waiting:
        return None
    unwell = [pod for pod in waiting if not pod.ready]
    if unwell:
        return max(unwell, key=lambda pod: pod.ordinal)
    present = [pod for pod in snapshot.pods if pod.ordinal < most]
    whole = len(present) == most and all(pod.ready and not pod.leaving for pod in present)
    if not whole:
        return None
    if not balanced(group, snapshot):
        newest = max(pod.ready_since or pod.created for pod in present)
        if now < newest + SETTLE_LIMIT:
            return None
    return max(waiting, key=lambda pod: pod.ordinal)


def _surges(group: ConsumerGroup) -> bool:
    return group.spec.update.surge > 0 and group.spec.engine is not Engine.SPARK


def _create(group: ConsumerGroup, snapshot: Snapshot, desired: int) -> Iterator[Action]:
    outdated = any(pod.revision != snapshot.revision and pod.ordinal < desired for pod in snapshot.pods)
    most = desired + (1 if desired and outdated and _surges(group) else 0)
    taken = {pod.ordinal for pod in snapshot.pods}
    for ordinal in range(most):
        if ordinal not in taken:
            yield CreatePod(ordinal)


def balanced(group: ConsumerGroup, snapshot: Snapshot) -> bool:
    """Whether each queue has exactly one owner, as read back. A broadcasting group has nothing to share out."""
    if group.spec.message_model is MessageModel.BROADCASTING or group.spec.engine is Engine.SPARK:
        return True
    if snapshot.queues is None or snapshot.ownership is None:
        return False
    return snapshot.ownership.owned_once(snapshot.queues)


def _tell(group: ConsumerGroup, snapshot: Snapshot) -> Iterator[Action]:
    if group.spec.engine is not Engine.WORKER or group.spec.message_model is MessageModel.BROADCASTING:
        return  # Java's members hear of each other from the broker
    able = tuple(pod for pod in snapshot.pods if pod.phase is Phase.RUNNING and not pod.leaving)
    if able and frozenset(pod.uid for pod in able) != snapshot.told:
        yield TellMembers(able)


def _finish(group: ConsumerGroup, snapshot: Snapshot, now: float) -> Iterator[Action]:
    """The object is deleted and no pod is left."""
    assert snapshot.deleting_since is not None
    late = now > snapshot.deleting_since + drain_limit(group) + DELETION_MARGIN
    if snapshot.departed and not late:
        return  # their locks first
    if group.spec.deletion_policy is DeletionPolicy.DELETE:
        if snapshot.reachable is False and late:
            text = f"the group {group.group_name} stays at the broker: it cannot be reached. Delete it by hand"
            yield Emit(Event(Reason.DELETION_GAVE_UP, text, warning=True))
        elif snapshot.reachable is False:
            return
        else:
            yield DeleteGroup()
    yield RemoveFinalizer()
