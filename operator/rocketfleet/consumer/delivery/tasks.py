"""Tasks that serve lanes: the room in which asynchronous handlers run, on the consumer's own event loop.

The same line of lanes as in `threads.py`, but nothing here runs in parallel, so there is no lock; a task is started
for each lane in line up to the limit, and ends when the line is empty. One whose handler hangs for good is written off,
as a thread is.

Only `close` ends a task before its line is empty, by a cancellation. A handler may bring one about too: it awaits what
was cancelled, or cancels the task that it runs in. That is a failure of the handler; the task ends when the message has
its verdict, because the cancellation may have come from whoever ends the whole loop, and another task goes on.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from rocketfleet.consumer.delivery.lane import Lane

_log = logging.getLogger(__name__)


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
            task.add_done_callback(self._ended)

    def write_off(self, worker: object) -> None:
        """A task hangs in its handler: do without it. Should it come back after all, it ends."""
        if worker in self._tasks and len(self._lost) < self._maximum:
            assert isinstance(worker, asyncio.Task)
            self._tasks.remove(worker)
            self._lost.add(worker)

    @property
    def count(self) -> int:
        return len(self._tasks) + len(self._lost)

    def ends(self, error: BaseException) -> bool:
        """Whether what came out of a handler is meant for the task and not the handler's own failure."""
        if isinstance(error, GeneratorExit):
            return not self._loop.is_running()  # the loop was closed under us, and the task is thrown away with it
        return self._closed and isinstance(error, asyncio.CancelledError)

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
            while self._line and not self._closed and me not in self._lost and not me.cancelling():
                await self._serve_first()
        finally:
            # Here and not in a callback: until that ran, an offer would count on a task that no longer looks.
            self._tasks.discard(me)
            self._lost.discard(me)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)  # if it was cancelled before it could do so itself
        self._lost.discard(task)
        if not self._closed and not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s ended; this is a bug in the consumer. Another goes on", self._name, exc_info=error)

    async def _serve_first(self) -> None:
        lane = self._line.popleft()
        lane.waiting = False
        try:
            more = await self._serve(lane)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException:  # SystemExit too: it would end the event loop
            _log.exception("serving %s failed; this is a bug in the consumer, not in the handler", lane.queue)
            more = False
        if more:
            if not lane.waiting:
                lane.waiting = True
                self._line.append(lane)
            # A handler that never waits for anything would keep the loop to itself.
            await asyncio.sleep(0)
