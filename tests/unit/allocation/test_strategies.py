"""Strategies by name, and what is asked of each: one topic at a time, or the group."""

import re
from pathlib import Path

import pytest
from tests.unit.allocation.views import queues_of

from rocketfleet.allocation.machine_room_nearby import room_before
from rocketfleet.allocation.owners import known_owners
from rocketfleet.allocation.request import AllocationError, AllocationRequest
from rocketfleet.allocation.strategies import SHORT_NAMES, Parameters, Scope, StrategyName, allocate_group, build, named
from rocketfleet.wire.queue import MessageQueue

NEARBY = Parameters(
    inner=build("AVG"), room_of_queue=lambda queue: room_before("-")(queue.broker), room_of_member=room_before("-")
)


def test_every_strategy_has_a_short_name_and_one_for_the_manifest() -> None:
    assert [named(short) for short in SHORT_NAMES] == list(StrategyName)
    for manifest, short in zip(StrategyName, SHORT_NAMES, strict=True):
        assert named(manifest) is manifest
        assert build(manifest, NEARBY).name == build(short, NEARBY).name


@pytest.mark.parametrize("place", [
    "README.md", "README.zh-CN.md", "docs/consumer.md", "examples/README.md", "bench/allocate.py",
    "operator/rocketfleet/cli/commands/allocate.py", "tests/unit/allocation/test_allocate_command.py",
])  # fmt: skip
def test_a_list_of_strategies_is_whole(place: str) -> None:
    text = (Path(__file__).resolve().parents[3] / place).read_text()
    missing = [(name, short) for name, short in zip(StrategyName, SHORT_NAMES, strict=True)
               if not re.search(rf"\b({name}|{short})\b", text)]  # fmt: skip
    assert not missing


def test_only_balanced_is_asked_about_all_topics() -> None:
    scopes = {name: build(name, NEARBY).scope for name in SHORT_NAMES}
    assert [name for name, scope in scopes.items() if scope is Scope.GROUP] == ["BALANCED"]


def test_nearby_is_asked_as_what_is_within_it() -> None:
    within = Parameters(
        inner=build("BALANCED"), room_of_queue=NEARBY.room_of_queue, room_of_member=NEARBY.room_of_member
    )
    strategy = build("MachineRoomNearby", within)
    assert (strategy.name, strategy.scope) == ("MACHINE_ROOM_NEARBY-BALANCED", Scope.GROUP)
    shares = {
        member: allocate_group(
            strategy, AllocationRequest("g", member, ["broker-a", "broker-b"], queues_of([1, 1, 1, 1]))
        )
        for member in ("broker-a", "broker-b")
    }
    assert [len(share) for share in shares.values()] == [2, 2]


@pytest.mark.parametrize(
    ("name", "parameters", "text"),
    [
        ("AVERAGE", Parameters(), "there is no strategy 'AVERAGE'; there are AVG, "),
        ("CONSISTENT_HASH", Parameters(virtual_nodes=-1), "illegal virtualNodeCnt :-1"),
        ("MACHINE_ROOM_NEARBY", Parameters(), "allocateMessageQueueStrategy is null"),
        ("MACHINE_ROOM_NEARBY", Parameters(inner=build("AVG")), "machineRoomResolver is null"),
    ],
)
def test_what_cannot_be_built_is_an_error(name: str, parameters: Parameters, text: str) -> None:
    with pytest.raises(AllocationError, match=text):
        build(name, parameters)


def test_a_topic_strategy_is_asked_topic_by_topic() -> None:
    request = AllocationRequest("g", "a", ["b", "a"], queues_of([3, 1, 1])[::-1])
    assert [str(queue) for queue in allocate_group(build("AVG"), request)] == [
        "t0@broker-0/0",
        "t0@broker-0/1",
        "t1@broker-0/0",
        "t2@broker-0/0",
    ]


def test_balanced_is_asked_once_for_all_topics_and_told_the_owners() -> None:
    queues = queues_of([1, 1, 1, 1])
    owners = dict.fromkeys(queues[:2], "b")
    request = AllocationRequest("g", "b", ["b", "a"], queues, owners)
    assert allocate_group(build("Balanced"), request) == list(queues[:2])


def test_what_config_answers_to_every_topic_is_taken_once() -> None:
    queues = list(queues_of([2, 2]))
    assert (
        allocate_group(build("CONFIG", Parameters(queues=queues[:3])), AllocationRequest("g", "a", ["a"], queues))
        == queues[:3]
    )


def test_a_queue_that_two_report_counts_for_the_first_of_them() -> None:
    first, second = MessageQueue("t", "b", 0), MessageQueue("t", "b", 1)
    # By UTF-16 units 😀 comes before ｚ, though its code point is higher.
    assert known_owners({"ｚ": [first, second], "😀": [first]}) == {first: "😀", second: "ｚ"}
