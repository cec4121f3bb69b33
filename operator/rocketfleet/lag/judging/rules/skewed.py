"""SKEWED: one queue or one member carries most of the lag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, LagFinding, LagVerdict, RuleLimits

if TYPE_CHECKING:
    from rocketfleet.lag.figures import GroupLag
    from rocketfleet.lag.judging.window import Window
    from rocketfleet.wire.queue import MessageQueue

K = TypeVar("K", bound=Hashable)


def skewed(window: Window, limits: RuleLimits = DEFAULT_LIMITS) -> list[LagVerdict]:
    """At every moment of the window the same queue has more than half of the group's lag, and more than twice a fair
    share of it; so of two queues none ever is, for one of two must have half. The same for a member, by the queues it
    has. A member that is slow only because of one queue is not accused beside it. A small backlog is no skew.
    """
    judged = window.judged
    if window.broadcast or len(judged) < limits.moments:
        return []
    if any(moment.at_least < max(limits.skew_messages, 1) for moment in judged):
        return []
    queue = _same([_heaviest(_by_queue(moment)) for moment in judged])
    if queue is not None:
        share = _by_queue(judged[-1])[queue] * 100 // judged[-1].at_least
        return [
            LagVerdict(
                LagFinding.SKEWED, f"queue {queue} carries {share} % of the group's lag: is one key most of it?", queue
            )
        ]
    member = _same([_heaviest(_by_member(moment)) for moment in judged])
    if member is not None:
        share = _by_member(judged[-1])[member] * 100 // judged[-1].at_least
        sentence = f"the queues of {member} carry {share} % of the group's lag: is it slower than the others?"
        return [LagVerdict(LagFinding.SKEWED, sentence, member=member)]
    return []


def _by_queue(moment: GroupLag) -> Counter[MessageQueue]:
    return Counter({row.queue: row.lag for row in moment.queues if row.lag is not None})


def _by_member(moment: GroupLag) -> Counter[str]:
    """Members without a queue have their fair share too, of nothing: idle ones are another rule's."""
    lags: Counter[str] = Counter()
    for row in moment.queues:
        if row.owner is not None and row.lag is not None:
            lags[row.owner] += row.lag
    return lags


def _heaviest(lags: Counter[K]) -> K | None:
    if not lags:
        return None
    who, most = lags.most_common(1)[0]
    return who if most > lags.total() * max(0.5, 2 / len(lags)) else None


def _same(found: list[K | None]) -> K | None:
    return found[0] if found and all(one == found[0] for one in found) else None
