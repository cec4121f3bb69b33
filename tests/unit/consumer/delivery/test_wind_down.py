"""Leaving in good order: whatever was finished is committed, so the next owner repeats nothing."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.delivery.process_queue import ProcessQueue, Run


@dataclass(eq=False)
class Letter:
    """All that the window asks of a message."""

    queue_offset: int
    body_length: int = 1


def window_of(count: int) -> ProcessQueue[Letter]:
    window: ProcessQueue[Letter] = ProcessQueue(0)
    window.put([Letter(offset) for offset in range(count)], count)
    return window


def finish_all(window: ProcessQueue[Letter], runs: list[Run[Letter]], done: set[int]) -> None:
    """What the workers do with what they have in hand: all of it, and then the rest of the buffer."""
    while runs:
        run = runs.pop()
        for letter in run.pending:
            done.add(letter.queue_offset)
            run.finished += 1
        window.finish(run)
        if (more := window.take(2)) is not None:
            runs.append(more)


def test_what_lies_below_something_finished_is_handled_before_we_go() -> None:
    window = window_of(4)
    idle, busy = window.take(1), window.take(1)  # one worker has 0 and has not begun it; the other handles 1
    assert idle is not None
    assert busy is not None
    next(busy.pending)
    busy.finished = 1
    window.finish(busy)
    assert window.wind_down() == 2  # 2 and 3
    window.finish(idle)
    again = window.take(10)
    assert again is not None
    assert [letter.queue_offset for letter in again.pending] == [0]
    again.finished = 1
    window.finish(again)
    assert window.idle
    assert window.committable == 2


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5), st.booleans()), max_size=12), st.data())
def test_after_winding_down_no_finished_message_is_repeated(
    takes: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    """Runs are taken, partly handled, reclaimed and finished in any order; then the queue is given up."""
    window = window_of(20)
    runs: list[Run[Letter]] = []
    done: set[int] = set()
    for limit, handled, ends in takes:
        run = window.take(limit)
        if run is None:
            break
        for _ in range(handled):
            letter = next(run.pending, None)
            if letter is None:
                break
            done.add(letter.queue_offset)
            run.finished += 1
        if ends:
            window.finish(run)
        else:
            runs.append(run)
        which = data.draw(st.integers(0, 2 * len(runs)))
        if which < len(runs):
            window.reclaim(runs[which])
    window.wind_down()
    finish_all(window, runs, done)
    while (rest := window.take(3)) is not None:
        finish_all(window, [rest], done)
    assert window.idle
    assert all(offset < window.committable for offset in done)
    assert set(range(window.committable)) <= done


def test_a_message_that_was_taken_from_a_hanging_handler_and_sent_back_is_not_repeated_either() -> None:
    window = window_of(4)
    first, hanging = window.take(1), window.take(1)
    assert first is not None
    assert hanging is not None
    next(hanging.pending)
    [stuck] = window.expire(hanging)
    window.release(stuck)  # the broker has it back: it comes again from there
    window.finish(first)
    assert window.wind_down() == 2  # 2 and 3, but not 0
    finish_all(window, [], set())
    again = window.take(10)
    assert again is not None
    assert [letter.queue_offset for letter in again.pending] == [0]
    again.finished = 1
    window.finish(again)
    assert window.committable == 2
