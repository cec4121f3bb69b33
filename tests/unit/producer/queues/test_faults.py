"""Latency fault tolerance: the ladder as Java has it, and what probes may and may not undo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clock import Clock
from tests.support.waiting import UNTIMED

from rocketfleet.producer.queues.faults import LADDER, FaultTable, rest_period


@pytest.mark.parametrize(
    ("milliseconds", "seconds"),
    [
        (0, 0),
        (49, 0),
        (50, 0),
        (100, 0),
        (549, 0),
        (550, 30),
        (999, 30),
        (1000, 60),
        (1999, 60),
        (2000, 120),
        (3000, 180),
        (10_000, 180),
        (14_999, 180),
        (15_000, 600),
        (100_000, 600),
    ],
)
def test_the_ladder_is_the_one_of_java(milliseconds: int, seconds: float) -> None:
    assert rest_period(milliseconds / 1000) == seconds


@UNTIMED
@given(st.floats(0, 100), st.floats(0, 100))
def test_slower_never_rests_shorter(one: float, other: float) -> None:
    assert rest_period(min(one, other)) <= rest_period(max(one, other))


def test_an_unknown_broker_is_healthy() -> None:
    table = FaultTable(Clock())
    assert table.is_available("a")
    assert table.is_reachable("a")
    assert table.latency("a") is None
    assert not table.came_back("a")


@UNTIMED
@given(st.sampled_from([rung for rung in LADDER if rung[1] > 0]))
def test_a_slow_broker_rests_for_exactly_its_period(rung: tuple[float, float]) -> None:
    latency, period = rung
    clock = Clock()
    table = FaultTable(clock)
    table.answered("a", latency)
    clock.now += period - 0.001
    assert not table.is_available("a")
    clock.now += 0.002
    assert table.is_available("a")


def test_a_quick_answer_does_not_cut_a_rest_short() -> None:
    clock = Clock()
    table = FaultTable(clock)
    table.answered("a", 0.6)
    table.answered("a", 0.001)
    clock.now += 29
    assert not table.is_available("a")
    assert table.latency("a") == 0.001


def test_a_failure_counts_as_ten_seconds() -> None:
    clock = Clock()
    table = FaultTable(clock)
    table.failed("a", 0.001, reachable=True)
    clock.now += 179
    assert not table.is_available("a")
    clock.now += 2
    assert table.is_available("a")


def test_a_probe_ends_the_rest_for_failing_but_not_the_one_for_being_slow() -> None:
    clock = Clock()
    table = FaultTable(clock)
    table.answered("a", 1.0)
    table.failed("a", 0.1, reachable=False)
    assert not table.is_reachable("a")
    assert not table.came_back("a"), "it still rests for having been slow"
    assert table.is_reachable("a")
    clock.now += 61
    assert table.is_available("a"), "the three minutes for failing were ended by the probe"

    table.failed("b", 0.1, reachable=False)
    assert table.came_back("b")
    assert table.is_available("b")
    assert not table.came_back("b"), "only the first answer changes anything"


def test_probes_are_due_at_their_interval_and_only_for_brokers_that_failed() -> None:
    clock = Clock()
    table = FaultTable(clock, probe_interval=2.0)
    table.answered("slow", 5.0)
    table.answered("fine", 0.001)
    table.failed("gone", 0.001, reachable=False)
    table.failed("busy", 0.001, reachable=True)
    assert table.due_for_probe() == [], "it failed this very moment"
    clock.now += 2.0
    assert sorted(table.due_for_probe()) == ["busy", "gone"]
    assert table.due_for_probe() == []
    clock.now += 200.0
    assert table.due_for_probe() == ["gone"], "the busy one's rest is over; one that is gone is asked until it answers"
    table.came_back("gone")
    clock.now += 2.0
    assert table.due_for_probe() == []


def test_the_least_bad_is_of_the_better_half_of_the_reachable() -> None:
    clock = Clock()
    table = FaultTable(clock)
    for broker, latency in (("a", 0.6), ("b", 5.0), ("c", 0.9), ("d", 20.0)):
        table.answered(broker, latency)
    table.failed("e", 0.0, reachable=False)
    assert {table.pick_one_at_least("abcde") for _ in range(10)} == {"a", "c"}
    assert table.pick_one_at_least("bd") == "b"
    assert table.pick_one_at_least("e") is None
    assert table.pick_one_at_least("") is None


def test_forgotten_brokers_are_as_new() -> None:
    table = FaultTable(Clock())
    table.failed("a", 0.0, reachable=False)
    table.forget(["a", "never heard of"])
    assert table.known() == ()
    assert table.is_available("a")


events = st.one_of(
    st.tuples(st.just("answered"), st.sampled_from("abc"), st.floats(0, 20)),
    st.tuples(st.just("failed"), st.sampled_from("abc"), st.booleans()),
    st.tuples(st.just("probe"), st.sampled_from("abc"), st.none()),
    st.tuples(st.just("wait"), st.none(), st.floats(0, 300)),
)


@UNTIMED
@given(st.lists(events, max_size=40))
def test_available_means_that_no_period_runs(history: list[tuple[str, str | None, float | bool | None]]) -> None:
    """Against a plain model: the latest end of any slow period, and of any failure since the last answered probe."""
    clock = Clock()
    table = FaultTable(clock)
    slow: dict[str, float] = {}
    failed: dict[str, float] = {}
    for kind, broker, value in history:
        if kind == "wait":
            assert isinstance(value, float)
            clock.now += value
        elif kind == "answered":
            assert broker is not None
            assert isinstance(value, float)
            table.answered(broker, value)
            if rest_period(value):
                slow[broker] = max(slow.get(broker, 0), clock.now + rest_period(value))
        elif kind == "failed":
            assert broker is not None
            table.failed(broker, 0.0, reachable=bool(value))
            failed[broker] = clock.now + 180
        else:
            assert broker is not None
            table.came_back(broker)
            failed.pop(broker, None)
        for name in "abc":
            resting = clock.now < slow.get(name, 0) or clock.now < failed.get(name, 0)
            assert table.is_available(name) is not resting
