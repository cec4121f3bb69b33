"""A loop in a thread: whatever still runs when it is closed has ended, in its own thread, before `close` returns."""

import asyncio
import gc
import threading

import pytest

from rocketfleet.base.loop_thread import LoopThread


async def _forever(ended: list[str], started: threading.Event | None = None) -> None:
    if started is not None:
        started.set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(threading.current_thread().name)


def test_it_calls_and_says_whose_thread_runs() -> None:
    thread = LoopThread("test loop")

    async def where() -> tuple[str, bool]:
        return threading.current_thread().name, thread.is_current

    assert thread.call(where()) == ("test loop", True)
    assert not thread.is_current
    thread.close()
    assert thread.loop.is_closed()


def test_an_error_reaches_the_caller() -> None:
    thread = LoopThread("test loop")

    async def fail() -> None:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        thread.call(fail())
    thread.close()


def test_a_task_that_waits_is_ended_in_its_own_thread() -> None:
    thread, ended, started = LoopThread("test loop"), list[str](), threading.Event()
    future = thread.submit(_forever(ended, started))
    assert started.wait(10)
    thread.close()
    assert ended == ["test loop"]
    assert future.cancelled()


def test_tasks_that_are_made_while_others_end_are_ended_too() -> None:
    """As the one that a listening socket makes for a connection: it is first seen after all others were cancelled."""
    thread, ended, started = LoopThread("test loop"), list[str](), threading.Event()
    kept: list[asyncio.Task[None]] = []
    steps: list[int] = []

    async def parent(depth: int) -> None:
        if depth == 3:
            started.set()
        try:
            await asyncio.Event().wait()
        finally:
            steps.append(depth)
            kept.append(asyncio.get_running_loop().create_task(_forever(ended)))
            if depth:
                kept.append(asyncio.get_running_loop().create_task(parent(depth - 1)))
                await asyncio.sleep(0)  # so that the child has begun to wait

    thread.submit(parent(3))
    assert started.wait(10)
    thread.close()
    gc.collect()  # what nobody had ended would be thrown away here, with an error that fails this test
    assert steps == [3, 2, 1, 0]
    assert all(task.done() for task in kept)
    assert set(ended) == {"test loop"}


def test_closing_does_not_wait_for_a_function_that_hangs_in_a_thread() -> None:
    thread, release, started = LoopThread("test loop"), threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        release.wait(60)

    thread.submit(asyncio.to_thread(hang))
    assert started.wait(10)
    thread.close()
    assert not release.is_set()
    release.set()
