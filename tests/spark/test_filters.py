"""Filters become bounds that leave out nothing that the filters would let through."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from rocketfleet.spark.source.tasks.filters import Bounds, bounds_of
from rocketfleet.wire.queue import MessageQueue

COMPARE: dict[Any, Callable[[Any, Any], bool]] = {
    EqualTo: lambda value, bound: value == bound,
    GreaterThan: lambda value, bound: value > bound,
    GreaterThanOrEqual: lambda value, bound: value >= bound,
    LessThan: lambda value, bound: value < bound,
    LessThanOrEqual: lambda value, bound: value <= bound,
    In: lambda value, bound: value in bound,
}
numbers = st.integers(0, 20)
comparisons = st.one_of(
    *(st.tuples(st.just(kind), st.lists(numbers, min_size=1).map(tuple) if kind is In else numbers) for kind in COMPARE)
)


@given(st.lists(comparisons, max_size=4), numbers)
def test_an_offset_that_passes_the_filters_is_within_the_bounds(filters: list[tuple[Any, object]], offset: int) -> None:
    bounds = bounds_of([kind(("queueOffset",), bound) for kind, bound in filters])
    if all(COMPARE[kind](offset, bound) for kind, bound in filters):
        assert bounds.from_offset is None or bounds.from_offset <= offset
        assert bounds.to_offset is None or offset < bounds.to_offset


@given(st.lists(comparisons, max_size=4), numbers)
def test_a_store_time_that_passes_the_filters_is_within_the_bounds(
    filters: list[tuple[Any, object]], second: int
) -> None:
    def moment(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(moment, value))
        assert isinstance(value, int)
        return datetime.fromtimestamp(value, UTC)

    bounds = bounds_of([kind(("storeTime",), moment(bound)) for kind, bound in filters])
    if all(COMPARE[kind](second, bound) for kind, bound in filters):
        assert bounds.from_time is None or bounds.from_time <= second * 1000
        assert bounds.to_time is None or second * 1000 <= bounds.to_time


def test_queues_are_chosen_by_equality() -> None:
    bounds = bounds_of([EqualTo(("topic",), "a"), In(("queueId",), (1, 2)), EqualTo(("queueId",), 2)])
    assert bounds.admits(MessageQueue("a", "x", 2))
    assert not bounds.admits(MessageQueue("a", "x", 1))
    assert not bounds.admits(MessageQueue("b", "x", 2))


def test_what_is_not_understood_leaves_everything() -> None:
    filters: list[Filter] = [
        IsNotNull(("queueId",)),
        Not(EqualTo(("queueId",), 1)),
        EqualTo(("tags",), "a"),
        StringStartsWith(("topic",), "a"),
        EqualTo(("queueId", "x"), 1),
        GreaterThan(("storeTime",), datetime(2026, 1, 1)),  # noqa: DTZ001 - a literal without a zone
        GreaterThan(("queueOffset",), None),
    ]
    assert bounds_of(filters) == Bounds()
