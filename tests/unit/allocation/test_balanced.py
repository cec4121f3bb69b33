"""Balanced: every promise of its docstring, against optima found by other means."""

import random
from collections import Counter, defaultdict
from collections.abc import Hashable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.allocation.views import UNTIMED, View, kept, owners_of, queues_of, spreads, views

from rocketfleet.allocation.balanced import balance, balanced
from rocketfleet.allocation.request import AllocationError, AllocationRequest
from rocketfleet.wire.queue import MessageQueue


def best_by_trying_all(view: View) -> int:
    """The most queues that can stay where they are, over every allocation that is even."""
    best = 0
    for choice in product(view.members, repeat=len(view.queues)):
        loads = Counter(choice)
        if max(loads[member] for member in view.members) - min(loads[member] for member in view.members) <= 1:
            best = max(best, sum(view.owners.get(q) == member for q, member in zip(view.queues, choice, strict=True)))
    return best


def best_by_flow(view: View) -> int:
    """The same by a maximum flow: queue → the member that holds it → its smaller share, or one of the common seats."""
    smaller, seats = divmod(len(view.queues), len(view.members))
    room: dict[Hashable, dict[Hashable, int]] = defaultdict(lambda: defaultdict(int))
    for queue in view.queues:
        if (owner := view.owners.get(queue)) in view.members:
            room["source"][queue] = room[queue][owner] = 1
    for member in view.members:
        room[member]["sink"], room[member]["seats"] = smaller, 1
    room["seats"]["sink"] = seats

    def push(node: Hashable, seen: set[Hashable]) -> bool:
        if node == "sink":
            return True
        seen.add(node)
        for following in list(room[node]):
            if room[node][following] and following not in seen and push(following, seen):
                room[node][following] -= 1
                room[following][node] += 1
                return True
        return False

    flow = 0
    while push("source", set()):
        flow += 1
    return flow


@UNTIMED
@given(views())
def test_every_queue_has_one_owner_and_loads_differ_by_one_at_most(view: View) -> None:
    allocation = view.balance()
    assert sorted(queue for share in allocation.values() for queue in share) == sorted(view.queues)
    loads = [len(allocation[member]) for member in view.members]
    assert max(loads) - min(loads) <= 1


@settings(UNTIMED, max_examples=60)
@given(views(most_members=3, most_topics=3, largest_topic=2))
def test_no_even_allocation_leaves_more_queues_in_place(view: View) -> None:
    assert kept(view.owners, view.balance()) == best_by_trying_all(view)


@UNTIMED
@given(views(most_members=12, most_topics=6, largest_topic=15))
def test_no_flow_leaves_more_queues_in_place(view: View) -> None:
    assert kept(view.owners, view.balance()) == best_by_flow(view)


@UNTIMED
@given(views(), st.randoms(use_true_random=False))
def test_neither_order_nor_duplicates_matter(view: View, draw: random.Random) -> None:
    members = [*view.members, *draw.choices(view.members, k=2)]
    queues = [*view.queues, *draw.choices(view.queues, k=2)]
    draw.shuffle(members)
    draw.shuffle(queues)
    owners = dict(draw.sample(list(view.owners.items()), k=len(view.owners)))
    assert balance(members, queues, owners) == view.balance()


@UNTIMED
@given(views())
def test_what_each_member_computes_for_itself_fits_together(view: View) -> None:
    shares = {
        member: balanced(AllocationRequest("g", member, view.members, view.queues, view.owners))
        for member in view.members
    }
    assert shares == view.balance()


@UNTIMED
@given(views())
def test_a_settled_group_does_not_move(view: View) -> None:
    allocation = view.balance()
    assert balance(view.members, view.queues, owners_of(allocation)) == allocation


@UNTIMED
@given(views(), st.data())
def test_the_answer_is_the_same_in_the_middle_of_the_change(view: View, data: st.DataObject) -> None:
    allocation = view.balance()
    after = owners_of(allocation)
    between: dict[MessageQueue, str] = {}
    for queue in view.queues:
        before = view.owners.get(queue)
        # Where the queue is now: still with its old owner, with nobody, or with its new one already.
        holder = after[queue] if before == after[queue] else data.draw(st.sampled_from([before, None, after[queue]]))
        if holder is not None:
            between[queue] = holder
    assert balance(view.members, view.queues, between) == allocation


@UNTIMED
@given(views())
def test_a_silent_member_gets_its_own_queues_back_all_but_one_at_most(view: View) -> None:
    before = owners_of(view.balance())
    for silent in view.members:
        heard = {queue: member for queue, member in before.items() if member != silent}
        after = owners_of(balance(view.members, view.queues, heard))
        moved = [queue for queue in view.queues if after[queue] != before[queue]]
        assert len(moved) <= 1
        assert all(before[queue] == silent for queue in moved)


@UNTIMED
@given(views(), st.text("xyz", min_size=1, max_size=3))
def test_a_member_that_joins_takes_its_share_and_nothing_else_moves(view: View, newcomer: str) -> None:
    before = owners_of(view.balance())
    allocation = balance([*view.members, newcomer], view.queues, before)
    moved = {queue: member for queue, member in owners_of(allocation).items() if before[queue] != member}
    assert set(moved.values()) <= {newcomer}
    assert len(moved) == len(allocation[newcomer])


@UNTIMED
@given(views())
def test_only_the_queues_of_a_member_that_leaves_move(view: View) -> None:
    before = owners_of(view.balance())
    for leaver in view.members:
        others = [member for member in view.members if member != leaver]
        if others:
            after = owners_of(balance(others, view.queues, before))
            assert all(after[queue] == owner for queue, owner in before.items() if owner != leaver)


@UNTIMED
@given(views(), st.integers(1, 20))
def test_queues_that_are_added_move_no_other(view: View, added: int) -> None:
    before = owners_of(view.balance())
    larger = (*view.queues, *(MessageQueue("t0", "broker-new", number) for number in range(added)))
    after = owners_of(balance(view.members, larger, before))
    assert all(after[queue] == owner for queue, owner in before.items())


@UNTIMED
@given(st.integers(1, 12), st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_from_scratch_every_topic_is_even_too(members: int, topics: list[int]) -> None:
    allocation = balance([f"m{number}" for number in range(members)], queues_of(topics), {})
    assert max(spreads(allocation).values()) <= 1


@pytest.mark.parametrize(("topics", "size", "members"), [(10, 9, 9), (12, 4, 4), (6, 30, 5), (20, 1, 10)])
def test_a_join_and_a_leave_keep_every_topic_even(topics: int, size: int, members: int) -> None:
    names = [f"m{number:02}" for number in range(members)]
    queues = queues_of([size] * topics)
    start = balance(names, queues, {})
    joined = balance([*names, "newcomer"], queues, owners_of(start))
    assert max(spreads(joined).values()) <= 1
    left = balance(names, queues, owners_of(joined))
    assert max(spreads(left).values()) <= 1


def test_topics_stay_nearly_even_however_often_members_come_and_go() -> None:
    # Not optimal, but steered: after many changes, few queues lie where their topic would not have them.
    draw = random.Random(11)
    queues = queues_of([16] * 10)
    members = [f"m{number:03}" for number in range(20)]
    owners: dict[MessageQueue, str] = {}
    too_many: list[int] = []
    for step in range(150):
        allocation = balance(members, queues, owners)
        owners = owners_of(allocation)
        fair = -(-16 // len(members))
        counts = (Counter(queue.topic for queue in share) for share in allocation.values())
        too_many.append(sum(max(0, count - fair) for of_member in counts for count in of_member.values()))
        if len(members) > 10 and draw.random() < 0.5:
            members.remove(draw.choice(members))
        else:
            members.append(f"n{step:03}")
    assert sum(too_many) / len(too_many) < 0.1 * len(queues)


def test_many_small_topics_do_not_land_on_the_first_member() -> None:
    allocation = balance(["a", "b", "c"], queues_of([1] * 20), {})
    assert sorted(len(share) for share in allocation.values()) == [6, 7, 7]


def test_a_member_that_is_not_listed_gets_nothing() -> None:
    assert balanced(AllocationRequest("g", "stranger", ["a"], queues_of([3]))) == []


@pytest.mark.parametrize(
    ("member", "members", "topics", "text"),
    [
        ("", ["a"], [1], "currentCID is empty"),
        ("a", ["a"], [], "mqAll is null or mqAll empty"),
        ("a", [], [1], "cidAll is null or cidAll empty"),
    ],
)
def test_nothing_to_share_is_an_error_as_in_java(member: str, members: list[str], topics: list[int], text: str) -> None:
    with pytest.raises(AllocationError, match=text):
        balanced(AllocationRequest("g", member, members, queues_of(topics)))
