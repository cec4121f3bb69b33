"""The queues this member holds or wants, and what is done about each: the shell around `ownership.step`.

Everything here runs on the event loop. `want` and `release` come from rebalancing, lock answers from the lock keeper,
lapses from its watch on the clock; each is an event for one queue's state, and the effects that the table names are
carried out here: a queue's offset is read and its pull loop started, its lease moved on, its window dropped, wound
down, persisted, unlocked.

A queue that is leaving has a task of its own, bounded by `handover_timeout`, so a slow handler on one queue delays no
other.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from rocketfleet.client import broker_locks
from rocketfleet.client.client import Client
from rocketfleet.client.errors import RocketMQError
from rocketfleet.consumer.flow import Limits, divided
from rocketfleet.consumer.lane import Lane, Window
from rocketfleet.consumer.ownership import Effect, Event, State, lease_until, step
from rocketfleet.consumer.process_queue import ProcessQueue
from rocketfleet.consumer.pull import Puller, PullHooks
from rocketfleet.consumer.settings import ConsumerSettings, Handover
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.consumer.tally import Tally
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_PERSIST_AT_LEAST = 5.0  # seconds for the final commit, even when the handlers took all the time there was


class Offsets(Protocol):
    """BrokerOffsets or LocalOffsets."""

    async def start(self, queue: MessageQueue) -> int: ...
    def is_news(self, queue: MessageQueue, offset: int) -> bool: ...
    async def persist(self, offsets: dict[MessageQueue, int]) -> None: ...
    async def confirm(self, queue: MessageQueue, offset: int, *, timeout: float | None = None) -> None: ...
    def forget(self, queue: MessageQueue) -> None: ...
    def reset(self, queue: MessageQueue, offset: int) -> None: ...


class Consumption(Protocol):
    """ConcurrentConsumption or OrderlyConsumption."""

    def open(self, lane: Lane) -> None: ...
    def offer(self, lane: Lane) -> None: ...
    def dropped(self, lane: Lane) -> None: ...
    def forget(self, lane: Lane) -> None: ...


@dataclass(eq=False, slots=True)
class Holding:
    """One queue. `lane` is None until its offset was read."""

    queue: MessageQueue
    state: State = State.WANTED
    lane: Lane | None = None
    puller: Puller | None = None
    lease: float = 0.0  # until when the lock is believed in
    locked_at: float = 0.0  # when the last granted lock request was sent
    work: asyncio.Task[None] | None = None  # starting, pulling or leaving
    start_at: int | None = None  # begin here instead of at the stored offset: an asked-for reset, or a wrong offset
    settled: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class FinalOffset:
    """Where a queue stood when it was given up, and whether the broker has confirmed it."""

    offset: int
    confirmed: bool
    unfinished: int  # messages that had begun and did not finish in time


class Holdings:
    """See the module."""

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        subscriptions: dict[str, Subscription],
        offsets: Offsets,
        consumption: Consumption,
        stale_subscription: Callable[[], None],
        *,
        clock: Callable[[], float],
        tally: Tally,
    ) -> None:
        self._client = client
        self._settings = settings
        self._subscriptions = subscriptions
        self._offsets = offsets
        self._consumption = consumption
        self._clock = clock
        self._tally = tally
        self._table: dict[MessageQueue, Holding] = {}
        self._limits: dict[str, Limits] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Event] = set()  # of queues that wait for their handlers
        self._hurried = False
        self.draining = False
        self._loop = asyncio.get_running_loop()
        self.final: dict[MessageQueue, FinalOffset] = {}
        self.changed = asyncio.Event()  # something was gained or lost: for whoever waits until all is gone
        self.lock_wanted = asyncio.Event()  # a lock has to be asked for now
        self._hooks = PullHooks(
            offer=consumption.offer,
            restart=self.restart,
            stale_subscription=stale_subscription,
            limits=lambda topic: self._limits.get(topic, settings.limits),
        )

    # -- what rebalancing asks for ------------------------------------------------------------------------------------

    def want(self, queues: Iterable[MessageQueue]) -> None:
        """These queues were allocated to us."""
        for queue in queues:
            if queue in self._table:
                continue  # held, wanted, or still leaving: in the last case it is wanted again once it is gone
            holding = self._table[queue] = Holding(queue)
            self.final.pop(queue, None)
            if not self._settings.locks_queues:
                holding.lease = float("inf")
                self.event(holding, Event.LOCKED)
        self.lock_wanted.set()

    def release(self, queues: Iterable[MessageQueue]) -> None:
        """These queues were allocated to somebody else, or we are leaving."""
        for queue in queues:
            holding = self._table.get(queue)
            if holding is not None:
                self.event(holding, Event.UNALLOCATED)

    def restart(self, lane: Lane, offset: int) -> None:
        """Start an owned queue again from another offset: an asked-for reset, or an offset that does not exist."""
        holding = self._table.get(lane.queue)
        if holding is None or holding.lane is not lane or holding.state is not State.OWNED:
            return
        self._abandon(holding)
        self._offsets.reset(holding.queue, offset)
        holding.start_at = offset
        self._start(holding)

    # -- what others ask ----------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Holding]:
        return iter(list(self._table.values()))

    def get(self, queue: MessageQueue) -> Holding | None:
        return self._table.get(queue)

    @property
    def queues(self) -> frozenset[MessageQueue]:
        """Every queue that is not gone yet: wanted, owned or leaving."""
        return frozenset(self._table)

    @property
    def owned(self) -> frozenset[MessageQueue]:
        """The queues that are ours and being consumed."""
        return frozenset(queue for queue, holding in self._table.items() if holding.state is State.OWNED)

    def lanes(self) -> list[tuple[Holding, Lane]]:
        """Every queue that has a window, with it."""
        return [(holding, holding.lane) for holding in self._table.values() if holding.lane is not None]

    def committable(self, of: Collection[Lane] | None = None) -> dict[MessageQueue, int]:
        """What may be committed now, of all lanes or of these: only of queues whose lease holds."""
        now = self._clock()
        return {
            holding.queue: lane.window.committable
            for holding, lane in self.lanes()
            if (of is None or lane in of)
            and holding.state in (State.OWNED, State.LEAVING, State.SETTLING)
            and now < lane.window.lease_until
        }

    # -- events -------------------------------------------------------------------------------------------------------

    def locked(self, holding: Holding, requested_at: float, lock_lives: float) -> None:
        """The broker granted a lock that was asked for at `requested_at`."""
        if self._table.get(holding.queue) is holding:
            holding.lease = lease_until(requested_at, lock_lives)
            holding.locked_at = requested_at
            self.event(holding, Event.LOCKED)
        elif holding.queue not in self._table:
            # The answer crossed our giving up: the broker may have handled the unlock first.
            self._background(self._unlock_quietly(holding.queue))

    def event(self, holding: Holding, event: Event) -> None:
        """Something happened to a queue: move its state on and do what that takes."""
        if self._table.get(holding.queue) is not holding:
            return
        before = holding.state
        holding.state, effects = step(before, event)
        if holding.state is not before:
            _log.debug("%s: %s → %s by %s", holding.queue, before.name, holding.state.name, event.name)
            self.changed.set()
        for effect in effects:
            self._apply(holding, effect, event)
        if holding.state is State.GONE:
            self._remove(holding)

    def _apply(self, holding: Holding, effect: Effect, event: Event) -> None:
        if effect is Effect.START:
            self._tally.gained += 1
            self._start(holding)
        elif effect in (Effect.EXTEND, Effect.RESUME):
            if holding.lane is not None:
                holding.lane.window.lease_until = holding.lease
                if effect is Effect.RESUME:
                    self._consumption.offer(holding.lane)
        elif effect is Effect.HOLD:
            if holding.lane is not None:
                holding.lane.window.lease_until = 0.0
        elif effect is Effect.ABANDON:
            self._tally.lapsed += 1
            _log.warning("%s: lost (%s); what is in flight is not committed", holding.queue, event.name.lower())
            self._abandon(holding)
            self._offsets.forget(holding.queue)
        elif effect is Effect.WIND_DOWN:
            self._tally.lost += 1
            self._work(holding, self._leave(holding))  # which goes on to persist when it is settled
        elif effect is Effect.UNLOCK and self._settings.locks_queues:
            self._background(self._unlock_quietly(holding.queue))

    # -- effects ------------------------------------------------------------------------------------------------------

    def _work(self, holding: Holding, coroutine: Awaitable[None]) -> None:
        if holding.work is not None:
            holding.work.cancel()
        holding.work = asyncio.ensure_future(coroutine)
        holding.work.add_done_callback(_complain)

    def _start(self, holding: Holding) -> None:
        self._work(holding, self._start_and_pull(holding))

    async def _start_and_pull(self, holding: Holding) -> None:
        queue, pause = holding.queue, _FIRST_PAUSE
        while True:
            try:
                offset = holding.start_at if holding.start_at is not None else await self._offsets.start(queue)
                break
            except RocketMQError as error:
                _log.warning("%s: its offset could not be read, next try in %.1f s: %s", queue, pause, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
        holding.start_at = None
        window: Window = ProcessQueue(offset)
        # The connection may have broken while the offset was read; then RESUME sets the lease, as for any other queue.
        window.lease_until = holding.lease if holding.state is State.OWNED else 0.0
        holding.lane = lane = Lane(queue, window)
        lane.consumed_at = self._clock()
        self._divide_limits()
        self._consumption.open(lane)
        _log.info("%s: owned, from offset %d", queue, offset)
        holding.puller = Puller(
            self._client,
            self._settings,
            self._subscriptions[queue.topic],
            lane,
            self._hooks,
            clock=self._clock,
            tally=self._tally,
        )
        await holding.puller.run()

    def _abandon(self, holding: Holding) -> None:
        """Drop the window and everything in it; what has begun may finish, but no longer counts."""
        if holding.work is not None:
            holding.work.cancel()
            holding.work = None
        lane, holding.lane, holding.puller, holding.start_at = holding.lane, None, None, None
        if lane is not None:
            lane.window.drop()
            lane.window.lease_until = 0.0
            self.final[holding.queue] = FinalOffset(lane.window.committable, False, lane.window.unfinished)
            self._consumption.dropped(lane)
            self._consumption.forget(lane)

    async def _leave(self, holding: Holding) -> None:
        """Wind down, persist, unlock."""
        if holding.lane is not None:
            await self._wind_down(holding, holding.lane)
        else:  # its offset was not even read
            self.event(holding, Event.SETTLED)
        self.event(holding, Event.PERSISTED)

    async def _wind_down(self, holding: Holding, lane: Lane) -> None:
        """Finish what has begun, and persist. Bounded: what does not finish in time is never committed."""
        window, finished = lane.window, asyncio.Event()

        def progress() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(finished.set)

        window.on_progress = progress
        # Java's way is not to wait; while shutting down even Eager does, because nobody asked it to be quick.
        patience = (
            0.0 if self._settings.handover is Handover.EAGER and not self.draining else self._settings.handover_timeout
        )
        deadline = self._loop.time() + (self._settings.drain_timeout if self.draining else patience)
        # In order nothing was begun above what was not; and what an orderly handler did not commit is not done.
        thrown = window.drop() if self._settings.is_orderly else window.wind_down()
        self._consumption.dropped(lane)
        self._waiting.add(finished)
        try:
            while not (window.idle or self._hurried or self._loop.time() >= deadline):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline):
                        await finished.wait()
                finished.clear()
        finally:
            self._waiting.discard(finished)
        unfinished = window.unfinished
        thrown += window.drop()
        if unfinished:
            _log.warning(
                "%s: %d messages did not finish in time; the next owner gets them again", holding.queue, unfinished
            )
        self.event(holding, Event.SETTLED)
        confirmed = await self._persist(holding, lane, max(deadline, self._loop.time() + _PERSIST_AT_LEAST))
        # What a late handler finishes from here on was not confirmed, so it is not counted.
        offset = window.committable if confirmed is None else confirmed
        self.final[holding.queue] = FinalOffset(offset, confirmed is not None, unfinished)
        window.lease_until = 0.0
        _log.info(
            "%s: given up at offset %d%s, %d buffered messages left to the next owner",
            holding.queue,
            offset,
            " (NOT confirmed by the broker)" if confirmed is None else "",
            thrown,
        )

    async def _persist(self, holding: Holding, lane: Lane, deadline: float) -> int | None:
        """Commit with a reply, again and again until it is confirmed, out of time, or no longer ours to commit.

        Returns the offset that was confirmed.
        """
        pause = _FIRST_PAUSE
        while True:
            if self._clock() < lane.window.lease_until:
                offset = lane.window.committable
                try:
                    await self._offsets.confirm(holding.queue, offset)
                except RocketMQError as error:
                    _log.warning("%s: the final offset is not confirmed yet: %s", holding.queue, error)
                else:
                    return offset
            elif self._clock() >= holding.lease:
                return None
            if self._loop.time() + pause > deadline:
                return None
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _unlock_quietly(self, queue: MessageQueue) -> None:
        try:
            address = self._client.master(queue.broker)
            await broker_locks.unlock(
                self._client.remoting, address, self._settings.group, self._client.client_id, [queue]
            )
        except RocketMQError as error:
            _log.warning("%s: not unlocked, the lock ends by itself within a minute: %s", queue, error)

    def _remove(self, holding: Holding) -> None:
        if self._table.get(holding.queue) is holding:
            del self._table[holding.queue]
        if holding.lane is not None:
            self._consumption.forget(holding.lane)
            holding.lane = None
        self._offsets.forget(holding.queue)
        self._divide_limits()
        holding.settled.set()
        self.changed.set()

    def _divide_limits(self) -> None:
        topics = [holding.queue.topic for holding, _ in self.lanes()]
        self._limits = {
            topic: divided(self._settings.limits, self._settings.topic_limits, topics.count(topic))
            for topic in set(topics)
        }

    # -- the end ------------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Give up every queue, each with up to `drain_timeout` for what has begun."""
        self.draining = True
        self.release(list(self._table))

    def hurry(self) -> None:
        """Wait for no handler any more: persist what is finished, and leave."""
        self._hurried = True
        for waiting in self._waiting:
            waiting.set()

    async def close(self) -> None:
        """End whatever still runs, without committing; unlocks under way are waited for."""
        for holding in list(self._table.values()):
            self._abandon(holding)
        self._table.clear()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _complain(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a queue's task failed; this is a bug in the consumer", exc_info=error)
