"""The pool of tasks, for asynchronous handlers."""

import asyncio

import pytest
from tests.unit.consumer.waiting import turns, until

from rocketfleet.consumer.lane import Lane
from rocketfleet.consumer.process_queue import ProcessQueue
from rocketfleet.consumer.tasks import Tasks, being_cancelled
from rocketfleet.wire.queue import MessageQueue


def lane(number: int = 0) -> Lane:
    return Lane(MessageQueue("t", "b", number), ProcessQueue(0))


async def test_a_task_for_each_lane_up_to_the_maximum() -> None:
    served: list[int] = []
    gate = asyncio.Event()

    async def serve(one: Lane) -> bool:
        served.append(one.queue.queue_id)
        await gate.wait()
        return False

    tasks = Tasks(serve, maximum=2, name="test")
    for number in range(4):
        tasks.offer(lane(number))
    await turns()
    assert served == [0, 1]
    assert tasks.count == 2
    gate.set()
    await until(lambda: len(served) == 4)
    await until(lambda: tasks.count == 0)
    tasks.close()


async def test_a_lane_stands_in_line_once_and_comes_again_while_it_has_more() -> None:
    left = 5

    async def serve(_one: Lane) -> bool:
        nonlocal left
        left -= 1
        return left > 0

    tasks = Tasks(serve, maximum=1, name="test")
    only = lane()
    for _ in range(10):
        tasks.offer(only)
    await until(lambda: left == 0)
    await until(lambda: tasks.count == 0)
    assert not only.waiting
    tasks.close()


async def test_an_offer_that_meets_a_task_as_it_ends_is_served() -> None:
    """A task that has seen the empty line counts no longer, also before the event loop has buried it."""
    served = 0

    async def serve(_one: Lane) -> bool:
        nonlocal served
        served += 1
        return False

    tasks = Tasks(serve, maximum=1, name="test")
    for delay in range(6):  # so many turns of the loop after the first offer comes the second
        before = served
        tasks.offer(lane(0))
        await turns(delay)
        tasks.offer(lane(1))
        await turns()
        assert served == before + 2, f"an offer {delay} turns later was forgotten"
    tasks.close()


async def test_a_handler_that_never_waits_does_not_keep_the_loop_to_itself() -> None:
    rounds, others = 0, 0

    async def serve(_one: Lane) -> bool:
        nonlocal rounds
        rounds += 1
        return rounds < 1000

    async def other() -> None:
        nonlocal others
        while rounds < 1000:
            others += 1
            await asyncio.sleep(0)

    tasks = Tasks(serve, maximum=1, name="test")
    tasks.offer(lane())
    await other()
    assert others > 100
    tasks.close()


async def test_closing_cancels_and_begins_nothing_more() -> None:
    cancelled = []

    async def serve(one: Lane) -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(one)
            raise
        return True

    tasks = Tasks(serve, maximum=1, name="test")
    first = lane()
    tasks.offer(first)
    tasks.offer(lane(1))
    await turns()
    tasks.close()
    tasks.offer(lane(2))
    await until(lambda: tasks.count == 0)
    assert cancelled == [first]


async def test_a_task_that_is_written_off_is_replaced_and_ends_when_it_comes_back() -> None:
    gates = {0: asyncio.Event(), 1: asyncio.Event(), 2: asyncio.Event()}
    served: list[int] = []

    async def serve(one: Lane) -> bool:
        served.append(one.queue.queue_id)
        await gates[one.queue.queue_id].wait()
        return False

    tasks = Tasks(serve, maximum=1, name="test")
    for number in gates:
        tasks.offer(lane(number))
    await turns()
    [hanging] = tasks._tasks
    tasks.write_off(hanging)
    tasks.nudge()
    await turns()
    assert served == [0, 1]
    assert tasks.count == 2
    gates[0].set()
    await until(hanging.done)
    assert served == [0, 1], "it takes nothing more"
    gates[1].set()
    gates[2].set()
    await until(lambda: tasks.count == 0)
    assert served == [0, 1, 2]
    tasks.close()


async def test_a_bug_in_serving_is_said_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    async def serve(_one: Lane) -> bool:
        nonlocal calls
        calls += 1
        raise ValueError("broken")

    tasks = Tasks(serve, maximum=1, name="test")
    tasks.offer(lane(0))
    tasks.offer(lane(1))
    await until(lambda: calls == 2)
    assert "a bug in the consumer" in caplog.text
    tasks.close()


async def test_a_cancellation_is_ours_or_came_out_of_what_was_awaited() -> None:
    seen: list[bool] = []

    async def awaits(what: "asyncio.Future[None]") -> None:
        try:
            await what
        except asyncio.CancelledError:
            seen.append(being_cancelled())

    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await awaits(future)
    task = asyncio.create_task(awaits(asyncio.get_running_loop().create_future()))
    await turns()
    task.cancel()
    await task
    assert seen == [False, True]
