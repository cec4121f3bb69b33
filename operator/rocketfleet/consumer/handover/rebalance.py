"""What to do about an allocation: a difference of sets, and when it counts as done.

What is not known changes nothing: a topic whose route is not known right now keeps the queues that are held of it,
and an unknown list of members keeps everything. Dropping queues because a name server was slow is how groups come to
a halt.

Nor does a broker that is away: whoever has a queue of it keeps it for a while, on hold, because its lock is in doubt.
When the broker is back, the owner goes on at once and tells it what was handled. Had the queue been given up, nobody
could tell, and the next owner would have to wait until all former ones have had the time to speak.
"""

from collections.abc import Collection
from dataclasses import dataclass

from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class Changes:
    want: frozenset[MessageQueue]
    release: frozenset[MessageQueue]


def changes(
    allocated: Collection[MessageQueue],
    held: Collection[MessageQueue],
    unknown_topics: Collection[str] = (),
    kept: Collection[MessageQueue] = (),
) -> Changes:
    """The queues to want and to release, so that what is held becomes what is allocated.

    `kept` are queues of brokers that are away: they are not released.
    """
    allocated, held = frozenset(allocated), frozenset(held)
    surplus = held - allocated - frozenset(kept)
    return Changes(
        want=allocated - held,
        release=frozenset(queue for queue in surplus if queue.topic not in unknown_topics),
    )


def is_settled(
    allocated: Collection[MessageQueue], owned: Collection[MessageQueue], held: Collection[MessageQueue]
) -> bool:
    """Everything allocated is owned, and nothing else is held: no need to look again soon."""
    return frozenset(allocated) == frozenset(owned) == frozenset(held)
