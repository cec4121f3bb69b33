"""Which offsets are read, and by how many tasks: arithmetic on ranges of queues, with no broker in sight."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocketfleet.spark.source.offsets import Offsets
    from rocketfleet.wire.queue import MessageQueue

K = TypeVar("K")


class QueueRange(NamedTuple):
    """The offsets from `start` up to, not including, `end`, of one queue."""

    queue: MessageQueue
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"offsets {self.start} to {self.end - 1} of {self.queue}"


def between(start: Mapping[MessageQueue, int], end: Mapping[MessageQueue, int]) -> list[QueueRange]:
    """What lies between two sets of offsets. A queue that is in only one of them has nothing in between."""
    return [
        QueueRange(queue, start[queue], end[queue])
        for queue in sorted(end)
        if start.get(queue, end[queue]) < end[queue]
    ]


def split(ranges: Sequence[QueueRange], parts: int | None) -> list[QueueRange]:
    """The same offsets in at least so many ranges: long ones are cut, in proportion to their length.

    Offsets of a queue are consecutive, so a queue can be cut anywhere, but never finer than one offset.
    """
    whole = [one for one in ranges if one.size > 0]
    total = sum(one.size for one in whole)
    if parts is None or len(whole) >= parts or not total:
        return whole
    cuts = share({one: one.size for one in whole}, min(parts, total))
    pieces: list[QueueRange] = []
    for one in whole:
        count = cuts[one]
        edges = [one.start + one.size * number // count for number in range(count + 1)]
        pieces += [QueueRange(one.queue, low, high) for low, high in pairwise(edges)]
    return pieces


def share(sizes: Mapping[K, int], limit: int) -> dict[K, int]:
    """Share out a limit in proportion to sizes: nobody gets more than its size, and nobody nothing while it can be had.

    What rounding leaves over goes to those whose exact share was cut most, ties in the order given.
    """
    total = sum(sizes.values())
    if total <= limit:
        return dict(sizes)
    wanted = [key for key, size in sizes.items() if size > 0]
    shares = dict.fromkeys(sizes, 0)
    if limit <= len(wanted):
        for key in sorted(wanted, key=lambda key: -sizes[key])[:limit]:
            shares[key] = 1
        return shares
    # One each first; the rest in proportion to what is still wanted.
    rest = limit - len(wanted)
    open_total = total - len(wanted)
    exact = {key: (sizes[key] - 1) * rest for key in wanted}
    for key in wanted:
        shares[key] = 1 + exact[key] // open_total
    left = limit - sum(shares.values())
    for key in sorted(wanted, key=lambda key: -(exact[key] % open_total)):
        if left <= 0:
            break
        if shares[key] < sizes[key]:
            shares[key] += 1
            left -= 1
    return shares


def admit(start: Mapping[MessageQueue, int], latest: Mapping[MessageQueue, int], limit: int | None) -> Offsets:
    """How far a batch goes that begins at `start`: to the latest offsets, or as far as the limit lets it.

    A queue that is new in `latest` is entered with the offset given there and nothing of it is read in this batch: from
    the next on, its beginning is in the checkpoint. A queue that has gone keeps its offset, for the day it comes back.
    """
    behind = {queue: max(0, offset - start[queue]) for queue, offset in latest.items() if queue in start}
    granted = behind if limit is None else share(behind, limit)
    end = dict(start)
    for queue, offset in latest.items():
        end[queue] = start[queue] + granted[queue] if queue in start else offset
    return end
