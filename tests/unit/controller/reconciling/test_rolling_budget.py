"""Groups take turns when a new default image moves all of them."""

from dataclasses import replace

import pytest
from tests.unit.controller.model_parts import group_of

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.controller.planning.snapshot import DrainMark, Pod, PodPhase
from rocketfleet.controller.reconciling.rolling_budget import RollingBudget, has_other_image
from rocketfleet.controller.resources.pod import on_default_image

IMAGE = "worker:1"
OLD = Pod("orders-0", 0, "u0", "old", 0.0, phase=PodPhase.RUNNING, ready=True, image="worker:0")
NEW = replace(OLD, revision="new", image=IMAGE)
KEYS = [GroupKey("shop", f"g{number}") for number in range(5)]


def asked(budget: RollingBudget, key: GroupKey, *pods: Pod, counts: bool = True) -> bool:
    return budget.may_roll(key, counts, IMAGE, "new", pods)


def turns(budget: RollingBudget, *pods: Pod) -> list[bool]:
    return [asked(budget, key, *pods) for key in KEYS]


def test_so_many_hold_a_place_until_nothing_of_theirs_is_outdated() -> None:
    budget = RollingBudget(2)
    assert turns(budget, OLD, OLD) == [True, True, False, False, False]
    assert turns(budget, OLD, OLD) == [True, True, False, False, False], "they go on"
    assert asked(budget, KEYS[0], NEW, NEW)
    assert turns(budget, OLD, OLD)[2] is False, "the first took its place again: it has another new image"
    budget.forget(KEYS[0])
    assert asked(budget, KEYS[2], OLD)


def test_a_group_keeps_its_place_until_a_pod_with_the_new_image_is_ready() -> None:
    """One with a single replica has nothing outdated as soon as its pod is gone: a bad image would reach them all."""
    budget = RollingBudget(1)
    assert asked(budget, KEYS[0], OLD)
    for pods in ([], [replace(NEW, ready=False)], [replace(NEW, drain=DrainMark(0.0, "scale-in"))]):
        assert asked(budget, KEYS[0], *pods)
        assert not asked(budget, KEYS[1], OLD), pods
    assert asked(budget, KEYS[0], NEW)
    assert asked(budget, KEYS[1], OLD), "it works: the next one"


def test_a_roll_that_has_begun_goes_on_whoever_leads() -> None:
    budget = RollingBudget(1)
    assert asked(budget, KEYS[0], OLD)
    assert asked(budget, KEYS[1], NEW, OLD)
    assert asked(budget, KEYS[2], OLD, replace(OLD, drain=DrainMark(0.0, "rolling update")))
    assert not asked(budget, KEYS[3], OLD)


def test_who_does_not_take_turns_takes_no_place() -> None:
    budget = RollingBudget(1)
    assert asked(budget, KEYS[0], OLD)
    assert asked(budget, KEYS[1], OLD, counts=False)
    assert asked(budget, KEYS[0], OLD, counts=False), "its brokers are away: the place is free"
    assert asked(budget, KEYS[2], OLD)
    assert asked(budget, KEYS[3], replace(OLD, phase=PodPhase.FAILED))


def test_an_edit_of_a_manifest_waits_for_nobody() -> None:
    made = [replace(OLD, image="worker:1"), replace(OLD, image="worker:1")]
    assert not has_other_image(made, "worker:1")
    assert has_other_image([replace(OLD, image="worker:0"), *made], "worker:1")
    assert not has_other_image([replace(OLD, image="worker:0", phase=PodPhase.FAILED)], "worker:1"), "it has ended"
    assert not has_other_image([replace(OLD, image=None)], "worker:1"), "a process has none"


def test_without_a_limit_all_go() -> None:
    assert all(turns(RollingBudget(0), OLD))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, True),
        ({"worker": {"handler": "a:b", "image": "mine"}}, False),
        ({"template": {"spec": {"containers": [{"name": "consumer", "image": "mine"}]}}}, False),
        (
            {
                "engine": "Container",
                "worker": None,
                "template": {"spec": {"containers": [{"name": "consumer", "image": "mine"}]}},
            },
            False,
        ),
    ],
)
def test_only_groups_on_the_default_image_take_turns(spec: dict[str, object], expected: bool) -> None:
    assert on_default_image(group_of(**spec)) is expected
