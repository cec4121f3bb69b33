"""Whatever the group and however rarely we look: a constant load finds its number, and another load another one.

Random groups by the hundred, each from its own seed, so that a failure names the group to look at.
"""

from random import Random

import pytest
from tests.unit.autoscale.model_group import EDGE, ModelGroup

from rocketfleet.autoscale.decide import DOUBT, ScalingReason
from rocketfleet.autoscale.policy import ScalingPolicy

HOUR = 3600.0
SWEEPS = ((5.0, 10), (10.0, 15), (15.0, 50), (30.0, 30), (60.0, 30))  # seconds, and how many groups
FRESH = 4  # sweeps, as the operator has it


def group_of(seed: int, interval: float, highest: float = 1.2) -> tuple[ModelGroup, float]:
    """A group and a load for it, up to `highest` times what its members could do at most."""
    random = Random(seed)
    lag, seconds = int(10 ** random.uniform(2.5, 4.5)), random.uniform(20, 300)
    target: dict[str, float] = random.choice(
        [{"target_lag": lag}, {"target_lag": lag, "target_seconds": seconds}, {"target_seconds": seconds}]
    )
    in_after = random.choice([120.0, 300.0])
    policy = ScalingPolicy(1, 8, in_after=in_after, fresh=FRESH * interval, **target)  # type: ignore[arg-type]
    group = ModelGroup(
        policy,
        queues=random.randint(1, 24),
        per_member=random.uniform(20, 600),
        start_seconds=random.choice([2.0, 4.0, 10.0, 30.0]),
        interval=interval,
        replicas=random.randint(1, 8),
    )
    full = [group.capacity(replicas) for replicas in range(1, min(8, group.queues) + 1)]
    while True:
        load = random.uniform(0.05, highest) * full[-1]
        if all(abs(load / able - 1) > EDGE for able in full):
            return group, load


@pytest.mark.parametrize(("interval", "groups"), SWEEPS)
def test_under_a_constant_load_it_comes_to_rest(interval: float, groups: int) -> None:
    for seed in range(groups):
        group, load = group_of(seed, interval)
        group.run(HOUR, load)
        settled = len(group.decisions)
        assert settled <= 10, f"seed {seed}: {group.path()}"
        assert sum(decision.replicas > decision.before for decision in group.decisions) <= 4, f"seed {seed}"
        group.run(HOUR, load)
        assert len(group.decisions) == settled, f"seed {seed}: {group.path()}: {group.decisions[-1].sentence}"


@pytest.mark.parametrize(("interval", "groups"), [(5.0, 8), (15.0, 25), (60.0, 25)])
def test_a_load_that_falls_to_a_third_lets_members_go(interval: float, groups: int) -> None:
    fewer = 0
    for seed in range(groups):
        group, load = group_of(seed, interval, highest=0.9)
        group.run(HOUR, load)
        before = group.replicas
        group.run(HOUR, load / 3)
        enough = next(n for n in range(1, 9) if group.capacity(n) >= 2 * load / 3)
        if enough < before:  # twice as much as is needed, and still fewer
            assert group.replicas < before, f"seed {seed}: {group.path()}"
            fewer += 1
        assert group.capacity(group.replicas) > load / 3, f"seed {seed}: {group.path()}"
    assert fewer > groups / 3


@pytest.mark.parametrize(("interval", "groups"), [(5.0, 8), (15.0, 25), (60.0, 25)])
def test_a_load_that_doubles_brings_members(interval: float, groups: int) -> None:
    more = 0
    for seed in range(groups):
        group, load = group_of(seed, interval, highest=0.45)
        group.run(HOUR, load)
        before = group.replicas
        group.run(HOUR / 2, 2 * load)
        assert group.capacity(group.replicas) > 2 * load, f"seed {seed}: {group.path()}"
        more += group.replicas > before
    assert more > groups / 3


def quick_group(interval: float = 15.0) -> ModelGroup:
    """Two of its members fall behind and four have caught up, each before a look has shown what a member does."""
    policy = ScalingPolicy(1, 8, target_lag=1000, fresh=FRESH * interval)
    return ModelGroup(policy, per_member=400, interval=interval, replicas=4)


def test_a_scale_in_that_was_taken_back_is_not_tried_again_under_the_same_load() -> None:
    group = quick_group()
    group.run(2 * HOUR, 1014)
    assert [decision.reason for decision in group.decisions] == [ScalingReason.IN, ScalingReason.OUT]
    assert group.path() == [2, 4]
    assert group.history.mind.rate is None  # nothing better was learnt
    assert [(one.replicas, round(one.rate)) for one in group.history.mind.too_few] == [(2, 1014)]


@pytest.mark.parametrize("interval", [5.0, 15.0, 60.0])
def test_what_was_too_few_is_enough_for_less(interval: float) -> None:
    group = quick_group(interval)
    group.run(HOUR, 1014)
    assert group.replicas == 4
    group.run(HOUR, 338)
    assert group.replicas == 1
    group.run(60 + 2 * interval, 1014)
    assert group.replicas >= 4


def test_what_was_too_few_is_tried_again_after_some_hours() -> None:
    group = quick_group()
    group.run(HOUR, 1014)
    group.per_member = 1000
    group.run(DOUBT - HOUR, 1014)
    assert group.replicas == 4
    group.run(2 * HOUR, 1014)
    assert group.replicas == 2  # one would be full, and fall behind
