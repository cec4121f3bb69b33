"""What concurrent and orderly consumption stand on alike.

The workers: threads for a handler that is a plain function, tasks for one that is asynchronous, both serving lanes. A
look now and then. And the event loop, on which what failed is settled, however many threads handle messages.

In which order messages are handled, and what becomes of one that failed, is what makes the two differ, and stands with
each. So do their loops over messages: those are run a million times for every time that something here is.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.pace import HandlerPace
from rocketfleet.consumer.delivery.tasks import Tasks
from rocketfleet.consumer.delivery.threads import Threads
from rocketfleet.consumer.delivery.ticker import Ticker
from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.wire.message import ReceivedMessage

_log = logging.getLogger(__name__)

SendBack = Callable[[ReceivedMessage, int], Awaitable[None]]
"""Hands a message back to its broker with a delay level; raises when the broker did not take it."""


class Consumption(ABC):
    """See the module. `clock` is the one the leases are measured by, `tick` the seconds between two looks."""

    def __init__(
        self,
        settings: ConsumerSettings,
        handler: Handler,
        send_back: SendBack,
        *,
        clock: Callable[[], float],
        tally: ConsumerCounters,
        tick: float,
    ) -> None:
        self._settings = settings
        self._handler = handler
        self._send_back = send_back
        self._clock = clock
        self._tally = tally
        self._pace = HandlerPace()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._lanes: set[Lane] = set()
        self._settling: set[asyncio.Task[Any]] = set()  # of messages that failed, and go back to their broker
        self._workers: Threads | Tasks
        name = f"consume-{settings.group}"
        if handler.is_async:
            self._workers = self._tasks = Tasks(self._serve_async, maximum=settings.consume_thread_max, name=name)
        else:
            self._workers = Threads(
                self._serve,
                minimum=settings.consume_thread_min,
                maximum=settings.consume_thread_max,
                pace=self._pace,
                name=name,
            )
        self._ticker = Ticker(self._look, lambda: tick, name=f"tick {settings.group}")

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def open(self, lane: Lane) -> None:
        self._lanes.add(lane)

    @abstractmethod
    def offer(self, lane: Lane) -> None:
        """Messages were put into the lane's window."""

    def forget(self, lane: Lane) -> None:
        """The lane's window has wound down, or was abandoned."""
        self._lanes.discard(lane)

    @abstractmethod
    def dropped(self, lane: Lane) -> None:
        """The lane's window winds down, or was dropped."""

    @property
    def is_ticking(self) -> bool:
        """Whether its timer runs. From any thread."""
        return self._ticker.is_running

    async def close(self) -> None:
        self._closed = True
        self._workers.close()
        for task in self._settling:
            task.cancel()
        await asyncio.gather(self._ticker.close(), *self._settling, return_exceptions=True)

    @property
    def workers(self) -> int:
        return self._workers.count

    # -- what each does in its own way --------------------------------------------------------------------------------

    @abstractmethod
    def _serve(self, lane: Lane) -> bool:
        """Handle some of a lane's messages, in a thread; says whether the lane has to come again."""

    @abstractmethod
    async def _serve_async(self, lane: Lane) -> bool:
        """The same in a task."""

    @abstractmethod
    def _look(self) -> None:
        """Every now and then, on the event loop."""

    # -- what both do -------------------------------------------------------------------------------------------------

    def _on_loop(self, call: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop is closed: what was begun is never committed, and comes to whoever is next
            _log.debug("the event loop is closed")
