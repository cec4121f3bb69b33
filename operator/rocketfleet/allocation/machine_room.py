"""Machine room (MACHINE_ROOM): only the queues of some machine rooms, shared evenly.

A broker's name is `room@broker`. Queues of other rooms, and of brokers named otherwise, go to nobody: the rooms of all
the group's members together must cover the topic. The whole shares are runs; what is left over goes one by one to the
first members.
"""

from collections.abc import Collection

from rocketfleet.allocation.request import AllocationError, AllocationRequest, takes_part
from rocketfleet.wire.queue import MessageQueue


def machine_room(request: AllocationRequest, rooms: Collection[str] | None) -> list[MessageQueue]:
    """The member's share of the queues in `rooms`; no rooms are an error only once a broker stands in one."""
    if not takes_part(request):
        return []
    room_of = {broker: room_of_broker(broker) for broker in {queue.broker for queue in request.queues}}
    if rooms is None and any(room is not None for room in room_of.values()):
        raise AllocationError("consumeridcs is null: name the machine rooms whose brokers the group consumes from")
    chosen = {broker for broker, room in room_of.items() if room is not None and room in (rooms or ())}
    near = [queue for queue in request.queues if queue.broker in chosen]

    index = request.members.index(request.member)
    size, rest = divmod(len(near), len(request.members))
    share = near[index * size : (index + 1) * size]
    if index < rest:
        share.append(near[size * len(request.members) + index])
    return share


def room_of_broker(broker: str) -> str | None:
    """The room of a broker named `room@broker`; None for every other name."""
    # Java's split drops empty parts at the end but not at the start: "a@b@" has two parts, "a@" one, "@b" two.
    parts = broker.rstrip("@").split("@")
    return parts[0] if len(parts) == 2 else None
