"""What a member holds at one moment, as plain data: for /assignment, /metrics and people.

Read from the control port's thread while the consumer's loop goes on, so that it can be had when the loop is stuck,
which is when it matters. That is safe because nothing here iterates over what the loop changes: `Holdings` gives out a
copy of its list, windows have their own lock, and the rest is read as single values. Two queues may be seen a moment
apart; nobody could tell.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rocketfleet.consumer.holdings import FinalOffset, Holding
from rocketfleet.consumer.ownership import State
from rocketfleet.wire.queue import MessageQueue

_STATES = {state: "".join(word.capitalize() for word in state.name.split("_")) for state in State}


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue. Offset, messages and bytes are None while nothing has been read of it."""

    queue: MessageQueue
    state: str
    offset: int | None  # what may be committed
    next_offset: int | None  # where the next pull begins
    lease_seconds: float | None  # None: held without a lock
    messages: int
    size: int

    def as_json(self, client_id: str) -> dict[str, Any]:
        return {
            **queue_json(self.queue),
            "clientId": client_id,
            "state": self.state,
            "offset": self.offset,
            "nextOffset": self.next_offset,
            "leaseSeconds": None if self.lease_seconds is None else round(self.lease_seconds, 1),
            "messages": self.messages,
            "bytes": self.size,
        }


def queue_views(holdings: Iterable[Holding], now: float) -> list[QueueView]:
    """Every queue that is wanted, owned or leaving, in order."""
    return sorted((_view(holding, now) for holding in holdings), key=lambda view: view.queue)


def _view(holding: Holding, now: float) -> QueueView:
    lane = holding.lane  # once: it may be gone at the next look
    window = None if lane is None else lane.window
    return QueueView(
        queue=holding.queue,
        state=_STATES[holding.state],
        offset=None if window is None else window.committable,
        next_offset=None if window is None else window.next_offset,
        lease_seconds=None if math.isinf(holding.lease) else max(0.0, holding.lease - now),
        messages=0 if window is None else window.count,
        size=0 if window is None else window.size,
    )


def queue_json(queue: MessageQueue) -> dict[str, Any]:
    return {"topic": queue.topic, "broker": queue.broker, "queueId": queue.queue_id}


def final_json(final: Mapping[MessageQueue, FinalOffset], client_id: str) -> list[dict[str, Any]]:
    """Where each queue stood when it was given up."""
    return [
        {
            **queue_json(queue),
            "clientId": client_id,
            "offset": end.offset,
            "confirmed": end.confirmed,
            "unfinished": end.unfinished,
        }
        for queue, end in sorted(final.items())
    ]
