"""10,000 queues over 1,000 members: how long one member takes to compute its share, strategy by strategy.

Every member computes this at every rebalance, on the event loop that also pulls and delivers, so it must not be felt:
the aim is below 50 ms. Everything is measured cold: no ring is kept from an earlier run. Java's strategies get one
topic with all the queues, Balanced 20 topics, in four situations; its figure in the last line is the slowest of them.
A figure is the least disturbed of several runs.

The peer is the plainest way to write the same thing down, where there is one that differs; the answers are compared,
or, for Balanced, which has more than one right answer, only the size of the share.
"""

import gc
import json
import random
import time
from collections.abc import Callable
from functools import partial
from hashlib import md5

from rocketfleet.allocation import consistent_hash as ring
from rocketfleet.allocation.averagely import averagely
from rocketfleet.allocation.averagely_by_circle import averagely_by_circle
from rocketfleet.allocation.balanced import balance, balanced
from rocketfleet.allocation.config import config
from rocketfleet.allocation.machine_room import machine_room
from rocketfleet.allocation.machine_room_nearby import machine_room_nearby, room_before
from rocketfleet.allocation.request import Allocate, AllocationRequest
from rocketfleet.wire.queue import MessageQueue

MEMBERS, QUEUES, TOPICS, ROOMS, RUNS, LIMIT = 1_000, 10_000, 20, 4, 9, 50.0

members = [f"room{number % ROOMS}-10.0.{number // 250}.{number % 250}@{number}" for number in range(MEMBERS)]
one_topic = sorted(MessageQueue("orders", f"room{n % ROOMS}@broker-{n % 16:02}", n // 16) for n in range(QUEUES))
topics = [MessageQueue(f"topic-{n % TOPICS}", f"broker-{n % 16:02}", n // 16) for n in range(QUEUES)]
random.Random(1).shuffle(topics)
request = AllocationRequest("bench", members[MEMBERS // 2], members, one_topic)
before_at, before_dash = room_before("@"), room_before("-")
nearby = partial(
    machine_room_nearby,
    inner=averagely,
    room_of_queue=lambda queue: before_at(queue.broker),
    room_of_member=before_dash,
)


def cold_hash(asked: AllocationRequest) -> list[MessageQueue]:
    ring._ring.cache_clear()  # noqa: SLF001 (the ring is kept, but this measures without)
    return ring.consistent_hash(asked)


def plain_circle(asked: AllocationRequest) -> list[MessageQueue]:
    index = asked.members.index(asked.member)
    return [queue for number, queue in enumerate(asked.queues) if number % len(asked.members) == index]


def plain_hash(asked: AllocationRequest) -> list[MessageQueue]:
    """As Java has it: replicas counted anew for every member, and here even the ring looked through for every queue."""

    def place(text: str) -> int:
        return int(md5(text.encode()).hexdigest()[:8], 16)

    places: dict[int, str] = {}
    for member in asked.members:
        first = sum(holder == member for holder in places.values())
        for number in range(first, first + 10):
            places[place(f"{member}-{number}")] = member
    ordered = sorted(places)
    share = []
    for queue in asked.queues:
        own = place(f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId={queue.queue_id}]")
        if places[next((node for node in ordered if node >= own), ordered[0])] == asked.member:
            share.append(queue)
    return share


def plain_room(asked: AllocationRequest) -> list[MessageQueue]:
    near = []
    for queue in asked.queues:
        parts = queue.broker.split("@")
        if len(parts) == 2 and parts[0] in {"room0", "room1"}:
            near.append(queue)
    index = asked.members.index(asked.member)
    size, rest = divmod(len(near), len(asked.members))
    return near[index * size : (index + 1) * size] + ([near[size * len(asked.members) + index]] if index < rest else [])


def plain_balanced(asked: AllocationRequest) -> list[MessageQueue]:
    """One queue after another from the fullest member to the emptiest: even and sticky, and no more."""
    shares: dict[str, list[MessageQueue]] = {member: [] for member in sorted(asked.members)}
    loose: list[MessageQueue] = []
    for queue in sorted(asked.queues):
        shares.get(asked.owners.get(queue, ""), loose).append(queue)
    for queue in loose:
        min(shares.values(), key=len).append(queue)
    while len(fullest := max(shares.values(), key=len)) - len(emptiest := min(shares.values(), key=len)) > 1:
        emptiest.append(fullest.pop())
    return shares[asked.member]


def situation(before: list[str]) -> AllocationRequest:
    """The group is `members`; its queues are held as `before` had settled."""
    settled = balance(before, topics, {})
    owners = {queue: member for member, share in settled.items() for queue in share}
    return AllocationRequest("bench", members[MEMBERS // 2], members, topics, owners)


ROWS: list[tuple[str, str, Allocate, AllocationRequest, Allocate | None, int]] = [
    ("AVG", "", averagely, request, None, 0),
    ("AVG_BY_CIRCLE", "", averagely_by_circle, request, plain_circle, 3),
    ("CONSISTENT_HASH", "cold", cold_hash, request, plain_hash, 1),
    ("CONFIG", "", partial(config, queues=one_topic[:10]), request, None, 0),
    ("MACHINE_ROOM", "2 of 4 rooms", partial(machine_room, rooms={"room0", "room1"}), request, plain_room, 3),
    ("MACHINE_ROOM_NEARBY", "4 rooms, AVG", nearby, request, None, 0),
    ("BALANCED", "from scratch", balanced, AllocationRequest("bench", members[0], members, topics), plain_balanced, 1),
    ("BALANCED", "one joins", balanced, situation(members[:-1]), plain_balanced, 1),
    ("BALANCED", "500 join", balanced, situation(members[:500]), plain_balanced, 1),
    ("BALANCED", "500 leave", balanced, situation([*members, *(f"x{n}" for n in range(500))]), plain_balanced, 1),
]


def milliseconds(call: Callable[[], object], runs: int) -> float:
    """Of the processor, not of the clock: there is no IO in it, and a busy machine distorts it less."""
    taken = []
    gc.collect()
    gc.disable()  # as timeit does: what this program has lying around is not the strategy's
    for _ in range(runs):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    gc.enable()
    return min(taken) * 1000


def main() -> None:
    figures: dict[str, float] = {}
    print(f"{QUEUES:,} queues, {MEMBERS:,} members, one member's share; below {LIMIT:.0f} ms is the aim\n")
    print(f"{'strategy':<20} {'situation':<14} {'ms':>9} {'plainest, ms':>13} {'times':>7}")
    for name, case, allocate, asked, plain, plain_runs in ROWS:
        ours = milliseconds(partial(allocate, asked), RUNS)
        figures[name] = max(figures.get(name, 0.0), round(ours, 3))
        peer = ""
        if plain is not None:
            if name == "BALANCED":
                assert len(allocate(asked)) - len(plain(asked)) in (-1, 0, 1)
            else:
                assert allocate(asked) == plain(asked)
            theirs = milliseconds(partial(plain, asked), plain_runs)
            peer = f"{theirs:>13.2f} {theirs / ours:>7.1f}"
        print(f"{name:<20} {case:<14} {ours:>9.3f} {peer}".rstrip())
    slow = sorted(name for name, figure in figures.items() if figure >= LIMIT)
    print(f"\nall below {LIMIT:.0f} ms" if not slow else f"\nnot below {LIMIT:.0f} ms: {', '.join(slow)}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
