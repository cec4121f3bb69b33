"""The pool of tasks, for asynchronous handlers."""

import asyncio

import pytest
from tests.support.waiting import turns, until

from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.delivery.tasks import Tasks
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


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), StopAsyncIteration()])
async def test_nothing_that_serving_raises_ends_the_event_loop(error: BaseException) -> None:
    served: list[int] = []

    async def serve(one: Lane) -> bool:
        served.append(one.queue.queue_id)
        await asyncio.sleep(0)
        if len(served) == 1:
            raise error
        return False

    tasks = Tasks(serve, maximum=1, name="test")
    tasks.offer(lane(0))
    tasks.offer(lane(1))
    await until(lambda: served == [0, 1])
    tasks.close()


async def test_a_task_that_is_cancelled_by_another_ends_and_is_replaced() -> None:
    served: list[int] = []

    async def serve(one: Lane) -> bool:
        served.append(one.queue.queue_id)
        if len(served) == 1:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        return True

    tasks = Tasks(serve, maximum=1, name="test")
    tasks.offer(lane(0))
    [first] = tasks._tasks
    await until(first.done)
    assert tasks.count == 0
    tasks.nudge()  # as the service does now and then
    await until(lambda: len(served) > 1)
    tasks.close()


async def test_a_task_that_is_cancelled_before_it_runs_does_not_count_for_ever() -> None:
    served: list[int] = []

    async def serve(one: Lane) -> bool:
        served.append(one.queue.queue_id)
        return False

    tasks = Tasks(serve, maximum=1, name="test")
    tasks.offer(lane(0))
    [first] = tasks._tasks
    first.cancel()
    await until(first.done)
    await turns()
    assert tasks.count == 0
    tasks.nudge()
    await until(lambda: served == [0])
    tasks.close()


async def test_what_ends_a_task_is_its_closing_and_else_nothing() -> None:
    async def serve(_one: Lane) -> bool:
        return False

    tasks = Tasks(serve, maximum=1, name="test")
    assert not any(tasks.ends(error) for error in (asyncio.CancelledError(), GeneratorExit(), SystemExit()))
    tasks.close()
    assert tasks.ends(asyncio.CancelledError())
    assert not tasks.ends(ValueError())


def test_what_is_thrown_away_with_its_loop_ends_without_a_word() -> None:
    loop = asyncio.new_event_loop()

    ended: list[bool] = []

    async def start() -> tuple[Tasks, asyncio.Task[None]]:
        async def serve(_one: Lane) -> bool:
            try:
                await asyncio.Event().wait()
            except GeneratorExit as error:
                ended.append(tasks.ends(error))
                raise
            return False

        tasks = Tasks(serve, maximum=1, name="test")
        tasks.offer(lane())
        await turns()
        [task] = tasks._tasks
        return tasks, task

    _, task = loop.run_until_complete(start())
    coroutine = task.get_coro()
    assert coroutine is not None
    coroutine.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # this is no accident
    loop.close()
    assert ended == [True]
