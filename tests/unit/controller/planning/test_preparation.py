"""What a group lacks at a broker, and when a broker is asked again."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.stage import group_of

from rocketfleet.controller.planning.preparation import (
    ASK_AGAIN,
    READ_AGAIN,
    BrokerFindings,
    Found,
    GroupBroker,
    Preparation,
    due,
    lack_of,
    next_look,
    standing_of,
    wanted_settings,
)
from rocketfleet.wire.queue import MessageQueue

NOW = 1000.0
QUEUES = frozenset(MessageQueue("orders", "broker-a", number) for number in range(4))
HERE = GroupBroker("127.0.0.1:10911", 7, QUEUES)
FINE = BrokerFindings(HERE, "wanted", again=NOW + READ_AGAIN, lacks=False)
LAST = group_of()
FIRST = group_of(consumeFromWhere="FirstOffset")
NATIVE = group_of(initialOffset="Native")


def found(group: Any, **facts: Any) -> Found:
    return Found(wanted_settings(group, None), **facts)


@pytest.mark.parametrize("group", [LAST, FIRST, NATIVE], ids=["last", "first", "native"])
def test_a_broker_that_has_not_heard_of_the_group_lacks_everything(group: Any) -> None:
    lack = lack_of(group, Found(None, unset=QUEUES))
    assert lack.settings
    assert bool(lack.beginnings) is (group is LAST)
    assert bool(lack.starts) is (group is FIRST)  # a LastOffset group has no start before it has begun


def test_settings_that_somebody_changed_are_missed() -> None:
    other = replace(wanted_settings(NATIVE, None), retry_max_times=99)
    assert lack_of(NATIVE, Found(other)).settings
    assert not lack_of(NATIVE, found(NATIVE))
    stranger = replace(wanted_settings(NATIVE, None), retry_queue_nums=8, attributes={"a": "b"})
    assert not lack_of(NATIVE, Found(stranger)), "what the manifest does not speak of is not ours"


def test_queues_that_came_later_lack_a_start_once_the_group_has_begun() -> None:
    new = frozenset({MessageQueue("orders", "broker-a", 3)})
    begun = frozenset({"orders"})
    assert lack_of(LAST, found(LAST, begun=begun, unset=new)).starts == new
    assert lack_of(LAST, found(LAST, begun=begun)) == lack_of(LAST, found(LAST, begun=begun), {"orders"})


def test_what_members_subscribe_to_is_left_to_them() -> None:
    assert not lack_of(LAST, found(LAST, unset=QUEUES), {"orders"})
    assert not lack_of(FIRST, found(FIRST, unset=QUEUES), {"orders"})
    assert lack_of(LAST, Found(None, unset=QUEUES), {"orders"}).settings, "but settings are ours"


CHANGES: dict[str, Callable[[], tuple[BrokerFindings, GroupBroker]]] = {
    "its master is elsewhere": lambda: (FINE, replace(HERE, address="127.0.0.1:10921")),
    "it was away": lambda: (FINE, replace(HERE, connection=8)),
    "it is away": lambda: (FINE, replace(HERE, connection=0)),
    "the topic has grown": lambda: (FINE, replace(HERE, queues=QUEUES | {MessageQueue("orders", "broker-a", 4)})),
    "the manifest has changed": lambda: (replace(FINE, wanted="before"), HERE),
    "it was read long ago": lambda: (replace(FINE, again=NOW), HERE),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_broker_is_asked_again_when_something_has_changed(
    change: Callable[[], tuple[BrokerFindings, GroupBroker]],
) -> None:
    look, place = change()
    assert due({"broker-a": FINE}, {"broker-a": HERE}, "wanted", NOW, nobody=False) == frozenset()
    assert due({"broker-a": look}, {"broker-a": place}, "wanted", NOW, nobody=False) == {"broker-a"}


def test_a_broker_that_is_new_is_asked_and_the_others_are_not() -> None:
    assert due({"broker-a": FINE}, {"broker-a": HERE, "broker-b": HERE}, "wanted", NOW, nobody=True) == {"broker-b"}


def test_what_was_left_to_members_is_looked_at_when_there_are_none() -> None:
    looks = {"broker-a": replace(FINE, left=True)}
    assert due(looks, {"broker-a": HERE}, "wanted", NOW, nobody=False) == frozenset()
    assert due(looks, {"broker-a": HERE}, "wanted", NOW, nobody=True) == {"broker-a"}


@given(st.floats(0, 1, exclude_max=True))
def test_intervals_are_slow_and_uneven(chance: float) -> None:
    again = next_look(NOW, answered=True, random=lambda: chance) - NOW
    assert 0.8 * READ_AGAIN - 1 <= again <= 1.2 * READ_AGAIN + 1
    assert next_look(NOW, answered=False, random=lambda: chance) == NOW + ASK_AGAIN


def test_a_broker_that_does_not_answer_blocks_only_itself() -> None:
    away = replace(FINE, lacks=None)
    lacking = replace(FINE, lacks=True)
    both = ("broker-a", "broker-b")
    assert standing_of({"broker-a": FINE, "broker-b": away}, both, "wanted").prepared is True
    assert standing_of({"broker-a": away, "broker-b": away}, both, "wanted").prepared is None
    mixed = standing_of({"broker-a": FINE, "broker-b": lacking}, both, "wanted")
    assert (mixed.prepared, set(mixed.lacking)) == (True, {"broker-b"}), "it is prepared, and no pod waits for that"
    assert standing_of({"broker-a": away, "broker-b": lacking}, both, "wanted").prepared is False
    assert standing_of({"broker-a": FINE}, both, "something else").prepared is None
    assert standing_of({"broker-c": lacking, "broker-a": FINE}, both, "wanted").prepared is True, "elsewhere"


def test_another_rocketmq_is_asked_from_the_beginning() -> None:
    one, other = object(), object()
    known = Preparation(one, {"broker-a": FINE})
    known.asked_with(one)
    assert known.looks
    known.asked_with(other)
    assert known.looks == {}
