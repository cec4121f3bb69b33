"""The work queue: one pass per key at a time, nothing lost, nobody starved."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hypothesis import given, settings
from hypothesis import strategies as st

from rocketfleet.controller.reconciling.work_queue import (
    KEY_SETTLE_SECONDS,
    RETRIES,
    RETRY_FLOOR,
    Requeue,
    Schedule,
    WorkQueue,
)

LIMIT = 20.0


def make() -> Schedule[str]:
    return Schedule(random=lambda: 0.5)


class TestSchedule:
    def test_keys_are_taken_in_the_order_in_which_they_became_due(self) -> None:
        schedule = make()
        schedule.wake("late", 0.0, 3.0)
        schedule.wake("first", 0.0, 1.0)
        schedule.wake("second", 0.0, 2.0)
        assert schedule.take(0.5) is None
        assert [schedule.take(5.0), schedule.take(5.0), schedule.take(5.0)] == ["first", "second", "late"]

    def test_the_earliest_of_several_wishes_counts(self) -> None:
        schedule = make()
        schedule.wake("a", 0.0, 10.0)
        schedule.wake("a", 0.0, 1.0)
        schedule.wake("a", 0.0, 5.0)
        assert schedule.next_due() == 1.0
        assert schedule.take(1.0) == "a"
        schedule.done("a", 1.0, None)
        assert schedule.take(100.0) is None

    def test_a_key_that_is_worked_on_is_not_taken_again_but_comes_due_after_it(self) -> None:
        schedule = make()
        schedule.wake("a", 0.0)
        assert schedule.take(0.0) == "a"
        schedule.wake("a", 1.0)
        assert schedule.take(2.0) is None
        assert schedule.next_due() is None
        schedule.done("a", 3.0, 30.0)
        assert schedule.take(3.0 + KEY_SETTLE_SECONDS) == "a"

    def test_an_error_makes_it_wait_longer_each_time_and_success_ends_that(self) -> None:
        schedule = make()
        pauses = []
        now = 0.0
        schedule.wake("a", now)
        for _ in range(9):
            due = schedule.next_due()
            assert due is not None
            assert schedule.take(due) == "a"
            pauses.append(schedule.failed("a", due))
        assert pauses == sorted(pauses)
        assert pauses[0] <= RETRIES.first
        assert pauses[-1] <= RETRIES.limit
        due = schedule.next_due()
        assert due is not None
        assert schedule.take(due) == "a"
        schedule.done("a", due, 0.25)
        assert schedule.take(due + 0.25) == "a"
        assert schedule.failed("a", due + 0.25) == pauses[0]

    def test_a_wake_up_cuts_a_back_off_short_but_not_to_nothing(self) -> None:
        schedule = make()
        now = 0.0
        schedule.wake("a", now)
        for _ in range(8):
            due = schedule.next_due()
            assert due is not None
            now = due
            assert schedule.take(now) == "a"
            schedule.failed("a", now)
        schedule.wake("a", now)
        assert schedule.take(now + RETRY_FLOOR / 2) is None
        assert schedule.take(now + RETRY_FLOOR) == "a"

    def test_a_wake_up_during_a_pass_that_fails_does_not_start_another_at_once(self) -> None:
        schedule = make()
        schedule.wake("a", 0.0)
        assert schedule.take(0.0) == "a"
        schedule.wake("a", 0.1)
        schedule.failed("a", 0.2)
        assert schedule.take(0.2 + KEY_SETTLE_SECONDS) is None

    def test_waiting_counts_only_what_is_due_and_idle(self) -> None:
        schedule = make()
        for key, after in (("running", 0.0), ("due", 1.0), ("later", 50.0)):
            schedule.wake(key, 0.0, after)
        assert schedule.take(0.0) == "running"
        assert schedule.waiting(11.0) == (1, 10.0)

    def test_one_that_wakes_itself_all_the_time_does_not_starve_the_others(self) -> None:
        schedule = make()
        for key in ("busy", *"abcdef"):
            schedule.wake(key, 0.0)
        taken: list[str] = []
        now = 0.0
        while len(taken) < 20:
            key = schedule.take(now)
            if key is not None:
                taken.append(key)
                schedule.done(key, now, 0.0 if key == "busy" else None)
            now += KEY_SETTLE_SECONDS
        assert set("abcdef") <= set(taken[:8])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["wake", "later", "take", "done", "fail", "time"]),
            st.sampled_from("abc"),
            st.floats(0.0, 40.0),
        ),
        max_size=60,
    )
)
def test_whatever_happens_each_key_runs_once_at_a_time_and_none_that_was_woken_is_lost(
    steps: list[tuple[str, str, float]],
) -> None:
    schedule: Schedule[str] = Schedule(random=lambda: 0.9)
    now = 0.0
    running: set[str] = set()
    owed: set[str] = set()  # woken, and not taken since
    for what, key, seconds in steps:
        match what:
            case "wake":
                schedule.wake(key, now)
                owed.add(key)
            case "later":
                schedule.wake(key, now, seconds)
                owed.add(key)
            case "take":
                taken = schedule.take(now)
                if taken is not None:
                    assert taken not in running
                    assert taken in owed
                    running.add(taken)
                    owed.discard(taken)
            case "done" if key in running:
                schedule.done(key, now, seconds)
                running.discard(key)
                owed.add(key)
            case "fail" if key in running:
                schedule.failed(key, now)
                running.discard(key)
                owed.add(key)
            case "time":
                now += seconds
            case _:
                pass
        assert schedule.running == running
        due = schedule.next_due()
        assert (due is not None) == bool(owed - running)
    for key in list(running):
        schedule.done(key, now, None)
    now += 1000.0
    left = set()
    while (taken := schedule.take(now)) is not None:
        left.add(taken)
    assert left == owed


@asynccontextmanager
async def started(queue: WorkQueue[str]) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        await queue.close(0.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class TestWorkQueue:
    async def test_passes_are_bounded_and_never_two_for_one_key(self) -> None:
        under_way: list[str] = []
        most = 0
        seen: dict[str, int] = {}
        finished = asyncio.Event()

        async def work(key: str) -> Requeue | None:
            nonlocal most
            assert key not in under_way
            under_way.append(key)
            most = max(most, len(under_way))
            for _ in range(3):
                queue.wake(key)
                await asyncio.sleep(0)
            under_way.remove(key)
            seen[key] = seen.get(key, 0) + 1
            if len(seen) == 10 and min(seen.values()) >= 2:
                finished.set()
            return None

        queue: WorkQueue[str] = WorkQueue(work, workers=3)
        for n in range(10):
            queue.wake(f"key {n}")
        async with started(queue), asyncio.timeout(LIMIT):
            assert queue.busy == 0
            queue.open()
            await finished.wait()
        assert most == 3

    async def test_an_error_is_tried_again_and_counted(self) -> None:
        outcomes: list[bool] = []
        finished = asyncio.Event()

        async def work(key: str) -> Requeue | None:
            if not outcomes:
                raise ValueError("not this time")
            finished.set()
            return None

        queue: WorkQueue[str] = WorkQueue(
            work, observe=lambda key, seconds, well: outcomes.append(well), foreseen=(ValueError,), random=lambda: 0.0
        )
        queue.wake("a")
        queue.open()
        async with started(queue), asyncio.timeout(LIMIT):
            await finished.wait()
        assert outcomes[0] is False

    async def test_a_pass_that_hangs_is_cut_off_and_holds_nobody_up(self) -> None:
        others = asyncio.Event()
        cut = asyncio.Event()

        async def work(key: str) -> Requeue | None:
            if key == "other":
                others.set()
                return None
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cut.set()
                raise
            return None

        queue: WorkQueue[str] = WorkQueue(work, workers=1, pass_limit=0.05)
        queue.wake("hangs")
        queue.wake("other")
        queue.open()
        async with started(queue), asyncio.timeout(LIMIT):
            await others.wait()
            assert cut.is_set()

    async def test_closing_lets_passes_finish_and_begins_no_more(self) -> None:
        began, go_on = asyncio.Event(), asyncio.Event()
        done: list[str] = []

        async def work(key: str) -> Requeue | None:
            began.set()
            await go_on.wait()
            done.append(key)
            return Requeue(0.0)

        queue: WorkQueue[str] = WorkQueue(work, workers=1)
        queue.wake("a")
        queue.wake("b")
        queue.open()
        async with started(queue), asyncio.timeout(LIMIT):
            await began.wait()
            closing = asyncio.create_task(queue.close(LIMIT))
            await asyncio.sleep(0)
            go_on.set()
            await closing
            assert done == ["a"]
            assert queue.waiting() == (0, 0.0)
            began.clear()
            queue.open()
            await began.wait()

    async def test_a_pass_that_is_cancelled_by_closing_is_done_again_after_opening(self) -> None:
        began = asyncio.Event()
        count = 0

        async def work(key: str) -> Requeue | None:
            nonlocal count
            count += 1
            began.set()
            if count == 1:
                await asyncio.Event().wait()
            return None

        queue: WorkQueue[str] = WorkQueue(work)
        queue.wake("a")
        queue.open()
        async with started(queue), asyncio.timeout(LIMIT):
            await began.wait()
            await queue.close(0.0)
            began.clear()
            queue.open()
            await began.wait()
        assert count == 2
