"""Two releases over the same groups: one stands back."""

from tests.support.clock import Clock

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.controller.operator.rivals import STAND_BACK, Rival, Rivals

KEY = GroupKey("shop", "orders")


def test_a_name_that_was_there_before_proves_nothing() -> None:
    rivals = Rivals("b/rf", Clock(0.0))
    for named in (None, "", "a/rf", "b/rf"):
        assert rivals.met(KEY, named) is None


def test_what_was_seen_in_an_earlier_term_proves_nothing() -> None:
    """Between two terms the group may have been another release's, by its class."""
    rivals = Rivals("b/rf", Clock(0.0))
    assert rivals.met(KEY, "b/rf") is None
    rivals.clear()
    assert rivals.met(KEY, "a/rf") is None


def test_who_sorts_first_goes_on_and_the_other_stands_back_for_a_while() -> None:
    clock = Clock(0.0)
    first, second = Rivals("a/rf", clock), Rivals("b/rf", clock)
    for rivals, me in ((first, "a/rf"), (second, "b/rf")):
        assert rivals.met(KEY, me) is None
    assert first.met(KEY, "b/rf") == Rival("b/rf", leave=False)
    assert second.met(KEY, "a/rf") == Rival("a/rf", leave=True)
    assert second.met(GroupKey("shop", "others"), "a/rf") is None, "each group by itself"
    clock.now = STAND_BACK - 1
    assert second.met(KEY, "a/rf") == Rival("a/rf", leave=True)
    clock.now = STAND_BACK
    assert second.met(KEY, "a/rf") is None, "the first may have gone"
    assert second.met(KEY, "b/rf") is None
    assert second.met(KEY, "a/rf") == Rival("a/rf", leave=True), "it has not"
