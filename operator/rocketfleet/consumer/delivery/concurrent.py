"""Concurrent consumption: messages of a queue are handled side by side, in no order.

A worker takes a run of messages off a lane (how many, `pace.py` says), puts the lane back into the line so that
others can help, and handles its run front to back. Should one message take long, what its run has not begun is
reclaimed for the others.

A message that fails is held, and settled on the event loop: the broker takes it back and delivers it again later (or
files it under the dead letters); if the broker can't be reached it is buffered again after five seconds. A message
whose handler hangs for `consume_timeout` is taken away from it and sent back too, so that one message does not stop
the offset for ever. In a broadcasting group there is nothing to send back to: failures are dropped, and said.

A window that was dropped while handlers run is still looked after until it is idle: a handler that hangs in it is done
without in time, as in any other.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.consumption import Consumption, SendBack
from rocketfleet.consumer.delivery.fate import attempt, dead_letters, is_dead_letter
from rocketfleet.consumer.delivery.lane import Lane, Window
from rocketfleet.consumer.delivery.process_queue import Run, next_batch
from rocketfleet.consumer.delivery.verdicts import Verdicts
from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.results import ConsumeResult
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.wire.message import ReceivedMessage

_log = logging.getLogger(__name__)
EXPIRED_LEVEL = 3
_LONG = 0.05  # seconds after which a run's unbegun messages are reclaimed

_MessageRun = Run[ReceivedMessage]


@dataclass(frozen=True, slots=True)
class ConcurrentTimings:
    """Seconds."""

    tick: float = 0.05
    retry_locally_after: float = 5.0


_TIMINGS = ConcurrentTimings()


class ConcurrentConsumption(Consumption):
    """See the module."""

    def __init__(
        self,
        settings: ConsumerSettings,
        handler: Handler,
        send_back: SendBack,
        *,
        clock: Callable[[], float],
        tally: ConsumerCounters,
        timings: ConcurrentTimings = _TIMINGS,
    ) -> None:
        super().__init__(settings, handler, send_back, clock=clock, tally=tally, tick=timings.tick)
        self._retry_locally_after = timings.retry_locally_after
        self._kept: dict[ReceivedMessage, int] = {}  # tried again here, of which the broker knows nothing
        self._verdicts = Verdicts(handler, settings, self._kept)
        self._left: set[Lane] = set()  # forgotten by the consumer while handlers had messages of them

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def offer(self, lane: Lane) -> None:
        """Messages were put into the lane's window."""
        self._workers.offer(lane)

    def forget(self, lane: Lane) -> None:
        """The lane's window has wound down, or was abandoned."""
        super().forget(lane)
        if not lane.window.idle:
            self._left.add(lane)

    def dropped(self, lane: Lane) -> None:
        """The lane's window winds down, or was dropped: what waits for a local retry waits no longer."""
        for message, timer in list(lane.again.items()):
            timer.cancel()
            self._try_again(lane, message)
        self._workers.offer(lane)  # what lies below something that was begun is still to be handled

    # -- serving a lane -----------------------------------------------------------------------------------------------

    def _serve(self, lane: Lane) -> bool:
        started = self._clock()
        run = lane.window.take(self._run_length()) if lane.window.may_begin(started) else None
        if run is None:
            return False  # a lane outside its lease is offered again by the tick, when it is back inside
        run.worker = threading.current_thread()
        if lane.window.buffered:
            self._workers.offer(lane)
        try:
            if self._handler.takes_batch:
                self._handle_batches(lane, run)
            else:
                self._handle(lane, run)
        finally:
            self._over(lane, run, started)
        return lane.window.buffered > 0

    async def _serve_async(self, lane: Lane) -> bool:
        started = self._clock()
        run = lane.window.take(self._run_length()) if lane.window.may_begin(started) else None
        if run is None:
            return False
        run.worker = asyncio.current_task()
        if lane.window.buffered:
            self._workers.offer(lane)
        try:
            await (self._handle_batches_async if self._handler.takes_batch else self._handle_async)(lane, run)
        finally:
            self._over(lane, run, started)
        return lane.window.buffered > 0

    def _over(self, lane: Lane, run: _MessageRun, started: float) -> None:
        lane.consumed_at = now = self._clock()
        self._pace.note(now - started, run.finished)
        lane.window.finish(run)
        lane.moved = True

    def _run_length(self) -> int:
        return max(self._pace.run_length, self._settings.consume_message_batch_max_size)

    # -- handling a run -----------------------------------------------------------------------------------------------
    #
    # Four loops, for a handler that is called or awaited, with one message or with a batch. They are much alike, and
    # stay apart because everything in them is paid for once per message. Beside the handler, the first of them takes
    # about 0.11 µs per message (CPython 3.11). Awaiting what need not be awaited would make that 0.16, and a batch of
    # one, with its list, 0.25. Generators, as for the turns in `orderly.py`, would cost a tenth only; but one for
    # single messages, one for batches and a driver for each kind of handler are four pieces too, and harder to follow.
    # Who changes one of the loops looks at the other three; what is done less often than once per message they share.

    def _handle(self, lane: Lane, run: _MessageRun) -> None:
        """One message after the other. The loop that everything else exists for: keep it short."""
        window, clock, call = run.window, self._clock, self._handler.call
        success = ConsumeResult.SUCCESS
        for message in run.pending:
            now = clock()
            if window.dropped or now >= window.lease_until:
                break
            run.begun_at = now
            try:
                answer = call(message)
            except BaseException as error:  # SystemExit too: in a thread it ends nothing but the thread
                answer = self._verdicts.raised(lane.queue, message, error)
            if answer is not None and answer is not success:
                self._judge(lane, run, [message], answer)
            run.finished += 1
        self._ended(run)

    def _handle_batches(self, lane: Lane, run: _MessageRun) -> None:
        window, size = run.window, self._settings.consume_message_batch_max_size
        while batch := next_batch(run, size):
            now = self._clock()
            if not window.may_begin(now):
                break
            run.begun_at = now
            try:
                answer = self._handler.call(batch)
            except BaseException as error:
                answer = self._verdicts.raised(lane.queue, batch[0], error)
            if answer is not None:
                self._judge(lane, run, batch, answer)
            run.finished += len(batch)
        self._ended(run)

    async def _handle_async(self, lane: Lane, run: _MessageRun) -> None:
        window, clock, call = run.window, self._clock, self._handler.call
        success = ConsumeResult.SUCCESS
        for message in run.pending:
            now = clock()
            if window.dropped or now >= window.lease_until:
                break
            run.begun_at = now
            try:
                answer = await call(message)
            except BaseException as error:  # SystemExit too: in a task it ends the event loop
                if self._tasks.ends(error):
                    raise
                answer = self._verdicts.raised(lane.queue, message, error)
            if answer is not None and answer is not success:
                self._judge(lane, run, [message], answer)
                if _is_cancelled(run):
                    run.finished += 1
                    break
            run.finished += 1
        self._ended(run)

    async def _handle_batches_async(self, lane: Lane, run: _MessageRun) -> None:
        window, size = run.window, self._settings.consume_message_batch_max_size
        while batch := next_batch(run, size):
            now = self._clock()
            if not window.may_begin(now):
                break
            run.begun_at = now
            try:
                answer = await self._handler.call(batch)
            except BaseException as error:
                if self._tasks.ends(error):
                    raise
                answer = self._verdicts.raised(lane.queue, batch[0], error)
            if answer is not None:
                self._judge(lane, run, batch, answer)
            run.finished += len(batch)
            if _is_cancelled(run):
                break
        self._ended(run)

    def _ended(self, run: _MessageRun) -> None:
        run.begun_at = math.inf
        self._tally.handled += run.finished

    # -- verdicts -----------------------------------------------------------------------------------------------------

    def _judge(self, lane: Lane, run: _MessageRun, batch: list[ReceivedMessage], answer: object) -> None:
        """Settle what was not a plain success."""
        for message, (verdict, retry) in zip(batch, self._verdicts.on(lane.queue, batch, answer), strict=True):
            if verdict in (ConsumeResult.SUCCESS, ConsumeResult.COMMIT):
                continue
            self._tally.failed += 1
            if self._settings.is_broadcasting:
                _log.warning(
                    "%s offset %d failed; broadcasting does not retry, it is dropped",
                    lane.queue,
                    message.queue_offset,
                    extra={"offset": message.queue_offset},
                )
                continue
            if run.window.hold(run, message):  # else it took longer than consume_timeout and was sent back already
                self._on_loop(self._settle, lane, run.window, message, retry.level)

    # -- settling failed messages, on the event loop ------------------------------------------------------------------

    def _settle(self, lane: Lane, window: Window, message: ReceivedMessage, level: int) -> None:
        if self._closed:
            return  # it stays held, and its offset is not committed: it comes again to whoever is next
        task = self._loop.create_task(self._send_back_or_keep(lane, window, message, level))
        self._settling.add(task)
        task.add_done_callback(partial(self._settled, lane, window, message))

    def _settled(self, lane: Lane, window: Window, message: ReceivedMessage, task: asyncio.Task[None]) -> None:
        self._settling.discard(task)
        if self._closed or not (task.cancelled() or task.exception()):
            return
        # Whatever it was: left as it is, the message would be held for ever, and the offset with it.
        _log.error(
            "%s offset %d could not be settled; this is a bug in the consumer. The handler gets it again",
            lane.queue,
            message.queue_offset,
            exc_info=None if task.cancelled() else task.exception(),
            extra={"offset": message.queue_offset},
        )
        self._keep(lane, window, message)

    async def _send_back_or_keep(self, lane: Lane, window: Window, message: ReceivedMessage, level: int) -> None:
        # Past the lease another member may have the message already: sending it back too would double it.
        if self._clock() < window.lease_until:
            try:
                await self._send_back(message, level)
            except Exception as error:
                self._tally.send_back_failed += 1
                _log.warning(
                    "%s offset %d could not be sent back (%s); the handler gets it again in %g s",
                    lane.queue,
                    message.queue_offset,
                    error,
                    self._retry_locally_after,
                    extra={"offset": message.queue_offset},
                )
            else:
                window.release(message)
                lane.moved = True
                self._say_if_dead(lane, message, level)
                return
        message.reconsume_times += 1
        self._kept[message] = self._kept.get(message, 0) + 1
        self._keep(lane, window, message)

    def _say_if_dead(self, lane: Lane, message: ReceivedMessage, level: int) -> None:
        times = message.reconsume_times - self._kept.pop(message, 0)
        if is_dead_letter(self._settings, times, level):
            _log.error(
                "%s offset %d (message %s) is given up after %s: it is in the dead letters %s now",
                lane.queue,
                message.queue_offset,
                message.msg_id,
                attempt(self._settings, times),
                dead_letters(self._settings),
                extra={"offset": message.queue_offset},
            )

    def _keep(self, lane: Lane, window: Window, message: ReceivedMessage) -> None:
        if window.dropped:
            self._kept.pop(message, None)
            window.put_back(message)
        else:
            lane.again[message] = self._loop.call_later(self._retry_locally_after, self._try_again, lane, message)

    def _try_again(self, lane: Lane, message: ReceivedMessage) -> None:
        lane.again.pop(message, None)
        if lane.window.dropped:
            self._kept.pop(message, None)
        lane.window.put_back(message)
        self._workers.offer(lane)

    # -- now and then -------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        now = self._clock()
        for lane in list(self._lanes):
            for run in lane.window.begun_before(now - _LONG):
                lane.window.reclaim(run)
            self._expire_before(lane, now - self._settings.consume_timeout)
            if lane.window.buffered and lane.window.may_begin(now):
                self._workers.offer(lane)
        for lane in list(self._left):
            self._expire_before(lane, now - self._settings.consume_timeout)
            if lane.window.idle:
                self._left.discard(lane)
        self._workers.nudge()

    def _expire_before(self, lane: Lane, moment: float) -> None:
        for run in lane.window.begun_before(moment):
            self._expire(lane, run)

    def _expire(self, lane: Lane, run: _MessageRun) -> None:
        self._workers.write_off(run.worker)
        for message in lane.window.expire(run):
            self._tally.expired += 1
            _log.error(
                "%s offset %d: its handler has not returned for %g s; %s",
                lane.queue,
                message.queue_offset,
                self._settings.consume_timeout,
                "the queue is another's by now" if lane.window.dropped else "it is sent back and the queue goes on",
                extra={"offset": message.queue_offset},
            )
            if self._settings.is_broadcasting:
                lane.window.release(message)
            else:
                self._settle(lane, lane.window, message, EXPIRED_LEVEL)


def _is_cancelled(run: _MessageRun) -> bool:
    """Whether the task that handles the run was cancelled, by its own handler or by whoever ends the loop."""
    task = run.worker
    return isinstance(task, asyncio.Task) and task.cancelling() > 0
