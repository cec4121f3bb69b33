"""Decisions, whatever was seen: within the limits, never on missing figures, and never fewer for more lag."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.lag.autoscale.decide import Reason, decide
from rocketfleet.lag.autoscale.history import MOST_SAMPLES, History, Mind, Sample, Trial
from rocketfleet.lag.autoscale.policy import Policy

counts = st.one_of(st.none(), st.integers(0, 1_000_000))
sizes = st.integers(0, 12)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    least = draw(st.integers(0, 6))
    target_lag = draw(st.one_of(st.none(), st.integers(1, 10_000)))
    return Policy(
        least,
        max(1, least + draw(st.integers(0, 6))),
        target_lag=target_lag,
        target_seconds=draw(st.floats(0.1, 600)) if target_lag is None else draw(st.none() | st.floats(0.1, 600)),
        out_after=draw(st.sampled_from([0.0, 10.0])),
        in_after=draw(st.sampled_from([0.0, 60.0, 300.0])),
        zero_after=draw(st.sampled_from([0.0, 60.0])),
        trial=draw(st.sampled_from([10.0, 60.0])),
        members_per_pod=draw(st.integers(1, 3)),
        idle_members=draw(st.booleans()),
        recommended=draw(st.none() | st.integers(0, 20)),
    )


@st.composite
def histories(draw: st.DrawFn, newest: bool = False) -> History:
    """Anything at all; with `newest`, the last sample is known."""
    samples = []
    at = 1000.0
    for _ in range(draw(st.integers(1 if newest else 0, 12))):
        at += draw(st.sampled_from([1.0, 5.0, 20.0, 100.0]))
        samples.append(
            Sample(
                at, draw(counts), draw(st.none() | st.floats(0, 1e6)), draw(st.none() | st.integers(0, 5)),
                draw(counts), draw(counts), draw(sizes), draw(sizes), draw(st.none() | st.integers(0, 20)),
            )
        )  # fmt: skip
    if newest:
        samples[-1] = replace(samples[-1], lag=draw(st.integers(0, 1_000_000)))
    trial = draw(
        st.none() | st.builds(Trial, st.just(1000.0), st.integers(1, 5), st.integers(2, 12), st.floats(0, 1e4))
    )
    mind = Mind(draw(st.none() | st.floats(0.01, 1e5)), trial, draw(st.none() | st.integers(1, 5)), 1100.0)
    return History(draw(sizes), tuple(samples), mind)


def end_of(history: History) -> float:
    return history.samples[-1].at if history.samples else 1000.0


@given(policies(), histories(), st.floats(0, 1000))
def test_every_decision_is_within_the_limits_and_says_why(policy: Policy, history: History, later: float) -> None:
    decision = decide(policy, history, end_of(history) + later)
    assert policy.least <= decision.replicas <= policy.most
    assert decision.replicas >= policy.floor
    assert decision.before == history.replicas
    assert decision.sentence
    assert decision.changes == (decision.reason not in (Reason.STEADY, Reason.NO_FIGURES))


@given(policies(), histories(), st.floats(0, 1000), st.sampled_from(["none", "unknown", "old"]))
def test_missing_figures_change_nothing(policy: Policy, history: History, later: float, gap: str) -> None:
    if gap == "none" or not history.samples:
        history = replace(history, samples=())
    elif gap == "unknown":
        history = replace(history, samples=(*history.samples[:-1], replace(history.samples[-1], lag=None)))
    else:
        later += policy.fresh + 1
    decision = decide(policy, history, end_of(history) + later)
    assert decision.replicas == policy.within(history.replicas)
    assert decision.mind == history.mind
    assert decision.reason in (Reason.NO_FIGURES, Reason.LIMITS)


@given(policies(), histories(newest=True), st.integers(0, 1_000_000))
def test_more_lag_never_means_fewer_replicas(policy: Policy, history: History, more: int) -> None:
    # Of one sample: over several, lag also tells what a member is able to do.
    last = history.samples[-1]
    mind = replace(history.mind, trial=None)
    one = History(history.replicas, (last,), mind)
    assert last.lag is not None
    behind = History(history.replicas, (replace(last, lag=last.lag + more),), mind)
    policy = replace(policy, out_after=0.0, in_after=0.0)
    assert decide(policy, behind, last.at).replicas >= decide(policy, one, last.at).replicas


def sample(at: float, lag: int | None = 0, replicas: int = 1, **facts: object) -> Sample:
    given = {"seconds": 0.0, "retry": 0, "produced": 0, "consumed": 0, "ready": replicas, "queues": 8, **facts}
    return Sample(at=at, lag=lag, replicas=replicas, **given)  # type: ignore[arg-type]


def test_the_larger_of_both_targets_counts() -> None:
    samples = tuple(
        sample(at, 3000, seconds=3.0, produced=int(100 * at), consumed=int(100 * at)) for at in range(0, 61, 5)
    )
    history = History(1, samples, Mind(rate=100.0))
    by_lag = decide(Policy(1, 8, target_lag=1000), history, 60)
    by_both = decide(Policy(1, 8, target_lag=1000, target_seconds=6), history, 60)
    assert (by_lag.replicas, by_both.replicas) == (4, 8)
    assert by_lag.figures.demand is not None
    assert by_lag.figures.demand.by_lag == 3
    assert "3000 messages wait" in by_lag.sentence
    assert "within 6 s" in by_both.sentence


def test_a_sample_from_before_the_way_to_zero_brings_nobody_back() -> None:
    # It was taken while there was still a member, and says neither that something waits nor what came in.
    history = History(0, (sample(0, 0, replicas=1, produced=None, consumed=None, ready=0),))
    assert decide(Policy(0, 4, target_lag=100), history, 0).replicas == 0


def test_what_was_too_few_before_is_told_without_a_target_of_seconds() -> None:
    samples = tuple(sample(at, 10, replicas=1, produced=None, consumed=None) for at in range(0, 61, 5))
    decision = decide(Policy(1, 4, target_lag=1000), History(1, samples, Mind(too_few=2, too_few_at=50.0)), 60)
    assert (decision.replicas, decision.reason) == (4, Reason.OUT)
    assert "fewer were not enough" in decision.sentence


def test_an_even_step_beyond_the_maximum_ends_there() -> None:
    history = History(1, (sample(0, 500), sample(20, 500)))
    assert decide(Policy(1, 7, target_lag=100), history, 20).replicas == 7


def test_a_recommendation_is_a_floor_within_the_limits() -> None:
    history = History(1, (sample(0), sample(20)))
    assert decide(Policy(1, 8, target_lag=100, recommended=3), history, 20).replicas == 3
    assert decide(Policy(1, 2, target_lag=100, recommended=3), history, 20).replicas == 2
    assert decide(Policy(0, 8, target_lag=100, recommended=0), history, 20).replicas == 1
    decision = decide(Policy(1, 8, target_lag=100, recommended=3), history, 20)
    assert (decision.reason, "recommended" in decision.sentence) == (Reason.LIMITS, True)


def test_a_window_that_was_not_looked_at_in_full_changes_nothing() -> None:
    policy = Policy(1, 8, target_lag=100, out_after=10, in_after=300)
    assert decide(policy, History(2, (sample(0, 500, 2), sample(9, 500, 2))), 9).replicas == 2
    assert decide(policy, History(2, (sample(0, 500, 2), sample(11, 500, 2))), 11).replicas == 8
    assert decide(policy, History(2, (sample(0, 0, 2), sample(299, 0, 2))), 299).replicas == 2
    assert decide(policy, History(2, (sample(0, 0, 2), sample(301, 0, 2))), 301).replicas == 1


def test_a_peak_within_the_window_keeps_the_members() -> None:
    policy = Policy(1, 8, target_lag=100)
    lags = [0, 390, *([0] * 10)]
    history = History(4, tuple(sample(30.0 * n, lag, 4) for n, lag in enumerate(lags)))
    assert decide(policy, history, 330).replicas == 4
    unknown = History(4, tuple(sample(30.0 * n, None if n == 5 else 0, 4) for n in range(12)))
    assert decide(policy, unknown, 330).replicas == 4


def test_not_to_nothing_while_something_is_to_be_tried_again_or_nobody_knows() -> None:
    policy = Policy(0, 8, target_lag=100, zero_after=60)

    def after(**facts: object) -> int:
        return decide(policy, History(1, tuple(sample(10.0 * n, **facts) for n in range(8))), 70).replicas  # type: ignore[arg-type]

    assert after() == 0
    assert after(retry=1) == 1
    assert after(retry=None) == 1
    assert after(produced=None) == 1


def test_members_that_hang_are_not_taken_for_slow_ones() -> None:
    samples = tuple(sample(5.0 * n, 1000, produced=100 * n, consumed=50) for n in range(12))
    decision = decide(Policy(1, 8, target_lag=100_000), History(1, samples, Mind(rate=40.0)), 55)
    assert decision.mind.rate == 40.0


def test_the_limit_is_named_when_it_holds_a_group_back() -> None:
    history = History(4, (sample(0, 9000, 4, queues=4), sample(20, 9000, 4, queues=4)))
    decision = decide(Policy(1, 8, target_lag=100), history, 20)
    assert decision.replicas == 4
    assert "4 queues" in decision.sentence, decision.sentence
    assert decide(Policy(1, 8, target_lag=100, idle_members=True), history, 20).replicas == 8


@given(st.lists(st.floats(0.1, 400), min_size=1, max_size=400), st.floats(1, 2000))
def test_a_history_is_bounded_and_covers_its_window(gaps: list[float], longest: float) -> None:
    history, at = History(1), 0.0
    first = None
    for gap in gaps:
        at += gap
        first = at if first is None else first
        history = history.add(sample(at), longest)
        assert history.newest is not None
        assert history.newest.at == at
    assert len(history.samples) <= MOST_SAMPLES
    assert first is not None
    if at - longest >= first:
        assert history.covers(at - longest)


@pytest.mark.parametrize("again", [0.0, -5.0])
def test_what_was_read_once_is_not_counted_twice(again: float) -> None:
    history = History(1).add(sample(10), 60)
    assert history.add(sample(10 + again), 60) is history
