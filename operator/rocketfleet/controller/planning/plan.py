"""plan(group, snapshot, now) → actions: what to do next, as a pure function of what is there.

It is level-based: which event woke us does not matter, and neither does what we did before, except where it left its
mark in the snapshot. An operator may be killed after any action; the next one sees what is there and goes on.

The order of the rules is that of their importance:

0. A group that another object has is left to it: what runs here is drained, and nothing is begun (claims.py).
1. The finalizer is there before anything that would have to be cleaned up.
2. Group settings and start offsets are at the broker before the first pod.
3. Pods that cannot be helped are removed: ended by themselves, or stuck on a node that is away (stuck.py).
4. A pod that should go is *marked*, then asked to drain, then its offsets are read back from the broker, then it is
   deleted (drain.py). A mark is never taken back: a pod that is wanted again is drained to its end and created anew.
5. Pods that are missing are created, but never while one with the same ordinal is still there.
6. The members are told of each other until every queue has exactly one owner.

Which pods should go: ordinals beyond the wanted ones, all at once (one by one, queues would move several times); pods
of an old revision one at a time, or all at once where they may not be in the group beside new ones (update.py).

A Spark driver reads every queue by itself, whoever else is in the group: it runs beside no other pod, neither another
driver (they would be at one checkpoint) nor workers, where the engine was changed. All that is there goes first.

While the brokers cannot be reached no drain is begun that can wait, for no offset could be committed: scale-in and
updates wait, suspension and deletion do not.
"""

from collections.abc import Iterator

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.controller.planning import actions as act
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.planning.deletion import finish
from rocketfleet.controller.planning.drain import cut_short, deletion_late, drain_step, give_up
from rocketfleet.controller.planning.snapshot import Evictions, Pod, PodPhase, Snapshot
from rocketfleet.controller.planning.stuck import remove_stuck
from rocketfleet.controller.planning.update import replace_outdated, shuts_out, wanted_now
from rocketfleet.controller.planning.wanted import desired_replicas, kept_through_evictions, shares_queues

FAILED_PAUSE = 10.0  # seconds a failed pod is left alone after its creation: no loop of creation and failure
LONGEST_FAILED_PAUSE = 300.0  # where one after the other fails


def failed_pause(failures: int) -> float:
    """How long a failed pod is left alone, if so many before it have failed in a row."""
    return min(FAILED_PAUSE * 2.0 ** min(failures, 10), LONGEST_FAILED_PAUSE)


def plan(group: ConsumerGroup, snapshot: Snapshot, now: float) -> list[act.Action]:
    """The actions that bring the group nearer to its manifest. Empty: there is nothing to do but to look again."""
    return list(_plan(group, snapshot, now))


def _plan(group: ConsumerGroup, snapshot: Snapshot, now: float) -> Iterator[act.Action]:
    deleting = snapshot.deleting_since is not None
    taken = snapshot.taken_by is not None
    runs = not deleting and not group.spec.suspend and not taken
    if taken and not deleting:
        yield act.Emit(Event(EventReason.TAKEN, taken_text(group, snapshot), warning=True))
    if not snapshot.finalizer:
        if not deleting and (snapshot.pods or not taken):
            yield act.AddFinalizer()
        return  # without it the object may vanish at any moment: nothing is begun

    if runs and (snapshot.lacking or (not snapshot.prepared and snapshot.reachable is not False)):
        yield act.PrepareGroup()  # running pods go on as they are meanwhile; only new ones wait
    if runs and not snapshot.objects:
        yield act.EnsureObjects()
    keep = kept_through_evictions(group, snapshot)
    if runs and snapshot.budget not in (keep, Evictions.NONE):
        yield act.LimitEvictions(keep)

    wanted = wanted_now(group, snapshot, now)
    late = deletion_late(group, snapshot, now)
    for pod in snapshot.pods:
        if late and pod.deleting is None:
            yield from give_up(pod)
        else:
            waits = pod.ordinal in wanted and pod.revision == snapshot.revision  # one that is mended waits for nothing
            yield from _remove_what_is_over(group, pod, pod.ordinal in wanted, waits, now)
            yield from drain_step(group, snapshot, pod, now)

    if not late:  # else each pod is deleted as it is
        yield from _mark_surplus(group, snapshot, wanted)
    if runs and snapshot.prepared and snapshot.code_missing is None:
        yield from replace_outdated(group, snapshot, wanted, now)
    if runs and snapshot.prepared and snapshot.objects and snapshot.code_missing is None:
        yield from _create(group, snapshot, wanted)
    yield from _note_shared(snapshot)
    if not taken:  # else whoever has the group sees to its members and their locks
        if snapshot.departed and snapshot.reachable is not False:
            yield act.ReleaseLocks(snapshot.departed)
        yield from _tell(group, snapshot)
    if deleting and not snapshot.pods:
        yield from finish(group, snapshot, late=late)


def _remove_what_is_over(group: ConsumerGroup, pod: Pod, wanted: bool, waits: bool, now: float) -> Iterator[act.Action]:
    instead = "; another takes its place" if wanted else ""
    if (
        pod.drain is None
        and pod.outcome is not None
        and pod.outcome.unfinished
        and (pod.ended or pod.deleting is not None)
    ):
        yield cut_short(group, pod, pod.outcome)  # somebody else has stopped it; drain_step tells of ours
    if pod.deleting is not None:
        yield from remove_stuck(group, pod, now)
    elif pod.drain is not None:
        return  # drain_step sees to it
    elif pod.phase is PodPhase.SUCCEEDED:
        yield act.Emit(Event(EventReason.REPLACED, f"{pod.name} drained and ended by itself{instead}", pod_uid=pod.uid))
        yield act.DeletePod(pod)
    elif pod.phase is PodPhase.FAILED and (not waits or now >= pod.created + failed_pause(pod.failures)):
        why = f": {pod.trouble}" if pod.trouble else ""
        yield act.Emit(Event(EventReason.REPLACED, f"{pod.name} failed{why}{instead}", warning=True, pod_uid=pod.uid))
        yield act.DeletePod(pod)


def taken_text(group: ConsumerGroup, snapshot: Snapshot) -> str:
    """Why nothing runs, and what to do about it."""
    return (
        f"group {group.group_name} at this RocketMQ belongs to the ConsumerGroup {snapshot.taken_by}, which is older: "
        "no pod runs for this one. Give it another groupName, or delete one of the two"
    )


def _mark_surplus(group: ConsumerGroup, snapshot: Snapshot, wanted: frozenset[int]) -> Iterator[act.Action]:
    """Pods that nobody wants: all of them begin to go at once."""
    must = snapshot.deleting_since is not None or group.spec.suspend or snapshot.taken_by is not None
    if snapshot.deleting_since is not None:
        why = "the group is deleted"
    elif snapshot.taken_by is not None:
        why = f"the group belongs to {snapshot.taken_by}"
    elif group.spec.suspend:
        why = "the group is suspended"
    else:
        why = f"scale-in to {desired_replicas(group, snapshot)}"
    for pod in snapshot.pods:
        if pod.leaving or not (must or snapshot.reachable is not False or pod.idle):
            continue
        if pod.ordinal not in wanted:
            yield act.MarkDrain(pod, why)
        elif _named_ordinal(group, pod) not in (None, pod.ordinal):
            yield act.MarkDrain(pod, "its name and its label rocketfleet.io/ordinal do not fit together")


def _named_ordinal(group: ConsumerGroup, pod: Pod) -> int | None:
    """The ordinal in a pod's name."""
    tail = pod.name.removeprefix(f"{group.metadata.name}-")
    return int(tail) if tail != pod.name and tail.isascii() and tail.isdigit() else None


def _create(group: ConsumerGroup, snapshot: Snapshot, wanted: frozenset[int]) -> Iterator[act.Action]:
    if snapshot.pods and (
        group.spec.engine is Engine.SPARK or any(shuts_out(group, snapshot, pod) for pod in snapshot.pods)
    ):
        return
    taken: set[int | None] = {pod.ordinal for pod in snapshot.pods}
    taken |= {_named_ordinal(group, pod) for pod in snapshot.pods}
    for ordinal in sorted(wanted):
        if ordinal not in taken:
            yield act.CreatePod(ordinal)


def _note_shared(snapshot: Snapshot) -> Iterator[act.Action]:
    """Pods that an older operator made carry no note of what they were made with, or not of everything. Of those of the
    present revision it is known: they were made from this very manifest."""
    for pod in snapshot.pods:
        current = pod.revision == snapshot.revision and not pod.leaving
        if current and snapshot.shared is not None and pod.shared != snapshot.shared:
            yield act.NoteShared(pod, snapshot.shared)


def _tell(group: ConsumerGroup, snapshot: Snapshot) -> Iterator[act.Action]:
    if group.spec.engine is not Engine.WORKER or not shares_queues(group):
        return  # Java's members hear of each other from the broker
    able = tuple(pod for pod in snapshot.pods if pod.phase is PodPhase.RUNNING and not pod.leaving and not pod.idle)
    if able and frozenset(pod.uid for pod in able) != snapshot.told:
        yield act.TellMembers(able)
