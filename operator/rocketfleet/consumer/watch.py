"""Whom to keep an eye on: a member that is frozen holds its queues and says nothing.

The broker takes a silent member off the list only after two minutes, though its locks are out after one. So each
member watches one other, the one before it in the order of ids (the last watches none but its own predecessor: the
ring is closed), and asks it through the broker what it does. One that does not answer is *suspected*: its watcher
asks for the locks of its queues, gets them when they are out, and takes care of the queues until the member answers
again, or leaves the list and its queues are allocated to others anyway. The lock decides; a member that is only slow
to answer keeps renewing its locks and loses nothing.

One question every twenty seconds a member is all this costs.
"""

from collections.abc import Collection


def watched_by(member: str, members: Collection[str]) -> str | None:
    """Whom `member` watches: its predecessor in the ring of all members."""
    ring = sorted(members)
    if len(ring) < 2 or member not in ring:
        return None
    return ring[ring.index(member) - 1]
