"""Many calls, a bounded number at once."""

import asyncio

import pytest

from rocketfleet.client.fanout import bounded


async def test_so_many_at_once_and_results_in_the_order_asked_for() -> None:
    under_way = most = 0

    async def call(number: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(10 - number % 7):
            await asyncio.sleep(0)
        under_way -= 1
        return number * number

    found = await bounded([3, 1, 2, 3, *range(4, 40)], call, at_once=5)
    assert list(found) == [3, 1, 2, *range(4, 40)]
    assert found[7] == 49
    assert most == 5
    assert await bounded([], call) == {}


async def test_after_an_error_nothing_is_begun_and_what_was_begun_ends_first() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def call(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise ValueError("one is wrong")
        await asyncio.sleep(0.01)
        ended.append(number)

    with pytest.raises(ValueError, match="one is wrong"):
        await bounded(range(100), call, at_once=4)
    assert begun == [0, 1, 2, 3]
    assert ended == [0, 2, 3]
