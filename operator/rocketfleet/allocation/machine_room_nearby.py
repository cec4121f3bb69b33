"""Machine room nearby (MACHINE_ROOM_NEARBY): queues go to members in their own machine room, by any other strategy.

The queues of a room are shared by the members of that room. A room that has queues but no member is shared by all
members, each such room by itself. Which room a broker or a member stands in is the caller's knowledge; `room_before`
reads it from the names.
"""

from collections.abc import Callable
from dataclasses import replace

from rocketfleet.allocation.java_order import java_text, sort_members
from rocketfleet.allocation.request import Allocate, AllocationError, AllocationRequest, takes_part
from rocketfleet.wire.queue import MessageQueue

DEFAULT_SEPARATOR = "@"  # between a room and what follows it: that of MachineRoom's broker names


def machine_room_nearby(
    request: AllocationRequest,
    inner: Allocate,
    room_of_queue: Callable[[MessageQueue], str],
    room_of_member: Callable[[str], str],
) -> list[MessageQueue]:
    """What `inner` gives the member of its own room, then of each room without members, sorted by the rooms' names."""
    if not takes_part(request):
        return []
    queues: dict[str, list[MessageQueue]] = {}
    for queue in request.queues:
        room = room_of_queue(queue)
        if not room:
            raise AllocationError(f"Machine room is null for mq {java_text(queue)}")
        queues.setdefault(room, []).append(queue)
    members: dict[str, list[str]] = {}
    for member in request.members:
        room = room_of_member(member)
        if not room:
            raise AllocationError(f"Machine room is null for consumer id {member}")
        members.setdefault(room, []).append(member)

    share: list[MessageQueue] = []
    own = room_of_member(request.member)
    if own in queues:
        share += inner(replace(request, queues=queues[own], members=members[own]))
    for room in sort_members(queues):
        if room not in members:
            share += inner(replace(request, queues=queues[room]))
    return share


def room_before(separator: str) -> Callable[[str], str]:
    """A room is what stands before the first separator in a name; the whole name, where there is none."""

    def room(name: str) -> str:
        return name.partition(separator)[0] if separator else ""

    return room
