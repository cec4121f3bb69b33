"""From offsets to lag, and from lag to rates."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lag.making import moment, over_time, queue

from rocketfleet.lag.collecting.reckoning import drain_seconds, lag_of, start_of, summed

offsets = st.none() | st.integers(0, 10_000)
ends = st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@pytest.mark.parametrize(
    ("committed", "limits", "beginning", "lag"),
    [
        (7, (0, 10), False, 3),
        (7, (0, 10), True, 3),
        (10, (0, 10), False, 0),
        (3, (5, 10), False, 5),  # two were deleted before anybody read them
        (0, (5, 10), True, 5),
        (12, (0, 10), False, 0),  # somebody stored an offset beyond the end
        (None, (4, 10), True, 6),
        (None, (4, 10), False, None),
        (None, (0, 0), False, None),
        (0, (0, 0), False, 0),
    ],
)
def test_the_table(committed: int | None, limits: tuple[int, int], beginning: bool, lag: int | None) -> None:
    assert lag_of(committed, limits, from_beginning=beginning) == lag


@given(offsets, ends, st.booleans())
def test_lag_is_never_negative_nor_more_than_there_is(
    committed: int | None, limits: tuple[int, int], beginning: bool
) -> None:
    lag = lag_of(committed, limits, from_beginning=beginning)
    if lag is None:
        assert committed is None
        assert not beginning
    else:
        assert 0 <= lag <= limits[1] - limits[0]


@given(st.integers(0, 10_000), st.integers(0, 10_000), ends)
def test_whoever_is_further_has_no_more_to_do(one: int, other: int, limits: tuple[int, int]) -> None:
    behind, ahead = sorted((one, other))
    lags = [lag_of(offset, limits, from_beginning=False) for offset in (behind, ahead)]
    assert lags[0] is not None
    assert lags[1] is not None
    assert lags[0] >= lags[1]


@given(offsets, ends)
def test_the_next_message_is_one_that_is_there(committed: int | None, limits: tuple[int, int]) -> None:
    start = start_of(committed, limits, from_beginning=True)
    assert start is not None
    assert start >= limits[0]


@given(st.lists(st.none() | st.integers(0, 100)))
def test_a_sum_with_something_unknown_in_it_is_unknown(lags: list[int | None]) -> None:
    total = summed(lags)
    assert (total is None) == (None in lags)
    assert total is None or total == sum(lag or 0 for lag in lags)


def test_a_queue_that_was_not_read_makes_the_sum_unknown_and_the_rest_a_lower_bound() -> None:
    seen = moment([(1, 4), (2, 9), (0, 50)], 1000.0, unread=[2])
    assert (seen.messages, seen.unknown, seen.at_least, seen.worst) == (None, 1, 10, queue(1))
    assert seen.seconds is None


def test_sums() -> None:
    seen = moment([(4, 4), (2, 9), (0, 5)], 1000.0)
    assert (seen.messages, seen.unknown, seen.at_least, seen.worst) == (12, 0, 12, queue(1))
    assert moment([(4, 4)], 1000.0).worst is None
    assert moment([], 1000.0).messages is None


def test_rates_and_how_long_the_backlog_lasts() -> None:
    latest = over_time([(0, 300), (0, 0)], [(60, 300), (15, 30)], [(120, 300), (30, 60)]).latest
    assert latest is not None
    assert latest.consume_rate == pytest.approx((120 + 30) / 60)
    assert latest.produce_rate == pytest.approx(60 / 60)
    assert latest.drain_seconds == pytest.approx(210 / 1.5)


def test_rates_need_two_looks_and_deletions_are_no_consumption() -> None:
    first = over_time([(0, 300)]).latest
    assert first is not None
    assert (first.consume_rate, first.produce_rate, first.drain_seconds) == (None, None, None)


def test_a_group_that_goes_back_consumes_nothing_rather_than_less_than_nothing() -> None:
    latest = over_time([(200, 300)], [(10, 300)]).latest
    assert latest is not None
    assert latest.consume_rate == 0


def test_rates_are_those_since_a_reset() -> None:
    made = over_time([(0, 100)], [(90, 100)]).reset(1045.0)
    from rocketfleet.lag.collecting.reckoning import with_rates

    for number, offset in enumerate((10, 13)):
        made = with_rates(made.after(moment([(offset, 100)], 1060.0 + number * 30)))
    assert made.latest is not None
    assert made.latest.consume_rate == pytest.approx(0.1)


@given(st.none() | st.integers(0, 1000), st.none() | st.floats(0, 100), st.none() | st.floats(0, 100))
def test_time_to_drain(messages: int | None, consumed: float | None, produced: float | None) -> None:
    drain = drain_seconds(messages, consumed, produced)
    if messages == 0:
        assert drain == 0
    elif messages is None or consumed is None or produced is None:
        assert drain is None
    else:
        assert drain is not None
        assert drain > 0
        assert math.isinf(drain) or consumed > produced
