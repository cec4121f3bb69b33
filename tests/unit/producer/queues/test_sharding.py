"""The hash that decides where ordered messages go. The numbers were printed by a JVM."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED

from rocketfleet.producer.queues.sharding import by_hash, java_hash
from rocketfleet.wire.queue import MessageQueue

QUEUES = [MessageQueue("t", "a", i) for i in range(8)]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("order-1", -1207111310),
        ("polygenelubricants", -2147483648),
        ("订单", 1129459),
        ("𝒳", 1772318),
        (0, 0),
        (7, 7),
        (-7, -7),
        (2**31 - 1, 2**31 - 1),
        (-(2**31), -(2**31)),
        (2**31, -(2**31)),
        (2**40 + 5, 261),
        (-(2**40), -256),
    ],
)
def test_java_hash(key: str | int, expected: int) -> None:
    assert java_hash(key) == expected


@UNTIMED
@given(st.text(st.characters(codec="utf-16")) | st.integers(-(2**63), 2**63 - 1))
def test_every_key_has_one_queue(key: str | int) -> None:
    value = java_hash(key)
    assert -(2**31) <= value < 2**31
    # Java: int index = hash % n (the sign follows the hash); if negative, its absolute value
    remainder = abs(value) % 8 * (1 if value >= 0 else -1)
    assert by_hash(QUEUES, key) == QUEUES[abs(remainder)]


def test_the_smallest_hash_of_all_has_a_queue() -> None:
    assert by_hash(QUEUES, "polygenelubricants").queue_id == 0
    assert by_hash(QUEUES[:7], "polygenelubricants").queue_id == 2**31 % 7
