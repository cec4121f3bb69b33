"""decide(policy, history, now) → how many replicas, and why: a pure function of what was seen.

The rules, in the order in which they are asked:

1. **No figures, no change.** A lag that is not known, or is old, moves nothing: a broker that does not answer would
   otherwise scale every group to its maximum, or to nothing. Only the manifest's own limits count then.
2. **A scale-out has to help.** Before it, the rate of consumption is noted. When the new members have been at work for
   the time of the trial, all the while with plenty to do, and the rate has hardly risen, something else is slow: a
   database behind the handlers, or one queue that has all the messages. The group goes back to where it was, and stays
   there for a while.
3. **Out quickly, in slowly.** More replicas are wanted when all of the last seconds called for more (`out_after`; the
   least that they called for counts), fewer when none of the last minutes called for as many (`in_after`; the most
   counts, with a margin). Between the two lies room in which nothing happens, so a constant load finds its number and
   stays with it. A window that we have not looked at in full moves nothing. A scale-in that has to be taken back is not
   tried again while as much comes in.
4. **From nothing at once**: whatever waits, a message to be tried again too, calls for the first member. What is known
   to wait is enough, though a broker does not answer or the lag of a queue is not known; and so is a queue that grows.
   **To nothing** when there was nothing at all to do for `zero_after`.

What is called for is in demand.py; numbers that give even shares in shares.py.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile

from rocketfleet.autoscale import wording
from rocketfleet.autoscale.demand import (
    SCALE_IN_MARGIN,
    Demand,
    Stretch,
    demand,
    falls_behind,
    has_plenty,
    has_work,
    is_steady,
    learnt_rate,
)
from rocketfleet.autoscale.history import Learned, LoadHistory, LoadSample, TooFew, Trial, consume_rate, produce_rate
from rocketfleet.autoscale.policy import ScalingPolicy

GAIN = 0.2  # of the gain that more replicas would bring if nothing else were slow: less is none
DOUBT = 6 * 3600.0  # seconds: what was too few is tried again after that, under the same load too


class ScalingReason(StrEnum):
    """What a decision comes from, in one word."""

    STEADY = "Steady"
    NO_FIGURES = "NoFigures"
    LIMITS = "Limits"
    OUT = "ScaledOut"
    IN = "ScaledIn"
    FROM_ZERO = "ScaledFromZero"
    TO_ZERO = "ScaledToZero"
    UNDONE = "ScaleOutUndone"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a decision was made from, for programs. None is not known."""

    lag: int | None = None
    seconds: float | None = None
    retry: int | None = None
    produce_rate: float | None = None
    consume_rate: float | None = None
    replica_rate: float | None = None
    queues: int | None = None
    limit: int | None = None
    demand: Demand | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """How many, and why."""

    at: float
    before: int
    replicas: int
    reason: ScalingReason
    sentence: str
    figures: Figures = field(default_factory=Figures)
    mind: Learned = field(default_factory=Learned)

    @property
    def changes(self) -> bool:
        return self.replicas != self.before


def decide(policy: ScalingPolicy, history: LoadHistory, now: float) -> Decision:
    """The number of replicas from here on."""
    before = history.replicas
    current = policy.within(before)
    newest = history.newest
    gap = _missing(policy, newest, now)
    if gap is not None and newest is not None and current == before == 0 and _is_fresh(policy, newest, now):
        woken = _woken(policy, history, newest, gap, now)
        if woken is not None:
            return woken
    if gap is not None or newest is None:
        reason = ScalingReason.NO_FIGURES if current == before else ScalingReason.LIMITS
        return Decision(now, before, current, reason, wording.no_figures(current, gap or ""), mind=history.mind)

    queues = max((sample.queues for sample in history.samples if sample.queues is not None), default=None)
    views = _views(policy, history)
    mind = _judged(policy, history, now)
    figures = Figures(
        lag=newest.lag,
        seconds=newest.seconds,
        retry=newest.retry,
        produce_rate=produce_rate(views[0]),
        consume_rate=consume_rate(views[0]),
        replica_rate=mind.rate,
        queues=queues,
        limit=policy.limit(queues),
    )

    def decided(
        replicas: int, reason: ScalingReason, sentence: str, mind: Learned, called: Demand | None = None
    ) -> Decision:
        return Decision(now, before, replicas, reason, sentence, replace(figures, demand=called), mind)

    if current != before:
        settled = replace(mind, trial=None, scaled_in=None)
        return decided(current, ScalingReason.LIMITS, wording.limits(policy, before, current), settled)
    trial = history.mind.trial
    if mind.ceiling is not None and mind.ceiling != history.mind.ceiling and trial is not None:
        back = policy.within(min(current, mind.ceiling))
        sentence = wording.undone(trial, back, consume_rate(views[0]), policy)
        return decided(back, ScalingReason.UNDONE, sentence, replace(mind, scaled_in=None))

    more = _out(policy, history, views, mind, queues, now)
    if more is not None and more[0] > current:
        replicas, called = more
        trial = _trial(mind, current, replicas, consume_rate(views[0]), views[0], now)
        reason = ScalingReason.FROM_ZERO if current == 0 else ScalingReason.OUT
        sentence = wording.out(policy, figures, called, current, replicas)
        noted = replace(_too_few(policy, mind, views[0], current, called, now), trial=trial, scaled_in=None)
        return decided(replicas, reason, sentence, noted, called)

    fewer = _in(policy, history, views, mind, queues, now)
    if fewer is not None:
        replicas, most = fewer
        reason = ScalingReason.TO_ZERO if replicas == 0 else ScalingReason.IN
        sentence = wording.fewer(policy, figures, most, current, replicas)
        return decided(replicas, reason, sentence, replace(mind, trial=None, scaled_in=now), most)
    latest = demand(policy, views[0], mind, queues)
    enough = demand(policy, views[0], mind, queues, SCALE_IN_MARGIN).replicas
    sentence = wording.steady(policy, figures, latest, enough, current, mind, now)
    return decided(current, ScalingReason.STEADY, sentence, mind, latest)


def _missing(policy: ScalingPolicy, newest: LoadSample | None, now: float) -> str | None:
    """What keeps us from deciding."""
    if newest is None:
        return "the lag has not been read yet"
    if newest.lag is None:
        return "the lag is not known"
    if not _is_fresh(policy, newest, now):
        return f"the lag has not been read for more than {policy.fresh:g} s"
    return None


def _is_fresh(policy: ScalingPolicy, newest: LoadSample, now: float) -> bool:
    return now - newest.at <= policy.fresh


def _woken(policy: ScalingPolicy, history: LoadHistory, newest: LoadSample, gap: str, now: float) -> Decision | None:
    """A group at nothing whose lag is not known: what is known to wait, or has come in meanwhile, wakes it."""
    at_nothing = takewhile(lambda sample: sample.replicas == 0, reversed(history.samples))
    came = newest.arrived - min((sample.arrived for sample in at_nothing), default=newest.arrived)
    if not newest.at_least and came <= 0:
        return None
    known = replace(newest, lag=max(newest.at_least, 1), seconds=None, retry=None, produced=None, consumed=None)
    called = demand(policy, (known,), history.mind, newest.queues)
    replicas = policy.within(max(1, min(called.replicas, policy.limit(newest.queues))))
    figures = Figures(queues=newest.queues, limit=policy.limit(newest.queues), demand=called)
    sentence = wording.woken(replicas, newest.at_least, came, gap)
    mind = replace(history.mind, trial=None, scaled_in=None)
    return Decision(now, 0, replicas, ScalingReason.FROM_ZERO, sentence, figures, mind)


def _views(policy: ScalingPolicy, history: LoadHistory) -> list[Stretch]:
    """Each sample, newest first, with the stretch before it; alone where we have not looked for long enough."""
    found = list(history.stretches(policy.rate_span))
    alone = len(history.samples) - len(found)
    return found + [(sample,) for sample in reversed(history.samples[:alone])]


# -- more -------------------------------------------------------------------------------------------------------------


def _out(
    policy: ScalingPolicy, history: LoadHistory, views: list[Stretch], mind: Learned, queues: int | None, now: float
) -> tuple[int, Demand] | None:
    moment = now - policy.out_after
    from_zero = history.replicas == 0
    if not from_zero and not history.covers(moment):
        return None
    if from_zero and not has_work(views[0][-1]) and not produce_rate(views[0]):
        return None  # what a sample from before says of members that were there is nothing to come back for
    recent = [view for view in views if view[-1].at >= moment and view[-1].lag is not None]
    seen = [demand(policy, view, mind, queues) for view in (views[:1] if from_zero else recent)]
    if not seen:
        return None
    least = min(seen, key=lambda one: one.replicas)
    most = policy.limit(queues)
    if mind.ceiling is not None:
        most = min(most, max(mind.ceiling, policy.floor))
    return min(least.replicas, most), least


def _too_few(
    policy: ScalingPolicy, mind: Learned, stretch: Stretch, replicas: int, called: Demand, now: float
) -> Learned:
    """Note that these replicas were too few for what comes in, where nothing better is known.

    They fell behind before our eyes, or a scale-in has to be taken back. The latter is often all there is to see: where
    looks are rare the next one calls for more already, and what it looks back on is a time with more members.
    """
    incoming = produce_rate(stretch)
    if mind.rate is not None or not incoming or replicas == 0 or stretch[-1].replicas != replicas:
        return mind
    if called.seen <= replicas:
        return mind  # more that are called for from memory prove nothing
    taken_back = mind.scaled_in is not None and now - mind.scaled_in <= max(policy.in_after, policy.trial)
    if not taken_back and not (falls_behind(stretch) and consume_rate(stretch)):
        return mind
    if any(one.replicas >= replicas and one.rate <= incoming for one in mind.too_few):
        return mind  # that was known
    others = (one for one in mind.too_few if one.replicas > replicas or one.rate < incoming)  # they say more
    return replace(mind, too_few=(*others, TooFew(replicas, incoming, now + DOUBT)))


# -- fewer ------------------------------------------------------------------------------------------------------------


def _in(
    policy: ScalingPolicy, history: LoadHistory, views: list[Stretch], mind: Learned, queues: int | None, now: float
) -> tuple[int, Demand | None] | None:
    """Fewer than there are, if that is what the window calls for; None: as many, or nobody knows."""
    current = history.replicas
    if current <= policy.floor:
        return None
    if policy.floor == 0 and _idle(history, now - policy.zero_after):
        return 0, None
    moment = now - policy.in_after
    if current == 1 or not history.covers(moment):
        return None
    if len({sample.replicas for sample in views[0]}) > 1:
        return None  # what the last change did is yet to be seen
    fewest, most = policy.within(1), None
    for view in views:
        if view[-1].at < moment:
            break
        if view[-1].lag is None:
            return None
        called = demand(policy, view, mind, queues, SCALE_IN_MARGIN)
        if called.replicas >= current:
            return None  # most groups need all they have, most of the time
        if most is None or called.replicas > most.replicas:
            most = called
            fewest = policy.within(max(called.replicas, 1))
    return (fewest, most) if most is not None and fewest < current else None


def _idle(history: LoadHistory, moment: float) -> bool:
    """Whether nothing came, nothing waited and nothing was to be tried again, all the time since then."""
    if not history.covers(moment):
        return False
    recent = history.since(moment)
    counts = {sample.produced for sample in recent}
    quiet = all(sample.lag == 0 and sample.retry == 0 for sample in recent)
    return quiet and len(recent) > 1 and len(counts) == 1 and None not in counts


# -- whether it helped ------------------------------------------------------------------------------------------------


def _trial(
    mind: Learned, current: int, replicas: int, rate: float | None, stretch: Stretch, now: float
) -> Trial | None:
    """The trial that a scale-out begins. One that is still open goes on: what it began from is what counts."""
    if mind.trial is not None:
        return replace(mind.trial, since=now, replicas=replicas)
    if current == 0 or rate is None or not is_steady(stretch) or not has_plenty(stretch):
        return None
    return Trial(now, current, replicas, rate)


def _judged(policy: ScalingPolicy, history: LoadHistory, now: float) -> Learned:
    """What is known after these samples: a trial that is over is gone, and left a ceiling if it was in vain."""
    mind = replace(history.mind, rate=learnt_rate(policy, history))
    if mind.ceiling is not None and now >= mind.ceiling_until:
        mind = replace(mind, ceiling=None)
    if any(now >= one.until for one in mind.too_few):
        mind = replace(mind, too_few=tuple(one for one in mind.too_few if now < one.until))
    trial = mind.trial
    if trial is None:
        return mind
    if history.replicas != trial.replicas:
        return replace(mind, trial=None)
    since = history.since(trial.since)
    at_work = next((n for n, sample in enumerate(since) if sample.ready >= trial.replicas), None)
    if at_work is None:
        return mind  # they have not come yet
    settled = tuple(sample for sample in since if sample.at >= since[at_work].at + policy.rate_span)
    if any(not has_work(sample) for sample in settled):
        return replace(mind, trial=None)  # they have caught up
    if len(settled) < 2 or settled[-1].at - settled[0].at < policy.trial:
        return mind
    rate = consume_rate(settled)
    if rate is None:
        return mind
    expected = trial.rate * (1 + GAIN * (trial.replicas / trial.before - 1))
    if not has_plenty(settled) or rate > expected:
        return replace(mind, trial=None)
    return replace(mind, trial=None, ceiling=trial.before, ceiling_until=now + policy.remember, rate=history.mind.rate)
