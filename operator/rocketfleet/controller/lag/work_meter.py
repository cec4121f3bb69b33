"""What a group's handlers did, over all its members, also those that were started again or are gone. Pure.

A member counts from its own start. Here the counts become totals that only grow: what a member adds is what it has more
than when it was last heard, and all it has if that is less, for then it has begun anew. What it did before it was first
heard does not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rocketfleet.lag.figures import Work

MOST_MEMBERS = 2000


@dataclass(frozen=True, slots=True)
class WorkMeter:
    """`total` is None before anybody was heard."""

    total: Work | None = None
    members: Mapping[str, Work] = field(default_factory=dict)  # by pod and client id, whoever was heard last at the end

    def after(self, said: Mapping[str, Work]) -> "WorkMeter":
        """With what members say now. Those that say nothing, as they could not be asked, are remembered."""
        if not said:
            return self
        total, members = self.total or Work(), dict(self.members)
        for name, now in said.items():
            before = members.pop(name, now)
            members[name] = now
            if now.tried < before.tried or now.failed < before.failed or now.sent_back < before.sent_back:
                before = Work()
            total = Work(
                total.tried + now.tried - before.tried,
                total.failed + now.failed - before.failed,
                total.sent_back + now.sent_back - before.sent_back,
            )
        for name in list(members)[:-MOST_MEMBERS]:
            del members[name]
        return WorkMeter(total, members)
