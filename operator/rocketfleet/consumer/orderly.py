"""Orderly consumption: one flow of messages a queue, in the order of their offsets.

A lane is served by one worker at a time, for at most a minute in one turn, so that a full queue does not keep a
worker from the others. A message that fails stays where it is: the queue pauses (`suspend_current_queue_time`, or
what the handler says) and the handler gets the same message again, with its count of tries raised, until it has had
`max_reconsume_times` tries; then it goes to the dead letters and the queue goes on. If the dead letters do not take
it, it is tried again in place.

With auto-commit every handled message may be committed. Without it the handler decides: SUCCESS only moves on, COMMIT
makes everything since the last commit committable, ROLLBACK gives all of that again after a pause. What is handled but
not committed stays in its run, also from turn to turn, so a message that fails comes again alone.

A queue that is not under its lock and within its lease is not delivered: `may_begin` sees to that, here as
everywhere.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any

from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.lane import Lane
from rocketfleet.consumer.pace import Pace
from rocketfleet.consumer.process_queue import Run, next_batch
from rocketfleet.consumer.results import DEAD_LETTER_LEVEL, ConsumeResult, Retry, judge
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.tally import Tally
from rocketfleet.consumer.tasks import Tasks, being_cancelled
from rocketfleet.consumer.threads import Threads
from rocketfleet.wire.message import ReceivedMessage

_log = logging.getLogger(__name__)
TURN_SECONDS = 60.0
RUN_LENGTH = 256
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 30.0
TICK = 0.1

SendBack = Callable[[ReceivedMessage, int], Awaitable[None]]
_MessageRun = Run[ReceivedMessage]
_Batch = list[ReceivedMessage]
_Turn = Generator[Any, object, float | ReceivedMessage]
_GOOD = (ConsumeResult.SUCCESS, ConsumeResult.COMMIT)
_STOPPED = object()  # instead of an answer: the time, or the queue, was over before the message was handled


class OrderlyConsumption:
    """See the module."""

    def __init__(
        self,
        settings: ConsumerSettings,
        handler: Handler,
        send_back: SendBack,
        *,
        clock: Callable[[], float],
        tally: Tally,
    ) -> None:
        self._settings = settings
        self._handler = handler
        self._send_back = send_back
        self._clock = clock
        self._tally = tally
        self._loop = asyncio.get_running_loop()
        # The common case, one message a call and every success a commit, has a turn of its own.
        self._plain = settings.auto_commit and not handler.takes_batch
        self._pace = Pace()
        self._lanes: set[Lane] = set()
        self._busy: set[Lane] = set()  # served now, or pausing: must not be offered
        self._guard = threading.Lock()  # of `_busy`: a lane served twice at once would be out of order
        self._tasks: set[asyncio.Task[None]] = set()
        self._workers: Threads | Tasks
        name = f"consume-{settings.group}"
        if handler.is_async:
            self._workers = Tasks(self._serve_async, maximum=settings.consume_thread_max, name=name)
        else:
            self._workers = Threads(
                self._serve,
                minimum=settings.consume_thread_min,
                maximum=settings.consume_thread_max,
                pace=self._pace,
                name=name,
            )
        self._ticker = self._loop.create_task(self._tick(), name=f"tick {settings.group}")

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def open(self, lane: Lane) -> None:
        self._lanes.add(lane)

    def offer(self, lane: Lane) -> None:
        """Messages were put into the lane's window."""
        with self._guard:
            if lane in self._busy or not lane.window.buffered:
                return
            self._busy.add(lane)
        self._workers.offer(lane)

    def forget(self, lane: Lane) -> None:
        self._lanes.discard(lane)

    def dropped(self, lane: Lane) -> None:
        """The lane's window was dropped: what the handler did not commit belongs to the next owner."""
        uncommitted, lane.uncommitted = lane.uncommitted, None
        if uncommitted is not None:
            self._close(lane, uncommitted[0])

    async def close(self) -> None:
        self._ticker.cancel()
        self._workers.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(self._ticker, *self._tasks, return_exceptions=True)

    @property
    def workers(self) -> int:
        return self._workers.count

    # -- serving a lane -----------------------------------------------------------------------------------------------
    #
    # A turn is a generator: it yields what the handler is to be called with and is sent the answer (or the exception),
    # so that the rules stand here once for threads and tasks alike. It ends with the pause before the next turn, or
    # with a message for the dead letters. A plain turn yields whole runs, which go through the handler in one stretch,
    # and is sent the first answer that is no plain success.

    def _serve(self, lane: Lane) -> bool:
        ends_at = self._clock() + TURN_SECONDS
        call: Callable[[Any], Any] = self._handler.call
        if self._plain:
            turn, call = self._plain_turn(lane), partial(self._stretch, lane, ends_at)
        else:
            turn = self._turn(lane, ends_at)
        try:
            argument = next(turn)
            while True:
                try:
                    answer = call(argument)
                except BaseException as error:  # SystemExit too: in a thread it ends nothing but the thread
                    answer = error
                argument = turn.send(answer)
        except StopIteration as end:
            if end.value == 0.0 and not lane.window.dropped:
                self._next_turn(lane)  # without the event loop: waking it may cost more than the turn did
            else:
                self._on_loop(self._turn_over, lane, end.value)
        return False

    async def _serve_async(self, lane: Lane) -> bool:
        ends_at = self._clock() + TURN_SECONDS
        call: Callable[[Any], Any] = self._handler.call
        if self._plain:
            turn, call = self._plain_turn(lane), partial(self._stretch_async, lane, ends_at)
        else:
            turn = self._turn(lane, ends_at)
        try:
            argument = next(turn)
            while True:
                try:
                    answer = await call(argument)
                except (Exception, asyncio.CancelledError) as error:
                    if being_cancelled():
                        raise
                    answer = error
                argument = turn.send(answer)
        except StopIteration as end:
            self._turn_over(lane, end.value)
        finally:
            turn.close()
        return False

    def _stretch(self, lane: Lane, ends_at: float, run: _MessageRun) -> object:
        """Handle messages while all goes well. The loop that everything else exists for: keep it short."""
        window, clock, call, success = run.window, self._clock, self._handler.call, ConsumeResult.SUCCESS
        before, started = run.finished, self._clock()
        try:
            for message in run.pending:
                now = clock()
                if window.dropped or now >= window.lease_until or now >= ends_at:
                    return _STOPPED
                run.begun_at = now
                answer = call(message)
                if answer is not None and answer is not success:
                    return answer
                run.finished += 1
                lane.moved = True
        finally:
            self._pace.note(clock() - started, run.finished - before)
        return None

    async def _stretch_async(self, lane: Lane, ends_at: float, run: _MessageRun) -> object:
        window, clock, call, success = run.window, self._clock, self._handler.call, ConsumeResult.SUCCESS
        for message in run.pending:
            now = clock()
            if window.dropped or now >= window.lease_until or now >= ends_at:
                return _STOPPED
            run.begun_at = now
            answer = await call(message)
            if answer is not None and answer is not success:
                return answer
            run.finished += 1
            lane.moved = True
        return None

    def _plain_turn(self, lane: Lane) -> _Turn:
        """Serve the lane for a while: one message a call, and what is handled may be committed."""
        run = lane.window.take(RUN_LENGTH)
        try:
            while run is not None:
                answer = yield run
                if answer is None:
                    self._close(lane, run)
                    run = lane.window.take(RUN_LENGTH)
                    continue
                if answer is _STOPPED:
                    return 0.0
                batch = [run.messages[run.finished]]
                verdict, retry = self._judge(lane, batch, answer)
                if verdict not in _GOOD:
                    return self._failed(batch, verdict, retry)
                run.finished += 1
                lane.moved = True
        finally:
            if run is not None:
                self._put_down(lane, run, run.finished)
        return 0.0

    def _turn(self, lane: Lane, ends_at: float) -> _Turn:
        """Serve the lane for a while, in batches, or with a handler that says when to commit."""
        window, batches = lane.window, self._handler.takes_batch
        size = self._settings.consume_message_batch_max_size if batches else 1
        run: _MessageRun | None
        handled = 0  # how many of the run are handled, committed or not
        uncommitted, lane.uncommitted = lane.uncommitted, None
        if uncommitted is not None:
            run, handled = uncommitted
        else:
            run = window.take(max(RUN_LENGTH, size))
        try:
            while run is not None:
                now = self._clock()
                if not window.may_begin(now) or now >= ends_at:
                    return 0.0
                batch = next_batch(run, size)
                if not batch:
                    if run.finished == len(run.messages):
                        self._close(lane, run)
                        handled = 0
                        run = window.take(max(RUN_LENGTH, size))
                    elif not window.extend(run, RUN_LENGTH):
                        return 0.0
                    continue
                run.begun_at = now
                verdict, retry = self._judge(lane, batch, (yield batch if batches else batch[0]))
                if verdict in _GOOD:
                    handled += len(batch)
                    if self._settings.auto_commit or verdict is ConsumeResult.COMMIT:
                        run.finished = handled
                        lane.moved = True
                    continue
                if verdict is ConsumeResult.ROLLBACK:
                    handled = run.finished
                return self._failed(batch, verdict, retry)
        finally:
            if run is not None:
                self._put_down(lane, run, handled)
        return 0.0

    def _failed(self, batch: _Batch, verdict: ConsumeResult, retry: Retry) -> float | ReceivedMessage:
        """How a turn ends that came upon a failure: with a pause, or with a message that has had all of its tries."""
        self._tally.failed += 1
        dead = None if verdict is ConsumeResult.ROLLBACK else self._try_once_more(batch)
        return self._pause(retry) if dead is None else dead

    def _put_down(self, lane: Lane, run: _MessageRun, handled: int) -> None:
        """The turn ends: what is handled but not committed is kept for the next one, the rest is buffered again."""
        run.begun_at = math.inf
        run.window.give_back(run, handled)
        if run.finished < handled:
            lane.uncommitted = (run, handled)
        else:
            self._close(lane, run)

    def _close(self, lane: Lane, run: _MessageRun) -> None:
        run.begun_at = math.inf
        lane.consumed_at = self._clock()
        self._tally.handled += run.finished
        run.window.finish(run)
        lane.moved = True

    def _judge(self, lane: Lane, batch: _Batch, answer: object) -> tuple[ConsumeResult, Retry]:
        message = batch[0]
        if isinstance(answer, BaseException):
            _log.error(
                "handler %s raised on %s offset %d (message %s, time %d): the queue waits and tries it again",
                self._handler.name,
                lane.queue,
                message.queue_offset,
                message.msg_id,
                message.reconsume_times + 1,
                exc_info=answer,
            )
            return ConsumeResult.SUSPEND, Retry()
        try:
            return judge(answer)
        except TypeError as error:
            _log.error("handler %s, %s offset %d: %s", self._handler.name, lane.queue, message.queue_offset, error)
            return ConsumeResult.SUSPEND, Retry()

    def _try_once_more(self, batch: _Batch) -> ReceivedMessage | None:
        """Count the try. The first message of the batch, if it has had all of its tries: the others follow it."""
        if 0 <= self._settings.max_reconsume_times <= batch[0].reconsume_times:
            return batch[0]
        for message in batch:
            message.reconsume_times += 1
        return None

    def _pause(self, retry: Retry) -> float:
        seconds = self._settings.suspend_current_queue_time if retry.seconds is None else retry.seconds
        return min(max(seconds, SHORTEST_PAUSE), LONGEST_PAUSE)

    # -- between turns, on the event loop -----------------------------------------------------------------------------

    def _turn_over(self, lane: Lane, outcome: float | ReceivedMessage) -> None:
        if lane.window.dropped:
            self.dropped(lane)
        if isinstance(outcome, ReceivedMessage):
            self._start(self._bury(lane, outcome))
        elif outcome > 0:
            self._loop.call_later(outcome, self._next_turn, lane)
        else:
            self._next_turn(lane)

    def _next_turn(self, lane: Lane) -> None:
        """The lane is free. From any thread."""
        with self._guard:
            self._busy.discard(lane)
        # A lane outside its lease is offered again by the tick, when it is back inside.
        if lane.window.may_begin(self._clock()):
            self.offer(lane)

    async def _bury(self, lane: Lane, message: ReceivedMessage) -> None:
        """Send the message at the front of the buffer to the dead letters; it stays there if they do not take it."""
        pause = 0.0
        # Begun, so that a handover waits for it: whoever has sent it away must also commit that.
        run = lane.window.take(1) if lane.window.may_begin(self._clock()) else None
        if run is not None:
            next_batch(run, 1)
            try:
                await self._send_back(message, DEAD_LETTER_LEVEL)
                run.finished = int(run.messages == [message])
                _log.error(
                    "%s offset %d goes to the dead letters after all its tries", lane.queue, message.queue_offset
                )
            except Exception as error:
                self._tally.send_back_failed += 1
                _log.warning(
                    "%s offset %d could not be sent to the dead letters (%s); the handler gets it again",
                    lane.queue,
                    message.queue_offset,
                    error,
                )
                pause = self._settings.suspend_current_queue_time
            finally:
                self._close(lane, run)
        await asyncio.sleep(pause)
        self._next_turn(lane)

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_loop(self, call: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            _log.debug("the event loop is closed")

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            now = self._clock()
            for lane in list(self._lanes):
                if lane not in self._busy and lane.window.buffered and lane.window.may_begin(now):
                    self.offer(lane)
            self._workers.nudge()
