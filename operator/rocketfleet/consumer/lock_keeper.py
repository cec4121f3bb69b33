"""Asking the brokers for locks: again and again for queues that are wanted, in time for those that are owned.

A wanted queue is asked for every 200 ms, because the owner before gives it back as soon as its last message is done,
and a second of nobody owning a queue is a second of lag. One request a broker carries all its queues, and there is
one request at a time to each broker, so a slow broker delays nobody else's queues.

A lock that is refused may belong to a member that is no longer there: killed, it gave nothing back, and the broker
keeps its locks for a minute. Members that have left the group forfeit their locks, so the survivors give them back in
its name. Before that the group's members are read once more from the broker that holds the lock: a member that is
back keeps what it has.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from rocketfleet.client import broker_locks
from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoBroker, RocketMQError
from rocketfleet.consumer.holdings import Holding, Holdings
from rocketfleet.consumer.ownership import CONFIRM_APART, Event, State
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
WANTED_EVERY = 0.2
LOCK_TIMEOUT = 1.0


def due(holding: Holding, now: float, renew_every: float) -> bool:
    """Whether the lock of a queue has to be asked for now."""
    if holding.state in (State.WANTED, State.SUSPENDED):
        return True
    if holding.state is State.CONFIRMED_ONCE:
        return now - holding.locked_at >= CONFIRM_APART
    if holding.state in (State.OWNED, State.LEAVING, State.SETTLING):
        # A lease that was put on hold has to be confirmed at once.
        on_hold = holding.lane is not None and holding.lane.window.lease_until == 0.0
        return on_hold or now - holding.locked_at >= renew_every
    return False


class LockKeeper:
    """See the module. `departed` says which members have left of late, after a fresh look at the given broker."""

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        holdings: Holdings,
        departed: Callable[[str], Awaitable[frozenset[str]]],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._settings = settings
        self._holdings = holdings
        self._departed = departed
        self._clock = clock
        self._asking: dict[str, asyncio.Task[None]] = {}
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
            for task in self._asking.values():
                task.cancel()

    def tick(self) -> None:
        """One look at every queue: end leases that are out, and ask for the locks that are due."""
        now = self._clock()
        by_broker: dict[str, list[Holding]] = {}
        for holding in self._holdings:
            if holding.lease <= now and holding.state not in (State.WANTED, State.GONE):
                self._holdings.event(holding, Event.LAPSED)
            if due(holding, now, self._renew_every):
                by_broker.setdefault(holding.queue.broker, []).append(holding)
        for broker, holdings in by_broker.items():
            if broker not in self._asking:
                task = asyncio.get_running_loop().create_task(self._ask(broker, holdings), name=f"lock at {broker}")
                self._asking[broker] = task
                task.add_done_callback(partial(self._answered, broker))

    def _answered(self, broker: str, _task: asyncio.Task[None]) -> None:
        self._asking.pop(broker, None)

    async def _ask(self, broker: str, holdings: list[Holding]) -> None:
        try:
            refused = await self._lock(broker, {holding.queue: holding for holding in holdings})
        except NoBroker as error:
            _log.debug("no locks from %s: %s", broker, error)
            return
        except RocketMQError as error:
            _log.warning("no locks from %s, asking again: %s", broker, error)
            return
        try:
            if refused and await self._forfeit(broker, refused):
                refused = await self._lock(broker, refused)
        except RocketMQError as error:
            _log.warning("%s does not release the locks of members that have left: %s", broker, error)
        for holding in refused.values():
            self._holdings.event(holding, Event.REFUSED)

    async def _lock(self, broker: str, queues: dict[MessageQueue, Holding]) -> dict[MessageQueue, Holding]:
        """Ask for locks and note those that are granted; returns the others."""
        asked_at = self._clock()
        granted = await broker_locks.lock(
            self._client.remoting,
            self._client.master(broker),
            self._settings.group,
            self._client.client_id,
            queues,
            timeout=LOCK_TIMEOUT,
        )
        for queue in granted & queues.keys():
            # Granted after all to a queue that was given up meanwhile: `locked` gives it back.
            self._holdings.locked(queues[queue], asked_at, self._settings.lock_lives)
        return {queue: holding for queue, holding in queues.items() if queue not in granted}

    async def _forfeit(self, broker: str, refused: Iterable[MessageQueue]) -> bool:
        """Give back the locks of members that have left. True if there were any such members."""
        departed = await self._departed(broker)
        for member in departed:
            _log.info("%s has left group %s: its locks at %s are released", member, self._settings.group, broker)
            await broker_locks.unlock(
                self._client.remoting,
                self._client.master(broker),
                self._settings.group,
                member,
                refused,
                timeout=LOCK_TIMEOUT,
            )
        return bool(departed)
