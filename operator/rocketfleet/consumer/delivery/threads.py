"""Threads that serve lanes: the room in which synchronous handlers run.

Lanes with work stand in a line; a thread takes the first, serves it, and puts it back at the end if there is more.
Threads are started when there is work and nobody free, up to the minimum; beyond it, up to the maximum, only while
much is waiting; and those beyond the minimum leave again when idle.

A thread is not woken for every offer. With a quick handler the threads that run already get to the lane sooner than a
sleeping one would wake, and the interpreter lock lets only one of them run. Should they be stuck after all, `nudge`,
which the service calls now and then, wakes another.

A thread whose handler hangs for good is written off: it no longer counts, so another may be started in its place. As
many as the maximum can be lost that way; then the handlers are past help. A thread that ended although nobody told it
to, or that the system would not start, is found out by the next `nudge`.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.pace import HandlerPace

_log = logging.getLogger(__name__)
IDLE_SECONDS = 60.0
_MUCH = 1000  # messages waiting in the lanes in line, from which threads beyond the minimum are started


class Threads:
    """`serve` handles some of a lane's messages and says whether the lane has to come again."""

    def __init__(
        self,
        serve: Callable[[Lane], bool],
        *,
        minimum: int,
        maximum: int,
        pace: HandlerPace,
        name: str,
        idle: float = IDLE_SECONDS,
    ) -> None:
        self._serve = serve
        self._minimum = minimum
        self._maximum = maximum
        self._pace = pace
        self._name = name
        self._idle_seconds = idle
        self._changed = threading.Condition()
        self._line: deque[Lane] = deque()
        self._threads: set[threading.Thread] = set()
        self._lost: set[threading.Thread] = set()  # written off
        self._idle = 0
        self._woken = 0  # notified but not running yet
        self._started = 0
        self._closed = False

    def offer(self, lane: Lane) -> None:
        """The lane has work. From any thread."""
        with self._changed:
            if self._closed or lane.waiting:
                return
            lane.waiting = True
            self._line.append(lane)
            busy = len(self._threads) - self._idle + self._woken
            if busy == 0 or not self._pace.is_quick:
                self._wake()

    def nudge(self) -> None:
        """If lanes still wait, those who run must be stuck: wake one more thread."""
        with self._changed:
            if self._line and not self._closed:
                self._count_the_living()
                much = sum([lane.window.buffered for lane in self._line]) > _MUCH
                self._wake(self._maximum if much else self._minimum)

    def write_off(self, worker: object) -> None:
        """A thread hangs in its handler: do without it. Should it come back after all, it leaves."""
        with self._changed:
            if worker in self._threads and len(self._lost) < self._maximum:
                assert isinstance(worker, threading.Thread)
                self._threads.remove(worker)
                self._lost.add(worker)

    @property
    def count(self) -> int:
        return len(self._threads) + len(self._lost)

    def close(self) -> None:
        """Let every thread leave when it is done with what it has in hand. Waits for none: a handler may hang."""
        with self._changed:
            self._closed = True
            self._line.clear()
            self._changed.notify_all()

    def _wake(self, limit: int | None = None) -> None:
        if self._idle > self._woken:
            self._woken += 1
            self._changed.notify()
        elif len(self._threads) < (self._minimum if limit is None else limit):
            self._started += 1
            # A daemon: a handler that never returns must not keep the process alive once its drain has timed out.
            thread = threading.Thread(target=self._run, name=f"{self._name}-{self._started}", daemon=True)
            self._threads.add(thread)
            try:
                thread.start()
            except (RuntimeError, MemoryError) as error:  # the lane stays in line: others get to it, or the next try
                self._threads.discard(thread)
                _log.error("no thread could be started for %s (%s); it is tried again", self._name, error)

    def _count_the_living(self) -> None:
        for thread in [thread for thread in self._threads if not thread.is_alive()]:
            self._threads.discard(thread)
            _log.error("%s has ended; this is a bug in the consumer. Another takes its place", thread.name)

    def _run(self) -> None:
        me = threading.current_thread()
        try:
            while me not in self._lost and (lane := self._next()) is not None:
                try:
                    more = self._serve(lane)
                except BaseException:  # SystemExit too: it would end the thread without a word
                    _log.exception("serving %s failed; this is a bug in the consumer, not in the handler", lane.queue)
                    more = False
                if more:
                    self.offer(lane)
        finally:
            with self._changed:
                self._threads.discard(me)
                self._lost.discard(me)

    def _next(self) -> Lane | None:
        with self._changed:
            while not self._line:
                if self._closed:
                    return None
                self._idle += 1
                try:
                    notified = self._changed.wait(self._idle_seconds)
                finally:
                    self._idle -= 1
                if notified:
                    self._woken = max(0, self._woken - 1)
                self._woken = min(self._woken, self._idle)  # a notice may have missed one that had just given up
                if not notified and not self._line and len(self._threads) > self._minimum:
                    return None
            lane = self._line.popleft()
            lane.waiting = False
            return lane
