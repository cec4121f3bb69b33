"""Filters that Spark hands over, turned into offsets that need not be read.

Only what can be answered by choosing queues and offsets is used: equality on topic, broker and queueId, comparisons on
queueOffset and storeTime. All filters are given back to Spark, which applies them again: this only ever leaves out
messages that no filter would let through, so it may be generous. Store times grow along a queue; the broker finds the
place of a time by that.

It is off unless asked for (option filterPushdown). Spark 4.3 keeps what a reader has planned with the DataFrame that
`load()` gave: after a query with a filter, the next one on that DataFrame without any would get the filtered messages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.datasource import Filter

    from rocketfleet.wire.queue import MessageQueue

_EQUAL = (EqualTo, EqualNullSafe, In)
_AT_LEAST = (GreaterThan, GreaterThanOrEqual)
_AT_MOST = (LessThan, LessThanOrEqual)


@dataclass(frozen=True)
class Bounds:
    """What is left to read. None: no bound. Offsets are [from_offset, to_offset), times inclusive, in milliseconds."""

    topics: frozenset[str] | None = None
    brokers: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    from_time: int | None = None
    to_time: int | None = None

    def admits(self, queue: MessageQueue) -> bool:
        """Whether anything of a queue is wanted."""
        return (
            (self.topics is None or queue.topic in self.topics)
            and (self.brokers is None or queue.broker in self.brokers)
            and (self.queue_ids is None or queue.queue_id in self.queue_ids)
        )


def bounds_of(filters: Iterable[Filter]) -> Bounds:
    """The bounds that the filters, all of which must hold, put on a read."""
    bounds = Bounds()
    for one in filters:
        path: tuple[str, ...] = getattr(one, "attribute", ())
        if len(path) == 1:
            bounds = _narrow(bounds, path[0], one)
    return bounds


def _narrow(bounds: Bounds, column: str, one: Filter) -> Bounds:
    sets = {"topic": "topics", "broker": "brokers", "queueId": "queue_ids"}
    if column in sets and isinstance(one, _EQUAL):
        values = frozenset(one.value) if isinstance(one, In) else frozenset([one.value])
        held: frozenset[Any] | None = getattr(bounds, sets[column])
        narrowed: dict[str, Any] = {sets[column]: values if held is None else held & values}
        return replace(bounds, **narrowed)
    if column == "queueOffset":
        return _between(bounds, one, "offset", lambda value: value if isinstance(value, int) else None, 1)
    if column == "storeTime":
        return _between(bounds, one, "time", _milliseconds, 0)
    return bounds


def _between(bounds: Bounds, one: Filter, what: str, read: Any, after: int) -> Bounds:
    """Narrow `from_…` and `to_…` by a comparison; `after` is what makes an inclusive end an exclusive one."""
    low, high = getattr(bounds, f"from_{what}"), getattr(bounds, f"to_{what}")
    values = [read(value) for value in (one.value if isinstance(one, In) else [getattr(one, "value", None)])]
    if not values or None in values:
        return bounds
    if isinstance(one, _EQUAL + _AT_LEAST):
        low = min(values) if low is None else max(low, min(values))
    if isinstance(one, _EQUAL + _AT_MOST):
        high = max(values) + after if high is None else min(high, max(values) + after)
    return replace(bounds, **{f"from_{what}": low, f"to_{what}": high})


def _milliseconds(value: object) -> int | None:
    """A timestamp literal; one without a zone is in the session's, which is not known here."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return int(value.astimezone(UTC).timestamp() * 1000)
    return None
