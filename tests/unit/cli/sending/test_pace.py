"""The pace against a simulated sender: the rate holds, stalls are not made up for in one go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clock import Clock

from rocketfleet.cli.sending.pace import SendRate


@given(st.floats(0.5, 5000), st.lists(st.floats(0, 0.05), min_size=2, max_size=200))
def test_never_faster_than_the_rate_plus_the_burst(rate: float, work: list[float]) -> None:
    clock = Clock()
    pace = SendRate(rate, clock, burst=0.2)
    started = clock.now
    for done, seconds in enumerate(work):
        clock.now += pace.take()
        assert done <= (clock.now - started + 0.2) * rate + 1e-6
        clock.now += seconds


def test_small_delays_do_not_add_up() -> None:
    clock = Clock()
    pace = SendRate(100, clock)
    for _ in range(1001):
        clock.now += pace.take()
        clock.now += 0.004  # work, shorter than the interval
    assert clock.now - 1000 == pytest.approx(10.004)


def test_after_a_stall_only_the_burst_is_made_up() -> None:
    clock = Clock()
    pace = SendRate(10, clock, burst=1.0)
    pace.take()
    clock.now += 60
    at_once = 0
    while pace.take() == 0:
        at_once += 1
    assert at_once == 11  # a second's worth, and the one that is due


def test_several_turns_at_once() -> None:
    clock = Clock()
    pace = SendRate(10, clock)
    assert pace.take(5) == 0
    assert pace.take(5) == pytest.approx(0.5)


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_is_positive(rate: float) -> None:
    with pytest.raises(ValueError, match="more than 0"):
        SendRate(rate, Clock())
