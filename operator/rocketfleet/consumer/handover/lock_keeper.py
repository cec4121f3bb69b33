"""Asking the brokers for locks: again and again for queues that are wanted, in time for those that are owned.

A wanted queue is asked for every 200 ms, because the owner before gives it back as soon as its last message is done,
and a second of nobody owning a queue is a second of lag. One request per broker carries all its queues, and there is
one request at a time to each broker, so a slow broker delays nobody else's queues.

A lock that is refused may belong to a member that is no longer there: killed, it gave nothing back, and the broker
keeps its locks for a minute. What departed members held (`roster.py` says when one has departed) is released in their
name: by the few survivors that come after it, whoever the queues are allocated to, and by whoever is refused. Between
the look at the lists and the release there is hardly any time (`LOOK_HOLDS`): a member that is back in between has not
confirmed its lock twice yet. Nor has it got a new one: a release in its name may still be on its way, and would take a
lock that it has only just been granted. So whoever is connected anew asks for what it does not hold only after
`CONFIRM_APART`; also one that has just been started, if it may have the name of one that was killed. After a lost
connection it waits for longer: the broker may have restarted, and others be on their way back to what they hold.

A broker may have no master for a while. Where a slave can be read, a concurrent group goes on from it; when there is a
master again, those who had the queues ask first, and whoever is newly given one waits for `OWNERS_FIRST` seconds: what
its owner has handled meanwhile is not committed yet. The same holds when another replica has been elected, or a broker
has just started: it knows no locks, and its offsets are some seconds old. Who was there sees that its master is another
one; a newcomer has asked for how long it has been in office (`membership.py`).
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from rocketfleet.client.client import Client
from rocketfleet.client.errors import ConnectionLost, NoBroker, RequestTimeout, RocketMQError
from rocketfleet.client.requests import broker_locks
from rocketfleet.consumer.handover.holdings import Holding, Holdings
from rocketfleet.consumer.handover.membership import Membership
from rocketfleet.consumer.handover.ownership import CONFIRM_APART, Lock, OwnershipState, QueueEvent
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
WANTED_EVERY = 0.2
LOCK_TIMEOUT = 1.0
LOOK_HOLDS = CONFIRM_APART / 2
OWNERS_FIRST = 5.0
OTHERS_BACK = 1.5  # seconds that others get after we are back at a broker, to ask for what they have
_Tasks = dict[str, asyncio.Task[None]]
RELEASE_AGAIN = 2.0  # seconds between two releases of one departed member's locks, by one that is refused
RECENTLY = 5.0  # seconds after a doubt in which a lock is renewed every second, should it have been taken after all


def due(holding: Holding, now: float, renew_every: float) -> bool:
    """Whether the lock of a queue has to be asked for now."""
    if holding.state in (OwnershipState.RELEASING, OwnershipState.GONE, OwnershipState.STANDBY):
        return False
    if holding.lock in (Lock.NONE, Lock.DOUBTED):
        return True
    if holding.lock is Lock.CONFIRMED_ONCE:
        return now - holding.locked_at >= CONFIRM_APART
    every = min(1.0, renew_every) if now - holding.recovered_at < RECENTLY else renew_every
    return now - holding.locked_at >= every


def may_ask(lock: Lock, *, listed: float, with_master: float) -> bool:
    """Whether a lock may be asked for, so many seconds after the broker listed us and after it had no master.

    Whoever had the queue comes first, and a release that was decided before we were listed must be over.
    """
    return lock is not Lock.NONE or (listed >= CONFIRM_APART and with_master >= OWNERS_FIRST)


class LockKeeper:
    """See the module."""

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        holdings: Holdings,
        membership: Membership,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._settings = settings
        self._holdings = holdings
        self._membership = membership
        self._clock = clock
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._releasing: dict[str, asyncio.Task[None]] = {}
        self._released_at: dict[tuple[str, str], float] = {}
        self._in_trouble: set[str] = set()  # brokers that did not answer the last time
        self._masters: dict[str, str] = {}  # broker → the master that it was last seen to have
        self._without_master: dict[str, float] = {}  # broker → when it was last seen to have none, or another one
        self._quiet_since: dict[str, float] = {}  # broker → when it listed us anew, or when others were back there
        # A lease must see at least two renewals, whatever the settings say.
        self._renew_every = min(settings.lock_interval, settings.lock_lives / 3)

    async def run(self) -> None:
        """Keep asking until cancelled."""
        try:
            while True:
                self._holdings.lock_wanted.clear()
                self.tick()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(WANTED_EVERY):
                        await self._holdings.lock_wanted.wait()
        finally:
            for task in (*self._asking.values(), *self._releasing.values()):
                task.cancel()

    def tick(self) -> None:
        """One look at every queue: end leases that are out, and ask for the locks that are due."""
        self._holdings.stay_awake()
        now = self._clock()
        by_broker: dict[str, list[Holding]] = {}
        for holding in self._holdings:
            if holding.lease <= now and holding.lock not in (Lock.NONE, Lock.DOUBTED):
                self._holdings.event(holding, QueueEvent.LAPSED)
            by_broker.setdefault(holding.queue.broker, []).append(holding)
        for broker, holdings in by_broker.items():
            self._look_for_master(broker, holdings, now)
            asked = [one for one in holdings if due(one, now, self._renew_every) and self._may_ask(one, now)]
            if asked and broker not in self._asking:
                self._background(self._asking, broker, self._ask(broker, asked))
        if self._membership.has_departed:
            for broker in self._membership.brokers:
                if broker not in self._releasing:
                    self._background(self._releasing, broker, self._release_as_survivor(broker))

    @staticmethod
    def _background(table: _Tasks, broker: str, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine, name=f"locks at {broker}")
        table[broker] = task
        task.add_done_callback(partial(_done, table, broker))

    # -- a broker without a master ------------------------------------------------------------------------------------

    def _look_for_master(self, broker: str, holdings: list[Holding], now: float) -> None:
        if self._client.brokers.has_only_slaves(broker):
            self._without_master[broker] = now
            for holding in () if self._settings.is_orderly else holdings:
                if holding.state is OwnershipState.OWNED and holding.lock is not Lock.NONE and holding.lane is not None:
                    self._holdings.event(holding, QueueEvent.NO_MASTER)
        else:
            self._note_master(broker, now)
            for holding in holdings:
                if holding.state is OwnershipState.STANDBY:
                    self._holdings.event(holding, QueueEvent.MASTER_BACK)

    def _note_master(self, broker: str, now: float) -> None:
        try:
            master = self._client.master(broker)
        except NoBroker:
            return  # it is not known at all now
        if self._masters.setdefault(broker, master) != master:
            self._masters[broker] = master
            self._without_master[broker] = now

    def _may_ask(self, holding: Holding, now: float) -> bool:
        broker = holding.queue.broker
        return may_ask(
            holding.lock,
            listed=now - self._quiet_since.get(broker, -math.inf),
            with_master=now - max(self._without_master.get(broker, -math.inf), self._membership.took_office(broker)),
        )

    def listed(self, broker: str, *, again: bool) -> None:
        """We are connected to a broker, and it is about to list us, or has. If again, it may have restarted."""
        self._quiet_since[broker] = self._clock() + (OTHERS_BACK if again else 0.0)

    # -- asking -------------------------------------------------------------------------------------------------------

    async def _ask(self, broker: str, holdings: list[Holding]) -> None:
        try:
            refused = await self._lock(broker, {holding.queue: holding for holding in holdings})
        except NoBroker as error:
            _log.debug("no locks from %s: %s", broker, error)
            return
        except RocketMQError as error:
            level = logging.DEBUG if broker in self._in_trouble else logging.WARNING  # asked five times per second
            _log.log(level, "no locks from %s, asking again: %s", broker, error)
            self._in_trouble.add(broker)
            return
        self._in_trouble.discard(broker)
        try:
            if refused and await self._release_as_refused(broker, refused):
                refused = await self._lock(broker, refused)
        except RocketMQError as error:
            _log.warning("%s does not release the locks of members that have left: %s", broker, error)
        for holding in refused.values():
            self._holdings.event(holding, QueueEvent.REFUSED)

    async def _lock(self, broker: str, queues: dict[MessageQueue, Holding]) -> dict[MessageQueue, Holding]:
        """Ask for locks and note those that are granted; returns the others.

        Not for a queue that was given up since it was due: its unlock may be on its way, and be handled first.
        """
        queues = {
            queue: one
            for queue, one in queues.items()
            if one.state not in (OwnershipState.RELEASING, OwnershipState.GONE)
        }
        if not queues:
            return {}
        asked_at = self._clock()
        address = self._client.master(broker)
        for holding in queues.values():
            if holding.lock_address not in (None, address):  # another master: it knows nothing of the old one's locks
                self._holdings.event(holding, QueueEvent.INTERRUPTED)
            holding.lock_answered.clear()
        try:
            granted = await broker_locks.lock(
                self._client.remoting,
                address,
                self._settings.group,
                self._client.client_id,
                queues,
                timeout=LOCK_TIMEOUT,
            )
        except (RequestTimeout, ConnectionLost):
            for holding in queues.values():
                holding.stray_lock = True  # it may have been handled, or still be, after an unlock of ours
            raise
        finally:
            for holding in queues.values():
                holding.lock_answered.set()
        for queue in granted & queues.keys():
            self._holdings.granted(queues[queue], address, asked_at)
        return {queue: holding for queue, holding in queues.items() if queue not in granted}

    # -- what departed members held -----------------------------------------------------------------------------------

    async def _release_as_refused(self, broker: str, refused: Iterable[MessageQueue]) -> bool:
        """Release the queues we were refused in the name of departed members. True if there are such members."""
        now = self._clock()
        departed = await self._membership.departed(broker)
        again = {one for one in departed if now - self._released_at.get((one, broker), -RELEASE_AGAIN) >= RELEASE_AGAIN}
        if not again or self._clock() - now > LOOK_HOLDS:
            return False
        self._released_at = {one: at for one, at in self._released_at.items() if now - at < RELEASE_AGAIN}
        self._released_at |= {(member, broker): now for member in again}
        await asyncio.gather(*(self._unlock(broker, member, refused) for member in again))
        return True

    async def _release_as_survivor(self, broker: str) -> None:
        """Release everything that departed members held at a broker, if it falls to us."""
        now = self._clock()
        try:
            departed = await self._membership.to_release(broker)
            if self._clock() - now > LOOK_HOLDS:
                return  # the look is too old: look again
            queues = [queue for queue in self._membership.queues if queue.broker == broker]
            await asyncio.gather(*(self._unlock(broker, member, queues) for member in departed))
            for member in departed:
                _log.info("%s has left group %s: its locks at %s are released", member, self._settings.group, broker)
                self._membership.released(member, broker)
        except RocketMQError as error:
            _log.warning("%s does not release the locks of members that have left: %s", broker, error)

    async def _unlock(self, broker: str, member: str, queues: Iterable[MessageQueue]) -> None:
        await broker_locks.unlock(
            self._client.remoting,
            self._client.master(broker),
            self._settings.group,
            member,
            queues,
            timeout=LOCK_TIMEOUT,
        )


def _done(table: _Tasks, broker: str, task: asyncio.Task[None]) -> None:
    table.pop(broker, None)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("asking %s for locks failed; this is a bug in the consumer", broker, exc_info=error)
