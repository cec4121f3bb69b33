"""A look every now and then, whatever happens: the timer of the consumption services.

Much hangs by it: a hanging handler is found out by it, a stuck pool is nudged by it, and a lane that is back inside its
lease is offered by it. So a look that fails is logged, and the next one comes; and a timer that was ended by anybody
but its owner is started again.
"""

import asyncio
import logging
from collections.abc import Callable

_log = logging.getLogger(__name__)


class Ticker:
    """Calls `look` on the running event loop, with a pause of `seconds()` before each time."""

    def __init__(self, look: Callable[[], None], seconds: Callable[[], float], *, name: str) -> None:
        self._look = look
        self._seconds = seconds
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._failing = False
        self._start()

    @property
    def is_running(self) -> bool:
        """From any thread."""
        return not self._task.done()

    async def close(self) -> None:
        self._closed = True
        self._task.cancel()
        await asyncio.wait([self._task])

    def _start(self) -> None:
        if not self._closed:
            self._task = self._loop.create_task(self._run(), name=self._name)
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._closed:
            return
        _log.error(
            "%s was ended; it is started again", self._name, exc_info=None if task.cancelled() else task.exception()
        )
        # A moment later: whoever ends all tasks because the loop is to end must not find a new one.
        self._loop.call_later(self._seconds(), self._start)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds())
            try:
                self._look()
                self._failing = False
            except Exception:
                if not self._failing:  # it may fail every time, and that is many times per second
                    _log.exception("%s failed; this is a bug in the consumer. It goes on", self._name)
                self._failing = True
