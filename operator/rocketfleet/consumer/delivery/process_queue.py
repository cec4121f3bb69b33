"""What is in flight on one queue, and which offset may be committed because of it.

Theory. A queue's messages pass through this window in order: pulled messages are *buffered*; a worker *takes* a run
of them off the front; it begins them one by one, and each *finishes*, well or not. The offset that may be committed
is the lowest one not finished: everything below it was handled, so whoever starts there loses nothing and repeats
only what was in flight.

Four decisions make this cheap and right:

- The unit of hand-out is the *run*, not the message: a consecutive slice of the buffer that one worker handles front
  to back. How much of it is finished is one integer, and the bookkeeping is paid once per run. With a handler that does
  nothing a run is hundreds of messages; with a slow one it is a single message. Java keeps a sorted tree of messages
  for this.
- A run's messages that are not begun are an iterator, and beginning one is `next`, which the interpreter does in one
  piece. So they can be *reclaimed* from another thread at any moment: each message goes to exactly one side, without
  a lock for each message. An interpreter without its global lock promises no such thing; there `next` takes a lock.
- A message that failed is *held* until it is settled (the broker has it back, or it is buffered again): it left its
  run but is not finished, and it blocks the committable offset until it is.
- When the queue goes to another member (`wind_down`), what lies above everything begun is thrown away at once: it
  belongs to the next owner. What has begun finishes and counts, and so does what lies between: left undone, it would
  keep the offset below messages that are finished, and those would be repeated. The lowest offset thrown away is a
  *barrier* that no commit passes. When the queue is lost (`drop`) all that was not begun is thrown away.

The lease stands here too, because it is asked in the same breath: past `lease_until` nothing is begun.

Threads: workers take and finish runs while the event loop puts and reads. A lock guards the sets. A worker moves
`run.finished` on without it: a single store, which a reader sees either before or after, and both are true.
"""

import math
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, Protocol, TypeVar


class Buffered(Protocol):
    """What the window needs to know of a message."""

    queue_offset: int
    body_length: int


M = TypeVar("M", bound=Buffered)


class OneByOne(Iterator[M]):
    """An iterator that several threads may ask at once also where `next` on a list's own is not done in one piece."""

    def __init__(self, messages: list[M]) -> None:
        self._messages = iter(messages)
        self._lock = threading.Lock()

    def __next__(self) -> M:
        with self._lock:
            return next(self._messages)


_unbegun = iter if getattr(sys, "_is_gil_enabled", lambda: True)() else OneByOne


class Run(Generic[M]):
    """A consecutive slice of one queue's messages in the hands of one worker."""

    __slots__ = ("begun_at", "finished", "handled", "handled_size", "messages", "pending", "window", "worker")

    def __init__(self, window: "ProcessQueue[M]", messages: list[M]) -> None:
        self.window = window
        self.messages = messages
        self.pending: Iterator[M] = _unbegun(messages)  # not begun; whoever calls `next` has the message
        self.finished = 0  # how many from the front are done; only the worker moves it
        # Beyond `finished`: how many messages, and bytes, are handled and wait only for the handler's COMMIT.
        self.handled = self.handled_size = 0
        self.begun_at = math.inf  # when the message at `finished` was begun; inf: none is being handled
        self.worker: object = None  # the thread or task that handles it, for whoever has to do without it


class ProcessQueue(Generic[M]):
    """The window of one queue during one ownership. After `drop` it only winds down; the next ownership has its own."""

    __slots__ = (
        "_barrier",
        "_buffer",
        "_ceiling",
        "_count",
        "_held",
        "_high",
        "_lock",
        "_next",
        "_open",
        "_size",
        "dropped",
        "lease_until",
        "on_progress",
    )

    def __init__(self, start_offset: int) -> None:
        self._lock = threading.Lock()
        self._buffer: deque[M] = deque()
        self._open: set[Run[M]] = set()
        self._held: dict[int, M] = {}
        self._next = start_offset  # the offset after the last one seen
        self._high = -1  # the highest offset finished
        self._ceiling: int | None = None  # winding down: the highest offset begun; what lies above is thrown away
        self._barrier: int | None = None  # the lowest offset thrown away
        self._count = 0
        self._size = 0
        self.dropped = False
        self.lease_until = math.inf  # inf: held without a lock (Eager, broadcasting)
        self.on_progress: Callable[[], None] | None = (
            None  # whoever waits for room or for the end; called from any thread
        )

    # -- filling ------------------------------------------------------------------------------------------------------

    def put(self, messages: Sequence[M], next_offset: int) -> bool:
        """Buffer what a pull brought; False if the window is dropped and the messages are somebody else's now.

        `next_offset` is where the broker says to go on: beyond the last message when a filter left some out.
        """
        with self._lock:
            if self.leaving:
                return False
            if messages and messages[0].queue_offset < self._next:
                messages = [m for m in messages if m.queue_offset >= self._next]
            self._buffer.extend(messages)
            self._count += len(messages)
            self._size += sum([m.body_length for m in messages])
            self._next = max(self._next, next_offset, messages[-1].queue_offset + 1 if messages else 0)
            return True

    # -- handing out --------------------------------------------------------------------------------------------------

    def take(self, limit: int) -> Run[M] | None:
        """The next run of at most `limit` messages, or None when nothing is buffered."""
        with self._lock:
            messages = self._pop(limit)
            if not messages:
                return None
            run = Run(self, messages)
            self._open.add(run)
            return run

    def extend(self, run: Run[M], limit: int) -> bool:
        """Take more messages into an open run that has none left to begin: its worker goes on before it commits."""
        with self._lock:
            more = self._pop(limit) if run in self._open else []
            run.messages.extend(more)
            run.pending = _unbegun(more)
            return bool(more)

    def may_begin(self, now: float) -> bool:
        """Asked before each message: does this queue still belong to us?"""
        return not self.dropped and now < self.lease_until

    def finish(self, run: Run[M]) -> None:
        """The worker is done with the run. What it did not finish is buffered again, or thrown away if dropped."""
        with self._lock:
            if run not in self._open:
                return  # it was expired under its worker
            self._open.remove(run)
            self._forget_finished(run)
            self._return(run.messages[run.finished :])
            wake = self.on_progress
        if wake is not None:
            wake()

    def reclaim(self, run: Run[M]) -> int:
        """Take back what the run's worker has not begun, so that others can have it. Returns how many messages."""
        with self._lock:
            return self._reclaim(run)

    def expire(self, run: Run[M]) -> list[M]:
        """Take away the message (or batch) that a worker hangs on, and hold it; the rest of its run is buffered again.

        The caller settles what is returned (sends it back, then `release`s it). What the worker does afterwards is
        ignored; what it held itself a moment before is already being settled and not returned.
        """
        with self._lock:
            if run not in self._open:
                return []
            self._reclaim(run)
            self._open.remove(run)
            held = [m for m in run.messages[run.finished :] if m.queue_offset in self._held]
            stuck = [m for m in run.messages[run.finished :] if m.queue_offset not in self._held]
            self._forget_finished(run)
            self._forget(held)  # they count as held
            for message in stuck:
                self._held[message.queue_offset] = message
            return stuck

    def give_back(self, run: Run[M], kept: int) -> None:
        """The worker keeps only the first `kept` messages of its run; the others are buffered again."""
        with self._lock:
            if run in self._open:
                back = run.messages[kept:]
                del run.messages[kept:]
                run.pending = iter(())
                self._return(back)

    def trim(self, run: Run[M]) -> int:
        """Forget the finished part of a run that goes on: it need not be in memory. Returns how many messages.

        Only its worker calls this, or whoever has it between turns.
        """
        with self._lock:
            finished = run.finished if run in self._open else 0
            if finished:
                self._forget_finished(run)
                run.messages = run.messages[finished:]  # another list: `pending` goes over the old one
                run.finished = 0
            wake = self.on_progress
        if finished and wake is not None:
            wake()
        return finished

    # -- failed messages ----------------------------------------------------------------------------------------------

    def hold(self, run: Run[M], message: M) -> bool:
        """The message failed and has to be settled. Called before the run moves past it, so no commit slips by.

        False if the run was expired under its worker: then the message is being settled already.
        """
        with self._lock:
            if run not in self._open:
                return False
            self._held[message.queue_offset] = message
            # `finish` takes it off with its run; it counts once more while it is held.
            self._count += 1
            self._size += message.body_length
            return True

    def release(self, message: M) -> None:
        """A held message is settled: sent back to the broker, or handled after all."""
        with self._lock:
            if self._held.pop(message.queue_offset, None) is not None:
                self._forget([message])
                self._high = max(self._high, message.queue_offset)
            wake = self.on_progress
        if wake is not None:
            wake()

    def put_back(self, message: M) -> None:
        """A held message is not settled: it is buffered again, or thrown away if dropped, for the next owner."""
        with self._lock:
            if self._held.pop(message.queue_offset, None) is not None:
                self._return([message])
            wake = self.on_progress
        if wake is not None:
            wake()

    # -- leaving ------------------------------------------------------------------------------------------------------

    def wind_down(self) -> int:
        """Begin to leave in good order: nothing comes in any more, and nothing above what was begun is begun.

        What was not begun but lies below something that was still has to be handled, or it would hold the committable
        offset below messages that are finished, and the next owner would repeat those. Returns how many messages were
        thrown away: they belong to the next owner.
        """
        with self._lock:
            before = self._count
            for run in self._open:
                self._reclaim(run)
            begun = [run.messages[-1].queue_offset for run in self._open if run.messages]
            self._ceiling = max(self._high, *begun, *self._held, -1)
            buffered, self._buffer = self._buffer, deque()
            self._return(list(buffered))
            return before - self._count

    def drop(self) -> int:
        """Stop: throw away what was not begun, and begin nothing more. Returns how many messages were thrown away."""
        with self._lock:
            before = self._count
            self.dropped = True
            for run in self._open:
                self._reclaim(run)
            thrown = list(self._buffer)
            self._buffer.clear()
            self._return(thrown)
            wake = self.on_progress
            count = before - self._count
        if wake is not None:
            wake()
        return count

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def leaving(self) -> bool:
        """Nothing comes in any more: winding down, or dropped."""
        return self.dropped or self._ceiling is not None

    @property
    def committable(self) -> int:
        """The lowest offset not finished: what may be committed."""
        with self._lock:
            low = self._buffer[0].queue_offset if self._buffer else self._next
            for run in self._open:
                position = run.finished
                if position < len(run.messages):
                    low = min(low, run.messages[position].queue_offset)
            if self._held:
                low = min(low, *self._held)
            if self._barrier is not None:
                low = min(low, self._barrier)
            return low

    @property
    def next_offset(self) -> int:
        """Where the next pull starts."""
        return self._next

    @property
    def count(self) -> int:
        """Messages buffered, in a run, or held. A run's messages leave the count together, when it ends."""
        return self._count

    @property
    def size(self) -> int:
        """Bytes of the bodies of those messages."""
        return self._size

    @property
    def uncommitted(self) -> tuple[int, int]:
        """Of these, how many messages and how many bytes are handled and wait only for the handler's COMMIT."""
        with self._lock:
            return sum([run.handled for run in self._open]), sum([run.handled_size for run in self._open])

    @property
    def buffered(self) -> int:
        return len(self._buffer)

    @property
    def span(self) -> int:
        """Distance between the lowest unfinished and the highest seen offset: how far one stuck message lags behind."""
        return self._next - self.committable if self._count else 0

    @property
    def unfinished(self) -> int:
        """Messages in a run that are not finished, and those held: once dropped, what was begun and is not done."""
        with self._lock:
            return sum([len(run.messages) - run.finished for run in self._open]) + len(self._held)

    @property
    def idle(self) -> bool:
        """Nothing is buffered, in a worker's hands or held: once winding down, the committable offset is final."""
        with self._lock:
            return not self._open and not self._held and not self._buffer

    @property
    def held(self) -> list[M]:
        """The messages that failed and are not settled yet."""
        with self._lock:
            return list(self._held.values())

    def begun_before(self, moment: float) -> list[Run[M]]:
        """The runs whose current message was begun before `moment`: candidates for `reclaim` and `expire`."""
        with self._lock:
            return [run for run in self._open if run.begun_at < moment]

    # -- under the lock -----------------------------------------------------------------------------------------------

    def _pop(self, limit: int) -> list[M]:
        buffer = self._buffer
        if limit >= len(buffer):
            messages = list(buffer)
            buffer.clear()
            return messages
        pop = buffer.popleft
        return [pop() for _ in range(limit)]

    def _forget(self, messages: Sequence[M]) -> None:
        self._count -= len(messages)
        self._size -= sum([m.body_length for m in messages])

    def _forget_finished(self, run: Run[M]) -> None:
        finished = run.messages[: run.finished]
        self._forget(finished)
        if finished:
            self._high = max(self._high, finished[-1].queue_offset)

    def _reclaim(self, run: Run[M]) -> int:
        tail = list(run.pending)
        if tail:
            del run.messages[-len(tail) :]
            self._return(tail)
        return len(tail)

    def _return(self, messages: Sequence[M]) -> None:
        """Messages that were not finished: back to the front of the buffer, or thrown away if we are leaving."""
        if self.dropped:
            messages = self._throw_away(messages)
        elif self._ceiling is not None:
            self._throw_away([m for m in messages if m.queue_offset > self._ceiling])
            messages = [m for m in messages if m.queue_offset <= self._ceiling]
        if not messages:
            return
        if self._buffer and self._buffer[0].queue_offset < messages[-1].queue_offset:
            # Runs end in any order, so what comes back may belong behind what came back before it.
            self._buffer = deque(sorted([*messages, *self._buffer], key=lambda m: m.queue_offset))
        else:
            self._buffer.extendleft(reversed(messages))

    def _throw_away(self, messages: Sequence[M]) -> Sequence[M]:
        """They belong to the next owner, and no commit passes them. Nothing is left."""
        if messages:
            self._forget(messages)
            lowest = min([m.queue_offset for m in messages])
            self._barrier = lowest if self._barrier is None else min(self._barrier, lowest)
        return ()


def next_batch(run: Run[M], size: int) -> list[M]:
    """Begin up to `size` messages of the run at once."""
    return list(islice(run.pending, size))
