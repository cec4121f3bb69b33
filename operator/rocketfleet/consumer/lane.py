"""One owned queue as the consumption services see it: its window, and what is waiting to be tried once more."""

from collections import deque

from rocketfleet.consumer.process_queue import ProcessQueue, Run
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

Window = ProcessQueue[ReceivedMessage]


class Lane:
    """`waiting` belongs to the workers: whether the lane stands in their line. A lane stands in it at most once."""

    __slots__ = ("again", "moved", "queue", "uncommitted", "waiting", "window")

    def __init__(self, queue: MessageQueue, window: Window) -> None:
        self.queue = queue
        self.window = window
        self.waiting = False
        self.moved = False  # something was finished since the offset was last committed
        # Held messages whose local retry is due; concurrent consumption only.
        self.again: deque[ReceivedMessage] = deque()
        # A run that was handled but not committed, and how far; orderly consumption without auto-commit only.
        self.uncommitted: tuple[Run[ReceivedMessage], int] | None = None

    @property
    def has_work(self) -> bool:
        return bool(self.again) or self.window.buffered > 0
