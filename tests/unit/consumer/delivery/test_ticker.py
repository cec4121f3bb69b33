"""The timer of the consumption services: it goes on, whatever happens to it."""

import asyncio

import pytest
from tests.support.waiting import until

from rocketfleet.consumer.delivery.ticker import Ticker


async def test_a_look_that_fails_is_said_once_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks in (2, 3, 5):
            raise ValueError("blind")

    ticker = Ticker(look, lambda: 0.001, name="tick g")
    await until(lambda: looks > 6)
    await ticker.close()
    assert caplog.text.count("tick g failed") == 2, "once for each row of failures"
    after = looks
    await asyncio.sleep(0.01)
    assert looks == after


async def test_a_timer_that_somebody_cancels_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1

    ticker = Ticker(look, lambda: 0.001, name="tick g")
    for _ in range(2):
        before = looks
        first = ticker._task
        first.cancel()
        await until(lambda first=first: first.done() and ticker._task is not first)  # type: ignore[misc]  # bound now
        await until(lambda before=before: looks > before)  # type: ignore[misc]  # bound now
    assert "was ended; it is started again" in caplog.text
    await ticker.close()


def test_the_end_of_the_loop_leaves_no_timer_behind() -> None:
    async def main() -> None:
        Ticker(lambda: None, lambda: 0.001, name="tick g")
        await asyncio.sleep(0.005)

    asyncio.run(main())  # which cancels what is left; a task that was made then would be reported as destroyed


async def test_a_timer_that_is_between_two_lives_can_be_closed() -> None:
    ticker = Ticker(lambda: None, lambda: 0.01, name="tick g")
    ticker._task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await ticker.close()
    ended = ticker._task
    await asyncio.sleep(0.03)
    assert ticker._task is ended
