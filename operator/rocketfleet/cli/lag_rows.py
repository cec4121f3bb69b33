"""What `rocketfleet lag` shows, made from what brokers say. Pure.

| of a queue | lag |
|---|---|
| offset and end are known | what lies between them and is still there |
| no offset is stored, and the group would begin at the beginning | everything that is there |
| no offset is stored, and the group would begin elsewhere | not known: it depends on when the first member starts |
| the broker did not answer | not known |

The age is that of the oldest message not consumed. The broker works it out from the offset it has; where that lies
before the first message still there, the first one's age counts.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from rocketfleet.wire.queue import MessageQueue

_POD_UID = re.compile(r"@[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST_AGE = 50 * 365 * 86_400.0  # the broker reckons from a message it did not find as if it were of 1970


class LagRow(TypedDict):
    """A group's lag in one queue; None is not known, in `committed` also none stored."""

    topic: str
    broker: str
    queue: int
    owner: list[str]
    committed: int | None
    max_offset: int | None
    lag: int | None
    age_seconds: float | None


class LagTotal(TypedDict):
    """The sum over queues. `lag` is None if it is not known of some; `known` is the sum of the rest."""

    queues: int
    unknown: int
    lag: int | None
    known: int
    age_seconds: float | None


def lag_rows(
    queues: Iterable[MessageQueue],
    committed: Mapping[MessageQueue, int | None],
    ends: Mapping[MessageQueue, tuple[int, int]],
    *,
    owners: Mapping[MessageQueue, list[str]],
    ages: Mapping[MessageQueue, tuple[int, int]],
    from_beginning: Callable[[str], bool],
    now: float,
) -> list[LagRow]:
    """One row a queue. `ages` is the broker's delay and the time of the oldest message, in milliseconds; `now` too
    is of the epoch, in seconds; `from_beginning` says whether a topic without an offset is consumed from its beginning.
    """
    rows = []
    for queue in sorted(queues):
        at, end = committed.get(queue), ends.get(queue)
        start = at
        if at is None and queue in committed and end is not None and from_beginning(queue.topic):
            start = end[0]
        lag = None if start is None or end is None else max(0, end[1] - max(start, end[0]))
        rows.append(
            LagRow(
                topic=queue.topic,
                broker=queue.broker,
                queue=queue.queue_id,
                owner=owners.get(queue, []),
                committed=at,
                max_offset=None if end is None else end[1],
                lag=lag,
                age_seconds=_age(at, end, lag, ages.get(queue), now),
            )
        )
    return rows


def _age(
    at: int | None, end: tuple[int, int] | None, lag: int | None, span: tuple[int, int] | None, now: float
) -> float | None:
    if lag is None or end is None:
        return None
    if lag == 0:
        return 0.0
    if span is None:
        return None
    delay, oldest = span
    if at is not None and at >= end[0]:
        age = delay / 1000
    elif oldest > 0:
        age = now - oldest / 1000
    else:
        return None
    return round(max(age, 0.0), 3) if age < _LONGEST_AGE else None


def total_of(rows: Collection[LagRow]) -> LagTotal:
    """The sum."""
    known = [row["lag"] for row in rows if row["lag"] is not None]
    aged = [row["age_seconds"] for row in rows if row["age_seconds"] is not None]
    complete = len(known) == len(rows)
    return LagTotal(
        queues=len(rows),
        unknown=len(rows) - len(known),
        lag=sum(known) if complete else None,
        known=sum(known),
        age_seconds=max(aged) if aged and len(aged) == len(rows) else None,
    )


def total_text(total: LagTotal) -> str:
    """The sum in words."""
    if not total["queues"]:
        return "no queues"
    if total["lag"] is None:
        rest = f", at least {total['known']}" if total["known"] else ""
        return f"unknown in {total['unknown']} of {total['queues']} queues{rest}"
    age = "" if not total["age_seconds"] else f", the oldest {span_text(total['age_seconds'])} old"
    return f"{total['lag']}{age}"


def span_text(seconds: float | None) -> str | None:
    """A span of time as kubectl would show it: 45s, 12m, 3h5m, 2d4h."""
    if seconds is None:
        return None
    whole = int(seconds)
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if minutes < 120:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h" + (f"{minutes % 60}m" if minutes % 60 else "")
    return f"{days}d" + (f"{hours % 24}h" if hours % 24 else "")


def short_names(client_ids: Collection[str]) -> dict[str, str]:
    """Client ids without the uid of their pod, where they stay distinct: orders-0 for orders-0@6f1c….."""
    short = {client_id: _POD_UID.sub("", client_id) for client_id in client_ids}
    taken = Counter(short.values())
    return {client_id: name if taken[name] == 1 else client_id for client_id, name in short.items()}
