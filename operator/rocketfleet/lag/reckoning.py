"""From offsets to lag, and from lag over time to rates. Pure.

| of a queue | lag |
|---|---|
| offset and ends are known | what lies between the offset and the end, and is still there |
| no offset is stored, and the group would begin at the beginning | everything that is there |
| no offset is stored, and the group would begin elsewhere | not known: it depends on when the first member starts |
| it could not be read | not known; what was seen last stays, with the time at which it was seen |

The offset is read before the ends, so an end is never behind an offset, unless somebody stored one beyond the end: such
a queue has no lag.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocketfleet.lag.figures import GroupLag, QueueLag
    from rocketfleet.lag.window import Window


def start_of(committed: int | None, ends: tuple[int, int], *, from_beginning: bool) -> int | None:
    """The next message to be consumed, as far as it is still there; None if that is not known."""
    if committed is None and not from_beginning:
        return None
    return max(committed or 0, ends[0])


def lag_of(committed: int | None, ends: tuple[int, int], *, from_beginning: bool) -> int | None:
    """The row of the table above."""
    start = start_of(committed, ends, from_beginning=from_beginning)
    return None if start is None else max(0, ends[1] - start)


def summed(lags: Iterable[int | None]) -> int | None:
    """The sum, or None if one of them is not known."""
    total = 0
    for lag in lags:
        if lag is None:
            return None
        total += lag
    return total


def with_sums(moment: GroupLag) -> GroupLag:
    """The moment with its sums over the queues. A queue that was not read at this moment counts as not known."""
    fresh = [row for row in moment.queues if row.observed_at >= moment.observed_at and row.lag is not None]
    known = [row.lag or 0 for row in fresh]
    unknown = moment.unknown + len(moment.queues) - len(fresh)
    ages = [row.seconds for row in fresh]
    worst = max(fresh, key=lambda row: row.lag or 0, default=None)
    return replace(
        moment,
        messages=sum(known) if not unknown and fresh else None,
        seconds=None if unknown or not fresh or None in ages else max(age or 0.0 for age in ages),
        worst=worst.queue if worst is not None and worst.lag else None,
        unknown=unknown,
        at_least=sum(known),
    )


def with_rates(window: Window) -> Window:
    """The window with the rates of its latest moment, from the oldest judged one to it.

    What was deleted before the group came there was not consumed. A queue that went back counts as standing still.
    """
    if len(window.judged) < 2:
        return window
    first, latest = window.judged[0], window.judged[-1]
    before = {(row.queue, row.owner if window.broadcast else None): row for row in first.queues}
    consumed = produced = 0.0
    counted = False
    for row in latest.queues:
        old = before.get((row.queue, row.owner if window.broadcast else None))
        if old is None or row.max_offset is None or old.max_offset is None or row.observed_at <= old.observed_at:
            continue
        counted = True
        span = row.observed_at - old.observed_at
        produced += max(0, row.max_offset - old.max_offset) / span
        consumed += max(0, _place(row) - _place(old)) / span
    if not counted:
        return window
    drain = drain_seconds(latest.messages, consumed, produced)
    return window.with_latest(replace(latest, consume_rate=consumed, produce_rate=produced, drain_seconds=drain))


def _place(row: QueueLag) -> int:
    """Where the group is: at its offset, or where the queue begins now."""
    return max(row.consumer_offset or 0, row.min_offset or 0)


def drain_seconds(messages: int | None, consumed: float | None, produced: float | None) -> float | None:
    """How long the backlog lasts at these rates; infinite if it does not shrink, None if that cannot be told."""
    if messages == 0:
        return 0.0
    if messages is None or consumed is None or produced is None:
        return None
    return messages / (consumed - produced) if consumed > produced else math.inf
