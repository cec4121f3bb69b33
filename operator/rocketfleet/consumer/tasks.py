"""Tasks that serve lanes: the room in which asynchronous handlers run, on the consumer's own event loop.

The same line of lanes as in `threads.py`, but nothing here runs in parallel, so there is no lock; a task is started
for each lane in line up to the limit, and ends when the line is empty. One whose handler hangs for good is written off,
as a thread is.
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
        self._lost: set[asyncio.Task[None]] = set()  # written off
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def offer(self, lane: Lane) -> None:
        """The lane has work. Only from the event loop."""
        if self._closed or lane.waiting:
            return
        lane.waiting = True
        self._line.append(lane)
        self.nudge()

    def nudge(self) -> None:
        """If lanes wait and there is room, start a task."""
        if self._line and not self._closed and len(self._tasks) < self._maximum:
            task = self._loop.create_task(self._run(), name=self._name)
            self._tasks.add(task)

    def write_off(self, worker: object) -> None:
        """A task hangs in its handler: do without it. Should it come back after all, it ends."""
        if worker in self._tasks and len(self._lost) < self._maximum:
            assert isinstance(worker, asyncio.Task)
            self._tasks.remove(worker)
            self._lost.add(worker)

    @property
    def count(self) -> int:
        return len(self._tasks) + len(self._lost)

    def close(self) -> None:
        """Begin nothing more, and cancel the handlers that still run: their drain has timed out, or there are none."""
        self._closed = True
        self._line.clear()
        for task in [*self._tasks, *self._lost]:
            task.cancel()

    async def _run(self) -> None:
        me = asyncio.current_task()
        assert me is not None
        try:
            while self._line and not self._closed and me not in self._lost:
                await self._serve_first()
        finally:
            # Here and not in a callback: until that ran, an offer would count on a task that no longer looks.
            self._tasks.discard(me)
            self._lost.discard(me)

    async def _serve_first(self) -> None:
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
