"""What to do about an allocation: a difference of sets, and when it counts as done.

What is not known changes nothing: a topic whose route is not known right now keeps the queues that are held of it,
and an unknown list of members keeps everything. Dropping queues because a name server was slow is how groups come to
a halt.
"""

from collections.abc import Collection
from dataclasses import dataclass

from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class Changes:
    want: frozenset[MessageQueue]
    release: frozenset[MessageQueue]


def changes(
    allocated: Collection[MessageQueue], held: Collection[MessageQueue], unknown_topics: Collection[str] = ()
) -> Changes:
    """The queues to want and to release, so that what is held becomes what is allocated."""
    allocated, held = frozenset(allocated), frozenset(held)
    return Changes(
        want=allocated - held,
        release=frozenset(queue for queue in held - allocated if queue.topic not in unknown_topics),
    )


def is_settled(
    allocated: Collection[MessageQueue], owned: Collection[MessageQueue], held: Collection[MessageQueue]
) -> bool:
    """Everything allocated is owned, and nothing else is held: no need to look again soon."""
    return frozenset(allocated) == frozenset(owned) == frozenset(held)
