"""A queue of keys to look at: one key is never worked on twice at once, and none waits because of another's trouble.

`Schedule` decides and knows no tasks: for each key it holds the moment when it is due, and nothing else. Waking a key
again only ever moves that moment forward, so a thousand events make one pass. A key that is woken while it is worked
on becomes due again when that pass is over: what woke it may have come too late for the pass to see. Keys are taken in
the order in which they became due; one that wakes itself four times per second stands behind all that waited before it.

After an error a key waits, longer each time, with jitter. A wake-up still cuts that short, because a corrected manifest
should not wait a minute for its turn, but never below `RETRY_FLOOR`: a pass that fails and writes as it fails would
otherwise wake itself without end.

`WorkQueue` is the shell around it: a bounded number of tasks, and a stop that lets them finish.
"""

import asyncio
import heapq
import itertools
import logging
import random
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from rocketfleet.base.backoff import BackoffPolicy, delay

_log = logging.getLogger(__name__)
Key = TypeVar("Key", bound=Hashable)

KEY_SETTLE_SECONDS = 0.05  # between two passes over one key: events come in handfuls
RETRY_FLOOR = 1.0  # seconds after an error before which not even an event starts another pass
JITTER = 0.1  # part of a long pause that is random, so that a thousand keys do not come due in one moment
JITTERED = 5.0  # seconds from which on a pause is long
RETRIES = BackoffPolicy(first=1.0, limit=60.0)


class Requeue(NamedTuple):
    """What a pass answers when its key is to be looked at again, `after` so many seconds; sooner if it is woken."""

    after: float


class Schedule(Generic[Key]):
    """When each key is due. Times are those of any clock that does not go back."""

    def __init__(self, random: Callable[[], float] = random.random, retries: BackoffPolicy = RETRIES) -> None:
        self._random = random
        self._retries = retries
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []  # may hold moments that no longer count; `_due` says which do
        self._order = itertools.count()
        self._not_before: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._running: set[Key] = set()

    @property
    def running(self) -> frozenset[Key]:
        return frozenset(self._running)

    def wake(self, key: Key, now: float, after: float = 0.0) -> None:
        """Let it be due in so many seconds, unless it is due earlier already."""
        at = max(now + after, self._not_before.get(key, now))
        if key in self._due and self._due[key] <= at:
            return
        self._set(key, at)

    def take(self, now: float) -> Key | None:
        """The key that has been due for longest and is not worked on; it counts as worked on from here."""
        held: list[tuple[float, int, Key]] = []
        taken: Key | None = None
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            at, _, key = entry
            if self._due.get(key) != at:
                continue
            if key in self._running:
                held.append(entry)
                continue
            taken = key
            del self._due[key]
            self._running.add(key)
            break
        for entry in held:
            heapq.heappush(self._heap, entry)
        return taken

    def done(self, key: Key, now: float, again: float | None) -> None:
        """The pass is over; the next one is due in `again` seconds, or when something wakes the key."""
        self._running.discard(key)
        self._failures.pop(key, None)
        if again is None and key not in self._due:
            self._not_before.pop(key, None)
            return
        self._not_before[key] = now + KEY_SETTLE_SECONDS
        if again is not None:
            if again >= JITTERED:
                again *= 1.0 - JITTER * self._random()
            self.wake(key, now, again)
        self._hold_back(key)

    def failed(self, key: Key, now: float) -> float:
        """The pass ended with an error; says in how many seconds it is tried again."""
        self._running.discard(key)
        self._failures[key] = self._failures.get(key, 0) + 1
        pause = delay(self._retries, self._failures[key], self._random)
        self._not_before[key] = now + min(pause, RETRY_FLOOR)
        self.wake(key, now, pause)
        self._hold_back(key)
        return pause

    def next_due(self) -> float | None:
        """When the next key that is not worked on is due. None: nothing is."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap:
            return None
        if self._heap[0][2] not in self._running:
            return self._heap[0][0]
        free = (at for key, at in self._due.items() if key not in self._running)
        return min(free, default=None)

    def waiting(self, now: float) -> tuple[int, float]:
        """How many keys are due and wait for a worker, and for how many seconds the first of them has."""
        overdue = [at for key, at in self._due.items() if at <= now and key not in self._running]
        return len(overdue), now - min(overdue, default=now)

    def _hold_back(self, key: Key) -> None:
        """What was woken during the pass waits as long as anything woken after it would."""
        if key in self._due and self._due[key] < self._not_before[key]:
            self._set(key, self._not_before[key])

    def _set(self, key: Key, at: float) -> None:
        self._due[key] = at
        heapq.heappush(self._heap, (at, next(self._order), key))


class WorkQueue(Generic[Key]):
    """Works on keys as they come due, at most `workers` at once. `work` says when to look again; None: when something
    wakes the key.
    """

    def __init__(
        self,
        work: Callable[[Key], Awaitable[Requeue | None]],
        workers: int = 8,
        pass_limit: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random.random,
        observe: Callable[[Key, float, bool], None] | None = None,
        foreseen: tuple[type[Exception], ...] = (),
    ) -> None:
        if workers < 1:
            raise ValueError(f"there must be at least one worker, not {workers}")
        self._work = work
        self._workers = workers
        self._pass_limit = pass_limit
        self._clock = clock
        self._observe = observe
        self._foreseen = foreseen  # errors whose sentence says it all: no traceback
        self._schedule: Schedule[Key] = Schedule(random)
        self._tasks: dict[asyncio.Task[None], Key] = {}
        self._changed = asyncio.Event()
        self._open = False
        self._progress = clock()

    def wake(self, key: Key) -> None:
        self.wake_later(key, 0.0)

    def wake_later(self, key: Key, seconds: float) -> None:
        """Look at it in so many seconds; of several such wishes the earliest counts."""
        self._schedule.wake(key, self._clock(), seconds)
        self._changed.set()

    def waiting(self) -> tuple[int, float]:
        """Keys that wait for a worker, and the seconds that the first of them has waited. Nothing waits if paused."""
        return self._schedule.waiting(self._clock()) if self._open else (0, 0.0)

    def since_pass(self) -> float:
        """Seconds since a pass ended, or the queue was opened."""
        return self._clock() - self._progress

    @property
    def busy(self) -> int:
        """Passes under way."""
        return len(self._tasks)

    def open(self) -> None:
        """Begin to work, or go on after a pause."""
        self._open = True
        self._progress = self._clock()
        self._changed.set()

    async def close(self, grace: float) -> None:
        """Begin nothing more. Passes under way get `grace` seconds, then they are cancelled; keys are kept."""
        self._open = False
        if self._tasks and grace > 0:
            await asyncio.wait(list(self._tasks), timeout=grace)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def run(self) -> None:
        """Hand out work, until cancelled."""
        while True:
            self._changed.clear()
            pause = self._hand_out()
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _hand_out(self) -> float | None:
        """Start what can be started; says in how many seconds there may be more. None: when something changes."""
        while self._open and len(self._tasks) < self._workers:
            now = self._clock()
            key = self._schedule.take(now)
            if key is None:
                due = self._schedule.next_due()
                return None if due is None else max(0.0, due - now)
            task = asyncio.create_task(self._pass(key), name=f"reconcile {key}")
            self._tasks[task] = key
            task.add_done_callback(self._ended)
        return None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        self._progress = self._clock()
        self._changed.set()

    async def _pass(self, key: Key) -> None:
        began = self._clock()
        well = False
        try:
            async with asyncio.timeout(self._pass_limit):
                again = await self._work(key)
        except asyncio.CancelledError:
            self._schedule.done(key, self._clock(), 0.0)
            raise
        except TimeoutError:
            pause = self._schedule.failed(key, self._clock())
            _log.error("%s: not done after %g s; tried again in %.1f s", key, self._pass_limit, pause)
        except self._foreseen as error:
            pause = self._schedule.failed(key, self._clock())
            _log.warning("%s: %s; tried again in %.1f s", key, error, pause)
        except Exception:
            pause = self._schedule.failed(key, self._clock())
            _log.exception("%s: this pass failed, and is tried again in %.1f s", key, pause)
        else:
            self._schedule.done(key, self._clock(), None if again is None else again.after)
            well = True
        if self._observe is not None:
            self._observe(key, self._clock() - began, well)
