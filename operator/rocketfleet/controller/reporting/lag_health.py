"""What the rules say of a group's lag, as a condition, a part of the status and events. Pure."""

from collections.abc import Collection, Mapping

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.status import ConditionType, ConsumerGroupStatus, Lag, Truth
from rocketfleet.base.timestamps import timestamp
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.planning.snapshot import Ownership
from rocketfleet.controller.reporting.conditions import ConditionVerdict
from rocketfleet.lag.figures import GroupLag
from rocketfleet.lag.judging.rules import GroupVerdict, LagFinding

# State → the condition's reason, and the event that tells of it.
_WORDS: Mapping[LagFinding, tuple[str, EventReason | None]] = {
    LagFinding.OK: ("Consuming", None),
    LagFinding.UNKNOWN: ("Unknown", None),
    LagFinding.IDLE_MEMBER: ("IdleMember", EventReason.IDLE_MEMBER),
    LagFinding.SKEWED: ("Skewed", EventReason.LAG_SKEWED),
    LagFinding.GROWING: ("Growing", EventReason.LAG_GROWING),
    LagFinding.REWOUND: ("Rewound", EventReason.LAG_REWOUND),
    LagFinding.FAILING: ("Failing", EventReason.LAG_FAILING),
    LagFinding.STALLED: ("Stalled", EventReason.LAG_STALLED),
    LagFinding.STOPPED: ("Stopped", EventReason.LAG_STOPPED),
}
_TRUTH = {True: Truth.TRUE, False: Truth.FALSE, None: Truth.UNKNOWN}


def lag_verdict(group: ConsumerGroup, state: LagFinding | None, sentence: str) -> ConditionVerdict:
    """The condition LagHealthy. `sentence` is the one of the moment at which it became so."""
    if group.spec.suspend:
        return ConditionVerdict(
            Truth.UNKNOWN, "Suspended", "The group is suspended: messages that arrive meanwhile add to the lag."
        )
    if state is None:
        return ConditionVerdict(Truth.UNKNOWN, "NotMeasured", "The lag has not been measured yet.")
    return ConditionVerdict(_TRUTH[state.healthy], _WORDS[state][0], capitalised(sentence))


def remembered(status: ConsumerGroupStatus) -> tuple[LagFinding, str] | None:
    """The state that a status tells of, with its sentence; None: none, for the group rested, or nobody had looked."""
    state = None if status.lag is None else status.lag.state
    told = next((one for one in status.conditions or () if one.type is ConditionType.LAG_HEALTHY), None)
    if (
        state is None
        or state not in LagFinding.__members__
        or told is None
        or told.reason != _WORDS[LagFinding(state)][0]
    ):
        return None
    return LagFinding(state), told.message


def capitalised(sentence: str) -> str:
    """With a capital letter, unless it begins with the name of something: Orders is not the topic orders."""
    first = sentence.split(" ", 1)[0]
    return sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence


def findings_of(verdict: GroupVerdict) -> dict[LagFinding, str]:
    """What the rules find amiss, the worst first, each with its first sentence. What is not known is no finding."""
    found: dict[LagFinding, str] = {}
    for one in verdict.verdicts:
        if one.state not in (LagFinding.OK, LagFinding.UNKNOWN):
            found.setdefault(one.state, verdict.sentence if one.state is verdict.state else one.sentence)
    return found


def in_words(verdict: GroupVerdict) -> str:
    """All findings in one sentence: a hot key makes a lag grow, and the growth alone would not say why."""
    others = [sentence for state, sentence in findings_of(verdict).items() if state is not verdict.state]
    return verdict.sentence + "".join(f". Besides, {sentence}" for sentence in others)


def lag_events(told: Collection[LagFinding], findings: Mapping[LagFinding, str], sentence: str) -> list[Event]:
    """What is new since these were told, and that it is over when nothing is left."""
    new = ((state, words) for state, words in findings.items() if state not in told)
    events = [Event(reason, words, warning=True) for state, words in new if (reason := _WORDS[state][1]) is not None]
    if told and not findings:
        worst = max(told, key=lambda state: state.severity)
        events.append(
            Event(EventReason.LAG_RECOVERED, f"the lag has recovered (it was {_WORDS[worst][0]}): {sentence}")
        )
    return events


def lag_status(figures: GroupLag, state: LagFinding | None) -> Lag:
    """The figures as the status has them."""
    return Lag(
        messages=figures.messages,
        seconds=None if figures.seconds is None else round(figures.seconds, 1),
        worst_queue=None if figures.worst is None else str(figures.worst),
        retry=figures.retry,
        delayed=figures.delayed,
        tried_per_minute=None if figures.attempts is None else figures.attempts.tried,
        failed_per_minute=None if figures.attempts is None else figures.attempts.failed,
        dlq=figures.dlq,
        state=None if state is None else state.value,
        observed_at=timestamp(figures.observed_at),
    )


def lag_of_members(figures: GroupLag, ownership: Ownership | None) -> dict[str, int]:
    """Messages in the queues that each member has. Members of which a queue was not read are left out."""
    if ownership is None:
        return {}
    held: dict[str, int | None] = {}
    for row in figures.queues:
        known = row.lag if row.observed_at >= figures.observed_at else None
        for client_id in ownership.owners.get(row.queue, ()):
            before = held.get(client_id, 0)
            held[client_id] = None if known is None or before is None else before + known
    return {client_id: lag for client_id, lag in held.items() if lag is not None}
