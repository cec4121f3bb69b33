"""Each rule, what breaks it and what does not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lag import recorded
from tests.unit.lag.making import STEP, moment, over_time, queue, window

from rocketfleet.lag.judging.rules import LagFinding, RuleLimits, judge
from rocketfleet.lag.judging.rules.growing import growing
from rocketfleet.lag.judging.rules.idle_member import idle_member
from rocketfleet.lag.judging.rules.rewound import rewound
from rocketfleet.lag.judging.rules.skewed import skewed
from rocketfleet.lag.judging.rules.stalled import stalled
from rocketfleet.lag.judging.rules.stopped import stopped
from rocketfleet.lag.judging.rules.unread import unread
from rocketfleet.lag.judging.window import Window

HUNG = [[(5, 20 + 5 * number)] for number in range(6)]
places = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), min_size=1, max_size=4)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Any few looks at a few queues: ends only grow, offsets do as they like, members come and go."""
    count = draw(st.integers(1, 4))
    ends = [0] * count
    moments = []
    for number in range(draw(st.integers(0, 9))):
        ends = [end + draw(st.integers(0, 30)) for end in ends]
        here = [(draw(st.integers(0, end)), end) for end in ends]
        members = draw(st.none() | st.lists(st.sampled_from(["a", "b", "c"]), unique=True))
        owners = [draw(st.sampled_from([None, "a", "b"])) for _ in ends]
        unread = [place for place in range(count) if draw(st.integers(0, 9)) == 0]
        moments.append(moment(here, 1000.0 + 30 * number, members=members, owners=owners, unread=unread))
    return window(*moments)


# -- the rules --------------------------------------------------------------------------------------------------------


def test_a_hanging_handler_is_stalled_and_not_stopped() -> None:
    hung = over_time(*HUNG)
    (verdict,) = stalled(hung)
    assert (verdict.state, verdict.queue) == (LagFinding.STALLED, queue(0))
    assert "2 minutes" in verdict.sentence
    assert "40 messages" in verdict.sentence
    assert stopped(hung) == []


def test_without_members_the_same_is_stopped_and_not_stalled() -> None:
    gone = over_time(*HUNG, members=())
    (verdict,) = stopped(gone)
    assert (verdict.state, verdict.queue) == (LagFinding.STOPPED, None)
    assert "no member" in verdict.sentence
    assert stalled(gone) == []


def test_where_members_are_not_known_a_group_that_moves_nowhere_has_stopped() -> None:
    assert judge(over_time(*HUNG, members=None)).state is LagFinding.STOPPED
    elsewhere = over_time(*[[(5, 20), (number, 50)] for number in range(6)], members=None)
    assert judge(elsewhere).state is LagFinding.STALLED


def test_who_was_at_the_end_within_the_window_is_accused_of_nothing() -> None:
    since = [[(20, 20 + 5 * number)] for number in range(6)]
    assert judge(over_time(*since)).state is LagFinding.OK
    assert judge(over_time(*since, members=())).state is LagFinding.OK
    assert judge(over_time(*since[1:])).state is LagFinding.STALLED


def test_growing_means_that_it_never_falls() -> None:
    slow = over_time(*[[(number * 5, 10 + number * 8)] for number in range(6)])
    (verdict,) = growing(slow)
    assert verdict.state is LagFinding.GROWING
    assert "from 10 to 25 messages" in verdict.sentence
    dips = over_time(*[[(number * 5, 10 + number * 8)] for number in range(4)], [(30, 42)], [(31, 60)])
    assert growing(dips) == []
    steady = over_time(*[[(number * 5, 10 + number * 5)] for number in range(6)])
    assert growing(steady) == []


def test_what_has_just_come_in_is_not_a_growing_lag() -> None:
    fast = [[(100 * number, 100 * number + lag)] for number, lag in enumerate([1, 1, 2, 5, 21])]
    assert growing(over_time(*fast)) == []
    ends = [101, 201, 302, 405, 521]  # the same ends
    assert growing(over_time(*[[(end - lag, end)] for end, lag in zip(ends, [1, 1, 2, 5, 219], strict=True)])) == []
    (verdict,) = growing(over_time(*[[(end - lag, end)] for end, lag in zip(ends, [1, 1, 2, 5, 220], strict=True)]))
    assert "from 1 to 220 messages" in verdict.sentence


def test_what_may_only_not_be_committed_yet_is_not_a_growing_lag() -> None:
    places = [(100, 101), *[(110, 120 + 10 * second) for second in range(8)]]  # a commit, and none for a while
    looks = [moment([place], 1000.0 + second) for second, place in enumerate(places)]
    assert growing(window(*looks[:7])) == []
    (verdict,) = growing(window(*looks))
    assert "from 1 to 80 messages" in verdict.sentence


def test_a_rewind_counts_until_it_is_made_up_for() -> None:
    back = over_time([(10, 30)], [(20, 30)], [(4, 30)])
    (verdict,) = rewound(back)
    assert "from 20 to 4" in verdict.sentence
    assert rewound(over_time([(10, 30)], [(20, 30)], [(4, 30)], [(12, 30)])) != []
    assert rewound(over_time([(10, 30)], [(20, 30)], [(4, 30)], [(20, 30)])) == []
    assert rewound(over_time([(10, 30)], [(20, 30)], [(4, 4)])) == [], "the topic was made again"


def test_skew_of_a_queue() -> None:
    heavy = over_time(*[[(number, 100 + number), (number, 20 + number), (number, 20), (0, 30)] for number in range(6)])
    assert [verdict.queue for verdict in skewed(heavy)] == [queue(0)]
    two = over_time(*[[(0, 200), (0, 10)]] * 6)
    assert skewed(two) == [], "of two queues one always has half"
    small = over_time(*[[(0, 40), (0, 1), (0, 1), (0, 1)]] * 6)
    assert skewed(small) == [], "a small backlog is no skew"
    turns = over_time(
        *[[(0, 200 * (number % 2)), (0, 200 * ((number + 1) % 2)), (0, 9), (0, 9)] for number in range(6)]
    )
    assert skewed(turns) == [], "it is another queue each time"


def test_skew_of_a_member() -> None:
    owners = ["slow", "slow", "slow", "b", "c", "d", "e"]
    lags = [(0, 60), (0, 60), (0, 60), (0, 9), (0, 9), (0, 9), (0, 9)]
    (verdict,) = skewed(over_time(*[lags] * 6, owners=owners))
    assert (verdict.queue, verdict.member) == (None, "slow")


def test_an_idle_member_has_never_had_a_queue() -> None:
    places = [(5, 5), (5, 5)]
    idle = over_time(*[places] * 5, owners=["a", "a"], members=("a", "b"))
    assert [verdict.member for verdict in idle_member(idle)] == ["b"]
    assert judge(idle).state is LagFinding.IDLE_MEMBER
    full = over_time(*[places] * 5, owners=["a", "b"], members=("a", "b", "c"))
    assert "3 members and 2 queues" in idle_member(full)[0].sentence
    assert idle_member(over_time(*[places] * 5, members=("a", "b"))) == [], "owners are not known"
    joins = window(
        *(moment(places, 1000.0 + 30 * n, owners=["a", "a"], members=("a", "b") if n else ("a",)) for n in range(5))
    )
    assert idle_member(joins) == []


def test_old_figures_are_no_verdict() -> None:
    assert judge(Window()).state is LagFinding.UNKNOWN
    fresh, late = moment([(5, 5), (8, 9)], 1000.0), moment([(5, 5), (8, 9)], 1030.0)
    kept = replace(late, queues=(late.queues[0], fresh.queues[1]))
    assert unread(window(fresh, kept)) == [], "once is no habit"
    twice = window(fresh, kept, replace(kept, observed_at=1060.0))
    assert judge(twice).state is LagFinding.UNKNOWN
    assert "of 2 queues" in judge(twice).sentence
    assert "broker-a" in judge(twice).sentence
    assert judge(over_time([(5, 5), (1, 9)], unread=[1])).state is LagFinding.UNKNOWN, "it was never read"
    never = over_time([(None, 9)])
    assert judge(never).state is LagFinding.UNKNOWN


# -- who is not accused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("members", [("m",), (), None])
def test_nobody_is_accused_on_too_few_looks(members: tuple[str, ...] | None) -> None:
    assert judge(over_time(*HUNG[:4], members=members)).state is LagFinding.OK
    assert judge(over_time(*HUNG[:5], members=members)).state is not LagFinding.OK


def test_a_group_that_was_reset_is_not_accused() -> None:
    back = over_time([(10, 30)], [(20, 30)])
    made = back.reset(1045.0)
    made = made.after(moment([(2, 30)], 1060.0))
    assert judge(made).state is LagFinding.OK
    assert judge(over_time([(10, 30)], [(20, 30)], [(2, 30)])).state is LagFinding.REWOUND


def test_a_group_that_just_started_is_not_accused_but_not_for_ever() -> None:
    stood = [moment([(5, 40)], 1000.0 + 30 * number, members=()) for number in range(6)]
    assert judge(window(*stood)).state is LagFinding.STOPPED
    starts = [*stood, *(moment([(5, 40)], 1180.0 + 30 * number) for number in range(4))]
    assert judge(window(*starts)).state is LagFinding.OK
    starts.append(moment([(5, 40)], 1180.0 + 30 * 4))
    assert judge(window(*starts)).state is LagFinding.STALLED
    flapping = [moment([(5, 40)], 1000.0 + 30 * number, members=("m",) if number % 2 else ()) for number in range(12)]
    assert judge(window(*flapping)).state is not LagFinding.OK, "members that come and go are no excuse"


# -- properties -------------------------------------------------------------------------------------------------------


@given(windows())
def test_the_worst_finding_is_the_groups(made: Window) -> None:
    verdict = judge(made)
    assert verdict.sentence
    if verdict.verdicts:
        assert verdict.state is verdict.verdicts[0].state
        assert verdict.state.severity == max(one.state.severity for one in verdict.verdicts)
    else:
        assert verdict.state is LagFinding.OK


@given(windows())
def test_accusations_of_lag_need_lag_now_and_enough_looks(made: Window) -> None:
    limits = RuleLimits(moments=3)
    for verdict in judge(made, limits).verdicts:
        if verdict.state in (LagFinding.STALLED, LagFinding.STOPPED, LagFinding.GROWING, LagFinding.SKEWED):
            assert len(made.judged) >= 3
            assert made.latest is not None
            assert made.latest.at_least > 0
        if verdict.queue is not None and verdict.state is not LagFinding.SKEWED:
            track = made.tracks[verdict.queue, verdict.member]
            assert (track[-1].lag or 0) > 0


@given(windows())
def test_stopped_and_stalled_exclude_each_other(made: Window) -> None:
    states = {verdict.state for verdict in judge(made, RuleLimits(moments=2)).verdicts}
    assert not {LagFinding.STOPPED, LagFinding.STALLED} <= states


@given(windows())
def test_a_reset_silences_everything_but_the_unknown(made: Window) -> None:
    verdict = judge(made.reset(1e9), RuleLimits(moments=2))
    assert verdict.state in (LagFinding.OK, LagFinding.UNKNOWN)


@given(windows(), st.integers(1, 10))
def test_a_window_stays_within_its_size_and_in_order(made: Window, size: int) -> None:
    again = Window(size=size)
    for one in made.moments:
        again = again.after(one)
    assert len(again.moments) == min(size, len(made.moments))
    assert again.moments == made.moments[-len(again.moments) :] or not made.moments


def test_members_that_come_slowly_after_a_reset_are_given_their_time() -> None:
    """Excused once before, and reset since: those who come now have not been judged yet."""
    nobody = [moment([(5, 9)], 1000.0 + STEP * number, members=()) for number in range(2)]
    come = [moment([(5, 9)], 1060.0 + STEP * number) for number in range(2)]
    before = window(*nobody, *come)
    assert before.excused
    rested = before.reset(1130.0)
    for number in range(4):  # pods take their time
        rested = rested.after(moment([(5, 99)], 1140.0 + STEP * number, members=()))
    rested = rested.after(moment([(5, 99)], 1140.0 + STEP * 4))
    assert judge(rested).state is LagFinding.OK


def test_no_sentence_begins_with_a_name() -> None:
    """It is put into a condition with a capital letter, and orders is not Orders."""
    for path in recorded.DIRECTORY.glob("*.json"):
        found, _ = recorded.load(path)
        for verdict in judge(found, recorded.LIMITS).verdicts:
            first = verdict.sentence.split()[0]
            assert first.isalpha() or first.isdigit(), verdict.sentence
            assert verdict.queue is None or first != verdict.queue.topic
