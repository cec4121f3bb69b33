"""From offsets to lag, and from lag over time to rates. Pure.

| of a queue | lag |
|---|---|
| offset and ends are known | what lies between the offset and the end, and is still there |
| no offset is stored, and the group would begin at the beginning | everything that is there |
| no offset is stored, and a LastOffset group has one in another queue of the topic | everything: the queue is new |
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
    from collections.abc import Iterable, Iterator

    from rocketfleet.lag.figures import GroupLag, QueueLag
    from rocketfleet.lag.judging.window import Window
    from rocketfleet.wire.queue import MessageQueue


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
    total = known = 0
    worst: QueueLag | None = None
    oldest: float | None = 0.0
    for row in moment.queues:
        if row.lag is None or row.observed_at < moment.observed_at:
            continue
        known += 1
        total += row.lag
        if row.lag and (worst is None or row.lag > (worst.lag or 0)):
            worst = row
        if row.seconds is None:
            oldest = None
        elif oldest is not None and row.seconds > oldest:
            oldest = row.seconds
    unknown = moment.unknown + len(moment.queues) - known
    complete = known > 0 and not unknown
    return replace(
        moment,
        messages=total if complete else None,
        seconds=oldest if complete else None,
        worst=None if worst is None else worst.queue,
        unknown=unknown,
        at_least=total,
    )


def with_rates(window: Window) -> Window:
    """The window with the rates of its latest moment, from the oldest judged one to it.

    What was deleted before the group came there was not consumed. A queue that went back counts as standing still.
    """
    if len(window.judged) < 2:
        return window
    first, latest = window.judged[0], window.judged[-1]
    consumed = produced = 0.0
    counted = False
    for old, row in _pairs(first, latest):
        if row.max_offset is None or old.max_offset is None or row.observed_at <= old.observed_at:
            continue
        counted = True
        span = row.observed_at - old.observed_at
        produced += max(0, row.max_offset - old.max_offset) / span
        consumed += max(0, _place(row) - _place(old)) / span
    if not counted:
        return window
    drain = drain_seconds(latest.messages, consumed, produced)
    return window.with_latest(replace(latest, consume_rate=consumed, produce_rate=produced, drain_seconds=drain))


def _pairs(first: GroupLag, latest: GroupLag) -> Iterator[tuple[QueueLag, QueueLag]]:
    """The rows of the same queue, and in a broadcasting group of the same member. Most often they stand in line."""
    before: dict[tuple[MessageQueue, str | None], QueueLag] | None = None
    broadcast = len({row.queue for row in latest.queues}) < len(latest.queues)
    for place, row in enumerate(latest.queues):
        old = first.queues[place] if place < len(first.queues) else None
        if old is not None and old.queue is row.queue and (not broadcast or old.owner == row.owner):
            yield old, row
            continue
        if before is None:
            before = {(old.queue, old.owner if broadcast else None): old for old in first.queues}
        old = before.get((row.queue, row.owner if broadcast else None))
        if old is not None:
            yield old, row


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
