"""Waiting for what another thread, task or process brings about: a condition with a time limit, never a bare sleep.

Limits only matter to a test that fails, so they are generous: machines are busy. A wait that fails says what was waited
for and what the machine was doing.
"""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from hypothesis import HealthCheck, settings

T = TypeVar("T")
Condition = Callable[[], object]

WITHIN = 120.0
"""Seconds; a test has five minutes."""

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties: how long an example takes says something about the machine only."""


class TookTooLongError(AssertionError):
    """What was waited for did not happen."""


async def until(
    condition: Condition,
    what: str = "",
    within: float = WITHIN,
    *,
    every: float = 0.002,
    ignoring: tuple[type[Exception], ...] = (),
    report: Callable[[], str] | None = None,
) -> None:
    """Let the event loop run until the condition, a plain or a coroutine function, holds.

    One that raises what is to be ignored does not hold yet. `report` says more about a failure.
    """
    started = time.monotonic()
    while True:
        last: Exception | None = None
        try:
            holds = condition()
            if isinstance(holds, Awaitable):
                holds = await holds
            if holds:
                return
        except ignoring as error:
            last = error
        if time.monotonic() > started + within:
            raise TookTooLongError(_failure(condition, what, within, last, report))
        await asyncio.sleep(every)


def wait_until(
    condition: Callable[[], T | Literal[False] | None],
    what: str = "",
    within: float = WITHIN,
    *,
    every: float = 0.02,
    ignoring: tuple[type[Exception], ...] = (),
    report: Callable[[], str] | None = None,
) -> T:
    """Let other threads and processes run until the condition gives something that is true, and return that.

    One that raises what is to be ignored does not hold yet. `report` says more about a failure.
    """
    started = time.monotonic()
    while True:
        last: Exception | None = None
        try:
            if found := condition():
                return found
        except ignoring as error:
            last = error
        if time.monotonic() > started + within:
            raise TookTooLongError(_failure(condition, what, within, last, report))
        time.sleep(every)


async def turns(count: int = 20) -> None:
    """Let everything that is ready on the event loop run."""
    for _ in range(count):
        await asyncio.sleep(0)


def _failure(
    condition: Condition, what: str, within: float, last: Exception | None, report: Callable[[], str] | None
) -> str:
    because = "" if last is None else f"; last: {last}"
    load = ", ".join(f"{figure:.1f}" for figure in os.getloadavg())
    more = "" if report is None else f"\n{report()}"
    return (
        f"not within {within:g} s: {what or _source(condition)}{because} "
        f"(load average {load} on {os.cpu_count()} cores){more}"
    )


def _source(condition: Condition) -> str:
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)
