"""The queue: the unit that is allocated, locked, pulled and committed. Everything above the wire speaks of it."""

from typing import NamedTuple


class MessageQueue(NamedTuple):
    """One queue of one topic on one broker.

    Its order as a tuple (topic, broker name, queue id) is Java's too, but for names with characters beyond U+FFFF:
    what members of a group must agree on is sorted by `allocation.java_order`.
    """

    topic: str
    broker: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}@{self.broker}/{self.queue_id}"
