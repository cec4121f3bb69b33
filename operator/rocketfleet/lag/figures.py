"""What was seen of a group, as plain data. None is "not known", never 0.

| of a queue | meaning |
|---|---|
| `consumer_offset` | the next message to be consumed, as stored; None: none is stored, or it could not be read |
| `lag` | messages between that and the end that are still there: deleted ones are no lag |
| `seconds` | the age of the next message to be consumed, 0 if there is none |
| `observed_at` | when that was read. A broker that does not answer leaves its queues with their old figures and time |

A queue that was never consumed has a lag only if it is known where its group will begin: everything that is there for
one that begins at the beginning (FirstOffset, and any retry topic), not known for the others.

A broadcasting group has a row for each member and queue, as every member has an offset of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rocketfleet.wire.queue import MessageQueue

COMMIT_SECONDS: Final = 6.0
"""Longer than the five between two commits of offsets: what lies there for a shorter time may have been consumed."""


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
    consume_rate: float | None = None  # messages a second over the window
    produce_rate: float | None = None
    drain_seconds: float | None = None  # how long the lag lasts at these rates; infinite if it does not shrink
    unknown: int = 0  # queues whose lag could not be told at this moment
    members: int | None = None
    member_ids: frozenset[str] | None = None
    at_least: int = 0  # messages in the queues whose lag is known
