"""Concurrent consumption: messages of a queue are handled side by side, in no order.

A worker takes a run of messages off a lane (how many, `pace.py` says), puts the lane back into the line so that
others can help, and handles its run front to back. Should one message take long, what its run has not begun is
reclaimed for the others.

A message that fails is held, and settled on the event loop: the broker takes it back and delivers it again later (or
files it under the dead letters); if the broker can't be reached it is buffered again after five seconds. A message
whose handler hangs for `consume_timeout` is taken away from it and sent back too, so that one message does not stop
the offset for ever. In a broadcasting group there is nothing to send back to: failures are dropped, and said.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Awaitable, Callable

from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.lane import Lane, Window
from rocketfleet.consumer.pace import Pace
from rocketfleet.consumer.process_queue import Run, next_batch
from rocketfleet.consumer.results import ConsumeResult, Retry, judge
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.tally import Tally
from rocketfleet.consumer.tasks import Tasks, being_cancelled
from rocketfleet.consumer.threads import Threads
from rocketfleet.wire.message import ReceivedMessage

_log = logging.getLogger(__name__)
RETRY_LOCALLY_AFTER = 5.0
EXPIRED_LEVEL = 3
TICK = 0.05
_LONG = 0.05  # seconds after which a run's unbegun messages are reclaimed

SendBack = Callable[[ReceivedMessage, int], Awaitable[None]]
"""Hands a message back to its broker with a delay level; raises when the broker did not take it."""

_MessageRun = Run[ReceivedMessage]


class ConcurrentConsumption:
    """See the module. `clock` is the one the leases are measured by."""

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
        self._pace = Pace()
        self._loop = asyncio.get_running_loop()
        self._lanes: set[Lane] = set()
        self._settling: set[asyncio.Task[None]] = set()
        self._workers: Threads | Tasks
        if handler.is_async:
            self._workers = Tasks(
                self._serve_async, maximum=settings.consume_thread_max, name=f"consume {settings.group}"
            )
        else:
            self._workers = Threads(
                self._serve,
                minimum=settings.consume_thread_min,
                maximum=settings.consume_thread_max,
                pace=self._pace,
                name=f"consume-{settings.group}",
            )
        self._ticker = self._loop.create_task(self._tick(), name=f"tick {settings.group}")

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def open(self, lane: Lane) -> None:
        self._lanes.add(lane)

    def offer(self, lane: Lane) -> None:
        """Messages were put into the lane's window."""
        self._workers.offer(lane)

    def forget(self, lane: Lane) -> None:
        """The lane's window has wound down, or was abandoned."""
        self._lanes.discard(lane)

    def dropped(self, lane: Lane) -> None:
        """The lane's window winds down, or was dropped: what waits for a local retry waits no longer."""
        for message, timer in list(lane.again.items()):
            timer.cancel()
            self._try_again(lane, message)
        self._workers.offer(lane)  # what lies below something that was begun is still to be handled

    async def close(self) -> None:
        self._ticker.cancel()
        self._workers.close()
        for task in self._settling:
            task.cancel()
        await asyncio.gather(self._ticker, *self._settling, return_exceptions=True)

    @property
    def workers(self) -> int:
        return self._workers.count

    # -- serving a lane -----------------------------------------------------------------------------------------------

    def _serve(self, lane: Lane) -> bool:
        started = self._clock()
        run = lane.window.take(self._run_length()) if lane.window.may_begin(started) else None
        if run is None:
            return False  # a lane outside its lease is offered again by the tick, when it is back inside
        run.worker = threading.current_thread()
        if lane.window.buffered:
            self._workers.offer(lane)
        if self._handler.takes_batch:
            self._handle_batches(lane, run)
        else:
            self._handle(lane, run)
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
                answer = self._raised(lane, message, error)
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
                answer = self._raised(lane, batch[0], error)
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
            except (Exception, asyncio.CancelledError) as error:
                if being_cancelled():
                    raise
                answer = self._raised(lane, message, error)
            if answer is not None and answer is not success:
                self._judge(lane, run, [message], answer)
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
            except (Exception, asyncio.CancelledError) as error:
                if being_cancelled():
                    raise
                answer = self._raised(lane, batch[0], error)
            if answer is not None:
                self._judge(lane, run, batch, answer)
            run.finished += len(batch)
        self._ended(run)

    def _ended(self, run: _MessageRun) -> None:
        run.begun_at = math.inf
        self._tally.handled += run.finished

    # -- verdicts -----------------------------------------------------------------------------------------------------

    def _raised(self, lane: Lane, message: ReceivedMessage, error: BaseException) -> ConsumeResult:
        _log.error(
            "handler %s raised on %s offset %d (message %s, time %d): it will come again",
            self._handler.name,
            lane.queue,
            message.queue_offset,
            message.msg_id,
            message.reconsume_times + 1,
            exc_info=error,
        )
        return ConsumeResult.RETRY

    def _judge(self, lane: Lane, run: _MessageRun, batch: list[ReceivedMessage], answer: object) -> None:
        """Settle what was not a plain success. A batch's answer is one for all, or a list with one for each."""
        answers = answer if isinstance(answer, list | tuple) else [answer] * len(batch)
        if len(answers) != len(batch):
            _log.error(
                "handler %s returned %d results for %d messages; all of them will come again",
                self._handler.name,
                len(answers),
                len(batch),
            )
            answers = [ConsumeResult.RETRY] * len(batch)
        for message, one in zip(batch, answers, strict=True):
            try:
                verdict, retry = judge(one)
            except TypeError as error:
                _log.error("handler %s, %s offset %d: %s", self._handler.name, lane.queue, message.queue_offset, error)
                verdict, retry = ConsumeResult.RETRY, Retry()
            if verdict in (ConsumeResult.SUCCESS, ConsumeResult.COMMIT):
                continue
            self._tally.failed += 1
            if self._settings.is_broadcasting:
                _log.warning(
                    "%s offset %d failed; broadcasting does not retry, it is dropped", lane.queue, message.queue_offset
                )
                continue
            if run.window.hold(run, message):  # else it took longer than consume_timeout and was sent back already
                self._on_loop(self._settle, lane, run.window, message, retry.level)

    def _on_loop(self, call: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop is closed: the message stays held and its offset is never committed
            _log.debug("the event loop is closed")

    # -- settling failed messages, on the event loop ------------------------------------------------------------------

    def _settle(self, lane: Lane, window: Window, message: ReceivedMessage, level: int) -> None:
        task = self._loop.create_task(self._send_back_or_keep(lane, window, message, level))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

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
                    RETRY_LOCALLY_AFTER,
                )
            else:
                window.release(message)
                lane.moved = True
                return
        message.reconsume_times += 1
        if window.dropped:
            window.put_back(message)
        else:
            lane.again[message] = self._loop.call_later(RETRY_LOCALLY_AFTER, self._try_again, lane, message)

    def _try_again(self, lane: Lane, message: ReceivedMessage) -> None:
        lane.again.pop(message, None)
        lane.window.put_back(message)
        self._workers.offer(lane)

    # -- now and then -------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            now = self._clock()
            for lane in list(self._lanes):
                for run in lane.window.begun_before(now - _LONG):
                    lane.window.reclaim(run)
                for run in lane.window.begun_before(now - self._settings.consume_timeout):
                    self._expire(lane, run)
                if lane.window.buffered and lane.window.may_begin(now):
                    self._workers.offer(lane)
            self._workers.nudge()

    def _expire(self, lane: Lane, run: _MessageRun) -> None:
        self._workers.write_off(run.worker)
        for message in lane.window.expire(run):
            self._tally.expired += 1
            _log.error(
                "%s offset %d: its handler has not returned for %g s; the message is sent back and the queue goes on",
                lane.queue,
                message.queue_offset,
                self._settings.consume_timeout,
            )
            if self._settings.is_broadcasting:
                lane.window.release(message)
            else:
                self._settle(lane, lane.window, message, EXPIRED_LEVEL)
