"""The next step for a pod that is marked: ask it to drain, read its offsets back from the broker, let it go.

No step is taken before the one in front of it is seen to have worked, or has run out of time. With onTimeout Proceed a
worker gives up on its handlers in time and says so; with Wait it never does: it is kept, and people are told. A pod
that does not run holds nothing and is let go at once; somebody's own consumer drains on SIGTERM, so its deletion is its
drain; and a pod that has ended with code 0 has said by that that the broker confirmed every offset. Offsets that are
safe are not all: where handlers were cut short their messages come again, and people are told before the pod goes.

Texts of events hold nothing that changes from one look to the next: the same event is told once.
"""

from collections.abc import Iterator, Mapping

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.base.counting import counted
from rocketfleet.control.budget import Margin
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.planning.actions import Action, DeletePod, Emit, Event, EventReason, RequestDrain
from rocketfleet.controller.planning.snapshot import Pod, PodPhase, Snapshot
from rocketfleet.controller.resources.shared_settings import elsewhere
from rocketfleet.wire.enums import MessageModel
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.configuration.setting_table import OnTimeout

DRAIN_MARGIN = Margin.PLANNER.seconds
DELETION_MARGIN = Margin.DELETION.seconds


def drain_limit(group: ConsumerGroup) -> float:
    """Seconds from a pod's mark to the point where its drain has failed."""
    return group.spec.shutdown.drain_timeout_seconds + DRAIN_MARGIN


def deletion_late(group: ConsumerGroup, snapshot: Snapshot, now: float) -> bool:
    """Whether the object's deletion has had all the time it gets, whatever onTimeout says."""
    if snapshot.deleting_since is None:
        return False
    return now > snapshot.deleting_since + drain_limit(group) + DELETION_MARGIN


def drain_step(group: ConsumerGroup, snapshot: Snapshot, pod: Pod, now: float) -> Iterator[Action]:
    """What to do next about a pod that is marked, and whose deletion was not asked for yet."""
    if pod.drain is None or pod.deleting is not None:
        return
    if (pod.engine or group.spec.engine) is Engine.CONTAINER:
        yield DeletePod(pod)
        return
    outcome = outcome_of(pod)
    if pod.phase is PodPhase.FAILED:  # it holds nothing, and more time would not help it
        if outcome is None or _behind(snapshot, pod, outcome) != []:
            text = f"{pod.name} failed before it was drained{_why(pod)}. What it had not committed comes again"
            yield Emit(Event(EventReason.OFFSETS_UNSAFE, text, warning=True))
        elif outcome.unfinished:
            yield cut_short(group, pod, outcome)
        yield DeletePod(pod)
        return
    if outcome is None and pod.idle:
        yield DeletePod(pod)
        return
    late = now - pod.drain.since > drain_limit(group)
    if outcome is None:
        if late:
            text = f"{pod.name} has not drained within {drain_limit(group):g} s"
            yield from _too_late(group, pod, EventReason.DRAIN_TIMED_OUT, text)
        else:
            yield RequestDrain(pod)
        return
    unsafe = unsafe_offsets(group, snapshot, pod, outcome)
    if unsafe == []:
        if outcome.unfinished:
            yield cut_short(group, pod, outcome)
        else:
            yield Emit(Event(EventReason.DRAINED, _drained(group, snapshot, pod, outcome), pod_uid=pod.uid))
        yield DeletePod(pod)
    elif late:
        text = f"the offsets of {pod.name} are not safe: {describe_unsafe(unsafe)}"
        yield from _too_late(group, pod, EventReason.OFFSETS_UNSAFE, text)
    elif not outcome.confirmed and pod.phase is PodPhase.RUNNING:
        yield RequestDrain(pod)  # it came back after a drain that was not confirmed


def give_up(pod: Pod) -> Iterator[Action]:
    """The object's deletion takes too long: the pod goes as it is."""
    text = f"{pod.name} was not drained in the time that a deletion gets. It is deleted all the same"
    yield Emit(Event(EventReason.DELETION_GAVE_UP, f"{text}; what it had not committed is not safe", warning=True))
    yield DeletePod(pod)


def cut_short(group: ConsumerGroup, pod: Pod, outcome: DrainOutcome) -> Emit:
    """Its offsets are safe, but it has not finished what it had begun."""
    shutdown = group.spec.shutdown
    were = counted(outcome.unfinished, "message was", "messages were")
    text = f"{pod.name} ended while {were} still being handled: what was cut short comes again"
    if shutdown.on_timeout is OnTimeout.WAIT:
        why = "It was told to hurry, or is from before shutdown.onTimeout was Wait"
    else:
        why = f"Handlers get {shutdown.drain_timeout_seconds:g} s (shutdown.onTimeout: Proceed)"
    return Emit(Event(EventReason.DRAIN_TIMED_OUT, f"{text}. {why}", warning=True))


def outcome_of(pod: Pod) -> DrainOutcome | None:
    """How its drain ended, as far as that is known."""
    if pod.outcome is None and pod.phase is PodPhase.SUCCEEDED:
        return DrainOutcome(confirmed=True)
    return pod.outcome


def unsafe_offsets(group: ConsumerGroup, snapshot: Snapshot, pod: Pod, outcome: DrainOutcome) -> list[str] | None:
    """What is not safe, queue by queue; empty: all is. None: it cannot be told, for the broker did not answer."""
    if not outcome.confirmed:
        return _behind(snapshot, pod, outcome) or None
    if group.spec.message_model is MessageModel.BROADCASTING:
        return []  # each member keeps its own offsets: the broker knows of none
    return _behind(snapshot, pod, outcome)


def read_back(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether its offsets can be read back: not from a RocketMQ that the manifest no longer names."""
    return not elsewhere(pod.shared, snapshot.shared)


def _behind(snapshot: Snapshot, pod: Pod, outcome: DrainOutcome) -> list[str] | None:
    if not read_back(snapshot, pod):
        return [] if outcome.confirmed else None  # its own word is all there is
    return unsafe_queues(outcome, snapshot.committed)


def unsafe_queues(outcome: DrainOutcome, committed: Mapping[MessageQueue, int]) -> list[str] | None:
    """The queues whose offset at the broker is behind what the member says it reached; None: it cannot be told."""
    if outcome.offsets is None:
        return [] if outcome.confirmed else None
    unsafe = []
    unknown = False
    for queue, offset in sorted(outcome.offsets.items()):
        stored = committed.get(queue)
        if stored is None:
            unknown = True
        elif stored < offset:
            unsafe.append(f"{queue} is {offset - stored} behind")
    return unsafe or (None if unknown else [])


def describe_unsafe(unsafe: list[str] | None) -> str:
    if unsafe is None:
        return "it did not confirm them all, or they could not be read back from the broker"
    return "; ".join(unsafe[:5]) + ("; …" if len(unsafe) > 5 else "")


def _too_late(group: ConsumerGroup, pod: Pod, reason: EventReason, what: str) -> Iterator[Action]:
    if group.spec.shutdown.on_timeout is OnTimeout.WAIT:
        advice = "It is kept (shutdown.onTimeout: Wait): delete the pod, with a short --grace-period, to go on"
        yield Emit(Event(reason, f"{what}. {advice}", warning=True))
        if pod.phase is PodPhase.RUNNING and (pod.outcome is None or not pod.outcome.confirmed):
            yield RequestDrain(pod)
        return
    yield Emit(Event(reason, f"{what}. It is deleted all the same (shutdown.onTimeout: Proceed)", warning=True))
    yield DeletePod(pod)


def _drained(group: ConsumerGroup, snapshot: Snapshot, pod: Pod, outcome: DrainOutcome) -> str:
    took = "" if outcome.seconds is None else f" in {outcome.seconds:.1f} s"
    own_word = group.spec.message_model is MessageModel.BROADCASTING or not read_back(snapshot, pod)
    if outcome.offsets is None or own_word:
        return f"{pod.name} drained{took} and confirmed its offsets"
    return f"{pod.name} drained{took}; the offsets of {counted(len(outcome.offsets), 'queue')} are safe at the broker"


def _why(pod: Pod) -> str:
    return f" ({pod.trouble})" if pod.trouble else ""
