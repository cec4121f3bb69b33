"""What Spark says of a query's batches, as plain data: read from the JSON of a progress report, and nothing else.

A report comes when a trigger has ended, so what it says is done *is* done: the sink has it and the checkpoint notes it.
A query without news reports now and then too, with the same offsets.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rocketfleet.control.messages import QueryProgress
from rocketfleet.spark.source.offsets import Offsets, flat

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True)
class BatchProgress:
    """The last report. `done` are the offsets of our source at its end."""

    batch: int
    messages: int
    per_second: float
    seconds: float
    completed_at: str | None
    done: Offsets
    lost: int = 0

    def report(self) -> QueryProgress:
        """For the status of the group."""
        return QueryProgress(
            batch=self.batch,
            messages=self.messages,
            messages_per_second=round(self.per_second, 1),
            seconds=round(self.seconds, 3),
            completed_at=self.completed_at,
        )


def progress_of(text: str, topics: Collection[str]) -> BatchProgress | None:
    """The report about the source of these topics; None if it says nothing of it."""
    report = json.loads(text)
    for source in report.get("sources") or ():
        end = source.get("endOffset")
        content = json.loads(end) if isinstance(end, str) else end
        if not isinstance(content, dict) or not isinstance(content.get("offsets"), dict):
            continue
        if not content["offsets"].keys() <= set(topics):
            continue
        seconds = float((report.get("durationMs") or {}).get("triggerExecution") or 0) / 1000
        return BatchProgress(
            batch=int(report.get("batchId", -1)),
            messages=int(source.get("numInputRows") or 0),
            per_second=float(source.get("processedRowsPerSecond") or 0.0),
            seconds=seconds,
            completed_at=_end_of(report.get("timestamp"), seconds),
            done=flat(content["offsets"]),
            lost=int(content.get("lost") or 0),
        )
    return None


def further(one: Offsets, other: Offsets) -> Offsets:
    """What two witnesses say is done, together: each queue as far as either has seen it."""
    return {queue: max(one.get(queue, 0), other.get(queue, 0)) for queue in one.keys() | other.keys()}


def _end_of(began: object, seconds: float) -> str | None:
    """When a trigger ended, in whole seconds: the report has the moment it began."""
    if not isinstance(began, str):
        return None
    try:
        ended = datetime.fromisoformat(began) + timedelta(seconds=seconds)
    except ValueError:
        return None
    return ended.replace(microsecond=0).isoformat().replace("+00:00", "Z")
