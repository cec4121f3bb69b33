"""Averagely (AVG), Java's default: each member gets one run of neighbouring queues.

The first `queues % members` members get one queue more. Asked topic by topic, it is always the same first members that
get more: a group with many small topics ends up lopsided. That is what Balanced is for.
"""

from rocketfleet.allocation.request import AllocationRequest, takes_part
from rocketfleet.wire.queue import MessageQueue


def averagely(request: AllocationRequest) -> list[MessageQueue]:
    """The member's run of queues, in the order given."""
    if not takes_part(request):
        return []
    index = request.members.index(request.member)
    size, larger = divmod(len(request.queues), len(request.members))
    start = index * size + min(index, larger)
    return list(request.queues[start : start + size + (index < larger)])
