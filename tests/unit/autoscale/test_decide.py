"""Decisions, whatever was seen: within the limits, never on missing figures, and never fewer for more lag."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.autoscale.decide import ScalingReason, decide
from rocketfleet.autoscale.history import MOST_SAMPLES, Learned, LoadHistory, LoadSample, TooFew, Trial
from rocketfleet.autoscale.policy import ScalingPolicy

counts = st.one_of(st.none(), st.integers(0, 1_000_000))
sizes = st.integers(0, 12)


@st.composite
def policies(draw: st.DrawFn) -> ScalingPolicy:
    least = draw(st.integers(0, 6))
    target_lag = draw(st.one_of(st.none(), st.integers(1, 10_000)))
    return ScalingPolicy(
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
def histories(draw: st.DrawFn, newest: bool = False) -> LoadHistory:
    """Anything at all; with `newest`, the last sample is known."""
    samples = []
    at = 1000.0
    for _ in range(draw(st.integers(1 if newest else 0, 12))):
        at += draw(st.sampled_from([1.0, 5.0, 20.0, 100.0]))
        samples.append(
            LoadSample(
                at, draw(counts), draw(st.none() | st.floats(0, 1e6)), draw(st.none() | st.integers(0, 5)),
                draw(counts), draw(counts), draw(sizes), draw(sizes), draw(st.none() | st.integers(0, 20)),
            )
        )  # fmt: skip
    if newest:
        samples[-1] = replace(samples[-1], lag=draw(st.integers(0, 1_000_000)))
    trial = draw(
        st.none() | st.builds(Trial, st.just(1000.0), st.integers(1, 5), st.integers(2, 12), st.floats(0, 1e4))
    )
    mind = Learned(draw(st.none() | st.floats(0.01, 1e5)), trial, draw(st.none() | st.integers(1, 5)), 1100.0)
    return LoadHistory(draw(sizes), tuple(samples), mind)


def end_of(history: LoadHistory) -> float:
    return history.samples[-1].at if history.samples else 1000.0


@given(policies(), histories(), st.floats(0, 1000))
def test_every_decision_is_within_the_limits_and_says_why(
    policy: ScalingPolicy, history: LoadHistory, later: float
) -> None:
    decision = decide(policy, history, end_of(history) + later)
    assert policy.least <= decision.replicas <= policy.most
    assert decision.replicas >= policy.floor
    assert decision.before == history.replicas
    assert decision.sentence
    assert decision.changes == (decision.reason not in (ScalingReason.STEADY, ScalingReason.NO_FIGURES))


@given(policies(), histories(), st.floats(0, 1000), st.sampled_from(["none", "unknown", "old"]))
def test_missing_figures_change_nothing(policy: ScalingPolicy, history: LoadHistory, later: float, gap: str) -> None:
    if gap == "none" or not history.samples:
        history = replace(history, samples=())
    elif gap == "unknown":
        history = replace(history, samples=(*history.samples[:-1], replace(history.samples[-1], lag=None)))
    else:
        later += policy.fresh + 1
    decision = decide(policy, history, end_of(history) + later)
    assert decision.replicas == policy.within(history.replicas)
    assert decision.mind == history.mind
    assert decision.reason in (ScalingReason.NO_FIGURES, ScalingReason.LIMITS)


@given(policies(), histories(newest=True), st.integers(0, 1_000_000))
def test_more_lag_never_means_fewer_replicas(policy: ScalingPolicy, history: LoadHistory, more: int) -> None:
    # Of one sample: over several, lag also tells what a member is able to do.
    last = history.samples[-1]
    mind = replace(history.mind, trial=None)
    one = LoadHistory(history.replicas, (last,), mind)
    assert last.lag is not None
    behind = LoadHistory(history.replicas, (replace(last, lag=last.lag + more),), mind)
    policy = replace(policy, out_after=0.0, in_after=0.0)
    assert decide(policy, behind, last.at).replicas >= decide(policy, one, last.at).replicas


def sample(at: float, lag: int | None = 0, replicas: int = 1, **facts: object) -> LoadSample:
    given = {"seconds": 0.0, "retry": 0, "produced": 0, "consumed": 0, "ready": replicas, "queues": 8, **facts}
    return LoadSample(at=at, lag=lag, replicas=replicas, **given)  # type: ignore[arg-type]


def test_the_larger_of_both_targets_counts() -> None:
    samples = tuple(
        sample(at, 3000, seconds=3.0, produced=int(100 * at), consumed=int(100 * at)) for at in range(0, 61, 5)
    )
    history = LoadHistory(1, samples, Learned(rate=100.0))
    by_lag = decide(ScalingPolicy(1, 8, target_lag=1000), history, 60)
    by_both = decide(ScalingPolicy(1, 8, target_lag=1000, target_seconds=6), history, 60)
    assert (by_lag.replicas, by_both.replicas) == (4, 8)
    assert by_lag.figures.demand is not None
    assert by_lag.figures.demand.by_lag == 3
    assert "3000 messages wait" in by_lag.sentence
    assert "within 6 s" in by_both.sentence


def test_a_sample_from_before_the_way_to_zero_brings_nobody_back() -> None:
    # It was taken while there was still a member, and says neither that something waits nor what came in.
    history = LoadHistory(0, (sample(0, 0, replicas=1, produced=None, consumed=None, ready=0),))
    assert decide(ScalingPolicy(0, 4, target_lag=100), history, 0).replicas == 0


def test_what_was_too_few_before_is_told_without_a_target_of_seconds() -> None:
    samples = tuple(sample(at, 10, replicas=1, produced=50 * at, consumed=50 * at) for at in range(0, 61, 5))
    mind = Learned(too_few=(TooFew(2, 50.0, 1000.0),))
    decision = decide(ScalingPolicy(1, 4, target_lag=1000), LoadHistory(1, samples, mind), 60)
    assert (decision.replicas, decision.reason) == (4, ScalingReason.OUT)
    assert "fewer were not enough" in decision.sentence


def test_what_was_too_few_before_keeps_members_where_nobody_knows_what_comes_in_and_brings_none() -> None:
    mind = Learned(too_few=(TooFew(2, 50.0, 1000.0),))
    for replicas in (1, 4):
        samples = tuple(sample(10.0 * n, 10, replicas, produced=None, consumed=None) for n in range(40))
        assert (
            decide(ScalingPolicy(1, 8, target_lag=1000), LoadHistory(replicas, samples, mind), 390).replicas == replicas
        )


def test_only_what_is_seen_proves_that_there_were_too_few() -> None:
    mind = Learned(too_few=(TooFew(2, 50.0, 1000.0),), scaled_in=50.0)
    policy = ScalingPolicy(1, 8, target_lag=1000)

    def taken_back(lag: int, rate: int) -> Learned:
        samples = tuple(sample(at, lag, 1, produced=rate * at) for at in range(0, 61, 15))
        decision = decide(policy, LoadHistory(1, samples, mind), 60)
        assert decision.reason is ScalingReason.OUT
        return decision.mind

    from_memory = taken_back(lag=0, rate=55)
    assert from_memory.too_few == mind.too_few
    assert from_memory.scaled_in is None  # the next scale-out takes nothing back
    known = taken_back(lag=4000, rate=55)
    assert known.too_few == mind.too_few
    new = taken_back(lag=4000, rate=20)
    assert [(one.replicas, one.rate) for one in new.too_few] == [(2, 50.0), (1, 20.0)]


def test_better_evidence_replaces_what_it_contains() -> None:
    mind = Learned(too_few=(TooFew(1, 90.0, 1000.0), TooFew(1, 40.0, 1000.0), TooFew(4, 200.0, 1000.0)), scaled_in=50.0)
    samples = tuple(sample(at, 4000, 2, produced=80 * at) for at in range(0, 61, 15))
    noted = decide(ScalingPolicy(1, 8, target_lag=1000), LoadHistory(2, samples, mind), 60).mind.too_few
    assert [(one.replicas, one.rate) for one in noted] == [(1, 40.0), (4, 200.0), (2, 80.0)]


def test_a_scale_in_waits_until_what_the_last_one_did_can_be_seen() -> None:
    policy = ScalingPolicy(1, 8, target_lag=100)
    before = tuple(sample(15.0 * n, 0, 4) for n in range(30))
    assert decide(policy, LoadHistory(2, (*before, sample(450, 0, 2)), Learned(rate=1.0)), 450).replicas == 2
    assert (
        decide(policy, LoadHistory(2, (*before, sample(450, 0, 2), sample(465, 0, 2)), Learned(rate=1.0)), 465).replicas
        == 1
    )


def test_an_even_step_beyond_the_maximum_ends_there() -> None:
    history = LoadHistory(1, (sample(0, 500), sample(20, 500)))
    assert decide(ScalingPolicy(1, 7, target_lag=100), history, 20).replicas == 7


def test_a_recommendation_is_a_floor_within_the_limits() -> None:
    history = LoadHistory(1, (sample(0), sample(20)))
    assert decide(ScalingPolicy(1, 8, target_lag=100, recommended=3), history, 20).replicas == 3
    assert decide(ScalingPolicy(1, 2, target_lag=100, recommended=3), history, 20).replicas == 2
    assert decide(ScalingPolicy(0, 8, target_lag=100, recommended=0), history, 20).replicas == 1
    decision = decide(ScalingPolicy(1, 8, target_lag=100, recommended=3), history, 20)
    assert (decision.reason, "recommended" in decision.sentence) == (ScalingReason.LIMITS, True)


def test_a_window_that_was_not_looked_at_in_full_changes_nothing() -> None:
    policy = ScalingPolicy(1, 8, target_lag=100, out_after=10, in_after=300)
    assert decide(policy, LoadHistory(2, (sample(0, 500, 2), sample(9, 500, 2))), 9).replicas == 2
    assert decide(policy, LoadHistory(2, (sample(0, 500, 2), sample(11, 500, 2))), 11).replicas == 8
    assert decide(policy, LoadHistory(2, (sample(0, 0, 2), sample(299, 0, 2))), 299).replicas == 2
    assert decide(policy, LoadHistory(2, (sample(0, 0, 2), sample(301, 0, 2))), 301).replicas == 1


def test_a_peak_within_the_window_keeps_the_members() -> None:
    policy = ScalingPolicy(1, 8, target_lag=100)
    lags = [0, 390, *([0] * 10)]
    history = LoadHistory(4, tuple(sample(30.0 * n, lag, 4) for n, lag in enumerate(lags)))
    assert decide(policy, history, 330).replicas == 4
    unknown = LoadHistory(4, tuple(sample(30.0 * n, None if n == 5 else 0, 4) for n in range(12)))
    assert decide(policy, unknown, 330).replicas == 4


def test_not_to_nothing_while_something_is_to_be_tried_again_or_nobody_knows() -> None:
    policy = ScalingPolicy(0, 8, target_lag=100, zero_after=60)

    def after(**facts: object) -> int:
        return decide(policy, LoadHistory(1, tuple(sample(10.0 * n, **facts) for n in range(8))), 70).replicas  # type: ignore[arg-type]

    assert after() == 0
    assert after(retry=1) == 1
    assert after(retry=None) == 1
    assert after(produced=None) == 1


def test_members_that_hang_are_not_taken_for_slow_ones() -> None:
    samples = tuple(sample(5.0 * n, 1000, produced=100 * n, consumed=50) for n in range(12))
    decision = decide(ScalingPolicy(1, 8, target_lag=100_000), LoadHistory(1, samples, Learned(rate=40.0)), 55)
    assert decision.mind.rate == 40.0


def test_the_limit_is_named_when_it_holds_a_group_back() -> None:
    history = LoadHistory(4, (sample(0, 9000, 4, queues=4), sample(20, 9000, 4, queues=4)))
    decision = decide(ScalingPolicy(1, 8, target_lag=100), history, 20)
    assert decision.replicas == 4
    assert "4 queues" in decision.sentence, decision.sentence
    assert decide(ScalingPolicy(1, 8, target_lag=100, idle_members=True), history, 20).replicas == 8


@given(st.lists(st.floats(0.1, 400), min_size=1, max_size=400), st.floats(1, 2000))
def test_a_history_is_bounded_and_covers_its_window(gaps: list[float], longest: float) -> None:
    history, at = LoadHistory(1), 0.0
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
    history = LoadHistory(1).add(sample(10), 60)
    assert history.add(sample(10 + again), 60) is history


ASLEEP = ScalingPolicy(0, 4, target_lag=100)


def unknown(at: float, **facts: object) -> LoadSample:
    """A look at a group at nothing that leaves something unknown."""
    nothing = {"seconds": None, "retry": None, "produced": None, "consumed": None}
    return sample(at, None, replicas=0, **{**nothing, **facts})


def test_a_group_at_nothing_wakes_for_what_is_known_to_wait() -> None:
    decision = decide(ASLEEP, LoadHistory(0, (unknown(0), unknown(15, at_least=3))), 15)
    assert (decision.replicas, decision.reason) == (1, ScalingReason.FROM_ZERO)
    assert "at least 3 messages wait" in decision.sentence
    assert decide(ASLEEP, LoadHistory(0, (unknown(0, at_least=350),)), 0).replicas == 4
    assert decide(replace(ASLEEP, most=2), LoadHistory(0, (unknown(0, at_least=350),)), 0).replicas == 2


def test_a_group_at_nothing_wakes_for_a_queue_that_grows_though_its_lag_is_not_known() -> None:
    quiet = LoadHistory(0, (unknown(0, arrived=7), unknown(15, arrived=7)))
    assert decide(ASLEEP, quiet, 15).replicas == 0
    grown = LoadHistory(0, (unknown(0, arrived=7), unknown(15, arrived=9)))
    decision = decide(ASLEEP, grown, 15)
    assert (decision.replicas, decision.reason) == (1, ScalingReason.FROM_ZERO)
    assert "2 messages came in" in decision.sentence


def test_what_came_in_while_there_were_members_wakes_nobody() -> None:
    before = sample(0, 0, replicas=2, arrived=3)
    assert decide(ASLEEP, LoadHistory(0, (before, unknown(15, arrived=9), unknown(30, arrived=9))), 30).replicas == 0


def test_a_group_that_is_not_at_nothing_still_holds_when_its_lag_is_not_known() -> None:
    held = LoadHistory(
        2, (replace(unknown(0, at_least=9000), replicas=2), replace(unknown(15, at_least=9000), replicas=2))
    )
    assert decide(ASLEEP, held, 15).replicas == 2
    old = LoadHistory(0, (unknown(0, at_least=3),))
    assert decide(ASLEEP, old, ASLEEP.fresh + 1).replicas == 0


@given(policies(), histories(), st.integers(1, 1000), st.integers(0, 20))
def test_what_is_known_to_wait_always_wakes_a_group_that_may_be_woken(
    policy: ScalingPolicy, history: LoadHistory, waits: int, queues: int
) -> None:
    policy = replace(policy, least=0, recommended=None)
    end = end_of(history)
    asleep = LoadHistory(0, (*history.samples, unknown(end + 1, at_least=waits, queues=queues)), history.mind)
    assert 1 <= decide(policy, asleep, end + 1).replicas <= policy.most


def steadily(policy: ScalingPolicy, replicas: int, lag: int, queues: int = 8, mind: Learned | None = None) -> str:
    """What is said after half an hour in which nothing changed."""
    samples = tuple(sample(at, lag, replicas=replicas, queues=queues, seconds=1.0) for at in range(0, 1801, 15))
    decision = decide(policy, LoadHistory(replicas, samples, mind or Learned()), 1800)
    assert decision.replicas == replicas
    return decision.sentence


def test_at_the_maximum_it_is_not_said_that_more_will_come() -> None:
    # 3 are called for, and 4 would have even shares of 8 queues; but 3 is the maximum.
    assert steadily(ScalingPolicy(1, 3, target_lag=100), 3, 274).endswith("; 4 are called for, but maxReplicas is 3")
    assert steadily(ScalingPolicy(1, 3, target_lag=100), 3, 900).endswith("; 9 are called for, but maxReplicas is 3")
    assert steadily(ScalingPolicy(1, 9, target_lag=100), 2, 900, queues=2).endswith("but there are only 2 queues")
    ceiling = Learned(ceiling=3, ceiling_until=2400.0)
    assert "more did not help" in steadily(ScalingPolicy(1, 8, target_lag=100), 3, 274, mind=ceiling)


def test_what_a_scale_in_would_not_do_is_not_promised() -> None:
    # With the margin that a scale-in leaves, 2 are called for: it stays, and says nothing of fewer.
    assert "called for" not in steadily(ScalingPolicy(1, 8, target_lag=100), 2, 95)
    assert "would be enough" not in steadily(ScalingPolicy(1, 8, target_lag=100), 2, 95)


@given(policies(), histories(newest=True), st.floats(0, 60))
def test_a_number_that_is_called_for_not_yet_is_within_the_limits(
    policy: ScalingPolicy, history: LoadHistory, later: float
) -> None:
    decision = decide(policy, history, end_of(history) + later)
    for number in re.findall(r"; (\d+) are called for, not yet", decision.sentence):
        assert decision.replicas < int(number) <= policy.limit(decision.figures.queues)
    for number in re.findall(r"; (\d+) would be enough", decision.sentence):
        assert policy.floor <= int(number) < decision.replicas
