"""Consistent hash (CONSISTENT_HASH): few queues move when a member comes or goes, at the price of uneven shares.

Every member stands on a ring at `virtual_nodes` places, and a queue belongs to the first place at or after its own. A
place is the first four bytes of an MD5, big-endian; as bytes they sort the same way as that number, so they are never
turned into one.

Three details decide whether we and Java agree. When two nodes fall on the same place, the later one takes it. A member
that is listed twice gets twice the nodes, and its second numbering starts at the number of places that it holds by
then. Text is hashed as UTF-8, in which Java writes half a surrogate pair as a question mark.

For 10,000 queues and 1,000 members this is 20,000 hashes, which is nearly all of the time it takes. The ring depends on
the members alone, so it is kept for the next topic. A member asks only for its own queues, so they are looked up not on
the whole ring but among the few arcs that are its own.
"""

from bisect import bisect_left
from functools import lru_cache

from rocketfleet.allocation.java_order import java_text
from rocketfleet.allocation.request import AllocationError, AllocationRequest, takes_part
from rocketfleet.wire.queue import MessageQueue

try:
    # CPython's own. hashlib's goes through OpenSSL, which is twice as slow on texts as short as these.
    from _md5 import md5  # type: ignore[import-not-found]  # there is no stub for it
except ImportError:  # a Python built without it
    from hashlib import md5

DEFAULT_VIRTUAL_NODES = 10


def consistent_hash(request: AllocationRequest, virtual_nodes: int = DEFAULT_VIRTUAL_NODES) -> list[MessageQueue]:
    """The queues whose place on the ring leads to the member, in the order given; no nodes, no queues."""
    check_virtual_nodes(virtual_nodes)
    if not takes_part(request):
        return []
    ends = _arcs(_ring(tuple(request.members), virtual_nodes), request.member)
    return [queue for queue in request.queues if bisect_left(ends, _place(java_text(queue))) & 1]


def check_virtual_nodes(virtual_nodes: int) -> None:
    """Java refuses a negative count when the strategy is made, before it is asked anything."""
    if virtual_nodes < 0:
        raise AllocationError(f"illegal virtualNodeCnt :{virtual_nodes}")


def _place(key: str) -> bytes:
    digest: bytes = md5(key.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return digest[:4]


def _arcs(ring: list[tuple[bytes, str]], member: str) -> list[bytes]:
    """Where the member's arcs begin and end, in turn: its queues are those that have an odd number of them before."""
    ends: list[bytes] = []
    before = b""  # before every place
    for place, holder in ring:
        if holder == member:
            ends += (before, place)
        before = place
    if ring and ring[0][1] == member:  # what lies past the last place belongs to the first
        ends += (before, b"\xff" * 5)
    return ends


@lru_cache(maxsize=16)
def _ring(members: tuple[str, ...], virtual_nodes: int) -> list[tuple[bytes, str]]:
    """The places in order, and whose each is."""
    ring: dict[bytes, str] = {}
    seen: set[str] = set()
    for member in members:
        first = sum(holder == member for holder in ring.values()) if member in seen else 0
        seen.add(member)
        for number in range(first, first + virtual_nodes):
            ring[_place(f"{member}-{number}")] = member
    return sorted(ring.items())
