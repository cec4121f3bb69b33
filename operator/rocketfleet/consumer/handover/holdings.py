"""The queues this member holds or wants, and what is done about each: the shell around `ownership.step`.

Everything here runs on the event loop. `want` and `release` come from rebalancing, lock answers from the lock keeper,
lapses from its watch on the clock; each is an event for one queue's state, and the effects that the table names are
carried out here: a queue's offset is read and its pull loop started, its lease moved on, its window dropped, wound
down, persisted, unlocked.

A queue that is leaving has a task of its own, bounded by `handover_timeout`, so a slow handler on one queue delays no
other. A queue that was lost with handlers still at work leaves an *orphan*: a window that nobody commits, and that a
drain waits for all the same, because a handler must not be cut off for the reason that its queue has moved.
"""

import asyncio
import contextlib
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from rocketfleet.base.counting import counted
from rocketfleet.client.client import Client
from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_locks
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.consumption import Consumption
from rocketfleet.consumer.delivery.flow import QueueLimits, divided
from rocketfleet.consumer.delivery.lane import Lane, Window
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.delivery.pull import Puller, PullHooks, PullTimings
from rocketfleet.consumer.handover.ownership import (
    AWAKE_SECONDS,
    Effect,
    ImpossibleEventError,
    Lock,
    OwnershipState,
    QueueEvent,
    QueueOwnership,
    lease_until,
    step,
)
from rocketfleet.consumer.settings import ConsumerSettings, Handover
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.control.budget import Margin
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HandoverTimings:
    """Seconds."""

    first_pause: float = 0.1  # before what failed is tried again; then twice as long each time
    longest_pause: float = 2.0
    persist_at_least: float = Margin.FINAL_COMMIT.seconds
    unlock_timeout: float = 1.0
    unlock_when_stopping: float = Margin.UNLOCK.seconds
    strays_after: tuple[float, ...] = (2.0, 5.0, 15.0)  # when a lock is given back once more, if a request got lost
    poll_expires: float = 120.0  # without a turn of its pull loop, after which a queue gets a new one


_TIMINGS = HandoverTimings()
_PULL_TIMINGS = PullTimings()


class Offsets(Protocol):
    """BrokerOffsets or LocalOffsets."""

    async def start(self, queue: MessageQueue) -> int: ...
    async def check(self, queue: MessageQueue) -> bool: ...
    async def persist(self, offsets: dict[MessageQueue, int], *, again: bool = False) -> None: ...
    async def confirm(self, queue: MessageQueue, offset: int, *, timeout: float | None = None) -> int: ...
    def forget(self, queue: MessageQueue) -> None: ...
    def reset(self, queue: MessageQueue, offset: int) -> None: ...


@dataclass(frozen=True, slots=True)
class WoundDown:
    """A queue that is leaving, when nothing of it is being handled any more, or its time is up."""

    unfinished: int  # messages that had begun and did not finish in time
    thrown: int  # messages that were only buffered
    persist_by: float  # by the loop's clock: when to give up on the last commit


@dataclass(eq=False, slots=True)
class Holding:
    """One queue. `lane` is None until its offset was read."""

    queue: MessageQueue
    state: OwnershipState = OwnershipState.WANTED
    lock: Lock = Lock.NONE
    lane: Lane | None = None
    puller: Puller | None = None
    lease: float = 0.0  # until when the lock is believed in
    locked_at: float = 0.0  # when the last granted lock request was sent
    lock_address: str | None = None  # who granted it
    recovered_at: float = -math.inf  # when a doubt about it was last settled
    lock_answered: asyncio.Event = field(default_factory=asyncio.Event)  # no request for it is on its way
    stray_lock: bool = False  # a request for it was never answered, and may be handled late
    work: asyncio.Task[None] | None = None  # starting, pulling or leaving
    checking: asyncio.Task[None] | None = None
    wound_down: WoundDown | None = None  # once it was, in good order
    moved_to: int | None = None  # where the broker has moved it last: an asked-for reset, or a wrong offset
    start_at: int | None = None  # begin here instead of at the stored offset

    def __post_init__(self) -> None:
        self.lock_answered.set()

    @property
    def is_owned(self) -> bool:
        """Ours, and being consumed: where it starts is known and stored."""
        held = self.state is OwnershipState.STANDBY or (self.state is OwnershipState.OWNED and self.lock is Lock.HELD)
        return held and self.lane is not None


@dataclass(frozen=True, slots=True)
class FinalOffset:
    """Where a queue stood when it was given up, and whether the broker has confirmed it."""

    offset: int
    confirmed: bool
    unfinished: int = 0  # messages that had begun and did not finish in time


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
        tally: ConsumerCounters,
        timings: HandoverTimings = _TIMINGS,
        pull_timings: PullTimings = _PULL_TIMINGS,
    ) -> None:
        self._client = client
        self._settings = settings
        self._subscriptions = subscriptions
        self._offsets = offsets
        self._consumption = consumption
        self._clock = clock
        self._tally = tally
        self._timings = timings
        self._pull_timings = pull_timings
        self._table: dict[MessageQueue, Holding] = {}
        self._lanes_of: Counter[str] = Counter()  # how many queues of a topic have a window
        self._orphans: set[Lane] = set()
        self._is_closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._strays: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Event] = set()  # of queues that wait for their handlers
        self._hurried_at = math.inf
        self._draining_since: float | None = None
        self._loop = asyncio.get_running_loop()
        self.final: dict[MessageQueue, FinalOffset] = {}
        self.changed = asyncio.Event()  # something was gained or lost: for whoever waits until all is gone
        self.lock_wanted = asyncio.Event()  # a lock has to be asked for now
        self._hooks = PullHooks(
            offer=consumption.offer,
            restart=self.restart,
            stale_subscription=stale_subscription,
            limits=self._limits,
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
                holding.lease = math.inf
                self.event(holding, QueueEvent.GRANTED)
        self.lock_wanted.set()

    def release(self, queues: Iterable[MessageQueue]) -> None:
        """These queues were allocated to somebody else."""
        for queue in queues:
            holding = self._table.get(queue)
            if holding is not None:
                self.event(holding, QueueEvent.UNALLOCATED)

    def restart(self, lane: Lane, offset: int) -> None:
        """The broker moves a queue to another offset: an asked-for reset, or an offset that does not exist."""
        holding = self._table.get(lane.queue)
        if holding is not None and holding.lane is lane:
            holding.moved_to = offset
            self.event(holding, QueueEvent.MOVED)

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
    def in_hand(self) -> frozenset[MessageQueue]:
        """Those, and the queues that were lost while their handlers are still at work."""
        return self.queues | {lane.queue for lane in self._orphans}

    @property
    def owned(self) -> frozenset[MessageQueue]:
        """The queues that are ours and being consumed."""
        return frozenset(queue for queue, holding in self._table.items() if holding.is_owned)

    @property
    def draining(self) -> bool:
        return self._draining_since is not None

    def lanes(self) -> list[tuple[Holding, Lane]]:
        """Every queue that has a window, with it."""
        return [(holding, holding.lane) for holding in self._table.values() if holding.lane is not None]

    def committable(self, of: Collection[Lane] | None = None) -> dict[MessageQueue, int]:
        """What may be committed now, of all lanes or of these: only of queues whose lock is held, within the lease."""
        now = self._clock()
        return {
            holding.queue: lane.window.committable
            for holding, lane in self.lanes()
            if (of is None or lane in of)
            and holding.lock is Lock.HELD
            and holding.start_at is None
            and now < lane.window.lease_until
        }

    def problems(self) -> list[str]:
        """Queues that are ours and that nobody pulls; empty if all is well. From any thread."""
        now, found = self._clock(), []
        for holding in list(self._table.values()):
            puller, work = holding.puller, holding.work
            if not holding.is_owned or puller is None:
                continue
            if work is None or work.done():
                found.append(f"{holding.queue} is owned, but its pull loop has ended")
            elif now - puller.last_turn > 2 * self._timings.poll_expires:
                found.append(f"{holding.queue} is owned, but was not polled for {now - puller.last_turn:.0f} s")
        return found

    def stay_awake(self) -> None:
        """The event loop runs: believe in the locks that are held for a little longer, unless it was away for long."""
        now = self._clock()
        for holding, lane in self.lanes():
            if holding.lock is Lock.HELD:
                if lane.window.lease_until <= now < holding.lease:
                    _log.warning("%s: this process was not running for a while; its lock is asked for", holding.queue)
                    self.event(holding, QueueEvent.INTERRUPTED)
                else:
                    lane.window.lease_until = self._believed_until(holding)

    def _believed_until(self, holding: Holding) -> float:
        if not self._settings.locks_queues:
            return math.inf
        return min(holding.lease, self._clock() + AWAKE_SECONDS)

    # -- events -------------------------------------------------------------------------------------------------------

    def granted(self, holding: Holding, address: str, requested_at: float) -> None:
        """A broker's master granted a lock that was asked for at `requested_at`."""
        holding.lease = lease_until(requested_at, self._settings.lock_lives)
        holding.locked_at = requested_at
        holding.lock_address = address
        holding.stray_lock = False
        if holding.state is OwnershipState.GONE:  # the answer crossed our giving up
            self._background(self._unlock_strays(holding.queue, (0.0,)), self._strays)
        self.event(holding, QueueEvent.GRANTED)

    def event(self, holding: Holding, event: QueueEvent) -> None:
        """Something happened to a queue: move its state on and do what that takes."""
        if self._table.get(holding.queue) is not holding:
            return
        before = QueueOwnership(holding.state, holding.lock)
        try:
            (holding.state, holding.lock), effects = step(before, event)
        except ImpossibleEventError as error:  # a queue must not stand still for it, nor those that come after it
            _log.error("%s: %s; this is a bug in the consumer. Nothing is done about it", holding.queue, error)
            return
        if (holding.state, holding.lock) != before:
            _log.debug("%s: %s → %s, %s by %s", holding.queue, before, holding.state, holding.lock, event.name)
            self.changed.set()
        if holding.lock is not Lock.CHECKING and holding.checking is not None:
            holding.checking.cancel()
            holding.checking = None
        for effect in effects:
            self.EFFECTS[effect](self, holding, event)
        if holding.state is OwnershipState.GONE:
            self._remove(holding)

    # -- effects: each is carried out by the method that `EFFECTS` names ----------------------------------------------

    def _begin(self, holding: Holding, _: QueueEvent) -> None:
        self._tally.gained += 1
        self._start(holding)

    def _extend(self, holding: Holding, _: QueueEvent) -> None:
        if holding.lane is not None:
            holding.lane.window.lease_until = self._believed_until(holding)

    def _hold(self, holding: Holding, _: QueueEvent) -> None:
        if holding.lane is not None:
            holding.lane.window.lease_until = 0.0
        self.lock_wanted.set()

    def _check(self, holding: Holding, _: QueueEvent) -> None:
        holding.checking = self._loop.create_task(self._check_offset(holding))

    def _lose(self, holding: Holding, event: QueueEvent) -> None:
        lane = holding.lane
        self._tally.lapsed += 1
        _log.warning("%s: lost (%s); what is in flight is not committed", holding.queue, event.name.lower())
        if lane is not None and holding.state in (OwnershipState.GONE, OwnershipState.RELEASING):
            self.final[holding.queue] = FinalOffset(lane.window.committable, False, lane.window.unfinished)
        self._abandon(holding)
        self._offsets.forget(holding.queue)

    def _leave(self, holding: Holding, _: QueueEvent) -> None:
        self._tally.lost += 1
        self._work(holding, self._wind_down(holding))

    def _persist(self, holding: Holding, _: QueueEvent) -> None:
        self._work(holding, self._persist_last(holding))

    def _release(self, holding: Holding, _: QueueEvent) -> None:
        if self._settings.locks_queues:
            self._background(self._unlock(holding), self._tasks)
        else:
            self.event(holding, QueueEvent.UNLOCKED)

    # -- owning -------------------------------------------------------------------------------------------------------

    def _work(self, holding: Holding, coroutine: Awaitable[None]) -> None:
        """Do this about a queue, instead of whatever was being done."""
        # The task that has come to its end, and moved the state on with that, is not cancelled.
        if holding.work is not None and holding.work is not asyncio.current_task():
            holding.work.cancel()
        holding.work = asyncio.ensure_future(coroutine)
        holding.work.add_done_callback(_complain)

    def _start(self, holding: Holding) -> None:
        self._work(holding, self._start_and_pull(holding))

    def _start_again(self, holding: Holding, offset: int) -> None:
        """With a new window, from another offset than the stored one."""
        self._abandon(holding)
        self._offsets.reset(holding.queue, offset)
        holding.start_at = offset
        self._start(holding)

    async def _start_and_pull(self, holding: Holding) -> None:
        queue, pause = holding.queue, self._timings.first_pause
        while True:
            try:
                offset = holding.start_at if holding.start_at is not None else await self._offsets.start(queue)
                break
            except RocketMQError as error:
                _log.warning("%s: its offset could not be read, next try in %.1f s: %s", queue, pause, error)
            except Exception:
                _log.exception("%s: its offset could not be read; this is a bug in the consumer", queue)
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._timings.longest_pause)
        holding.start_at = None
        window: Window = ProcessQueue(offset)
        # The lock may be in doubt since the offset was read; then RESUME sets the lease, as for any other queue.
        window.lease_until = self._believed_until(holding) if holding.lock is Lock.HELD else 0.0
        holding.lane = lane = Lane(queue, window)
        self._lanes_of[queue.topic] += 1
        lane.consumed_at = self._clock()
        self._consumption.open(lane)
        _log.info("%s: owned, from offset %d", queue, offset, extra={"offset": offset})
        self.changed.set()
        await self._pull(holding, lane)

    async def _pull(self, holding: Holding, lane: Lane) -> None:
        """Pull until the queue is given up. A pull loop that ends for another reason begins again."""
        while not lane.window.leaving:
            holding.puller = Puller(
                self._client,
                self._settings,
                self._subscriptions[holding.queue.topic],
                lane,
                self._hooks,
                clock=self._clock,
                tally=self._tally,
                timings=self._pull_timings,
            )
            try:
                await holding.puller.run()
            except Exception:
                _log.exception("pulling %s failed and begins again; this is a bug in the consumer", holding.queue)
                await asyncio.sleep(self._timings.longest_pause)
            else:
                return

    def _resume(self, holding: Holding, _: QueueEvent) -> None:
        """The doubt is settled, and the queue was nobody else's meanwhile."""
        holding.recovered_at = self._clock()
        lane = holding.lane
        if lane is None:
            return  # its offset is still being read
        if holding.start_at is not None:
            self._start_again(holding, holding.start_at)
            return
        lane.window.lease_until = self._believed_until(holding)
        lane.moved = True  # the broker may have forgotten what it was told
        self._consumption.offer(lane)

    def _restart(self, holding: Holding, _: QueueEvent) -> None:
        assert holding.moved_to is not None
        self._start_again(holding, holding.moved_to)

    def _remember(self, holding: Holding, _: QueueEvent) -> None:
        holding.start_at = holding.moved_to

    def _go_on(self, holding: Holding, _: QueueEvent) -> None:
        assert holding.lane is not None
        _log.warning("%s: its broker has no master; going on from a slave, offsets are kept until then", holding.queue)
        holding.lane.window.lease_until = math.inf
        self._consumption.offer(holding.lane)

    async def _check_offset(self, holding: Holding) -> None:
        """Read the stored offset: was the queue somebody else's meanwhile?"""
        pause = self._timings.first_pause
        while True:
            try:
                ours = await self._offsets.check(holding.queue)
                break
            except RocketMQError as error:
                _log.warning("%s: its offset could not be read, next try in %.1f s: %s", holding.queue, pause, error)
            except Exception:
                _log.exception("%s: its offset could not be read; this is a bug in the consumer", holding.queue)
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._timings.longest_pause)
        holding.checking = None
        # Without a window nothing is lost by reading the offset once more.
        self.event(holding, QueueEvent.UNCHANGED if ours and holding.lane is not None else QueueEvent.OVERTAKEN)

    def _abandon(self, holding: Holding) -> None:
        """Drop the window and everything in it; what has begun may finish, but no longer counts."""
        if holding.work is not None:
            holding.work.cancel()
            holding.work = None
        lane, holding.lane, holding.puller, holding.start_at = holding.lane, None, None, None
        if lane is not None:
            self._close_lane(lane)
            lane.window.lease_until = 0.0
            lane.window.drop()
            self._consumption.dropped(lane)
            self._consumption.forget(lane)
            if not lane.window.idle:
                self._orphan(lane)

    def _orphan(self, lane: Lane) -> None:
        self._orphans.add(lane)

        def look() -> None:
            if lane.window.idle:
                self._orphans.discard(lane)
                end = self.final.get(lane.queue)
                # Once closed, coroutines are cancelled: those did not finish.
                if end is not None and not self._is_closed:  # too late to count, but nothing was cut short
                    self.final[lane.queue] = replace(end, unfinished=0)
                self.changed.set()

        def progress() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(look)

        lane.window.on_progress = progress
        look()

    # -- leaving ------------------------------------------------------------------------------------------------------

    async def _wind_down(self, holding: Holding) -> None:
        """Finish what has begun, then SETTLED."""
        try:
            if holding.lane is not None:  # else its offset was not even read
                holding.wound_down = await self._finish(holding, holding.lane)
        except Exception:
            _log.exception("%s: not wound down in good order; this is a bug in the consumer", holding.queue)
        self.event(holding, QueueEvent.SETTLED)

    async def _persist_last(self, holding: Holding) -> None:
        """Commit how far it came, if it was wound down in good order, then PERSISTED."""
        try:
            if holding.lane is not None and holding.wound_down is not None:
                await self._give_up(holding, holding.lane, holding.wound_down)
        except Exception:
            _log.exception("%s: not given up in good order; this is a bug in the consumer", holding.queue)
        self.event(holding, QueueEvent.PERSISTED)

    def _patience(self, began: float) -> float:
        """Until when a queue that is leaving waits for its handlers, by the loop's clock."""
        # Java's way is not to wait, for concurrent groups; while stopping even Eager does, for nobody asked it to be
        # quick. An orderly queue is given up only when its handler has ended, as Java does it too.
        if self._draining_since is not None:
            return self._draining_since + self._settings.drain_timeout
        quick = self._settings.handover is Handover.EAGER and not self._settings.is_orderly
        return began if quick else began + self._settings.handover_timeout

    async def _finish(self, holding: Holding, lane: Lane) -> WoundDown:
        """Wait for what has begun. Bounded: what does not finish in time is never committed."""
        window, finished = lane.window, asyncio.Event()

        def progress() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(finished.set)

        window.on_progress = progress
        began = self._loop.time()
        # In order nothing was begun above what was not; what an orderly handler did not commit is not done; and while
        # the lock is in doubt nothing may begin.
        thrown = window.drop() if self._settings.is_orderly or holding.lock is not Lock.HELD else window.wind_down()
        self._consumption.dropped(lane)
        self._waiting.add(finished)
        try:
            while not (window.idle or self._is_hurried or self._loop.time() >= self._patience(began)):
                if holding.lock is not Lock.HELD and not window.dropped:
                    thrown += window.drop()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(min(self._patience(began), self._loop.time() + 1.0)):
                        await finished.wait()
                finished.clear()
        finally:
            self._waiting.discard(finished)
        unfinished = window.unfinished
        thrown += window.drop()
        if unfinished:
            _log.warning(
                "%s: %s did not finish in time; the next owner gets what is left", holding.queue, counted(unfinished)
            )
        return WoundDown(unfinished, thrown, max(self._patience(began), self._loop.time()))

    async def _give_up(self, holding: Holding, lane: Lane, wound_down: WoundDown) -> None:
        """Commit for the last time, and note where the queue is left."""
        window = lane.window
        confirmed = await self._confirm(holding, lane, wound_down.persist_by)
        # What a late handler finishes from here on was not confirmed, so it is not counted.
        offset = window.committable if confirmed is None else confirmed
        self.final[holding.queue] = FinalOffset(offset, confirmed is not None, wound_down.unfinished)
        window.lease_until = 0.0
        _log.info(
            "%s: given up at offset %d%s, %s left to the next owner",
            holding.queue,
            offset,
            " (NOT confirmed by the broker)" if confirmed is None else "",
            counted(wound_down.thrown, "buffered message"),
            extra={"offset": offset},
        )

    async def _confirm(self, holding: Holding, lane: Lane, deadline: float) -> int | None:
        """Commit with a reply, again and again until it is confirmed or out of time; returns what was confirmed.

        Only while the lock is held: what is in doubt may be somebody else's, and is committed once that is settled.
        """
        pause = self._timings.first_pause
        deadline = max(deadline, self._loop.time() + self._timings.persist_at_least)
        while True:
            if holding.lock is Lock.HELD and self._clock() < lane.window.lease_until:
                offset = lane.window.committable
                if holding.start_at is not None:  # the group was reset while the queue was leaving
                    offset = holding.start_at
                    self._offsets.reset(holding.queue, offset)
                try:
                    return await self._offsets.confirm(holding.queue, offset)
                except RocketMQError as error:
                    _log.warning("%s: the final offset is not confirmed yet: %s", holding.queue, error)
                except Exception:
                    _log.exception("%s: the final offset is not confirmed; this is a bug", holding.queue)
            if self._loop.time() + pause > min(deadline, self._hurried_at + self._timings.persist_at_least):
                return None
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._timings.longest_pause)

    # -- giving locks back --------------------------------------------------------------------------------------------

    async def _unlock(self, holding: Holding) -> None:
        """Give a lock back until the broker has answered, or the lock has ended by itself.

        Never while a request for it is on its way: the broker could handle the two in the wrong order.
        """
        pause, began = self._timings.first_pause, self._clock()
        while True:
            await holding.lock_answered.wait()
            if not holding.locked_at and not holding.stray_lock:
                break  # it was never ours
            try:
                await self._unlock_once(holding.queue)
                break
            except RocketMQError as error:
                _log.warning("%s: not unlocked yet, it is tried again: %s", holding.queue, error)
            except Exception:
                _log.exception("%s: not unlocked yet; this is a bug in the consumer", holding.queue)
            now = self._clock()
            if now >= max(holding.locked_at, began) + self._settings.lock_lives:
                break
            if self.draining and now - began + pause > self._timings.unlock_when_stopping:
                _log.warning("%s: not unlocked; others can have it when the lock ends by itself", holding.queue)
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._timings.longest_pause)
        if holding.stray_lock and not self.draining:
            self._background(self._unlock_strays(holding.queue, self._timings.strays_after), self._strays)
        self.event(holding, QueueEvent.UNLOCKED)

    async def _unlock_once(self, queue: MessageQueue) -> None:
        await broker_locks.unlock(
            self._client.remoting,
            self._client.master(queue.broker),
            self._settings.group,
            self._client.client_id,
            [queue],
            timeout=self._timings.unlock_timeout,
        )

    async def _unlock_strays(self, queue: MessageQueue, delays: Iterable[float]) -> None:
        """A request for the lock was never answered: should the broker have handled it late, the lock is ours again."""
        for delay in delays:
            await asyncio.sleep(delay)
            if queue in self._table:
                return  # wanted again
            with contextlib.suppress(RocketMQError):
                await self._unlock_once(queue)

    # -- keeping house ------------------------------------------------------------------------------------------------

    def look_after_pullers(self) -> None:
        """Give a queue a new pull loop if the one it has has ended, or makes no turn any more."""
        now = self._clock()
        for holding, lane in self.lanes():
            puller, work = holding.puller, holding.work
            if not holding.is_owned or puller is None:
                continue
            if work is None or work.done() or now - puller.last_turn > self._timings.poll_expires:
                unpolled = now - puller.last_turn
                _log.error("%s was not polled for %.0f s: its pull loop begins anew", holding.queue, unpolled)
                self._work(holding, self._pull(holding, lane))

    def _background(self, coroutine: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        task = self._loop.create_task(coroutine)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(_complain)

    def _remove(self, holding: Holding) -> None:
        if self._table.get(holding.queue) is holding:
            del self._table[holding.queue]
        if holding.lane is not None:
            self._close_lane(holding.lane)
            self._consumption.forget(holding.lane)
            if not holding.lane.window.idle:
                self._orphan(holding.lane)
            holding.lane = None
        self._offsets.forget(holding.queue)
        self.changed.set()

    def _close_lane(self, lane: Lane) -> None:
        self._lanes_of[lane.queue.topic] -= 1

    def _limits(self, topic: str) -> QueueLimits:
        settings = self._settings
        if settings.topic_limits.count is None and settings.topic_limits.size_mib is None:
            return settings.limits
        return divided(settings.limits, settings.topic_limits, self._lanes_of[topic])

    # -- the end ------------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Give up every queue, each with up to `drain_timeout` for what has begun."""
        self._draining_since = self._loop.time()
        for holding in list(self._table.values()):
            self.event(holding, QueueEvent.STOPPING)
        for waiting in self._waiting:
            waiting.set()  # they may wait longer now

    @property
    def waits_for_orphans(self) -> bool:
        """Whether a drain still waits for handlers whose queue was lost."""
        if self._draining_since is None or self._is_hurried or not self._orphans:
            return False
        return self._loop.time() < self._draining_since + self._settings.drain_timeout

    @property
    def _is_hurried(self) -> bool:
        return not math.isinf(self._hurried_at)

    def hurry(self) -> None:
        """Wait for no handler any more: persist what is finished, and leave."""
        self._hurried_at = min(self._hurried_at, self._loop.time())
        self.changed.set()
        for waiting in self._waiting:
            waiting.set()

    async def close(self) -> None:
        """End whatever still runs, without committing; unlocks under way are waited for."""
        self._is_closed = True
        for lane in self._orphans:  # the offset is the new owner's business: nothing is said about it
            self.final.setdefault(lane.queue, FinalOffset(0, True, lane.window.unfinished))
        for holding in list(self._table.values()):
            if holding.lane is not None:
                window = holding.lane.window
                self.final[holding.queue] = FinalOffset(window.committable, False, window.unfinished)
            if holding.checking is not None:
                holding.checking.cancel()
            self._abandon(holding)
        self._table.clear()
        for task in self._strays:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    EFFECTS: ClassVar[Mapping[Effect, Callable[["Holdings", Holding, QueueEvent], None]]] = {
        Effect.START: _begin,
        Effect.EXTEND: _extend,
        Effect.HOLD: _hold,
        Effect.CHECK: _check,
        Effect.RESUME: _resume,
        Effect.RESTART: _restart,
        Effect.REMEMBER: _remember,
        Effect.GO_ON: _go_on,
        Effect.ABANDON: _lose,
        Effect.WIND_DOWN: _leave,
        Effect.PERSIST: _persist,
        Effect.UNLOCK: _release,
    }


def _complain(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a queue's task failed; this is a bug in the consumer", exc_info=error)
