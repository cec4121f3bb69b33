"""A consumer's timers: what it does again and again for as long as it runs, each in a task of its own.

One that fails, or comes to an end, is logged and begins again. So a timer whose task has ended was ended by somebody
else, and what it did is no longer done: `ended` says so, and a worker is restarted for it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

_log = logging.getLogger(__name__)
PAUSE_SECONDS = 0.2  # before a timer begins again


class Timers:
    """The timers of one consumer, and what it does once in the background. `group` is for the names of tasks."""

    def __init__(self, group: str, *, pause: float = PAUSE_SECONDS) -> None:
        self._group = group
        self._pause = pause
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._until_left: set[str] = set()
        self._once: set[asyncio.Task[None]] = set()

    def start(self, name: str, timer: Callable[[], Coroutine[Any, Any, None]], *, until_left: bool = False) -> None:
        """Run a timer until `drain`, or until `close` if it is needed until the group is left."""
        name = f"{name} {self._group}"
        self._timers[name] = asyncio.get_running_loop().create_task(_supervised(name, timer, self._pause), name=name)
        if until_left:
            self._until_left.add(name)

    def once(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Do something in the background, which ends with the timers if it has not ended by then."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._once.add(task)
        task.add_done_callback(self._once.discard)

    def ended(self) -> list[str]:
        """The timers that do not run any more. From any thread; only for a consumer that is not being stopped."""
        return [name for name, task in list(self._timers.items()) if task.done()]

    def drain(self) -> None:
        """End all but those that are needed until the group is left."""
        for task in self._once:
            task.cancel()
        for name, task in self._timers.items():
            if name not in self._until_left:
                task.cancel()

    async def close(self) -> None:
        """End all of them, and wait for that."""
        tasks = [*self._timers.values(), *self._once]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _supervised(name: str, timer: Callable[[], Coroutine[Any, Any, None]], pause: float) -> None:
    while True:
        try:
            await timer()
        except Exception:
            _log.exception("%s failed and begins again; this is a bug in the consumer", name)
        else:
            _log.error("%s ended and begins again; this is a bug in the consumer", name)
        await asyncio.sleep(pause)
