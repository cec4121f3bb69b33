"""How handlers get on: from counts of members, or from what the brokers alone can tell."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lag.making import STEP, moment, window

from rocketfleet.lag.figures import GroupLag, Work
from rocketfleet.lag.judging.handling import LONGEST_DELAY, SPAN, Handling
from rocketfleet.lag.judging.rules import DEFAULT_LIMITS, LagFinding, judge
from rocketfleet.lag.judging.window import Window


def at(number: float, offset: int = 0, *, work: Work | None = None, **more: object) -> GroupLag:
    """A look at a group without lag."""
    return replace(moment([(offset, offset)], 1000.0 + STEP * number, **more), work=work)  # type: ignore[arg-type]


def seen(*moments: GroupLag) -> tuple[Handling, list[GroupLag]]:
    handling, known = Handling(), []
    for one in moments:
        handling, told = handling.after(one)
        known.append(told)
    return handling, known


def judged(*moments: GroupLag) -> Window:
    return window(*seen(*moments)[1])


def failing(times: int, per_step: int = 10, failed: int = 10) -> list[GroupLag]:
    """A group of ours whose handlers fail so many of their attempts, at each look."""
    return [
        at(
            number, number * per_step, retry_end=0, retry_done=0, dlq_end=0,
            work=Work(number * per_step, number * failed, number * failed),
        )
        for number in range(times)
    ]  # fmt: skip


def test_a_group_whose_every_message_fails_has_no_lag_and_is_failing() -> None:
    found = judge(judged(*failing(5)))
    assert found.state is LagFinding.FAILING
    assert (
        found.sentence == "the handlers failed in 20 of their last 20 attempts, and 40 messages wait for their next try"
    )
    assert judge(judged(*failing(4))).state is LagFinding.OK, "nobody is accused on four looks"


def test_messages_given_up_are_named_beside_the_attempts_that_failed() -> None:
    looks = [replace(one, dlq_end=number * 10, retry_end=0) for number, one in enumerate(failing(5))]
    said = judge(judged(*looks)).sentence
    assert said.startswith("the handlers failed in 20 of their last 20 attempts")
    assert said.endswith("; the handlers have given up on 40 messages, now among the dead letters")


def test_half_is_too_many_and_a_few_are_not() -> None:
    assert judge(judged(*failing(6, failed=5))).state is LagFinding.FAILING
    assert judge(judged(*failing(6, failed=4))).state is LagFinding.OK
    assert judge(judged(*failing(6, per_step=2, failed=2))).state is LagFinding.OK, (
        "two messages in a minute are poison"
    )


def test_whoever_only_waits_has_not_recovered() -> None:
    """Their next try is hours away: nothing is attempted meanwhile, and nothing is known to be better."""
    tried = failing(5)
    last = tried[-1]
    waits = [replace(at(number, 40, retry_end=0, retry_done=0, dlq_end=0), work=last.work) for number in range(5, 60)]
    assert judge(judged(*tried, *waits)).state is LagFinding.FAILING
    done = [at(number, 40, retry_end=40, retry_done=40, dlq_end=0, work=Work(80, 40, 40)) for number in range(60, 66)]
    found = judged(*tried, *waits, *done)
    assert judge(found).state is LagFinding.OK, "they were tried again, and succeeded"
    assert found.latest is not None
    assert found.latest.delayed == 0


def test_a_group_that_cannot_be_asked_is_failing_by_what_comes_back() -> None:
    """Somebody's own consumer: 10 messages per look, each of which comes back some time later."""
    looks = [
        at(number, number * 10, retry_end=max(0, number - 1) * 10, retry_done=max(0, number - 1) * 10, dlq_end=0)
        for number in range(7)
    ]
    found = judge(judged(*looks))
    assert found.state is LagFinding.FAILING
    assert found.sentence == "20 messages came back to be tried again while 40 were consumed"
    well = [at(number, number * 10, retry_end=number, retry_done=number, dlq_end=0) for number in range(7)]
    assert judge(judged(*well)).state is LagFinding.OK


def test_dead_letters_are_told_of_for_as_long_as_the_window_shows_them() -> None:
    looks = [at(number, number * 100, retry_end=0, retry_done=0, dlq_end=0) for number in range(5)]
    one = at(5, 500, retry_end=0, retry_done=0, dlq_end=1)
    found = judge(judged(*looks, one))
    assert (found.state, found.sentence) == (
        LagFinding.FAILING, "the handlers have given up on 1 message, now among the dead letters",
    )  # fmt: skip
    later = [at(number, number * 100, retry_end=0, retry_done=0, dlq_end=1) for number in range(6, 16)]
    assert judge(judged(*looks, one, *later)).state is LagFinding.OK


def test_what_a_broker_did_not_say_is_made_up_for_when_it_does() -> None:
    first = at(0, 10, retry_end=0, dlq_end=0, work=Work(10, 10, 0))
    sent = at(1, 10, work=Work(10, 10, 10))  # and the ends were not read
    back = at(2, 10, retry_end=8, dlq_end=2, work=Work(10, 10, 10))
    _, known = seen(first, sent, back)
    assert [one.delayed for one in known] == [0, 10, 0]


def test_nothing_waits_for_longer_than_the_longest_delay() -> None:
    first = at(0, 10, retry_end=0, dlq_end=0, work=Work(10, 10, 0))
    sent = at(1, 10, retry_end=0, dlq_end=0, work=Work(10, 10, 10))
    long_ago = replace(sent, observed_at=sent.observed_at + LONGEST_DELAY + 1)
    _, known = seen(first, sent, long_ago)
    assert [one.delayed for one in known] == [0, 10, 0]


def test_topics_that_were_made_again_begin_with_nothing() -> None:
    first = at(0, 10, retry_end=50, dlq_end=0, work=Work(10, 10, 0))
    sent = at(1, 10, retry_end=50, dlq_end=0, work=Work(10, 10, 10))
    anew = at(2, 10, retry_end=0, dlq_end=0, work=Work(10, 10, 10))
    assert seen(first, sent, anew)[1][-1].delayed == 0


def test_a_reset_forgets_attempts() -> None:
    handling, _ = seen(*failing(5))
    assert handling.reset().after(failing(6)[5])[1].attempts is not None
    assert handling.reset().steps == ()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_figures_are_never_negative_and_cover_a_minute(steps: list[tuple[int, int, int, int]]) -> None:
    work, ends = Work(), [0, 0]
    looks = [at(0, retry_end=0, retry_done=0, dlq_end=0, work=work)]
    for number, (tried, failed, back, dead) in enumerate(steps):
        work = Work(work.tried + tried, work.failed + failed, work.sent_back + failed)
        ends = [ends[0] + back, ends[1] + dead]
        looks.append(at(number + 1, retry_end=ends[0], retry_done=0, dlq_end=ends[1], work=work))
    handling, known = seen(*looks)
    for one in known:
        assert one.delayed is not None
        assert 0 <= one.delayed <= work.sent_back
        assert one.attempts is None or 0 <= one.attempts.failed <= one.attempts.tried
    assert all(handling.steps[-1].at - one.at < SPAN for one in handling.steps)
    assert DEFAULT_LIMITS.failing_seconds >= SPAN
