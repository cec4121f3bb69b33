"""What was seen of a group, as plain data. None is "not known", never 0.

| of a queue | meaning |
|---|---|
| `consumer_offset` | the next message to be consumed, as stored; None: none is stored, or it could not be read |
| `lag` | messages between that and the end that are still there: deleted ones are no lag |
| `seconds` | the age of the next message to be consumed, 0 if there is none |
| `observed_at` | when that was read. A broker that does not answer leaves its queues with their old figures and time |

A queue that was never consumed has a lag only if it is known where its group will begin there: everything that is there
for one that begins at the beginning (FirstOffset, and any retry topic), and for a LastOffset group that has begun with
the topic, for which the queue is new. Not known for the others.

Retries and dead letters have ends as well: how many ever came there. Their growth tells of failures, whoever consumes.

A broadcasting group has a row for each member and queue, as every member has an offset of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class Work:
    """What the handlers of a group's members did, counted since somebody began to look. Counts never fall."""

    tried: int = 0  # attempts at messages: the same one may be tried many times
    failed: int = 0  # attempts that failed
    sent_back: int = 0  # messages that the brokers took back, to be tried again or among the dead letters


@dataclass(frozen=True, slots=True)
class Attempts:
    """Attempts of handlers at messages up to some moment. Where members do not count themselves, `failed` are the
    messages that came due for another try: they had failed some time before.
    """

    at: float
    tried: int
    failed: int


@dataclass(frozen=True, slots=True)
class QueueLag:
    """A group's place in one queue."""

    queue: MessageQueue
    min_offset: int | None
    max_offset: int | None
    consumer_offset: int | None
    lag: int | None
    seconds: float | None
    owner: str | None  # client id
    observed_at: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group at one moment. Sums are over the queues of its subscribed topics; retries and dead letters are apart."""

    group: str
    observed_at: float
    queues: tuple[QueueLag, ...]
    messages: int | None = None  # None if it is not known of some queue; see at_least
    seconds: float | None = None  # of the queue that waits longest
    worst: MessageQueue | None = None  # the queue with the most messages
    retry: int | None = None
    dlq: int | None = None
    consume_rate: float | None = None  # messages per second over the window
    produce_rate: float | None = None
    drain_seconds: float | None = None  # how long the lag lasts at these rates; infinite if it does not shrink
    unknown: int = 0  # queues whose lag could not be told at this moment
    members: int | None = None
    member_ids: frozenset[str] | None = None
    at_least: int = 0  # messages in the queues whose lag is known
    retry_at_least: int = 0  # messages due to be tried again, where that is known
    retry_end: int | None = None  # messages that ever came due to be tried again
    retry_done: int | None = None  # of those, consumed
    dlq_end: int | None = None  # messages that ever became dead letters
    work: Work | None = None  # what members say of their handlers
    attempts: Attempts | None = None  # of handlers, in the last minute in which there were any
    delayed: int | None = None  # messages sent back by members that wait for their delay, as far as was seen
