"""Orderly consumption: one flow of messages per queue, in the order of their offsets.

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

A queue that was lost, or reset, and is ours again has a new lane, and the handler may still have a message of the old
one. So it is the queue that is served once at a time, not the lane: the new lane waits until the old one is free.
However a turn ends, its lane is free afterwards, or the queue would stand still for good.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.consumption import Consumption, SendBack
from rocketfleet.consumer.delivery.fate import attempt, dead_letters
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.process_queue import Run, next_batch
from rocketfleet.consumer.delivery.verdicts import Verdicts
from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.results import BY_BROKER, DEAD_LETTER_LEVEL, ConsumeResult, Retry
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.wire.message import ReceivedMessage

if TYPE_CHECKING:
    from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
RUN_LENGTH = 256
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 30.0

_MessageRun = Run[ReceivedMessage]
_Batch = list[ReceivedMessage]
_Turn = Generator[Any, object, float | ReceivedMessage]
_GOOD = (ConsumeResult.SUCCESS, ConsumeResult.COMMIT)
_STOPPED = object()  # instead of an answer: the time, or the queue, was over before the message was handled


@dataclass(frozen=True, slots=True)
class OrderlyTimings:
    """Seconds."""

    tick: float = 0.1
    turn: float = 60.0


_TIMINGS = OrderlyTimings()


class OrderlyConsumption(Consumption):
    """See the module."""

    def __init__(
        self,
        settings: ConsumerSettings,
        handler: Handler,
        send_back: SendBack,
        *,
        clock: Callable[[], float],
        tally: ConsumerCounters,
        timings: OrderlyTimings = _TIMINGS,
    ) -> None:
        super().__init__(settings, handler, send_back, clock=clock, tally=tally, tick=timings.tick)
        self._turn_seconds = timings.turn
        # The common case, one message per call and every success a commit, has a turn of its own.
        self._plain = settings.auto_commit and not handler.takes_batch
        self._verdicts = Verdicts(handler, settings)
        self._busy: dict[MessageQueue, Lane] = {}  # whose lane is in line, served or pausing: must not be offered
        self._following: dict[MessageQueue, Lane] = {}  # what waits for the lane of an ownership before its own
        self._pauses: dict[Lane, asyncio.TimerHandle] = {}
        # Of the above, and of who has a lane's uncommitted run: a queue served twice at once would be out of order.
        self._guard = threading.Lock()

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def offer(self, lane: Lane) -> None:
        """Messages were put into the lane's window. From any thread."""
        with self._guard:
            if not lane.window.buffered:
                return
            busy = self._busy.get(lane.queue)
            if busy is not None:
                if busy is not lane and self._following.get(lane.queue) is not lane:
                    self._following[lane.queue] = lane
                    _log.info("%s: waits until what was begun before it was lost or reset is done", lane.queue)
                return
            self._busy[lane.queue] = lane
        self._workers.offer(lane)

    def dropped(self, lane: Lane) -> None:
        """The lane's window was dropped: what the handler did not commit belongs to the next owner."""
        run = self._uncommitted(lane)
        if run is not None:
            self._close(lane, run)
        pause = self._pauses.pop(lane, None)
        if pause is not None:  # for nothing now, and the queue may be ours again before it is over
            pause.cancel()
            self._free(lane)

    async def close(self) -> None:
        for pause in self._pauses.values():
            pause.cancel()
        await super().close()

    # -- serving a lane -----------------------------------------------------------------------------------------------
    #
    # A turn is a generator: it yields what the handler is to be called with and is sent the answer (or the exception),
    # so that the rules stand here once for threads and tasks alike. It ends with the pause before the next turn, or
    # with a message for the dead letters. A plain turn yields whole runs, which go through the handler in one stretch,
    # and is sent the first answer that is no plain success.

    def _serve(self, lane: Lane) -> bool:
        outcome: float | ReceivedMessage
        try:
            turn, call = self._begin_turn(lane, self._stretch)
            argument = next(turn)
            while True:
                try:
                    answer = call(argument)
                except BaseException as error:  # SystemExit too: in a thread it ends nothing but the thread
                    answer = error
                argument = turn.send(answer)
        except StopIteration as end:
            outcome = end.value
        except BaseException:
            outcome = self._broken(lane)
        if outcome == 0.0 and not lane.window.dropped:
            self._free(lane)  # without the event loop: waking it may cost more than the turn did
        else:
            self._on_loop(self._turn_over, lane, outcome)
        return False

    async def _serve_async(self, lane: Lane) -> bool:
        outcome: float | ReceivedMessage
        turn, call = self._begin_turn(lane, self._stretch_async)
        try:
            argument = next(turn)
            while True:
                try:
                    answer = await call(argument)
                except BaseException as error:  # SystemExit too: in a task it ends the event loop
                    if self._tasks.ends(error):
                        raise
                    answer = error
                argument = turn.send(answer)
        except StopIteration as end:
            outcome = end.value
        except BaseException as error:
            if self._tasks.ends(error):
                raise
            outcome = self._broken(lane)
        finally:
            turn.close()
        self._turn_over(lane, outcome)
        return False

    def _begin_turn(self, lane: Lane, stretch: Callable[..., Any]) -> tuple[_Turn, Callable[[Any], Any]]:
        ends_at = self._clock() + self._turn_seconds
        if self._plain:
            return self._plain_turn(lane), partial(stretch, lane, ends_at)
        return self._turn(lane, ends_at), self._handler.call

    def _broken(self, lane: Lane) -> float:
        """A turn failed outside of the handler: what it had in hand is buffered again and comes after a pause."""
        _log.exception("serving %s failed; this is a bug in the consumer, not in the handler", lane.queue)
        return self._pause(BY_BROKER)

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
        """Serve the lane for a while: one message per call, and what is handled may be committed."""
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
                [(verdict, retry)] = self._verdicts.on(lane.queue, batch, answer)
                if verdict not in _GOOD:
                    return self._failed(batch, verdict, retry)
                run.finished += 1
                lane.moved = True
        finally:
            if run is not None:
                self._put_down(lane, run)
        return 0.0

    def _turn(self, lane: Lane, ends_at: float) -> _Turn:
        """Serve the lane for a while, in batches, or with a handler that says when to commit."""
        window, batches = lane.window, self._handler.takes_batch
        size = self._settings.consume_message_batch_max_size if batches else 1
        length = max(RUN_LENGTH, size)
        success, commit, auto_commit = ConsumeResult.SUCCESS, ConsumeResult.COMMIT, self._settings.auto_commit
        run = self._uncommitted(lane) or window.take(length)
        try:
            while run is not None:
                now = self._clock()
                if not window.may_begin(now) or now >= ends_at:
                    return 0.0
                batch = next_batch(run, size)
                if not batch:
                    if run.finished == len(run.messages):
                        self._close(lane, run)
                        run = window.take(length)
                        continue
                    self._trim(run)
                    if not window.extend(run, length):
                        return 0.0
                    continue
                run.begun_at = now
                answer = yield batch if batches else batch[0]
                if answer is None or answer is success or answer is commit:  # as nearly always
                    self._handled(lane, run, batch, commits=auto_commit or answer is commit)
                    continue
                for position, (verdict, retry) in enumerate(self._verdicts.on(lane.queue, batch, answer)):
                    if verdict not in _GOOD:
                        if verdict is ConsumeResult.ROLLBACK:
                            run.handled = run.handled_size = 0
                        return self._failed(batch[position:], verdict, retry)
                    self._handled(lane, run, [batch[position]], commits=auto_commit or verdict is commit)
        finally:
            if run is not None:
                self._put_down(lane, run)
        return 0.0

    def _handled(self, lane: Lane, run: _MessageRun, messages: _Batch, *, commits: bool) -> None:
        if commits:
            finished, run.handled, run.handled_size = run.finished + run.handled + len(messages), 0, 0
            run.finished = finished
            lane.moved = True
        else:
            run.handled += len(messages)
            run.handled_size += sum([message.body_length for message in messages])

    def _failed(self, batch: _Batch, verdict: ConsumeResult, retry: Retry) -> float | ReceivedMessage:
        """How a turn ends that came upon a failure: with a pause, or with a message that has had all of its tries."""
        self._tally.failed += 1
        dead = None if verdict is ConsumeResult.ROLLBACK else self._try_once_more(batch)
        return self._pause(retry) if dead is None else dead

    def _put_down(self, lane: Lane, run: _MessageRun) -> None:
        """The turn ends: what is handled but not committed is kept for the next one, the rest is buffered again."""
        run.begun_at = math.inf
        run.window.give_back(run, run.finished + run.handled)
        if run.handled:
            self._trim(run)
            with self._guard:
                lane.uncommitted = run
        else:
            self._close(lane, run)

    def _uncommitted(self, lane: Lane) -> _MessageRun | None:
        """The run that the last turn left: for the next turn, or for whoever drops the window, but not for both."""
        with self._guard:
            run, lane.uncommitted = lane.uncommitted, None
            return run

    def _trim(self, run: _MessageRun) -> None:
        """What is committed makes room, or a handler that commits in the middle of a run would never get more."""
        self._tally.handled += run.window.trim(run)

    def _close(self, lane: Lane, run: _MessageRun) -> None:
        run.begun_at = math.inf
        lane.consumed_at = self._clock()
        self._tally.handled += run.finished
        run.window.finish(run)
        lane.moved = True

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
        if isinstance(outcome, ReceivedMessage):
            task = self._loop.create_task(self._bury(lane, outcome))
            self._settling.add(task)
            task.add_done_callback(partial(self._buried, lane))
        else:
            self._rest(lane, outcome)

    def _rest(self, lane: Lane, pause: float) -> None:
        """The lane is free, but for a pause; if it was dropped, at once."""
        if lane.window.dropped:
            try:
                self.dropped(lane)
            finally:
                self._free(lane)
        elif pause > 0 and not self._closed:
            self._pauses[lane] = self._loop.call_later(pause, self._pause_over, lane)
        else:
            self._free(lane)

    def _pause_over(self, lane: Lane) -> None:
        self._pauses.pop(lane, None)
        self._free(lane)

    def _free(self, lane: Lane) -> None:
        """The lane's turn is over: it, or the lane of its queue's next ownership, may have another. From any thread."""
        with self._guard:
            if self._busy.get(lane.queue) is lane:
                del self._busy[lane.queue]
            following = self._following.pop(lane.queue, lane)
        # A lane outside its lease is offered again by the tick, when it is back inside.
        if following.window.may_begin(self._clock()):
            self.offer(following)

    async def _bury(self, lane: Lane, message: ReceivedMessage) -> float:
        """Send the message at the front of the buffer to the dead letters; it stays there if they do not take it.

        Returns the pause before the next turn.
        """
        # Begun, so that a handover waits for it: whoever has sent it away must also commit that.
        run = lane.window.take(1) if lane.window.may_begin(self._clock()) else None
        if run is None:
            return 0.0
        next_batch(run, 1)
        try:
            await self._send_back(message, DEAD_LETTER_LEVEL)
            run.finished = int(run.messages == [message])
            _log.error(
                "%s offset %d (message %s) is given up after %s: it is in the dead letters %s now",
                lane.queue,
                message.queue_offset,
                message.msg_id,
                attempt(self._settings, message.reconsume_times),
                dead_letters(self._settings),
                extra={"offset": message.queue_offset},
            )
        except Exception as error:
            self._tally.send_back_failed += 1
            _log.warning(
                "%s offset %d could not be sent to the dead letters (%s); the handler gets it again",
                lane.queue,
                message.queue_offset,
                error,
                extra={"offset": message.queue_offset},
            )
            return self._settings.suspend_current_queue_time
        finally:
            self._close(lane, run)
        return 0.0

    def _buried(self, lane: Lane, task: asyncio.Task[float]) -> None:
        self._settling.discard(task)
        if self._closed:
            return
        if not task.cancelled() and task.exception() is None:
            self._rest(lane, task.result())
            return
        # Whatever it was: the message is buffered again, and the queue must not stand still.
        _log.error(
            "burying a message of %s failed; this is a bug in the consumer. The handler gets it again",
            lane.queue,
            exc_info=None if task.cancelled() else task.exception(),
        )
        self._rest(lane, self._pause(BY_BROKER))

    def _look(self) -> None:
        now = self._clock()
        for lane in list(self._lanes):
            if lane.queue not in self._busy and lane.window.buffered and lane.window.may_begin(now):
                self.offer(lane)
        self._workers.nudge()
