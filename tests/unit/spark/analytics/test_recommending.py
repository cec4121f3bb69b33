"""How many members and queues a group needs, from what comes in and what a member does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.spark.analytics.making import group, hour

from rocketfleet.spark.analytics.recommending import recommend

BUSY = {"busy_rate": 100.0, "busy_windows": 50, "shown_rate": 90.0}


def test_the_peak_of_each_hour_over_what_a_member_does() -> None:
    hours = (hour(10), hour(80), hour(81), hour(300), *(None,) * 20)
    advice = recommend(group(hours=hours, **BUSY))
    # A member does 100 and is planned with at four fifths; of 8 queues, 4 have even shares and 3 have not.
    assert advice.needed[:4] == (1, 1, 2, 4)
    assert advice.members[:4] == (1, 1, 2, 4)
    assert advice.members[4:] == (None,) * 20, "hours that were never seen"
    assert advice.learnt == "busy"
    assert advice.queues_to_add == 0
    assert advice.why == "up to 300 per second come in, and a member does 100 per second"


def test_uneven_shares_are_rounded_up_as_the_autoscaler_does() -> None:
    advice = recommend(group(hours=(hour(200),) * 24, **BUSY))
    assert set(advice.needed) == {3}
    assert set(advice.members) == {4}


def test_an_hour_without_traffic_needs_nobody() -> None:
    assert recommend(group(hours=(hour(0.0),) * 24, **BUSY)).members == (0,) * 24


def test_queues_are_to_be_added_where_there_are_fewer_than_members_needed() -> None:
    advice = recommend(group(queues=4, hours=(hour(700), *(hour(100),) * 23), **BUSY))
    assert advice.needed[0] == 9
    assert advice.members[0] == 4
    assert advice.queues_to_add == 5
    assert "that takes 9 members, and there are 4 queues. Add 5 queues" in advice.why


def test_a_queue_that_gets_more_than_a_member_does_is_said() -> None:
    advice = recommend(group(hours=(hour(240),) * 24, produce_skew=4.0, **BUSY))
    assert "one queue gets 120 of them, more than any one member does" in advice.why
    even = recommend(group(hours=(hour(240),) * 24, produce_skew=1.1, **BUSY))
    assert "spread its keys" not in even.why


def test_members_that_were_never_busy_are_not_asked_for_more_than_kept_up() -> None:
    advice = recommend(group(shown_rate=20.0, hours=(hour(100, members=3),) * 24))
    assert advice.learnt == "shown"
    assert set(advice.needed) == {3}, "by their rate it would be 7, but 3 kept up"
    assert "a member does at least 20 per second" in advice.why


def test_a_few_busy_windows_may_be_a_restart_and_teach_nothing() -> None:
    advice = recommend(group(busy_rate=5.0, busy_windows=2, shown_rate=60.0, hours=(hour(100),) * 24))
    assert (advice.member_rate, advice.learnt) == (60.0, "shown")


def test_members_held_up_by_something_teach_nothing() -> None:
    advice = recommend(group(busy_rate=8.0, busy_windows=9, shown_rate=60.0, hours=(hour(100),) * 24))
    assert (advice.member_rate, advice.learnt) == (60.0, "shown")
    assert set(advice.members) == {2}, "as many as there were"


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"shared": True, **BUSY}, "broadcasting"), ({"shown_rate": None}, "nobody was seen consuming")],
)
def test_where_nothing_can_be_recommended_it_is_said_why(changes: dict[str, object], said: str) -> None:
    advice = recommend(group(hours=(hour(100),) * 24, **changes))
    assert advice.members == (None,) * 24
    assert said in advice.why


@given(
    peak=st.just(0.0) | st.floats(1e-3, 1e6),
    rate=st.floats(0.1, 1e5),
    queues=st.integers(1, 500),
    members=st.integers(0, 50),
    busy=st.booleans(),
)
def test_never_more_members_than_queues_and_never_too_few_without_saying_so(
    peak: float, rate: float, queues: int, members: int, busy: bool
) -> None:
    learnt = {"busy_rate": rate, "busy_windows": 9} if busy else {"shown_rate": rate}
    advice = recommend(group(queues=queues, hours=(hour(peak, members),) * 24, **learnt))
    many, needed = advice.members[0], advice.needed[0]
    assert many is not None
    assert needed is not None
    assert 0 <= many <= queues
    assert many == queues or many >= needed
    assert advice.queues_to_add == max(0, needed - queues)
    if busy:
        assert needed * rate >= peak * (1 - 1e-6), "so many members take what comes in"
