"""What every strategy is asked, and the checks that all of Java's share.

Members of a group never talk to each other about who takes what. Each asks the broker who the members are, and the
name server which queues there are, and computes its own share; the shares fit together only because all compute the
same function of the same input. So a strategy is a pure function of a `Request`, and what it must not depend on (the
time, the order in which a broker lists members) is not in there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rocketfleet.wire.queue import MessageQueue


class AllocationError(ValueError):
    """There is no answer to this request. Where Java throws with a text of its own, this is that text."""


@dataclass(frozen=True, slots=True)
class AllocationRequest:
    """The view of one member: who it is, who else there is, and what there is to share.

    `queues` are those of one topic for a strategy of scope TOPIC, and those of all topics of the group for one of
    scope GROUP (see `strategies.Scope`). Java's strategies use both lists in the order given; a consumer sorts them
    first. `owners` says which member was last known to hold a queue; it may be stale or incomplete, and only Balanced
    looks at it.
    """

    group: str
    member: str
    members: Sequence[str]
    queues: Sequence[MessageQueue]
    owners: Mapping[MessageQueue, str] = field(default_factory=dict)


Allocate = Callable[[AllocationRequest], list[MessageQueue]]


def takes_part(request: AllocationRequest) -> bool:
    """Java's common check: no member id, no queues or no members is an error; a member that is not listed gets nothing.

    The group is not checked: Java only logs it.
    """
    if not request.member:
        raise AllocationError("currentCID is empty")
    if not request.queues:
        raise AllocationError("mqAll is null or mqAll empty")
    if not request.members:
        raise AllocationError("cidAll is null or cidAll empty")
    return request.member in request.members
