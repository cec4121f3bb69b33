"""Waiting for something to become true, with a deadline."""

import asyncio
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    """Poll; a TimeoutError if it does not come true."""
    async with asyncio.timeout(seconds):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)
