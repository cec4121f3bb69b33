"""How many messages are taken at once."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.delivery.pace import MAX_RUN, QUICK, RUN_SECONDS, HandlerPace


def test_before_anything_is_known_one_message_is_taken() -> None:
    pace = HandlerPace()
    assert (pace.run_length, pace.is_quick, pace.average) == (1, False, None)


def test_a_slow_handler_gets_one_at_a_time_and_a_quick_one_many() -> None:
    slow, quick = HandlerPace(), HandlerPace()
    slow.note(0.5, 1)
    quick.note(0.001, 1000)
    assert (slow.run_length, slow.is_quick) == (1, False)
    assert (quick.run_length, quick.is_quick) == (MAX_RUN, True)


def test_slowness_is_believed_at_once_and_quickness_by_and_by() -> None:
    pace = HandlerPace()
    pace.note(0.000_001, 1)
    pace.note(0.1, 1)
    assert pace.run_length == 1
    pace.note(0.000_001, 1)
    assert pace.average is not None
    assert 0.07 < pace.average < 0.08
    for _ in range(50):
        pace.note(0.000_001, 1)
    assert pace.is_quick


def test_a_run_in_which_nothing_was_finished_says_nothing() -> None:
    pace = HandlerPace()
    pace.note(100.0, 0)
    assert pace.average is None


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 1000)), max_size=50))
def test_the_length_of_a_run_is_bounded_and_fits_its_time(samples: list[tuple[float, int]]) -> None:
    pace = HandlerPace()
    for seconds, messages in samples:
        pace.note(seconds, messages)
    assert 1 <= pace.run_length <= MAX_RUN
    if pace.average is not None and pace.run_length > 1:
        assert pace.average * pace.run_length <= RUN_SECONDS * 1.001
    assert pace.is_quick == (pace.average is not None and pace.average < QUICK)
