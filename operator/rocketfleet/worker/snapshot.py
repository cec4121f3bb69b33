"""What a member holds at one moment, as plain data: for /assignment, /metrics and people.

Read from the control port's thread while the consumer's loop goes on, so that it can be had when the loop is stuck,
which is when it matters. That is safe because nothing here iterates over what the loop changes: `Holdings` gives out a
copy of its list, windows have their own lock, and the rest is read as single values. Two queues may be seen a moment
apart; nobody could tell.
"""

import math
from collections.abc import Iterable
from typing import Final

from rocketfleet.consumer.handover.holdings import Holding
from rocketfleet.consumer.handover.ownership import Lock, OwnershipState
from rocketfleet.control.messages import QueueReport, QueueState

# Spelled out: the names of `State` are the consumer's own, and may change; those of `QueueState` are the wire's.
_STATES: Final = {
    OwnershipState.WANTED: QueueState.WANTED,
    OwnershipState.OWNED: QueueState.OWNED,
    OwnershipState.STANDBY: QueueState.STANDBY,
    OwnershipState.LEAVING: QueueState.LEAVING,
    OwnershipState.SETTLING: QueueState.SETTLING,
    OwnershipState.RELEASING: QueueState.RELEASING,
    OwnershipState.GONE: QueueState.GONE,
}


def queue_reports(holdings: Iterable[Holding], now: float, client_id: str) -> list[QueueReport]:
    """Every queue that is wanted, owned or leaving, in order."""
    return sorted((_report(holding, now, client_id) for holding in holdings), key=lambda report: report.queue)


def queue_state(holding: Holding) -> QueueState:
    """What is done with a queue, in one word."""
    if holding.state is OwnershipState.OWNED and holding.lock is not Lock.HELD:
        return QueueState.SUSPENDED
    if holding.state is OwnershipState.OWNED and holding.lane is None:
        return QueueState.STARTING
    return _STATES[holding.state]


def _report(holding: Holding, now: float, client_id: str) -> QueueReport:
    lane = holding.lane  # once: it may be gone at the next look
    window = None if lane is None else lane.window
    return QueueReport(
        queue=holding.queue,
        client_id=client_id,
        state=queue_state(holding),
        offset=None if window is None else window.committable,
        next_offset=None if window is None else window.next_offset,
        lease_seconds=None if math.isinf(holding.lease) else max(0.0, holding.lease - now),
        messages=0 if window is None else window.count,
        size=0 if window is None else window.size,
    )
