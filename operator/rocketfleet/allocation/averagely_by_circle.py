"""Averagely by circle (AVG_BY_CIRCLE): queues are dealt to the members one by one, round and round.

Shares are as large as Averagely's; the difference is that neighbouring queues, which mostly lie on one broker, go to
different members.
"""

from rocketfleet.allocation.request import AllocationRequest, takes_part
from rocketfleet.wire.queue import MessageQueue


def averagely_by_circle(request: AllocationRequest) -> list[MessageQueue]:
    """Every n-th queue, counted from the member's place in the list."""
    if not takes_part(request):
        return []
    return list(request.queues[request.members.index(request.member) :: len(request.members)])
