"""Balanced: even over all topics of a group together, and no queue moves that need not.

The problem
    Java's strategies look at one topic at a time, and each topic's remainder lands on the first members: with twenty
    topics of one queue each, one member has twenty queues and the others none. They also forget: a member that joins
    shifts the runs of all others. Balanced sees all queues of all topics at once, and who held each of them last
    (`owners.py` says how a member comes to know that).

What it promises
    1. Every queue has exactly one owner, and any two members' loads differ by one queue at most, over all topics
       together. Retry queues are shared out apart from the others, each kind by these promises: see below.
    2. Of all allocations that keep 1, it leaves as many queues as possible with the member that holds them.
    3. Among those it leans towards evenness within each topic too. This is steered, not optimal: it never costs a move.
    4. It depends only on the sets of members and queues and on the owners: not on the order of lists, nor on who
       computes it.
    5. It may be computed in the middle of the change that it brings about: see below.

How
    Let f, r = divmod(queues, members). Promise 1 holds if and only if r members have f + 1 queues and the others f; so
    the first question is who gets one of the r larger shares, the *seats*. A member that holds l queues keeps at most
    min(l, its share). Summed up, that is the sum of min(l, f), which nobody can change, plus one for each seat given
    to a member that holds more than f. So the most that can be kept is sum(min(l, f)) + min(r, members that hold more
    than f), and it is reached by giving seats first to members that hold more than f, each keeping as much as its
    share allows. That is promise 2. Seats go to those members in the order of their ids, what is left of the seats to
    the others, again by id; *not* by load, for the sake of promise 5.

    Then members above their share give queues up, and those, with the queues that nobody holds, are dealt to members
    below theirs. Which ones is steered by an ideal that all members know: the deal from scratch, topic after topic,
    round and round without a pause between topics, which is even within every topic and over all. With n members, a
    topic of s queues gives ceil(s / n) = top to its `eager` members, which follow each other from where the topic
    before ended, and top - 1 to the rest. The j-th queue that a member holds of a topic has the *weight* 2 * (j -
    top), plus one if the member is not eager: 0 or less is what the ideal gives the member, 1 is one more that still
    keeps the topic even, 2 and above is too many. Members give up what weighs most and take what weighs least. Nobody
    holding anything, that yields the ideal itself. Where weights are equal, a hash of topic and member decides what is
    given up: any order that is the same for all members would do, if it did not make them all give up queues of the
    same topic.

In the middle of a change
    Members read the owners one after another while others already act. Say the answer to a view is T, and in a later
    view some of the queues that T moves have been released, or are with their new owner already. Then the answer to
    that view is T again, queue by queue:
    - Seats. A member that holds more than f and has a seat goes on holding more than f. One that has none may stop
      doing so, which changes no seat: there are r such members before it. A member that rises above f does so in its
      seat, and leaves one seat and one member less to the others that hold f or less.
    - What a member keeps is, topic by topic, the first of its queues, as many as weigh least. Weights depend on
      members and queues, not on owners, so giving up some of the surplus leaves the least the least.
    - What members take is chosen by going through all (weight, topic, member) in a fixed order and accepting each for
      which the topic still has a queue and the member still has room. Such a choice does not change when part of what
      it accepts was accepted beforehand: what was accepted still fits, for the whole of it fitted; what was refused is
      still refused, for there is no more room than there was.
    - Which queues: those to be dealt in a topic, in order, go to those that take some, in order. Striking out pairs
      leaves the other pairs.
    So it does no harm that owners are not read at one instant, or that a queue is seen with both its old and new
    owner, or with neither.

Retry queues
    A group's retry topic has a queue or two for each broker, which are empty most of the time. Counted like the others
    they would stand for real work: of 4 queues and 4 members one would get the retry queue alone, and another two of
    the four. So the other queues are shared out first, as if there were no retry queues, and then those, to members
    that are put in the order of what they got of the first: who has fewer comes first. From scratch that evens out both
    together. Where retry queues are held already, promise 2 comes before that.

    That order is part of the answer to the first deal, which is the same throughout the change that it brings about; so
    the second deal is the same throughout it too.

When views differ
    For a moment, members may see different members or queues, and then two may want the same queue. What protects it
    is the broker's lock on the queue (LOCK_BATCH_MQ), under which alone a queue is pulled in exclusive handover: the
    second does not get it, and there is no duplicate, only a wait. As soon as all see the same, the owners are the
    same for all too, and so is the answer. Hence the one thing a consumer must do: read and compute again at every
    tick for as long as it does not hold exactly what it was given.

Duplicates in either list are one.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from rocketfleet.allocation.java_order import sort_members, sort_queues
from rocketfleet.allocation.request import AllocationRequest, takes_part
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX


def balanced(request: AllocationRequest) -> list[MessageQueue]:
    """The member's queues out of all topics, sorted. `request.queues` are those of all topics together."""
    if not takes_part(request):
        return []
    return balance(request.members, request.queues, request.owners)[request.member]


def balance(
    members: Collection[str], queues: Collection[MessageQueue], owners: Mapping[MessageQueue, str]
) -> dict[str, list[MessageQueue]]:
    """Every member's queues, sorted. An owner that is not a member counts as none."""
    names = sort_members(set(members))
    retries = {queue for queue in queues if queue.topic.startswith(RETRY_PREFIX)}
    shares = _balance(names, set(queues) - retries, owners)
    if retries:
        least_first = sorted(names, key=lambda name: len(shares[name]))  # a stable sort
        for name, more in _balance(least_first, retries, owners).items():
            shares[name] = sort_queues([*shares[name], *more])
    return shares


def _balance(
    names: Sequence[str], queues: Collection[MessageQueue], owners: Mapping[MessageQueue, str]
) -> dict[str, list[MessageQueue]]:
    """The same for queues of one kind. Where it does not matter who gets something, those named first do."""
    ordered = sort_queues(queues)
    ideal = _Ideal(ordered, len(names))

    # From here on members and queues are numbers: their places in the sorted lists.
    rank_of: dict[str | None, int] = {name: rank for rank, name in enumerate(names)}
    shares: list[list[int]] = [[] for _ in names]
    loose: list[int] = []
    for number, queue in enumerate(ordered):
        rank = rank_of.get(owners.get(queue))
        (loose if rank is None else shares[rank]).append(number)

    room = [0] * len(names)
    for rank, target in enumerate(_targets([len(share) for share in shares], len(ordered))):
        if len(shares[rank]) > target:
            shares[rank], surplus = _give_up(shares[rank], target, rank, ideal)
            loose += surplus
        room[rank] = target - len(shares[rank])
    for rank, number in _deal(sorted(loose), room, shares, ideal):
        insort(shares[rank], number)
    return {name: [ordered[number] for number in share] for name, share in zip(names, shares, strict=True)}


class _TopicShares(NamedTuple):
    top: int  # the most that a member has of the topic in the ideal
    eager: int  # how many members have that many
    first: int  # the rank of the first of them; the others follow, round the end


class _Ideal:
    """The deal from scratch, against which queues are weighed."""

    def __init__(self, ordered: Sequence[MessageQueue], members: int) -> None:
        self.members = members
        self.topics: list[_TopicShares] = []
        self.topic_of: list[int] = []
        start = 0
        while start < len(ordered):
            name = ordered[start].topic
            end = start
            while end < len(ordered) and ordered[end][0] == name:
                end += 1
            top = -(-(end - start) // members)
            self.topic_of += [len(self.topics)] * (end - start)
            self.topics.append(_TopicShares(top, (end - start) - members * (top - 1), start % members))
            start = end

    def zeroth(self, topic: int, rank: int) -> int:
        """The weight of the member's zeroth queue of the topic, had it one; each further one weighs two more."""
        of = self.topics[topic]
        return -2 * of.top + ((rank - of.first) % self.members >= of.eager)


def _targets(loads: Sequence[int], queues: int) -> list[int]:
    """How many queues each member ends with: seats go first to those that hold more than the smaller share."""
    smaller, seats = divmod(queues, len(loads))
    targets = [smaller] * len(loads)
    for rank in sorted(range(len(loads)), key=lambda rank: loads[rank] <= smaller)[:seats]:  # a stable sort
        targets[rank] += 1
    return targets


def _give_up(held: list[int], target: int, rank: int, ideal: _Ideal) -> tuple[list[int], list[int]]:
    """Part what a member holds into what it keeps and its surplus, which is what weighs most."""
    weights: dict[int, int] = {}
    weighed: list[tuple[int, int, int]] = []
    for number in held:
        topic = ideal.topic_of[number]
        weights[topic] = 2 + (weights[topic] if topic in weights else ideal.zeroth(topic, rank))
        weighed.append((weights[topic], (31 * topic + rank) * 2654435761 % 2**32, number))
    weighed.sort()
    numbers = [number for _, _, number in weighed]
    return sorted(numbers[:target]), numbers[target:]


def _deal(
    loose: Sequence[int], room: list[int], shares: Sequence[Sequence[int]], ideal: _Ideal
) -> list[tuple[int, int]]:
    """Deal the loose queues to the members that have room, the lightest first; (rank, queue) for each."""
    waiting: dict[int, list[int]] = {}
    for number in loose:
        waiting.setdefault(ideal.topic_of[number], []).append(number)
    left = {topic: len(numbers) for topic, numbers in waiting.items()}
    takers = [rank for rank, free in enumerate(room) if free]
    holds: dict[int, dict[int, int]] = {topic: {} for topic in waiting}
    for rank in takers:
        for number in shares[rank]:
            if (counts := holds.get(ideal.topic_of[number])) is not None:
                counts[rank] = counts.get(rank, 0) + 1
    taken: dict[int, dict[int, int]] = {topic: {} for topic in waiting}

    weight = min((2 - 2 * ideal.topics[topic].top for topic in waiting), default=0)
    while left:
        for topic in list(left):
            # At one weight, a topic has either its eager members to look at or the others, and one count for them to
            # reach.
            of = ideal.topics[topic]
            count = of.top + (weight >> 1)
            if count < 1:
                continue
            counts, gains = holds[topic], taken[topic]
            span = (of.eager, ideal.members) if weight & 1 else (0, of.eager)
            for rank in _round(takers, of.first + span[0], of.first + span[1], ideal.members):
                if counts.get(rank, 0) >= count:
                    continue
                counts[rank] = counts.get(rank, 0) + 1
                gains[rank] = gains.get(rank, 0) + 1
                room[rank] -= 1
                if not room[rank]:
                    del takers[bisect_left(takers, rank)]
                left[topic] -= 1
                if not left[topic]:
                    del left[topic]
                    break
        weight += 1

    dealt: list[tuple[int, int]] = []
    for topic, numbers in waiting.items():
        ranks = [rank for rank in sorted(taken[topic]) for _ in range(taken[topic][rank])]
        dealt += zip(ranks, numbers, strict=True)
    return dealt


def _round(takers: list[int], start: int, end: int, members: int) -> list[int]:
    """Those of the sorted takers that stand from start to end, counted round the end of the list of members."""
    if start >= members:
        start, end = start - members, end - members
    if end <= members:
        return takers[bisect_left(takers, start) : bisect_left(takers, end)]
    return takers[bisect_left(takers, start) :] + takers[: bisect_left(takers, end - members)]
