"""Translates between the manifest, the figures of the lag and the autoscaler. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import RECOMMENDED_REPLICAS
from rocketfleet.api.status import MOST_DECISIONS, Scaling, ScalingDecision
from rocketfleet.autoscale.decide import Decision
from rocketfleet.autoscale.decide import ScalingReason as Why
from rocketfleet.autoscale.history import Learned, LoadHistory, LoadSample
from rocketfleet.autoscale.policy import ScalingPolicy
from rocketfleet.base.timestamps import moment_of, timestamp
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.planning.wanted import members_per_pod, shares_queues
from rocketfleet.lag.figures import GroupLag, QueueLag
from rocketfleet.wire.queue import MessageQueue

SWEEPS = 4  # figures of as many sweeps ago are still figures
LONGEST_SENTENCE = 1000

_REASONS = {
    Why.OUT: EventReason.SCALED_OUT,
    Why.IN: EventReason.SCALED_IN,
    Why.FROM_ZERO: EventReason.SCALED_FROM_ZERO,
    Why.TO_ZERO: EventReason.SCALED_TO_ZERO,
    Why.UNDONE: EventReason.SCALE_OUT_UNDONE,
}


def policy_of(group: ConsumerGroup, interval: float) -> ScalingPolicy | None:
    """What the manifest says about the group's size; None: not that its lag decides. `interval` is between sweeps."""
    given = group.spec.autoscaling
    if given is None or not shares_queues(group):
        return None
    return ScalingPolicy(
        least=given.min_replicas,
        most=given.max_replicas,
        target_lag=given.target_lag,
        target_seconds=given.target_seconds,
        out_after=given.scale_out_after_seconds,
        in_after=given.scale_in_after_seconds,
        zero_after=given.scale_to_zero_after_seconds,
        trial=given.trial_seconds,
        fresh=SWEEPS * interval,
        members_per_pod=members_per_pod(group),
        idle_members=group.spec.allow_idle_members,
        recommended=_recommended(group),
    )


def _recommended(group: ConsumerGroup) -> int | None:
    """What a job has written to the object, perhaps by the hour of the day. Anything but a number says nothing."""
    text = group.metadata.annotations.get(RECOMMENDED_REPLICAS, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else None


def longest_window(policy: ScalingPolicy) -> float:
    """How far back a history has to reach."""
    return max(policy.out_after, policy.in_after, policy.zero_after, policy.trial + 6 * policy.rate_span)


@dataclass(frozen=True, slots=True)
class Meter:
    """Messages produced and consumed since we began to look, counted from offsets."""

    produced: int = 0
    consumed: int = 0
    offsets: Mapping[MessageQueue, tuple[int, int]] = field(default_factory=dict)  # as last read
    arrived: int = 0  # produced, in all queues that could be read, also those without an offset of the group
    ends: Mapping[MessageQueue, int] = field(default_factory=dict)

    def after(self, rows: Iterable[QueueLag]) -> "Meter":
        """With what these offsets show. A queue that is new, or was moved backwards, adds nothing."""
        produced, consumed, arrived = self.produced, self.consumed, self.arrived
        offsets = {}
        ends = dict(self.ends)
        for row in rows:
            if row.max_offset is None:
                continue
            arrived += max(0, row.max_offset - ends.get(row.queue, row.max_offset))
            ends[row.queue] = row.max_offset
            if row.consumer_offset is None:
                continue
            offsets[row.queue] = row.max_offset, row.consumer_offset
            before = self.offsets.get(row.queue)
            if before is not None:
                produced += max(0, row.max_offset - before[0])
                consumed += max(0, row.consumer_offset - before[1])
        return Meter(produced, consumed, offsets, arrived, ends)


def sample_of(figures: GroupLag, meter: Meter, replicas: int, ready: int, queues: int | None) -> LoadSample:
    """What the autoscaler takes from a look at a group. Where a queue was not read, counts would lack its messages."""
    known = figures.messages is not None
    return LoadSample(
        at=figures.observed_at,
        lag=figures.messages,
        seconds=figures.seconds if known else None,
        retry=figures.retry if known else None,
        produced=meter.produced if known else None,
        consumed=meter.consumed if known else None,
        replicas=replicas,
        ready=ready,
        queues=queues,
        at_least=figures.at_least + figures.retry_at_least,
        arrived=meter.arrived,
    )


# -- what is kept in the status, and read from it by whoever leads next -----------------------------------------------


def first_history(group: ConsumerGroup, policy: ScalingPolicy, last_desired: int | None) -> LoadHistory:
    """Where to go on from: as many as were wanted last, and what was learnt then."""
    known = group.status.autoscaling if group.status is not None else None
    if known is None:
        return LoadHistory(policy.within(policy.least if last_desired is None else last_desired))
    until = moment_of(known.ceiling_until)
    mind = Learned(
        rate=known.replica_rate, ceiling=None if until is None else known.ceiling, ceiling_until=until or 0.0
    )
    return LoadHistory(known.replicas, mind=mind)


def scaling_status(decision: Decision, decisions: list[ScalingDecision]) -> Scaling:
    """What the status says of autoscaling."""
    mind = decision.mind
    return Scaling(
        replicas=decision.replicas,
        reason=decision.reason.value,
        message=_short(decision.sentence),
        replica_rate=None if mind.rate is None else round(mind.rate, 3),
        ceiling=mind.ceiling,
        ceiling_until=None if mind.ceiling is None else timestamp(mind.ceiling_until),
        decisions=decisions[:MOST_DECISIONS],
    )


def noted(decision: Decision) -> ScalingDecision:
    """A change as the status keeps it."""
    return ScalingDecision(
        at=timestamp(decision.at),
        before=decision.before,
        replicas=decision.replicas,
        reason=decision.reason.value,
        message=_short(decision.sentence),
    )


def event_of(decision: Decision) -> Event:
    """A change as people are told of it."""
    grown = decision.replicas > decision.before
    reason = _REASONS.get(decision.reason, EventReason.SCALED_OUT if grown else EventReason.SCALED_IN)
    return Event(reason, _short(decision.sentence), warning=decision.reason is Why.UNDONE)


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= LONGEST_SENTENCE else sentence[: LONGEST_SENTENCE - 1] + "…"
