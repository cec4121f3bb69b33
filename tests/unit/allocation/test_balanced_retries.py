"""Balanced and the retry topic: its queues are shared out too, and take nobody's share of the others away."""

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.allocation.views import UNTIMED, Allocation, View, owners_of, queues_of, retry_queues, views

from rocketfleet.allocation.balanced import balance

if TYPE_CHECKING:
    from rocketfleet.wire.queue import MessageQueue


def with_retries() -> st.SearchStrategy[View]:
    return views(most_retries=12)


def loads(allocation: Allocation, *, retries: bool) -> list[int]:
    """How many each has of the one kind."""
    return [sum(queue.topic.startswith("%RETRY%") == retries for queue in share) for share in allocation.values()]


def spread(counts: list[int]) -> int:
    return max(counts) - min(counts)


@UNTIMED
@given(with_retries())
def test_every_queue_has_one_owner_and_each_kind_is_even(view: View) -> None:
    allocation = view.balance()
    assert sorted(queue for share in allocation.values() for queue in share) == sorted(view.queues)
    assert spread(loads(allocation, retries=False)) <= 1
    assert spread(loads(allocation, retries=True)) <= 1


@UNTIMED
@given(with_retries())
def test_the_others_are_shared_out_as_if_there_were_no_retries(view: View) -> None:
    others = [queue for queue in view.queues if not queue.topic.startswith("%RETRY%")]
    alone = balance(view.members, others, view.owners)
    for member, share in view.balance().items():
        assert [queue for queue in share if queue in set(others)] == alone[member]


@UNTIMED
@given(st.integers(1, 12), st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(0, 12))
def test_from_scratch_both_together_are_even(members: int, topics: list[int], retries: int) -> None:
    queues = (*queues_of(topics), *retry_queues(retries))
    allocation = balance([f"m{number}" for number in range(members)], queues, {})
    assert spread([len(share) for share in allocation.values()]) <= 1


@UNTIMED
@given(with_retries(), st.randoms(use_true_random=False))
def test_neither_order_nor_duplicates_matter(view: View, draw: random.Random) -> None:
    members = [*view.members, *draw.choices(view.members, k=2)]
    queues = [*view.queues, *draw.choices(view.queues, k=2)]
    draw.shuffle(members)
    draw.shuffle(queues)
    assert balance(members, queues, view.owners) == view.balance()


@UNTIMED
@given(with_retries())
def test_a_settled_group_does_not_move(view: View) -> None:
    allocation = view.balance()
    assert balance(view.members, view.queues, owners_of(allocation)) == allocation


@UNTIMED
@given(with_retries(), st.data())
def test_the_answer_is_the_same_in_the_middle_of_the_change(view: View, data: st.DataObject) -> None:
    allocation = view.balance()
    after = owners_of(allocation)
    between: dict[MessageQueue, str] = {}
    for queue in view.queues:
        before = view.owners.get(queue)
        holder = after[queue] if before == after[queue] else data.draw(st.sampled_from([before, None, after[queue]]))
        if holder is not None:
            between[queue] = holder
    assert balance(view.members, view.queues, between) == allocation


@UNTIMED
@given(with_retries(), st.text("xyz", min_size=1, max_size=3))
def test_a_member_that_joins_takes_its_share_and_nothing_else_moves(view: View, newcomer: str) -> None:
    before = owners_of(view.balance())
    after = owners_of(balance([*view.members, newcomer], view.queues, before))
    assert {member for queue, member in after.items() if before[queue] != member} <= {newcomer}


@UNTIMED
@given(with_retries())
def test_only_the_queues_of_a_member_that_leaves_move(view: View) -> None:
    before = owners_of(view.balance())
    for leaver in view.members:
        others = [member for member in view.members if member != leaver]
        if others:
            after = owners_of(balance(others, view.queues, before))
            assert all(after[queue] == owner for queue, owner in before.items() if owner != leaver)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ([3, 2, 1, 2], [2, 2, 2, 2]),  # the one with the fewest holds the retry queue: 9 queues, and even if all count
        ([2, 1, 1, 0], [1, 1, 1, 1]),
    ],
)
def test_whoever_holds_the_retry_queue_gets_a_whole_share_of_the_others(held: list[int], expected: list[int]) -> None:
    members = [f"m{rank}" for rank in range(len(held))]
    queues = iter(queues_of([sum(held)], brokers=1))
    owners = {next(queues): member for member, many in zip(members, held, strict=True) for _ in range(many)}
    (retry,) = retry_queues(1)
    owners[retry] = members[held.index(min(held))]
    allocation = balance(members, list(owners), owners)
    assert loads(allocation, retries=False) == expected
    assert owners_of(allocation)[retry] == owners[retry]
