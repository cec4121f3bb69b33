"""The autoscaler on a simulated group: it converges, stays, holds when blind, and takes back what is in vain."""

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from tests.unit.autoscale.model_group import EDGE, ModelGroup

from rocketfleet.autoscale.decide import ScalingReason
from rocketfleet.autoscale.policy import ScalingPolicy


def test_a_load_step_is_met_before_the_target_is_broken_and_taken_back_after_it() -> None:
    group = ModelGroup(ScalingPolicy(1, 8, target_seconds=60))
    group.run(60, 50)
    assert group.path() == []
    group.run(300, 330)
    assert group.replicas == 8 or group.replicas * 100 >= 330
    assert group.oldest < 60
    assert group.lag < 330 * 10
    group.run(900, 50)
    assert group.replicas == 1
    assert [decision.reason for decision in group.decisions if decision.reason is ScalingReason.UNDONE] == []


def test_to_nothing_when_there_is_nothing_to_do_and_back_at_the_first_message() -> None:
    group = ModelGroup(ScalingPolicy(0, 8, target_lag=1000, zero_after=120), replicas=2)
    group.run(60, 20)
    group.run(400, 0)
    assert group.replicas == 0
    group.run(6, 1)
    assert group.replicas == 1
    assert [decision.reason for decision in group.decisions[-2:]] == [ScalingReason.TO_ZERO, ScalingReason.FROM_ZERO]


def test_a_message_that_is_to_be_tried_again_brings_a_member_back() -> None:
    group = ModelGroup(ScalingPolicy(0, 8, target_lag=1000, zero_after=60), replicas=0)
    group.run(60, 0)
    assert group.replicas == 0
    group.retry = 1
    group.run(10, 0)
    assert group.replicas == 1
    group.run(300, 0)
    assert group.replicas == 1  # it still waits
    group.retry = 0
    group.run(200, 0)
    assert group.replicas == 0


@pytest.mark.parametrize("cause", ["downstream", "hot queue"])
def test_a_scale_out_that_does_not_help_is_taken_back_and_remembered(cause: str) -> None:
    if cause == "downstream":
        group = ModelGroup(ScalingPolicy(1, 8, target_seconds=60), replicas=1, downstream=100)
    else:
        group = ModelGroup(ScalingPolicy(1, 8, target_seconds=60), replicas=1, hot=0.95)
    group.run(300, 200)
    undone = [decision for decision in group.decisions if decision.reason is ScalingReason.UNDONE]
    assert len(undone) == 1, group.path()
    assert group.replicas == 1
    assert "hardly more" in undone[0].sentence
    group.run(500, 200)
    assert group.replicas == 1  # it is remembered
    group.run(600, 200)
    assert any(decision.reason is ScalingReason.OUT and decision.at > undone[0].at for decision in group.decisions)


def test_when_the_lag_cannot_be_read_nothing_changes() -> None:
    group = ModelGroup(ScalingPolicy(1, 8, target_seconds=60, target_lag=100), replicas=2)
    group.run(20, 50)
    group.blind = True
    group.run(2000, 900)
    assert group.path() == []
    group.blind = False
    group.run(60, 900)
    assert group.replicas > 2


def test_a_target_that_is_missed_before_anything_is_learnt_does_not_make_it_swing() -> None:
    # One member falls behind so quickly that it is never seen to have had plenty to do for a whole stretch.
    group = ModelGroup(ScalingPolicy(1, 8, target_lag=500, in_after=120), queues=3, per_member=162)
    group.run(600, 314)
    settled = len(group.decisions)
    group.run(900, 314)
    assert len(group.decisions) == settled, group.path()
    group.run(600, 20)  # less comes in, and what was too few is enough
    assert group.replicas == 1


@settings(max_examples=20, deadline=None, phases=set(Phase) - {Phase.explain})
@given(
    load=st.floats(5, 900),
    queues=st.integers(1, 24),
    per_member=st.floats(20, 300),
    target=st.one_of(
        st.fixed_dictionaries({"target_seconds": st.floats(20, 300)}),
        st.fixed_dictionaries({"target_lag": st.integers(500, 50_000)}),
        st.fixed_dictionaries({"target_seconds": st.floats(20, 300), "target_lag": st.integers(500, 50_000)}),
    ),
    start=st.integers(1, 8),
    interval=st.sampled_from([2.0, 5.0, 10.0]),
)
@example(load=644, queues=11, per_member=175, target={"target_lag": 500}, start=2, interval=5.0)
def test_a_constant_load_finds_its_number_and_stays_with_it(
    load: float, queues: int, per_member: float, target: dict[str, float], start: int, interval: float
) -> None:
    policy = ScalingPolicy(1, 8, in_after=120, **target)  # type: ignore[arg-type]
    group = ModelGroup(policy, queues=queues, per_member=per_member, replicas=start, interval=interval)
    group.run(1200, load)
    settled = len(group.decisions)
    group.run(600, load)
    late = group.decisions[settled:]
    if any(abs(load / group.capacity(number) - 1) <= EDGE for number in range(1, min(8, queues) + 1)):
        # So nearly full, members fall behind so slowly that it shows later. But each number is given up only once.
        group.run(4 * 3600, load)
        given_up = [one.before for one in group.decisions[settled:] if one.replicas > one.before]
        assert len(given_up) == len(set(given_up)), f"{group.path()}: {group.decisions[-1].sentence}"
    else:
        assert late == [], f"{group.path()}: {late[-1].sentence}"
    busiest = -(-queues // min(group.replicas, queues))
    able = group.replicas * per_member if group.replicas <= queues else queues * per_member
    feasible = min(8, queues) * per_member * 0.8
    if load < feasible and load * busiest / queues < per_member:
        assert able >= load
        assert group.lag < max(load * 30, policy.target_lag or 0)
