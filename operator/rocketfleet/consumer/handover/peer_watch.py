"""Whom to keep an eye on: a member that is frozen holds its queues and says nothing.

The broker takes a silent member off the list only after two minutes, though its locks are out after one. So each
member watches the one before it in the order of ids (the ring is closed), and asks it through the broker what it does.
One that does not answer is *suspected*, and its watcher then also watches the one before that: the watcher of the
second is the first, and says nothing either. A suspect's watcher asks for the locks of its queues, gets them when they
are out, and takes care of the queues until the member answers again, or leaves the list and its queues are allocated to
others anyway. The lock decides; a member that is only slow to answer keeps renewing its locks and loses nothing.

One question per member every twenty seconds is all this costs.
"""

from collections.abc import Collection, Iterator


def watched_by(member: str, members: Collection[str]) -> Iterator[str]:
    """Whom `member` watches: its predecessors in the ring, the nearest first. Go on until one of them answers."""
    ring = sorted(members)
    if member in ring:
        place = ring.index(member)
        yield from reversed(ring[:place])
        yield from reversed(ring[place + 1 :])
