"""The batching decision: whatever comes in goes out once, in order, within its bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.support.waiting import UNTIMED

from rocketfleet.producer.batching.accumulator import Accumulator, Batch, BatchLimits

LIMITS = BatchLimits(max_bytes=100, max_delay=1.0, max_held=1000, max_messages=5)


class Accumulating(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.accumulator: Accumulator[str, int] = Accumulator(lambda: self.now, LIMITS)
        self.waiting: dict[str, list[tuple[int, int, float]]] = {}  # key → (item, size, since)
        self.under_way: list[Batch[str, int]] = []
        self.next_item = 0

    def take(self, batch: Batch[str, int]) -> None:
        expected = self.waiting[batch.key][: len(batch.items)]
        assert batch.items == [item for item, _, _ in expected], "in the order in which they came, none missing"
        assert batch.size == sum(size for _, size, _ in expected)
        assert len(batch.items) <= LIMITS.max_messages
        assert batch.size <= LIMITS.max_bytes or len(batch.items) == 1
        del self.waiting[batch.key][: len(batch.items)]
        self.under_way.append(batch)

    @rule(key=st.sampled_from("abc"), size=st.integers(1, 150))
    def add(self, key: str, size: int) -> None:
        self.next_item += 1
        self.waiting.setdefault(key, []).append((self.next_item, size, self.now))
        for batch in self.accumulator.add(key, self.next_item, size):
            self.take(batch)

    @rule(seconds=st.floats(0, 2))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def collect_due(self) -> None:
        for batch in self.accumulator.due():
            self.take(batch)
        for items in self.waiting.values():
            assert all(self.now < since + LIMITS.max_delay for _, _, since in items[:1]), "overdue"

    @rule()
    def flush(self) -> None:
        for batch in self.accumulator.flush():
            self.take(batch)
        assert not any(self.waiting.values())

    @rule()
    def answer(self) -> None:
        if self.under_way:
            self.accumulator.release(self.under_way.pop())

    @invariant()
    def held_is_what_waits_and_what_is_under_way(self) -> None:
        waiting = sum(size for items in self.waiting.values() for _, size, _ in items)
        assert self.accumulator.held == waiting + sum(batch.size for batch in self.under_way)

    @invariant()
    def the_deadline_is_that_of_the_oldest(self) -> None:
        oldest = [items[0][2] for items in self.waiting.values() if items]
        expected = min(oldest) + LIMITS.max_delay if oldest else None
        assert self.accumulator.next_deadline() == expected

    @invariant()
    def no_open_batch_is_full(self) -> None:
        for items in self.waiting.values():
            assert sum(size for _, size, _ in items) < LIMITS.max_bytes
            assert len(items) < LIMITS.max_messages


TestAccumulating = Accumulating.TestCase
TestAccumulating.settings = UNTIMED


@UNTIMED
@given(st.lists(st.integers(1, 2000), max_size=20), st.integers(1, 2000))
def test_there_is_always_room_when_nothing_is_held(sizes: list[int], size: int) -> None:
    accumulator: Accumulator[str, int] = Accumulator(lambda: 0.0, LIMITS)
    assert accumulator.has_room(size), "or a message larger than everything would wait forever"
    for one in sizes:
        accumulator.add("k", 0, one)
    assert accumulator.has_room(size) is (not sizes or sum(sizes) + size <= LIMITS.max_held)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_bytes": 0},
        {"max_bytes": 3 << 20},
        {"max_delay": -1},
        {"max_delay": 31},
        {"max_held": 0},
        {"max_messages": 0},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BatchLimits(**wrong)
