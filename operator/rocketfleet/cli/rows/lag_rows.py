"""What `rocketfleet lag` shows of what `lag/look.py` saw. Pure.

`lag/collecting/reckoning.py` says what the lag of a queue is.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rocketfleet.lag.figures import QueueLag
    from rocketfleet.wire.queue import MessageQueue

_POD_UID = re.compile(r"@[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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


def lag_rows(rows: Iterable[QueueLag], owners: Mapping[MessageQueue, list[str]]) -> list[LagRow]:
    """One row per queue; in a broadcasting group, one per member and queue."""
    return [
        LagRow(
            topic=row.queue.topic,
            broker=row.queue.broker,
            queue=row.queue.queue_id,
            owner=owners.get(row.queue, []) if row.owner is None else [row.owner],
            committed=row.consumer_offset,
            max_offset=row.max_offset,
            lag=row.lag,
            age_seconds=None if row.seconds is None else round(row.seconds, 3),
        )
        for row in sorted(rows, key=lambda row: (row.queue, row.owner or ""))
    ]


def total_of(rows: Collection[LagRow], *, complete: bool = True) -> LagTotal:
    """The sum. `complete`: the rows are all there are; a topic may be missing whose queues nobody knows."""
    known = [row["lag"] for row in rows if row["lag"] is not None]
    aged = [row["age_seconds"] for row in rows if row["age_seconds"] is not None]
    return LagTotal(
        queues=len(rows),
        unknown=len(rows) - len(known),
        lag=sum(known) if complete and len(known) == len(rows) else None,
        known=sum(known),
        age_seconds=max(aged) if complete and aged and len(aged) == len(rows) else None,
    )


def total_text(total: LagTotal) -> str:
    """The sum in words."""
    if not total["queues"]:
        return "no queues"
    if total["lag"] is None:
        rest = f", at least {total['known']}" if total["known"] else ""
        where = f" in {total['unknown']} of {total['queues']} queues" if total["unknown"] else ""
        return f"unknown{where}{rest}"
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
