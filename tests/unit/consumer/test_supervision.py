"""A timer of a consumer never ends for good before the consumer does."""

import asyncio

import pytest
from tests.support.waiting import until

from rocketfleet.consumer.timers import Timers


async def test_a_timer_that_fails_or_ends_is_named_and_begins_again(caplog: pytest.LogCaptureFixture) -> None:
    begun = 0

    async def timer() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            raise ValueError("a bug")
        if begun == 2:
            return
        await asyncio.Event().wait()

    made = Timers("g", pause=0.001)
    made.start("heartbeat", timer)
    await until(lambda: begun == 3)
    assert "heartbeat g failed and begins again" in caplog.text
    assert "heartbeat g ended and begins again" in caplog.text
    assert made.ended() == []
    await made.close()
    assert made.ended() == ["heartbeat g"], "it can be ended all the same"
    assert begun == 3


async def test_a_timer_that_somebody_else_has_ended_is_named() -> None:
    made = Timers("g")
    made.start("heartbeat", asyncio.Event().wait)  # type: ignore[arg-type]  # it returns something, if it ever does
    made.start("rebalance", asyncio.Event().wait)  # type: ignore[arg-type]
    [task] = [task for task in asyncio.all_tasks() if task.get_name() == "rebalance g"]
    task.cancel()
    await until(lambda: made.ended() == ["rebalance g"])
    await made.close()


async def test_a_drain_ends_all_but_what_is_needed_until_the_group_is_left() -> None:
    made, done = Timers("g"), asyncio.Event()
    made.start("heartbeat", asyncio.Event().wait, until_left=True)  # type: ignore[arg-type]
    made.start("rebalance", asyncio.Event().wait)  # type: ignore[arg-type]
    made.once("begin", asyncio.sleep(3600))
    made.once("rejoin", _set(done))
    await done.wait()
    made.drain()
    await until(lambda: made.ended() == ["rebalance g"])
    await until(lambda: not [task for task in asyncio.all_tasks() if task.get_name() == "begin"])
    await made.close()
    assert made.ended() == ["heartbeat g", "rebalance g"]


async def _set(event: asyncio.Event) -> None:
    event.set()
