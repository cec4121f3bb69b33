"""The window of a queue against a model: a table that says of each offset where it is.

The committable offset is what everything hangs on: too high and messages are lost, too low and they are repeated. So
the model computes it in the dullest way, as the lowest offset that is not done, and every operation in every order
must agree with it.
"""

import threading
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from rocketfleet.consumer.delivery.process_queue import OneByOne, ProcessQueue, Run, next_batch

START = 100


@dataclass(eq=False)
class Letter:
    queue_offset: int
    body_length: int


@dataclass(eq=False)
class Worker:
    """A run and what its worker has in its hands."""

    run: Run[Letter]
    batch: list[Letter] = field(default_factory=list)  # begun, not finished
    failed: set[int] = field(default_factory=set)  # of those, the ones held
    over: bool = False  # finished or expired


class WindowMachine(RuleBasedStateMachine):
    workers = Bundle("workers")

    def __init__(self) -> None:
        super().__init__()
        self.window: ProcessQueue[Letter] = ProcessQueue(START)
        self.next = START
        self.letters: dict[int, Letter] = {}
        self.done: set[int] = set()
        self.thrown: set[int] = set()
        self.held: dict[int, Letter] = {}
        self.open: list[Worker] = []
        self.winding_down = False

    # -- the model ----------------------------------------------------------------------------------------------------

    def in_runs(self) -> set[int]:
        """What is in a run and not finished."""
        return {m.queue_offset for w in self.open for m in w.run.messages[w.run.finished :]}

    def buffered(self) -> list[int]:
        return sorted(self.letters.keys() - self.done - self.thrown - self.in_runs() - self.held.keys())

    # -- filling ------------------------------------------------------------------------------------------------------

    @rule(count=st.integers(0, 6), gaps=st.lists(st.integers(0, 2), min_size=7, max_size=7), size=st.integers(0, 9))
    def put(self, count: int, gaps: list[int], size: int) -> None:
        offset, letters = self.next, []
        for place in range(count):
            offset += gaps[place]
            letters.append(Letter(offset, size))
            offset += 1
        offset += gaps[-1]  # a filter left out the last ones
        assert self.window.put(letters, offset) is not self.window.leaving
        if not self.window.leaving:
            self.letters |= {letter.queue_offset: letter for letter in letters}
            self.next = offset

    @rule()
    @precondition(lambda self: self.letters and not self.window.leaving)
    def put_again_what_was_there(self) -> None:
        """A broker that answers with offsets seen before must not make us handle them twice."""
        old = [Letter(offset, 1) for offset in sorted(self.letters)[-3:]]
        assert self.window.put(old, self.next - 1)

    @rule(count=st.integers(1, 3))
    @precondition(lambda self: not self.window.leaving)
    def put_with_an_end_below_its_own_messages(self, count: int) -> None:
        """Nor one that says to go on before what it has just sent."""
        letters = [Letter(offset, 1) for offset in range(self.next, self.next + count)]
        assert self.window.put(letters, self.next)
        self.letters |= {letter.queue_offset: letter for letter in letters}
        self.next += count

    # -- handing out --------------------------------------------------------------------------------------------------

    @rule(target=workers, limit=st.integers(1, 8))
    def take(self, limit: int) -> object:
        expected = self.buffered()[:limit]
        run = self.window.take(limit)
        if run is None:
            assert expected == []
            return multiple()
        assert [m.queue_offset for m in run.messages] == expected
        worker = Worker(run)
        self.open.append(worker)
        return worker

    @rule(worker=workers, size=st.integers(1, 3))
    def begin(self, worker: Worker, size: int) -> None:
        if not worker.over and not worker.batch:
            worker.batch = next_batch(worker.run, size)

    @rule(worker=workers)
    def succeed(self, worker: Worker) -> None:
        """The handler returns: what it did not fail is done, and the run moves past the batch."""
        if worker.over:
            return
        self.done |= {m.queue_offset for m in worker.batch} - worker.failed
        worker.run.finished += len(worker.batch)
        worker.batch, worker.failed = [], set()

    @rule(worker=workers, which=st.integers(0, 2))
    def fail(self, worker: Worker, which: int) -> None:
        """The handler fails one message of its batch; the run moves past it later."""
        if not worker.batch:
            return
        message = worker.batch[which % len(worker.batch)]
        if message.queue_offset in worker.failed:
            return
        assert self.window.hold(worker.run, message) is not worker.over
        if not worker.over:
            self.held[message.queue_offset] = message
            worker.failed.add(message.queue_offset)

    @rule(worker=consumes(workers))
    def finish(self, worker: Worker) -> None:
        """The worker stops, wherever it is: what it has begun and not finished comes back, unless it is held."""
        if worker.failed:  # a worker moves on past what it failed before it stops
            self.succeed(worker)
        self.window.finish(worker.run)
        self.window.finish(worker.run)  # twice does no harm
        if not worker.over:
            if self.window.dropped:
                self.thrown |= {m.queue_offset for m in worker.run.messages[worker.run.finished :]}
            self.open.remove(worker)
            worker.over = True

    @rule(worker=workers)
    def reclaim(self, worker: Worker) -> None:
        if worker.over:
            return
        kept = worker.run.finished + len(worker.batch)
        expected = len(worker.run.messages) - kept
        assert self.window.reclaim(worker.run) == expected
        assert len(worker.run.messages) == kept
        assert next_batch(worker.run, 1) == []

    @rule(worker=workers, keep=st.integers(0, 3))
    def give_back(self, worker: Worker, keep: int) -> None:
        if worker.over or worker.failed:
            return
        kept = min(worker.run.finished + keep, len(worker.run.messages))
        gone = {m.queue_offset for m in worker.run.messages[kept:]}
        self.window.give_back(worker.run, kept)
        if self.window.dropped:
            self.thrown |= gone
        # What it keeps it has handled, begun or not as the window saw it.
        worker.batch = worker.run.messages[worker.run.finished :]

    @rule(worker=workers, limit=st.integers(1, 4))
    def extend(self, worker: Worker, limit: int) -> None:
        if worker.over or worker.run.finished + len(worker.batch) < len(worker.run.messages):
            return
        expected = self.buffered()[:limit]
        if expected and worker.run.messages and expected[0] < worker.run.messages[-1].queue_offset:
            return  # who extends its run has the lane to itself, so that nothing comes back below it
        assert self.window.extend(worker.run, limit) is bool(expected)
        assert [m.queue_offset for m in worker.run.messages[-len(expected) :]] == expected or not expected

    @rule(worker=workers)
    def trim(self, worker: Worker) -> None:
        expected = 0 if worker.over else worker.run.finished
        assert self.window.trim(worker.run) == expected

    @rule(worker=workers)
    def expire(self, worker: Worker) -> None:
        if worker.over:
            assert self.window.expire(worker.run) == []
            return
        hanging = [m for m in worker.batch if m.queue_offset not in worker.failed]
        assert self.window.expire(worker.run) == hanging
        self.held |= {m.queue_offset: m for m in hanging}
        self.open.remove(worker)
        worker.over = True

    # -- failed messages ----------------------------------------------------------------------------------------------

    @rule(place=st.integers(0, 5))
    @precondition(lambda self: self.held)
    def release(self, place: int) -> None:
        offset = sorted(self.held)[place % len(self.held)]
        message = self.held[offset]
        if any(offset in worker.failed for worker in self.open):
            return  # settled before its own run has moved past it: the loop has not even heard of it
        del self.held[offset]
        self.window.release(message)
        self.window.release(message)
        self.done.add(offset)

    @rule(place=st.integers(0, 5))
    @precondition(lambda self: self.held)
    def put_back(self, place: int) -> None:
        offset = sorted(self.held)[place % len(self.held)]
        if any(offset in worker.failed for worker in self.open):
            return
        message = self.held.pop(offset)
        self.window.put_back(message)
        self.window.put_back(message)
        if self.window.dropped:
            self.thrown.add(offset)

    # -- leaving ------------------------------------------------------------------------------------------------------

    @rule()
    @precondition(lambda self: not self.window.leaving)
    def wind_down(self) -> None:
        """What lies above everything that was ever begun belongs to the next owner; the rest is still to be done."""
        begun = {m.queue_offset for w in self.open for m in w.run.messages[: w.run.finished + len(w.batch)]}
        ceiling = max(begun | self.done | self.held.keys(), default=-1)
        lost = {offset for offset in self.letters if offset > ceiling} - self.thrown
        assert self.window.wind_down() == len(lost)
        self.thrown |= lost
        self.winding_down = True

    @rule()
    def drop(self) -> None:
        lost = set(self.buffered())
        for worker in self.open:
            lost |= {m.queue_offset for m in worker.run.messages[worker.run.finished + len(worker.batch) :]}
        thrown = self.window.drop()
        assert thrown == len(lost)
        self.thrown |= lost

    # -- what must always hold ----------------------------------------------------------------------------------------

    @invariant()
    def the_lowest_offset_that_is_not_done_may_be_committed(self) -> None:
        left = self.letters.keys() - self.done
        assert self.window.committable == min(left, default=self.next)
        assert self.window.committable <= self.window.next_offset == self.next

    @invariant()
    def wound_down_in_good_order_it_leaves_nothing_to_repeat(self) -> None:
        if self.winding_down and self.window.idle and not self.window.dropped:
            assert all(offset < self.window.committable for offset in self.done)

    @invariant()
    def nothing_is_in_two_places(self) -> None:
        hands = [m.queue_offset for w in self.open for m in w.run.messages[w.run.finished :]]
        assert len(hands) == len(set(hands))
        assert not set(hands) & self.done
        assert not self.thrown & self.done

    @invariant()
    def the_buffer_ascends_and_holds_what_nobody_has(self) -> None:
        assert [m.queue_offset for m in self.window._buffer] == self.buffered()
        assert self.window.buffered == len(self.buffered())

    @invariant()
    def count_and_size_follow(self) -> None:
        in_runs = [m for w in self.open for m in w.run.messages]
        held = list(self.held.values())
        buffered = [self.letters[offset] for offset in self.buffered()]
        assert self.window.count == len(buffered) + len(in_runs) + len(held)
        assert self.window.size == sum(m.body_length for m in [*buffered, *in_runs, *held])
        assert sorted(m.queue_offset for m in self.window.held) == sorted(self.held)

    @invariant()
    def idle_means_that_nothing_is_left_to_do(self) -> None:
        assert self.window.idle is (not self.open and not self.held and not self.window.buffered)
        assert self.window.unfinished == len(self.held) + sum(len(w.run.messages) - w.run.finished for w in self.open)
        if self.window.idle and not self.buffered():
            assert self.window.count == self.window.size == self.window.span == 0


WindowMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
test_the_window_does_what_the_model_does = WindowMachine.TestCase


# -- what the model does not say --------------------------------------------------------------------------------------


def letters(first: int, count: int) -> list[Letter]:
    return [Letter(offset, 1) for offset in range(first, first + count)]


def test_past_its_lease_nothing_may_begin() -> None:
    window: ProcessQueue[Letter] = ProcessQueue(0)
    window.lease_until = 10.0
    assert window.may_begin(9.9)
    assert not window.may_begin(10.0)
    window.lease_until = 20.0
    assert window.may_begin(10.0)
    window.drop()
    assert not window.may_begin(10.0)


def test_whoever_waits_is_called_on_every_kind_of_progress() -> None:
    window: ProcessQueue[Letter] = ProcessQueue(0)
    calls: list[str] = []
    window.put(letters(0, 4), 4)
    for offset in range(3):
        run = window.take(1)
        assert run is not None
        [message] = next_batch(run, 1)
        if offset:
            window.hold(run, message)
        run.finished = 1
        window.on_progress = lambda: calls.append("finish")
        window.finish(run)
    first, second = window.held
    window.on_progress = lambda: calls.append("release")
    window.release(first)
    window.on_progress = lambda: calls.append("put back")
    window.put_back(second)
    window.on_progress = lambda: calls.append("drop")
    assert window.drop() == 2
    assert calls == ["finish"] * 3 + ["release", "put back", "drop"]
    assert window.committable == second.queue_offset


def test_the_span_is_what_one_stuck_message_holds_up() -> None:
    window: ProcessQueue[Letter] = ProcessQueue(0)
    window.put(letters(0, 10), 10)
    stuck = window.take(1)
    assert stuck is not None
    rest = window.take(9)
    assert rest is not None
    next_batch(rest, 9)
    rest.finished = 9
    window.finish(rest)
    assert (window.span, window.count, window.committable) == (10, 1, 0)
    next_batch(stuck, 1)
    stuck.finished = 1
    window.finish(stuck)
    assert (window.span, window.count, window.committable) == (0, 0, 10)


def test_runs_begun_before_a_moment() -> None:
    window: ProcessQueue[Letter] = ProcessQueue(0)
    window.put(letters(0, 3), 3)
    early, late, waiting = (window.take(1) for _ in range(3))
    assert early is not None
    assert late is not None
    assert waiting is not None
    early.begun_at, late.begun_at = 1.0, 2.0
    assert window.begun_before(2.0) == [early]
    assert set(window.begun_before(2.5)) == {early, late}


def test_what_is_committed_makes_room_while_its_run_goes_on() -> None:
    window: ProcessQueue[Letter] = ProcessQueue(0)
    called: list[int] = []
    window.on_progress = lambda: called.append(window.count)
    window.put(letters(0, 5), 5)
    run = window.take(5)
    assert run is not None
    list(run.pending)
    run.finished, run.handled, run.handled_size = 3, 1, 1
    assert window.trim(run) == 3
    assert called == [2]
    assert (window.count, window.size) == (2, 2)
    assert window.committable == 3
    assert window.uncommitted == (1, 1)
    assert window.unfinished == 2
    assert window.trim(run) == 0
    assert called == [2], "nothing has changed"
    run.finished, run.handled, run.handled_size = 2, 0, 0
    window.finish(run)
    assert (window.count, window.size, window.committable, window.uncommitted) == (0, 0, 5, (0, 0))
    assert window.idle
    assert window.trim(run) == 0, "it is over"


def test_threads_that_ask_at_once_get_each_message_once_also_without_the_interpreters_lock() -> None:
    pending = OneByOne(letters(0, 2000))
    got: list[list[int]] = [[] for _ in range(4)]

    def ask(mine: list[int]) -> None:
        mine.extend(letter.queue_offset for letter in pending)

    threads = [threading.Thread(target=ask, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(offset for mine in got for offset in mine) == list(range(2000))
    assert list(pending) == []
