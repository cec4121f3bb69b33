"""Java's strategies without a Java at hand: fixed answers, taken from Java's, and what must hold for any group.

The comparison with Java itself is tests/broker/allocation; this is what tells within a second that something broke.
"""

from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.allocation.views import MEMBER_IDS, UNTIMED

from rocketfleet.allocation.averagely import averagely
from rocketfleet.allocation.averagely_by_circle import averagely_by_circle
from rocketfleet.allocation.config import config
from rocketfleet.allocation.consistent_hash import consistent_hash
from rocketfleet.allocation.java_order import java_text, sort_members, sort_queues
from rocketfleet.allocation.machine_room import machine_room
from rocketfleet.allocation.machine_room_nearby import machine_room_nearby, room_before
from rocketfleet.allocation.request import Allocate, AllocationError, AllocationRequest
from rocketfleet.wire.queue import MessageQueue

before_dash = room_before("-")
QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(8)]


def nearby(inner: Allocate) -> Allocate:
    return partial(
        machine_room_nearby,
        inner=inner,
        room_of_queue=lambda queue: before_dash(queue.broker),
        room_of_member=before_dash,
    )


def numbers(share: list[MessageQueue]) -> list[int]:
    return [queue.queue_id for queue in share]


@pytest.mark.parametrize(
    ("allocate", "shares"),
    [
        (averagely, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (averagely_by_circle, [[0, 3, 6], [1, 4, 7], [2, 5]]),
        (consistent_hash, [[1, 3, 7], [0, 2, 4, 5, 6], []]),
    ],
)
def test_eight_queues_over_three_members(allocate: Allocate, shares: list[list[int]]) -> None:
    members = ["c1", "c2", "c3"]
    assert [numbers(allocate(AllocationRequest("g", member, members, QUEUES))) for member in members] == shares


@pytest.mark.parametrize("allocate", [averagely, averagely_by_circle])
def test_more_members_than_queues_leave_the_last_ones_idle(allocate: Allocate) -> None:
    members = [f"c{number}" for number in range(5)]
    shares = [numbers(allocate(AllocationRequest("g", member, members, QUEUES[:2]))) for member in members]
    assert shares == [[0], [1], [], [], []]


def test_lists_are_used_in_the_order_given() -> None:
    assert numbers(averagely(AllocationRequest("g", "a", ["b", "a"], QUEUES[::-1]))) == [3, 2, 1, 0]


def test_machine_room_shares_only_its_rooms_and_deals_the_rest_singly() -> None:
    queues = [MessageQueue("t", broker, number) for broker in ("r1@a", "r2@a", "r3@a", "a") for number in range(3)]
    shares = [
        machine_room(AllocationRequest("g", member, ["c1", "c2"], queues), {"r1", "r3"}) for member in ("c1", "c2")
    ]
    assert [[str(queue) for queue in share] for share in shares] == [
        ["t@r1@a/0", "t@r1@a/1", "t@r1@a/2"],
        ["t@r3@a/0", "t@r3@a/1", "t@r3@a/2"],
    ]
    seven = [*queues, MessageQueue("t", "r1@b", 0)]
    assert str(machine_room(AllocationRequest("g", "c1", ["c1", "c2"], seven), {"r1", "r3"})[-1]) == "t@r1@b/0"


@pytest.mark.parametrize(
    ("broker", "taken"),
    [("r@b", True), ("r@b@", True), ("r@", False), ("@b", False), ("r", False), ("r@@b", False), ("r@b@c", False)],
)
def test_a_broker_stands_in_a_room_as_javas_split_has_it(broker: str, taken: bool) -> None:
    share = machine_room(AllocationRequest("g", "c", ["c"], [MessageQueue("t", broker, 0)]), {"r"})
    assert bool(share) is taken


def test_no_rooms_are_an_error_only_once_a_broker_stands_in_one() -> None:
    assert machine_room(AllocationRequest("g", "c", ["c"], QUEUES), None) == []
    with pytest.raises(AllocationError, match="consumeridcs is null"):
        machine_room(AllocationRequest("g", "c", ["c"], [MessageQueue("t", "r@b", 0)]), None)


def test_nearby_keeps_rooms_apart_and_shares_out_those_without_members() -> None:
    queues = [MessageQueue("t", f"{room}-a", number) for room in ("r1", "r2", "r3") for number in range(2)]
    members = ["r1-x", "r1-y", "r2-z"]
    shares = {member: nearby(averagely)(AllocationRequest("g", member, members, queues)) for member in members}
    assert {member: [str(queue) for queue in share] for member, share in shares.items()} == {
        "r1-x": ["t@r1-a/0", "t@r3-a/0"],
        "r1-y": ["t@r1-a/1", "t@r3-a/1"],
        "r2-z": ["t@r2-a/0", "t@r2-a/1"],
    }


def test_a_name_without_room_is_an_error_that_names_it() -> None:
    with pytest.raises(AllocationError) as queue_error:
        nearby(averagely)(AllocationRequest("g", "r-c", ["r-c"], [MessageQueue("t", "-a", 7)]))
    assert str(queue_error.value) == "Machine room is null for mq MessageQueue [topic=t, brokerName=-a, queueId=7]"
    with pytest.raises(AllocationError, match=r"^Machine room is null for consumer id -c$"):
        nearby(averagely)(AllocationRequest("g", "r-c", ["r-c", "-c"], [MessageQueue("t", "r-a", 7)]))


def test_config_answers_its_list_whatever_is_asked() -> None:
    assert config(AllocationRequest("", "", [], []), QUEUES[3:1:-1]) == QUEUES[3:1:-1]
    assert config(AllocationRequest("g", "c", ["c"], QUEUES), None) == []


def test_a_member_listed_twice_has_twice_the_places_on_the_ring() -> None:
    queues = [MessageQueue("t", "b", number) for number in range(400)]
    once = consistent_hash(AllocationRequest("g", "a", ["a", "b"], queues), 10)
    twice = consistent_hash(AllocationRequest("g", "a", ["a", "b", "a"], queues), 10)
    as_numbered = consistent_hash(AllocationRequest("g", "a", ["a"], queues), 20)
    assert set(once) < set(twice) < set(as_numbered)


def test_no_virtual_nodes_give_no_queues_and_a_negative_number_is_an_error() -> None:
    assert consistent_hash(AllocationRequest("g", "a", ["a"], QUEUES), 0) == []
    with pytest.raises(AllocationError, match=r"^illegal virtualNodeCnt :-1$"):
        consistent_hash(AllocationRequest("g", "a", ["a"], QUEUES), -1)


@pytest.mark.parametrize("allocate", [averagely, averagely_by_circle, consistent_hash, nearby(averagely)])
def test_the_common_errors_come_in_javas_order(allocate: Allocate) -> None:
    with pytest.raises(AllocationError, match=r"^currentCID is empty$"):
        allocate(AllocationRequest("", "", [], []))
    with pytest.raises(AllocationError, match=r"^mqAll is null or mqAll empty$"):
        allocate(AllocationRequest("", "c", [], []))
    with pytest.raises(AllocationError, match=r"^cidAll is null or cidAll empty$"):
        allocate(AllocationRequest("", "c", [], QUEUES))
    assert allocate(AllocationRequest("", "c", ["d"], QUEUES)) == []


queue_lists = st.lists(
    st.builds(MessageQueue, st.just("t"), st.sampled_from(["a-1", "b-1", "c-1", "ｚ-1", "😀-1"]), st.integers(0, 40)),
    min_size=1,
    max_size=40,
    unique=True,
)
member_lists = st.lists(MEMBER_IDS.map(lambda member: f"a{member}"), min_size=1, max_size=9, unique=True)


@pytest.mark.parametrize(
    "allocate",
    [
        averagely,
        averagely_by_circle,
        consistent_hash,
        partial(consistent_hash, virtual_nodes=1),
        nearby(averagely),
        nearby(averagely_by_circle),
        nearby(consistent_hash),
        nearby(nearby(averagely)),
    ],
)
@UNTIMED
@given(queues=queue_lists, members=member_lists)
def test_every_queue_goes_to_exactly_one_member(
    allocate: Allocate, queues: list[MessageQueue], members: list[str]
) -> None:
    shares = [allocate(AllocationRequest("g", member, members, queues)) for member in members]
    assert Counter(queue for share in shares for queue in share) == Counter(queues)


@UNTIMED
@given(queues=queue_lists, members=member_lists)
def test_machine_room_gives_every_queue_of_its_rooms_to_exactly_one_member(
    queues: list[MessageQueue], members: list[str]
) -> None:
    roomed = [queue._replace(broker=queue.broker.replace("-", "@")) for queue in queues]
    shares = [machine_room(AllocationRequest("g", member, members, roomed), {"a", "😀"}) for member in members]
    assert Counter(queue for share in shares for queue in share) == Counter(
        queue for queue in roomed if queue.broker[0] in "a😀"
    )


@UNTIMED
@given(queues=queue_lists, members=member_lists)
def test_consistent_hash_moves_only_what_a_newcomer_takes(queues: list[MessageQueue], members: list[str]) -> None:
    for member in members:
        before = set(consistent_hash(AllocationRequest("g", member, members, queues)))
        after = set(consistent_hash(AllocationRequest("g", member, [*members, "newcomer"], queues)))
        assert after <= before


def test_java_sorts_by_utf16_units() -> None:
    assert sort_members(["😀", "ｚ", "a", "\ud83d"]) == ["a", "\ud83d", "😀", "ｚ"]
    assert [queue.broker for queue in sort_queues(MessageQueue("t", name, 0) for name in ("😀", "ｚ"))] == ["😀", "ｚ"]
    assert sort_queues(QUEUES[::-1]) == QUEUES


def test_the_text_of_a_queue_is_javas() -> None:
    assert java_text(MessageQueue("a", "b", 1)) == "MessageQueue [topic=a, brokerName=b, queueId=1]"
