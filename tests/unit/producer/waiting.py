"""Waiting for something that the code under test brings about in its own time."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties: how long an example takes says something about the machine only."""


async def until(condition: Callable[[], Any], *, within: float = 60.0) -> None:
    """Wait for a condition; the deadline only bounds a test that fails, so it is generous: machines are busy."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while not condition():
        assert loop.time() < deadline, f"did not come true within {within} s: {inspect.getsource(condition).strip()}"
        await asyncio.sleep(0.005)
