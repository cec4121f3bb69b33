"""plan(group, snapshot, now) → actions: what to do next, as a pure function of what is there.

It is level-based: which event woke us does not matter, and neither does what we did before, except where it left its
mark in the snapshot. An operator may be killed after any action; the next one sees what is there and goes on.

The order of the rules is that of their importance:

1. The finalizer is there before anything that would have to be cleaned up.
2. Group settings and start offsets are at the broker before the first pod.
3. Pods that cannot be helped are removed: ended by themselves, or stuck on a node that does not answer.
4. A pod that should go is *marked*, then asked to drain, then its offsets are read back from the broker, then it is
   deleted (drain.py). A mark is never taken back: a pod that is wanted again is drained to its end and created anew.
5. Pods that are missing are created, but never while one with the same ordinal is still there.
6. The members are told of each other until every queue has exactly one owner.

Which pods should go: ordinals beyond the wanted ones, all at once (one by one, queues would move several times); pods
of an old revision, one at a time, and the next only when the group is whole again. A pod of an old revision that is not
well goes first: waiting for it to become well would block the very update that heals it.

A Spark driver reads every queue by itself, whoever else is in the group: it runs beside no other pod, neither another
driver (they would be at one checkpoint) nor workers, where the engine was changed. All that is there goes first.

With `update.surge` an update begins with an extra pod, whose ordinal is the one after the last; it goes when the last
of the others has been replaced and is well.

While the brokers cannot be reached no drain is begun that can wait, for no offset could be committed: scale-in and
updates wait, suspension and deletion do not.
"""

from collections.abc import Iterator

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import DeletionPolicy, Engine
from rocketfleet.controller.actions import (
    Action,
    AddFinalizer,
    CreatePod,
    DeleteGroup,
    DeletePod,
    Emit,
    EnsureObjects,
    Event,
    LimitEvictions,
    MarkDrain,
    PrepareGroup,
    Reason,
    ReleaseLocks,
    RemoveFinalizer,
    TellMembers,
)
from rocketfleet.controller.drain import (
    DELETION_MARGIN,
    DRAIN_MARGIN,
    deletion_late,
    drain_limit,
    drain_step,
    give_up,
    unsafe_queues,
)
from rocketfleet.controller.snapshot import Phase, Pod, Snapshot
from rocketfleet.controller.wanted import (
    balanced,
    desired_replicas,
    kept_through_evictions,
    shares_queues,
    surges,
    wanted_ordinals,
)

STUCK_AFTER = 15.0  # seconds past its grace period after which a pod's node is taken for dead
FAILED_PAUSE = 10.0  # seconds a failed pod is left alone after its creation: no loop of creation and failure
SETTLE_LIMIT = 60.0  # seconds an update waits for the group to be balanced, before it goes on with the next pod

__all__ = [
    "DELETION_MARGIN",
    "DRAIN_MARGIN",
    "FAILED_PAUSE",
    "SETTLE_LIMIT",
    "STUCK_AFTER",
    "balanced",
    "desired_replicas",
    "drain_limit",
    "plan",
    "unsafe_queues",
]


def plan(group: ConsumerGroup, snapshot: Snapshot, now: float) -> list[Action]:
    """The actions that bring the group nearer to its manifest. Empty: there is nothing to do but to look again."""
    return list(_plan(group, snapshot, now))


def _plan(group: ConsumerGroup, snapshot: Snapshot, now: float) -> Iterator[Action]:
    deleting = snapshot.deleting_since is not None
    runs = not deleting and not group.spec.suspend
    if not snapshot.finalizer:
        if not deleting:
            yield AddFinalizer()
        return  # without it the object may vanish at any moment: nothing is begun

    if runs and not snapshot.prepared and snapshot.reachable is not False:
        yield PrepareGroup()  # running pods go on as they are meanwhile; only new ones wait
    if runs and not snapshot.objects:
        yield EnsureObjects()
    if runs and not snapshot.budget:
        yield LimitEvictions(kept_through_evictions(group, snapshot))

    wanted = _wanted_now(group, snapshot, now)
    late = deletion_late(group, snapshot, now)
    for pod in snapshot.pods:
        if late and pod.deleting is None:
            yield from give_up(pod)
        else:
            yield from _remove_what_is_over(pod, pod.ordinal in wanted, now)
            yield from drain_step(group, snapshot, pod, now)

    yield from _mark_surplus(group, snapshot, wanted)
    if runs and snapshot.prepared:
        for pod in _outdated_to_go(group, snapshot, wanted, now):
            yield MarkDrain(pod, "rolling update")
    if runs and snapshot.prepared and snapshot.objects:
        yield from _create(group, snapshot, wanted)
    if snapshot.departed and snapshot.reachable is not False:
        yield ReleaseLocks(snapshot.departed)
    yield from _tell(group, snapshot)
    if deleting and not snapshot.pods:
        yield from _finish(group, snapshot, late)


def _wanted_now(group: ConsumerGroup, snapshot: Snapshot, now: float) -> frozenset[int]:
    """The ordinals that there should be at this moment of an update: the wanted ones and, maybe, the extra one."""
    ordinals = frozenset(wanted_ordinals(group, snapshot))
    if not ordinals or not surges(group, snapshot):
        return ordinals
    extra = max(ordinals) + 1
    present = [pod for pod in snapshot.pods if pod.ordinal in ordinals]
    if any(pod.revision != snapshot.revision for pod in present):
        return ordinals | {extra}
    # The update is over, or there was none. An extra pod stands in until everybody is back, within limits: where it
    # is in truth the last one of a scale-in, or somebody never gets well, it goes all the same.
    spare = any(pod.ordinal == extra and not pod.leaving for pod in snapshot.pods)
    missing = ordinals - {pod.ordinal for pod in present}
    if spare and (missing or not _settled(group, snapshot, present, now)):
        return ordinals | {extra}
    return ordinals


def _settled(group: ConsumerGroup, snapshot: Snapshot, present: list[Pod], now: float) -> bool:
    """Whether these pods are well and the queues shared out, or have had their time to be."""
    if all(pod.ready and not pod.leaving for pod in present) and balanced(group, snapshot):
        return True
    return now >= max((pod.ready_since or pod.created for pod in present), default=now) + SETTLE_LIMIT


def _remove_what_is_over(pod: Pod, wanted: bool, now: float) -> Iterator[Action]:
    instead = "; another takes its place" if wanted else ""
    if pod.deleting is not None:
        if now > pod.deleting + STUCK_AFTER:
            text = (
                f"{pod.name} should have ended long ago: its node does not answer, so it is removed by force. Its "
                "leases on queues are over, or will be before others take them"
            )
            yield Emit(Event(Reason.STUCK, text, warning=True))
            yield DeletePod(pod, force=True)
    elif pod.drain is not None:
        return  # drain_step sees to it
    elif pod.phase is Phase.SUCCEEDED:
        yield Emit(Event(Reason.REPLACED, f"{pod.name} drained and ended by itself{instead}"))
        yield DeletePod(pod)
    elif pod.phase is Phase.FAILED and (not wanted or now >= pod.created + FAILED_PAUSE):
        why = f": {pod.trouble}" if pod.trouble else ""
        yield Emit(Event(Reason.REPLACED, f"{pod.name} failed{why}{instead}", warning=True))
        yield DeletePod(pod)


def _mark_surplus(group: ConsumerGroup, snapshot: Snapshot, wanted: frozenset[int]) -> Iterator[Action]:
    """Pods that nobody wants: all of them begin to go at once."""
    must = snapshot.deleting_since is not None or group.spec.suspend
    if snapshot.deleting_since is not None:
        why = "the group is deleted"
    elif group.spec.suspend:
        why = "the group is suspended"
    else:
        why = f"scale-in to {desired_replicas(group, snapshot)}"
    for pod in snapshot.pods:
        if pod.leaving or not (must or snapshot.reachable is not False or pod.idle):
            continue
        if pod.ordinal not in wanted:
            yield MarkDrain(pod, why)
        elif _named_ordinal(group, pod) not in (None, pod.ordinal):
            yield MarkDrain(pod, "its name and its label rocketfleet.io/ordinal do not fit together")


def _named_ordinal(group: ConsumerGroup, pod: Pod) -> int | None:
    """The ordinal in a pod's name."""
    tail = pod.name.removeprefix(f"{group.metadata.name}-")
    return int(tail) if tail != pod.name and tail.isascii() and tail.isdigit() else None


def _outdated_to_go(group: ConsumerGroup, snapshot: Snapshot, wanted: frozenset[int], now: float) -> list[Pod]:
    """Pods of an old revision that the group can do without now: those that do not run, or else one."""
    lasting = frozenset(wanted_ordinals(group, snapshot))
    outdated = [pod for pod in snapshot.pods if pod.revision != snapshot.revision and not pod.leaving]
    # An extra pod of an old revision goes in the end anyway: it is replaced only where it cannot stand in for others.
    waiting = [pod for pod in outdated if pod.ordinal in lasting or (pod.ordinal in wanted and not pod.ready)]
    idle = [pod for pod in waiting if pod.idle]
    if idle or not waiting or snapshot.reachable is False:
        return idle
    in_the_way = [pod for pod in waiting if _shuts_out(group, pod)]
    if in_the_way:
        return in_the_way  # nobody stands in for it before it is gone
    well = {pod.ordinal for pod in snapshot.pods if pod.ready and not pod.leaving}
    if not wanted - {pod.ordinal for pod in waiting} <= well:
        return []  # one that was replaced is not back yet, or the extra one has not come
    unwell = [pod for pod in waiting if not pod.ready]
    if not unwell and not _settled(group, snapshot, [pod for pod in snapshot.pods if pod.ordinal in wanted], now):
        return []
    return [max(unwell or waiting, key=lambda pod: pod.ordinal)]


def _shuts_out(group: ConsumerGroup, pod: Pod) -> bool:
    """Whether a pod has to be gone before one of the manifest's engine comes: one of the two is a Spark driver."""
    engine = pod.engine or group.spec.engine
    return engine is not group.spec.engine and Engine.SPARK in (engine, group.spec.engine)


def _create(group: ConsumerGroup, snapshot: Snapshot, wanted: frozenset[int]) -> Iterator[Action]:
    if snapshot.pods and (group.spec.engine is Engine.SPARK or any(_shuts_out(group, pod) for pod in snapshot.pods)):
        return
    taken: set[int | None] = {pod.ordinal for pod in snapshot.pods}
    taken |= {_named_ordinal(group, pod) for pod in snapshot.pods}
    for ordinal in sorted(wanted):
        if ordinal not in taken:
            yield CreatePod(ordinal)


def _tell(group: ConsumerGroup, snapshot: Snapshot) -> Iterator[Action]:
    if group.spec.engine is not Engine.WORKER or not shares_queues(group):
        return  # Java's members hear of each other from the broker
    able = tuple(pod for pod in snapshot.pods if pod.phase is Phase.RUNNING and not pod.leaving and not pod.idle)
    if able and frozenset(pod.uid for pod in able) != snapshot.told:
        yield TellMembers(able)


def _finish(group: ConsumerGroup, snapshot: Snapshot, late: bool) -> Iterator[Action]:
    """The object is deleted and no pod is left: give back what our members still have at the brokers."""
    if (snapshot.departed or snapshot.lingering) and not late:
        return
    if group.spec.deletion_policy is DeletionPolicy.DELETE:
        hindrance = _hindrance(snapshot)
        if hindrance is None:
            yield DeleteGroup()
        elif late:
            text = f"the group {group.group_name} stays at the broker: {hindrance}. Delete it by hand"
            yield Emit(Event(Reason.DELETION_GAVE_UP, text, warning=True))
        else:
            return
    yield RemoveFinalizer()


def _hindrance(snapshot: Snapshot) -> str | None:
    """Why the group cannot be deleted at the broker now."""
    if snapshot.reachable is False:
        return "the broker cannot be reached"
    if snapshot.members is None:
        return "it is not known whether anybody still consumes"
    if snapshot.members:
        return f"{len(snapshot.members)} members that are not ours still consume"
    return None
