"""How often and how long a consumer does what, where no setting of a group says so: one for each of its services.

Nobody needs others than these, but for tests, which cannot wait so long; what an operator may want to change is in
`settings.py`.
"""

from dataclasses import dataclass, field

from rocketfleet.consumer.delivery.concurrent import ConcurrentTimings
from rocketfleet.consumer.delivery.orderly import OrderlyTimings
from rocketfleet.consumer.delivery.pull import PullTimings
from rocketfleet.consumer.handover.holdings import HandoverTimings
from rocketfleet.consumer.handover.rebalancer import RebalanceTimings
from rocketfleet.consumer.offset_storage.committing import CommitTimings


@dataclass(frozen=True, slots=True)
class ConsumerTimings:
    """See the module. What is a number here is in seconds."""

    concurrent: ConcurrentTimings = field(default_factory=ConcurrentTimings)
    orderly: OrderlyTimings = field(default_factory=OrderlyTimings)
    pull: PullTimings = field(default_factory=PullTimings)
    handover: HandoverTimings = field(default_factory=HandoverTimings)
    rebalance: RebalanceTimings = field(default_factory=RebalanceTimings)
    commit: CommitTimings = field(default_factory=CommitTimings)
    look_after_pullers: float = 10.0
