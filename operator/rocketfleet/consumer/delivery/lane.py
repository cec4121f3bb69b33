"""One owned queue as the consumption services see it: its window, and what is waiting to be tried once more."""

from typing import TYPE_CHECKING

from rocketfleet.consumer.delivery.process_queue import ProcessQueue, Run
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    import asyncio

Window = ProcessQueue[ReceivedMessage]


class Lane:
    """`waiting` belongs to the workers: whether the lane is queued for one of them. It is queued at most once."""

    __slots__ = ("again", "consumed_at", "moved", "queue", "uncommitted", "waiting", "window")

    def __init__(self, queue: MessageQueue, window: Window) -> None:
        self.queue = queue
        self.window = window
        self.waiting = False
        self.moved = False  # something was finished since the offset was last committed
        self.consumed_at = 0.0  # when a handler last came to an end, by the clock of the leases
        # Held messages that wait for their local retry, and the timers they wait for; concurrent consumption only.
        self.again: dict[ReceivedMessage, asyncio.TimerHandle] = {}
        # A run of which some is handled but not committed, between turns; orderly consumption without auto-commit only.
        self.uncommitted: Run[ReceivedMessage] | None = None
