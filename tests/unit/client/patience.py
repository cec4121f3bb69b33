"""Patience for a busy machine: conditions are polled up to a deadline that only a failing test reaches."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def until(condition: Callable[[], Any], *, within: float = 5.0) -> None:
    """Wait for a condition, a function or a coroutine function; the deadline only bounds a test that fails."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        met = condition()
        if await met if inspect.isawaitable(met) else met:
            return
        if loop.time() > deadline:
            raise AssertionError(f"did not come true within {within} s: {inspect.getsource(condition).strip()}")
        await asyncio.sleep(0.005)
