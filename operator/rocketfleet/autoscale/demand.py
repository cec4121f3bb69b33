"""How many replicas one stretch of a group's history calls for, and what one replica is able to do.

| what calls | replicas |
|---|---|
| `targetLag` | lag / target, for the members of a replica together |
| the rate at which messages come in | as many as can take it at four fifths of what they can do |
| `targetSeconds` | as many as take what comes in, and what waits within the target |
| the oldest message's age | where the above does not tell: more, as long as the group falls behind |
| what was too few before | where it is not known what a replica can do: one more, while as much comes in as then |

What one replica can do is seen only while it has plenty to do, that is while more lies there than the members consume
between two commits: what lies there for a shorter time may have been consumed long ago. A stretch in which members
came, went or were not ready says nothing about a replica.
"""

import math
from dataclasses import dataclass
from statistics import median

from rocketfleet.autoscale.history import Learned, LoadHistory, LoadSample, consume_rate, produce_rate
from rocketfleet.autoscale.policy import ScalingPolicy
from rocketfleet.autoscale.shares import even_step, step_below
from rocketfleet.group.commit_interval import COMMIT_SECONDS

PLENTY = COMMIT_SECONDS  # of work
UTILISATION = 0.8
SCALE_IN_MARGIN = 1.15  # how much more there might be before fewer replicas would be too few
LEARN_FROM = 5  # stretches
LEARN_BACK = 120.0  # seconds: what members did before that was learnt then

Stretch = tuple[LoadSample, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """What a stretch calls for. A part is None where it does not apply, or its figures are not known."""

    called: int  # the most of them
    replicas: int  # that as an even step
    by_lag: int | None = None
    keep_up: int | None = None
    work_off: int | None = None
    by_age: int | None = None
    remembered: int | None = None

    @property
    def seen(self) -> int:
        """What calls in this stretch itself, whatever was there before."""
        return max(self.by_lag or 0, self.keep_up or 0, self.work_off or 0, self.by_age or 0)


def has_plenty(stretch: Stretch) -> bool:
    """Whether the members had enough to do all the time."""
    rate = consume_rate(stretch) or 0.0
    return all(sample.lag is not None and sample.lag >= max(1.0, PLENTY * rate) for sample in stretch)


def is_steady(stretch: Stretch) -> bool:
    """Whether the same replicas were there all the time, all of them ready."""
    wanted = stretch[-1].replicas
    return wanted > 0 and all(sample.ready == sample.replicas == wanted for sample in stretch)


def has_work(sample: LoadSample) -> bool:
    return bool(sample.lag) or bool(sample.retry)


def learnt_rate(policy: ScalingPolicy, history: LoadHistory) -> float | None:
    """Messages per second that one replica does. What was learnt holds until the members are busy again; what they
    do without being busy shows at least that they can.
    """
    busy: list[float] = []
    shown: list[float] = []
    since = history.samples[-1].at - LEARN_BACK if history.samples else 0.0
    for stretch in history.stretches(policy.rate_span):
        if stretch[-1].at < since:
            break
        if not is_steady(stretch):
            continue
        rate = consume_rate(stretch)
        if rate is None or rate <= 0:
            continue  # members that do nothing at all hang, or are cut off: that is not what they can do
        each = rate / stretch[-1].replicas
        if len(shown) < LEARN_FROM:
            shown.append(each)
        if has_plenty(stretch):
            busy.append(each)
            if len(busy) == LEARN_FROM:
                break
    believed = median(busy) if busy else history.mind.rate
    if believed is None or len(shown) < LEARN_FROM:
        return believed
    return max(believed, median(shown))


def falls_behind(stretch: Stretch) -> bool:
    """Whether the same members had more and more to do."""
    first, now = stretch[0].lag, stretch[-1].lag
    return len(stretch) > 1 and is_steady(stretch) and first is not None and now is not None and now >= first > 0


def demand(policy: ScalingPolicy, stretch: Stretch, mind: Learned, queues: int | None, margin: float = 1.0) -> Demand:
    """What a stretch that ends with a known lag calls for."""
    now, rate = stretch[-1], mind.rate
    assert now.lag is not None
    incoming = produce_rate(stretch)
    by_lag = keep_up = work_off = None
    if policy.target_lag is not None:
        by_lag = _up(margin * now.lag / (policy.target_lag * policy.members_per_pod))
    if rate is not None and incoming is not None:
        late = has_plenty(stretch) or incoming > rate * now.replicas
        # While the members keep up, what they seem to lack is a matter of the estimate, and nothing to add members for.
        if margin > 1 or late:
            keep_up = _up(margin * incoming / (UTILISATION * rate))
        if policy.target_seconds is not None and has_plenty(stretch):
            work_off = _up(margin * (incoming + now.lag / policy.target_seconds) / rate)
    by_age = _by_age(policy, stretch, mind, queues)
    remembered = _remembered(stretch, mind, margin)
    parts = (by_lag, keep_up, work_off, by_age, remembered, 1 if has_work(now) or incoming else 0)
    called = max(part or 0 for part in parts)
    step = called if policy.idle_members else even_step(queues, called, policy.members_per_pod)
    return Demand(called, step, by_lag, keep_up, work_off, by_age, remembered)


def _by_age(policy: ScalingPolicy, stretch: Stretch, mind: Learned, queues: int | None) -> int | None:
    """By feeling the way: where the group falls behind, and what a replica does is not known or was wrong."""
    now = stretch[-1]
    if policy.target_seconds is not None and now.seconds is not None and falls_behind(stretch):
        if mind.rate is None and now.seconds >= policy.target_seconds / 2:
            return 2 * now.replicas
        if now.seconds >= policy.target_seconds:
            return now.replicas + 1
    if mind.rate is not None or produce_rate(stretch) == 0:
        return None
    return step_below(queues, now.replicas, policy.members_per_pod)  # not more at once: who knows what they can do


def _remembered(stretch: Stretch, mind: Learned, margin: float) -> int | None:
    """One more than were too few for as much as comes in now. Where that is not known, members stay and none come.

    A sample that stands alone, where our knowledge begins, says nothing about it: the others will.
    """
    incoming = produce_rate(stretch)
    if mind.rate is not None or incoming == 0 or len(stretch) == 1 or (incoming is None and margin <= 1):
        return None
    counts = [one.replicas for one in mind.too_few if incoming is None or margin * incoming >= one.rate]
    return max(counts) + 1 if counts else None


def _up(number: float) -> int:
    return math.ceil(number - 1e-9)
