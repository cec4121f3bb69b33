"""Waiting for what another thread or task does: a condition with a deadline, never a sleep for its own sake."""

import asyncio
import time
from collections.abc import Callable

DEADLINE = 20.0


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Let the event loop run until the condition holds."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what or condition}"
        await asyncio.sleep(0.002)


def wait(condition: Callable[[], object], what: str = "") -> None:
    """Let other threads run until the condition holds."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what or condition}"
        time.sleep(0.001)


async def turns(count: int = 20) -> None:
    """Let everything that is ready on the event loop run."""
    for _ in range(count):
        await asyncio.sleep(0)
