"""Config (CONFIG): the queues are written in the configuration. Whatever is asked, the answer is that list.

Nothing is checked, neither the member nor whether the queues exist; that every queue has one owner is up to whoever
wrote the lists.
"""

from collections.abc import Sequence

from rocketfleet.allocation.request import AllocationRequest
from rocketfleet.wire.queue import MessageQueue


def config(request: AllocationRequest, queues: Sequence[MessageQueue] | None) -> list[MessageQueue]:
    """The configured queues, in their order. None is Java's unset list, which its rebalance reads as no queue."""
    return list(queues or ())
