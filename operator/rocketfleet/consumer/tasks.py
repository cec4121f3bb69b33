"""Tasks that serve lanes: the room in which asynchronous handlers run, on the consumer's own event loop.

The same line of lanes as in `threads.py`, but nothing here runs in parallel, so there is no lock; a task is started
for each lane in line up to the limit, and ends when the line is empty.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from rocketfleet.consumer.lane import Lane

_log = logging.getLogger(__name__)


def being_cancelled() -> bool:
    """Whether a CancelledError is meant for the running task; else it came out of what the task awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Tasks:
    """`serve` handles some of a lane's messages and says whether the lane has to come again."""

    def __init__(self, serve: Callable[[Lane], Awaitable[bool]], *, maximum: int, name: str) -> None:
        self._serve = serve
        self._maximum = maximum
        self._name = name
        self._line: deque[Lane] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def offer(self, lane: Lane) -> None:
        """The lane has work. Only from the event loop."""
        if self._closed or lane.waiting:
            return
        lane.waiting = True
        self._line.append(lane)
        if len(self._tasks) < self._maximum:
            task = self._loop.create_task(self._run(), name=self._name)
            self._tasks.add(task)

    def nudge(self) -> None:
        """Nothing to do: whoever waits for a handler has let the others run."""

    @property
    def count(self) -> int:
        return len(self._tasks)

    def close(self) -> None:
        """Begin nothing more, and cancel the handlers that still run: their drain has timed out, or there are none."""
        self._closed = True
        self._line.clear()
        for task in list(self._tasks):
            task.cancel()

    async def _run(self) -> None:
        try:
            await self._serve_line()
        finally:
            # Here and not in a callback: until that ran, an offer would count on a task that no longer looks.
            self._tasks.discard(asyncio.current_task())

    async def _serve_line(self) -> None:
        while self._line and not self._closed:
            lane = self._line.popleft()
            lane.waiting = False
            try:
                more = await self._serve(lane)
            except Exception:
                _log.exception("serving %s failed; this is a bug in the consumer, not in the handler", lane.queue)
                more = False
            if more:
                if not lane.waiting:
                    lane.waiting = True
                    self._line.append(lane)
                # A handler that never waits for anything would keep the loop to itself.
                await asyncio.sleep(0)
