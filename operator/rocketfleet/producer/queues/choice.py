"""Which queue the next message goes to.

Java goes round the topic's writable queues, steps over the broker that has just failed this very message, and, where
latency fault tolerance is on, over brokers that are resting. The turn advances past every queue that was stepped
over, so the queues that remain are still used evenly. It starts at random: a thousand producers started together must
not all begin with queue 0 of the first broker.

The turn is kept for each topic. One for the whole producer would be wrong in a way that is hard to see: a program that
sends alternately to two topics with an even number of queues would only ever use every other queue of each.
"""

import itertools
import random
from collections.abc import Callable, Sequence

from rocketfleet.producer.queues.faults import FaultTable
from rocketfleet.wire.queue import MessageQueue


class QueueRing:
    """The writable queues of one topic, in Java's order, and whose turn it is.

    Advancing is `next()` on an `itertools.count`, one step of the interpreter, so threads may share a ring.
    """

    __slots__ = ("_turn", "brokers", "queues", "used")

    def __init__(self, queues: Sequence[MessageQueue], start: int | None = None) -> None:
        self.queues = tuple(queues)
        self.brokers = frozenset(queue.broker for queue in self.queues)
        self.used = True  # set by every choice, cleared by whoever drops rings that are not used
        # `start` is for tests; an offset, not a secret
        self._turn = itertools.count(random.randrange(1 << 31) if start is None else start)  # noqa: S311

    def advance(self) -> MessageQueue | None:
        """The queue whose turn it is."""
        queues = self.queues
        self.used = True
        return queues[next(self._turn) % len(queues)] if queues else None

    def advance_to(self, accept: Callable[[str], bool]) -> MessageQueue | None:
        """The next queue on a broker that `accept` takes, or None after one whole round."""
        queues = self.queues
        self.used = True
        for _ in range(len(queues)):
            queue = queues[next(self._turn) % len(queues)]
            if accept(queue.broker):
                return queue
        return None

    def replaced(self, queues: Sequence[MessageQueue]) -> "QueueRing":
        """The ring of a new route, which goes on where this one stood."""
        return QueueRing(queues, next(self._turn))


def choose(ring: QueueRing, avoid: str | None = None, faults: FaultTable | None = None) -> MessageQueue | None:
    """The queue for the next attempt; `avoid` is the broker that failed the last one. None only of an empty ring."""
    if faults is None:
        if avoid is None:
            return ring.advance()
        return ring.advance_to(lambda broker: broker != avoid) or ring.advance()

    available = faults.is_available
    queue = ring.advance_to(lambda broker: broker != avoid and available(broker))
    if queue is not None:
        return queue
    least_bad = faults.pick_one_at_least(ring.brokers - {avoid})
    if least_bad is not None:
        return ring.advance_to(lambda broker: broker == least_bad)
    return ring.advance()
