"""The window under real threads: workers that take, begin, fail and finish while the event loop puts, reclaims,
expires and reads.

What can go wrong only here: a message begun by its worker and reclaimed at the same time, a commit read in the middle
of a step, a failure that meets its own expiry. Each message must be handled once (or be expired), and no reading of the
committable offset may ever pass one that is not.
"""

import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from tests.support.waiting import wait_until

from rocketfleet.consumer.delivery.process_queue import ProcessQueue

wait = partial(wait_until, every=0.001)
MESSAGES = 4000
WORKERS = 4


@dataclass(eq=False)
class Letter:
    queue_offset: int
    body_length: int = 3


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Stress:
    """One window, its workers, and what they did."""

    def __init__(self, seed: int) -> None:
        self.window: ProcessQueue[Letter] = ProcessQueue(0)
        self.random = random.Random(seed)
        self.handled: Counter[int] = Counter()
        self.done = [False] * MESSAGES  # set before the window can know
        self.settle: list[Letter] = []  # failed, and held by their worker
        self.permits: threading.Semaphore | None = None  # one for each message, where there are to be only so many
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(seed + n,)) for n in range(WORKERS)]

    def work(self, seed: int) -> None:
        choose = random.Random(seed)
        while not self.stop.is_set():
            run = self.window.take(choose.randint(1, 40))
            if run is None:
                continue
            for message in run.pending:
                if self.permits is not None:
                    self.permits.acquire()
                if self.window.dropped:
                    break
                run.begun_at = 1.0
                self.handled[message.queue_offset] += 1
                if choose.random() < 0.1:
                    if self.window.hold(run, message):
                        self.settle.append(message)
                else:
                    self.done[message.queue_offset] = True
                run.finished += 1
            run.begun_at = float("inf")
            self.window.finish(run)

    def check_commit(self) -> None:
        low = self.window.committable
        assert all(self.done[:low]), f"offset {low} was committable before everything below it was done"

    def settle_some(self) -> None:
        while self.settle:
            message = self.settle.pop()
            self.done[message.queue_offset] = True
            self.window.release(message)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_message_is_handled_once_while_others_reclaim_and_read(seed: int) -> None:
    stress = Stress(seed)
    window = stress.window
    for thread in stress.threads:
        thread.start()
    try:
        put = 0
        while put < MESSAGES:
            count = min(stress.random.randint(1, 60), MESSAGES - put)
            window.put([Letter(offset) for offset in range(put, put + count)], put + count)
            put += count
            for run in window.begun_before(2.0):
                window.reclaim(run)
            stress.check_commit()
            stress.settle_some()

        def over() -> bool:
            for run in window.begun_before(2.0):
                window.reclaim(run)
            stress.check_commit()
            stress.settle_some()
            return window.committable == MESSAGES and window.idle

        wait(over, "all messages are done")
    finally:
        stress.stop.set()
        for thread in stress.threads:
            thread.join()
    assert stress.handled == Counter(range(MESSAGES))
    assert (window.count, window.size) == (0, 0)


def test_what_a_drop_throws_away_was_not_handled_and_is_never_passed() -> None:
    stress = Stress(3)
    stress.permits = threading.Semaphore(MESSAGES // 4)
    window = stress.window
    for thread in stress.threads:
        thread.start()
    try:
        put = 100
        window.put([Letter(offset) for offset in range(put)], put)
        wait(lambda: sum(stress.handled.values()) > 50, "some messages are handled")
        rest = [Letter(offset) for offset in range(put, MESSAGES)]
        put = MESSAGES
        window.put(rest, put)  # far more than the workers may do before the next line
        window.drop()
        stress.permits.release(MESSAGES)

        def over() -> bool:
            stress.settle_some()
            return window.idle

        wait(over, "what was begun is finished")
    finally:
        stress.stop.set()
        stress.permits.release(MESSAGES)
        for thread in stress.threads:
            thread.join()
    assert not window.put([Letter(put)], put + 1)
    assert (window.count, window.size) == (0, 0)
    final = window.committable
    assert all(stress.done[:final])
    assert set(stress.handled.values()) <= {1}
    assert final < put, "the drop came while there was work left, else this test says nothing"
    assert not stress.done[final]


@pytest.mark.parametrize("seed", [5, 6])
def test_a_message_that_fails_as_it_expires_is_settled_by_one_side_only(seed: int) -> None:
    stress = Stress(seed)
    window = stress.window
    expired: list[Letter] = []
    for thread in stress.threads:
        thread.start()
    try:
        put, settled = 0, Counter[int]()

        def expire_some() -> None:
            for run in window.begun_before(2.0):
                if stress.random.random() < 0.3:
                    expired.extend(window.expire(run))

        def settle() -> None:
            own = [stress.settle.pop() for _ in range(len(stress.settle))]
            settled.update(message.queue_offset for message in [*own, *expired])
            for message in [*own, *expired]:
                window.release(message)
            expired.clear()

        while put < MESSAGES:
            window.put([Letter(offset) for offset in range(put, put + 20)], put + 20)
            put += 20
            expire_some()
            settle()

        def over() -> bool:
            expire_some()
            settle()
            return window.committable == put and window.idle

        wait(over, "all messages are done")
    finally:
        stress.stop.set()
        for thread in stress.threads:
            thread.join()
    settle()
    assert set(settled.values()) <= {1}
    assert set(stress.handled.values()) == {1}
    assert len(stress.handled) == put
    assert (window.count, window.size) == (0, 0)
