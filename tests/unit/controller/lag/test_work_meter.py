"""Counts of members that come, go and begin anew, as totals that only grow."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.controller.lag.work_meter import MOST_MEMBERS, WorkMeter
from rocketfleet.lag.figures import Work

works = st.builds(Work, st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))


def test_members_add_what_they_have_more_than_before() -> None:
    meter = WorkMeter().after({"a": Work(100, 50, 50)})
    assert meter.total == Work(), "what was before we looked does not count"
    meter = meter.after({"a": Work(110, 52, 51), "b": Work(3, 0, 0)})
    assert meter.total == Work(10, 2, 1)
    meter = meter.after({"b": Work(7, 4, 4)})  # a could not be asked
    meter = meter.after({"a": Work(120, 52, 51), "b": Work(7, 4, 4)})
    assert meter.total == Work(24, 6, 5)


def test_a_member_that_begins_anew_counts_from_nothing() -> None:
    meter = WorkMeter().after({"a": Work(100, 50, 50)}).after({"a": Work(5, 1, 1)})
    assert meter.total == Work(5, 1, 1)


def test_nobody_heard_is_not_nothing_done() -> None:
    assert WorkMeter().after({}).total is None


@given(st.lists(st.dictionaries(st.sampled_from("abc"), works)))
def test_totals_never_fall(heard: list[dict[str, Work]]) -> None:
    meter, before = WorkMeter(), Work()
    for said in heard:
        meter = meter.after(said)
        total = meter.total or Work()
        assert total.tried >= before.tried
        assert total.failed >= before.failed
        assert total.sent_back >= before.sent_back
        before = total


def test_members_that_are_gone_are_not_kept_for_ever() -> None:
    meter = WorkMeter()
    for number in range(0, 3 * MOST_MEMBERS, 500):
        meter = meter.after({f"pod-{number + one}": Work(1) for one in range(500)})
    assert len(meter.members) == MOST_MEMBERS
