"""The pool of threads: who is started, who is woken, who leaves."""

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from tests.support.waiting import wait_until
from tests.unit.consumer.messages import several

from rocketfleet.consumer.delivery import threads as threads_module
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.pace import HandlerPace
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.delivery.threads import IDLE_SECONDS, Threads
from rocketfleet.wire.queue import MessageQueue

wait = partial(wait_until, every=0.001)


def lane(number: int = 0, buffered: int = 0) -> Lane:
    made = Lane(MessageQueue("t", "b", number), ProcessQueue(0))
    made.window.put(several(0, buffered), buffered)
    return made


class Pool:
    """Threads whose handler waits until the test lets it go."""

    def __init__(self, minimum: int = 2, maximum: int = 4, idle: float = IDLE_SECONDS) -> None:
        self.pace = HandlerPace()
        self.entered: list[Lane] = []
        self.left = 0
        self.let_go = threading.Semaphore(0)
        self.more: Callable[[Lane], bool] = lambda _lane: False
        self.threads = Threads(self.serve, minimum=minimum, maximum=maximum, pace=self.pace, name="test", idle=idle)

    def serve(self, served: Lane) -> bool:
        self.entered.append(served)
        self.let_go.acquire()
        self.left += 1
        return self.more(served)


@pytest.fixture
def pools() -> Iterator[list[Pool]]:
    made: list[Pool] = []
    yield made
    for pool in made:
        pool.threads.close()
        pool.let_go.release(1000)
        wait(lambda pool=pool: pool.threads.count == 0, "every thread leaves")  # type: ignore[misc]  # bound now


def test_threads_are_started_up_to_the_minimum_when_nobody_is_free(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=2, maximum=4))
    assert pool.threads.count == 0, "no work, no thread"
    for number in range(5):
        pool.threads.offer(lane(number))
    wait(lambda: len(pool.entered) == 2)
    assert pool.threads.count == 2


def test_a_lane_stands_in_line_once(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=1))
    busy, only = lane(0), lane(1)
    pool.threads.offer(busy)
    wait(lambda: pool.entered == [busy])
    for _ in range(10):
        pool.threads.offer(only)
    pool.let_go.release(10)
    wait(lambda: pool.left == 2)
    assert pool.entered == [busy, only]


def test_a_lane_that_is_served_may_be_offered_again_for_others_to_help(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=2))
    full = lane()
    pool.threads.offer(full)
    wait(lambda: len(pool.entered) == 1)
    pool.threads.offer(full)
    wait(lambda: pool.entered == [full, full])


def test_lanes_take_turns(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=1))
    first, second = lane(0), lane(1)
    pool.more = lambda _lane: len(pool.entered) < 6
    pool.threads.offer(first)
    wait(lambda: len(pool.entered) == 1)
    pool.threads.offer(second)
    pool.let_go.release(100)
    wait(lambda: pool.left == 7)
    assert pool.entered[:6] == [first, second] * 3


def test_a_nudge_wakes_one_more_and_beyond_the_minimum_only_if_much_is_waiting(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=1, maximum=3))
    pool.threads.offer(lane())
    wait(lambda: len(pool.entered) == 1)
    pool.threads.offer(lane(1, buffered=3))
    pool.threads.nudge()
    assert pool.threads.count == 1, "a little can wait"
    pool.threads.offer(lane(2, buffered=threads_module._MUCH + 1))
    pool.threads.nudge()
    wait(lambda: len(pool.entered) == 2)
    pool.threads.nudge()
    wait(lambda: len(pool.entered) == 3)
    for _ in range(5):
        pool.threads.offer(lane(3, buffered=threads_module._MUCH + 1))
        pool.threads.nudge()
    assert pool.threads.count == 3, "never beyond the maximum"


def test_with_a_quick_handler_nobody_is_woken_while_somebody_runs_until_the_nudge(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=3))
    pool.pace.note(0.0, 1000)
    assert pool.pace.is_quick
    pool.threads.offer(lane(0))
    wait(lambda: len(pool.entered) == 1)
    pool.threads.offer(lane(1))
    assert pool.threads.count == 1
    pool.threads.nudge()
    wait(lambda: len(pool.entered) == 2)


def test_an_idle_thread_is_woken_rather_than_another_started(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=3))
    pool.threads.offer(lane())
    pool.let_go.release()
    wait(lambda: pool.left == 1 and pool.threads._idle == 1)
    pool.threads.offer(lane())
    wait(lambda: len(pool.entered) == 2)
    assert pool.threads.count == 1


def test_threads_beyond_the_minimum_leave_when_idle(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=1, maximum=3, idle=0.02))
    for number in range(3):
        pool.threads.offer(lane(number, buffered=threads_module._MUCH + 1))
        pool.threads.nudge()
    wait(lambda: len(pool.entered) == 3)
    pool.let_go.release(3)
    wait(lambda: pool.threads.count == 1)
    pool.threads.offer(lane())
    wait(lambda: len(pool.entered) == 4)


def test_no_notice_is_lost_to_threads_that_give_up_waiting(pools: list[Pool]) -> None:
    """With waits that end all the time, every offer must still be served soon: not by the wait's end alone."""
    pools.append(pool := Pool(minimum=3, maximum=3, idle=0.0005))
    pool.let_go.release(100_000)
    for number in range(300):
        pool.threads.offer(lane())
        pool.threads.offer(lane(1))
        wait(lambda number=number: pool.left == 2 * (number + 1))  # type: ignore[misc]  # bound now
    assert pool.threads._woken <= pool.threads._idle + 3


def test_a_handler_that_breaks_the_pool_is_survived(pools: list[Pool], caplog: pytest.LogCaptureFixture) -> None:
    pools.append(pool := Pool(minimum=1))
    pool.let_go.release(10)

    def broken(_lane: Lane) -> bool:
        raise ValueError("a bug")

    pool.more = broken
    pool.threads.offer(lane())
    wait(lambda: "a bug in the consumer" in caplog.text)
    pool.more = lambda _lane: False
    pool.threads.offer(lane())
    wait(lambda: pool.left == 2)


def test_a_thread_that_is_written_off_is_replaced_and_leaves_when_it_comes_back(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=1, maximum=1))
    pool.threads.offer(lane(0))
    wait(lambda: len(pool.entered) == 1)
    [hanging] = pool.threads._threads
    pool.threads.offer(lane(1))
    pool.threads.nudge()
    assert pool.threads.count == 1
    pool.threads.write_off(hanging)
    pool.threads.nudge()
    wait(lambda: len(pool.entered) == 2)
    assert pool.threads.count == 2
    pool.let_go.release(2)
    wait(lambda: pool.threads.count == 1)
    pool.threads.offer(lane(2))
    pool.let_go.release()
    wait(lambda: pool.left == 3)


def test_no_more_threads_are_written_off_than_there_may_be(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=2, maximum=2))
    for number in range(10):
        pool.threads.offer(lane(number))
        pool.threads.nudge()
        for thread in list(pool.threads._threads):
            pool.threads.write_off(thread)
    assert pool.threads.count == 4


def test_after_closing_nothing_begins_and_everybody_leaves(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=2))
    pool.more = lambda _lane: True
    for number in range(5):
        pool.threads.offer(lane(number))
    wait(lambda: len(pool.entered) == 2)
    pool.threads.close()
    pool.threads.offer(lane(9))
    pool.threads.nudge()
    pool.let_go.release(100)
    wait(lambda: pool.threads.count == 0)
    assert len(pool.entered) == 2


def test_closing_waits_for_nobody(pools: list[Pool]) -> None:
    pools.append(pool := Pool(minimum=1))
    pool.threads.offer(lane())
    wait(lambda: len(pool.entered) == 1)
    pool.threads.close()  # returns, though the handler hangs: else this test would
    assert pool.threads.count == 1
    assert all(thread.daemon for thread in pool.threads._threads)


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
def test_nothing_that_serving_raises_ends_a_thread(
    pools: list[Pool], caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    pools.append(pool := Pool(minimum=1, maximum=1))

    def more(_lane: Lane) -> bool:
        if pool.left == 1:
            raise error
        return False

    pool.more = more
    pool.let_go.release(2)
    pool.threads.offer(lane(0))
    wait(lambda: pool.left == 1)
    [thread] = pool.threads._threads
    pool.threads.offer(lane(1))
    wait(lambda: pool.left == 2)
    assert pool.threads._threads == {thread}
    assert "a bug in the consumer" in caplog.text


def test_a_thread_that_cannot_be_started_is_tried_again(
    pools: list[Pool], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pools.append(pool := Pool(minimum=1, maximum=1))

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        pool.threads.offer(lane())
    assert pool.threads.count == 0
    assert "can't start new thread" in caplog.text
    pool.let_go.release()
    pool.threads.nudge()
    wait(lambda: pool.left == 1)


def test_a_thread_that_has_died_is_replaced(
    pools: list[Pool], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pools.append(pool := Pool(minimum=1, maximum=1))
    with monkeypatch.context() as patch:
        patch.setattr(pool.threads, "_run", lambda: None)  # it ends without saying so
        pool.threads.offer(lane())
        [dead] = pool.threads._threads
        dead.join()
    pool.let_go.release()
    pool.threads.nudge()
    wait(lambda: pool.left == 1)
    assert dead.name in caplog.text
