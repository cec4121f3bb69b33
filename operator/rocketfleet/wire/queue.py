"""The queue: the unit that is allocated, locked, pulled and committed. Everything above the wire speaks of it."""

from typing import NamedTuple


class MessageQueue(NamedTuple):
    """One queue of one topic on one broker.

    The tuple's own order (topic, broker name, queue id) is the order in which Java sorts queues before it allocates
    them, so `sorted(queues)` is what every member of a group agrees on.
    """

    topic: str
    broker: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}@{self.broker}/{self.queue_id}"
