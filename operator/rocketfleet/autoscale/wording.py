"""A decision in a sentence, for an event and for `kubectl rocketfleet lag --explain`."""

from typing import TYPE_CHECKING

from rocketfleet.autoscale.history import Learned, Trial
from rocketfleet.autoscale.policy import ScalingPolicy
from rocketfleet.base.counting import counted

if TYPE_CHECKING:
    from rocketfleet.autoscale.decide import Figures
    from rocketfleet.autoscale.demand import Demand


def no_figures(current: int, gap: str) -> str:
    return f"stays at {current}: {gap}, and without figures nothing is changed"


def woken(replicas: int, at_least: int, came: int, gap: str) -> str:
    waits = f"at least {_wait(at_least)}" if at_least else f"{counted(came)} came in"
    return f"0 → {replicas}: {waits}. More is not known: {gap}"


def limits(policy: ScalingPolicy, before: int, current: int) -> str:
    if policy.recommended is not None and policy.floor > policy.least and current == policy.floor and current > before:
        return f"{before} → {current}: {counted(policy.recommended, 'replica is', 'replicas are')} recommended for now"
    which = "minReplicas" if current > before else "maxReplicas"
    return f"{before} → {current}: {which} is {current}"


def undone(trial: Trial, back: int, rate: float | None, policy: ScalingPolicy) -> str:
    did = "no more" if rate is None else f"{_rate(rate)} now"
    consume = counted(trial.replicas, "replica consumes", "replicas consume")
    return (
        f"{trial.replicas} → {back}: {consume} hardly more than {trial.before} did "
        f"({_rate(trial.rate)} per second before, {did}): something else is slow, or one queue has most of the "
        "messages. "
        f"Not tried again for {policy.remember:g} s"
    )


def out(policy: ScalingPolicy, figures: "Figures", called: "Demand", current: int, replicas: int) -> str:
    return f"{current} → {replicas}: {_waiting(figures)}{_because(policy, figures, called, replicas)}"


def fewer(policy: ScalingPolicy, figures: "Figures", called: "Demand | None", current: int, replicas: int) -> str:
    if called is None:
        return f"{current} → {replicas}: for {policy.zero_after:g} s nothing came in, waited or was to be tried again"
    known = "" if figures.replica_rate is None else f", and one replica does {_rate(figures.replica_rate)}"
    return (
        f"{current} → {replicas}: for {policy.in_after:g} s no more than {replicas} were called for; "
        f"{_waiting(figures)}{known}"
    )


def steady(
    policy: ScalingPolicy, figures: "Figures", called: "Demand", enough: int, current: int, mind: Learned, now: float
) -> str:
    """Why nothing changes. `enough` are the replicas that would do, with the margin that a scale-in leaves."""
    text = f"stays at {current}: {_waiting(figures)}"
    wanted = called.called if called.called > current else called.replicas  # the latter for even shares
    ceiling = policy.most if mind.ceiling is None else max(mind.ceiling, policy.floor)
    limit = policy.most if figures.limit is None else figures.limit
    if wanted > current >= limit:
        which = f"maxReplicas is {current}" if current >= policy.most else f"there {_only(figures.queues)}"
        return f"{text}; {wanted} are called for, but {which}"
    if wanted > current >= ceiling:
        left = mind.ceiling_until - now
        return f"{text}; {wanted} are called for, but more did not help when it was tried. Again in {left:.0f} s"
    if wanted > current:
        return f"{text}; {min(called.replicas, limit, ceiling)} are called for, not yet for {policy.out_after:g} s"
    if not called.called and current == 1 and policy.floor == 0:
        return f"{text}; none is called for, not yet for {policy.zero_after:g} s"
    fewest = max(enough, policy.floor, 1)
    if fewest < current:
        return f"{text}; {fewest} would be enough, not yet for {policy.in_after:g} s"
    return text


def _waiting(figures: "Figures") -> str:
    """What there is to do, as far as it is known."""
    text = _wait(figures.lag) if figures.lag else "nothing waits"
    if figures.lag and figures.seconds is not None:
        text += f", the oldest for {_span(figures.seconds)}"
    if figures.retry:
        text += f", {figures.retry} {'is' if figures.retry == 1 else 'are'} to be tried again"
    if figures.produce_rate is not None:
        text += f"; {_rate(figures.produce_rate)} per second come in"
    return text


def _because(policy: ScalingPolicy, figures: "Figures", called: "Demand", replicas: int) -> str:
    """Which of the demands made the number."""
    top = max(called.seen, called.remembered or 0)
    does = "" if figures.replica_rate is None else f" and one replica does {_rate(figures.replica_rate)}"
    if top == 0:
        text = ""
    elif top == called.work_off and policy.target_seconds is not None:
        text = f"{does}, so it takes {top} to work this off within {policy.target_seconds:g} s"
    elif top == called.keep_up:
        text = f"{does}, so it takes {top} to keep up"
    elif top == called.by_lag:
        text = f"; at {policy.target_lag} for each member that is {top}"
    elif top == called.by_age and policy.target_seconds is not None:
        text = f"; the group falls behind its target of {policy.target_seconds:g} s"
    else:
        text = "; fewer were not enough for what came in before"
    if replicas > max(top, 1):
        queues = "these queues" if figures.queues is None else counted(figures.queues, "queue")
        text += f". With {queues}, {replicas} is the next number that leaves every member fewer of them"
    elif replicas < top:
        text += f". {replicas} is the most there may be"
    return text


def _only(queues: int | None) -> str:
    if queues is None:
        return "are not enough queues"
    return f"{'is' if queues == 1 else 'are'} only {counted(queues, 'queue')}"


def _wait(messages: int) -> str:
    return counted(messages, "message waits", "messages wait")


def _rate(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
