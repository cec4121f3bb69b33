"""What a client does besides making calls: it knows its brokers from the routes, and looks after those that are away.

`lookout.py` says what is due and what bounds hold; here it is done: routes are refreshed, masters connected to. Only
brokers that somebody has connected to, or tried to, are looked after: a client that has seen a broker in a route and
never had business with it has no reason to.

A broker that no route names any longer keeps its last known addresses, because a name server that has restarted knows
its brokers one by one. It is forgotten when there has been neither a connection to its master nor a route that names it
for ten minutes (`lookout.KEPT`); at once if nobody had to do with it, or if a route gives its address to another
broker. What a route says about a broker that it does name holds at once: with only slaves left there is no master.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from rocketfleet.client.errors import ConnectError, NoBroker, RocketMQError
from rocketfleet.client.routing.lingering import LingeringQueues
from rocketfleet.client.routing.lookout import Lookout
from rocketfleet.client.routing.routes import Brokers, brokers_named, masters_named
from rocketfleet.wire.bodies import MASTER_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocketfleet.client.routing.route_cache import RouteCache
    from rocketfleet.client.transport.remoting import Remoting
    from rocketfleet.wire.bodies import TopicRouteData

_SWEEP = 10.0  # seconds between two looks for what can be forgotten


class RouteUpkeep:
    """See the module. `run` it; without, brokers are known all the same, but nobody looks for those that are away."""

    def __init__(
        self, remoting: Remoting, cache: RouteCache, *, clock: Callable[[], float], random: Callable[[], float]
    ) -> None:
        self.brokers = Brokers()
        self.lingering = LingeringQueues(clock)
        self.lookout = Lookout(clock=clock, random=random, naming=self._topics_naming)
        self._remoting = remoting
        self._cache = cache
        self._clock = clock
        self._used: set[str] = set()  # brokers that somebody has connected to, or tried to
        self._named: Counter[str] = Counter()  # broker → how many routes name it, counted anew in each sweep
        self._sweep_at = clock()
        self._stirred = asyncio.Event()
        self._attempts: set[asyncio.Task[None]] = set()
        cache.on_change(self._learn)
        remoting.on_connect(self._met)
        remoting.on_unreachable(self._met)
        remoting.on_disconnect(lambda address, _: self._lost(address))

    # -- what is known ------------------------------------------------------------------------------------------------

    def is_connected(self, broker: str) -> bool:
        """Whether there is a connection to the broker's master."""
        address = self._master(broker)
        return address is not None and self._remoting.is_connected(address)

    def present(self) -> dict[str, dict[int, str]]:
        """The brokers without those that are only remembered: no route names them, and there is no connection."""
        lost = self.lookout.unnamed & self.lookout.away
        return {
            broker: addresses
            for broker, addresses in self.brokers.table.items()
            if broker not in lost or self.brokers.has_only_slaves(broker)
        }

    def _master(self, broker: str) -> str | None:
        try:
            return self.brokers.master(broker)
        except NoBroker:
            return None

    def _topics_naming(self, broker: str) -> Iterator[str]:
        """The topics whose routes name a master of the broker."""
        for topic, route in self._cache.in_use():
            if any(data.broker_name == broker and MASTER_ID in data.broker_addrs for data in route.broker_datas):
                yield topic

    def _is_named(self, broker: str) -> bool:
        """Whether any route names the broker, with a master or without."""
        return self._named[broker] > 0

    # -- what is learnt -----------------------------------------------------------------------------------------------

    def _learn(self, topic: str, before: TopicRouteData | None, now: TopicRouteData) -> None:
        here = brokers_named(now)
        concerned = brokers_named(before) | here
        self._named.update(here)
        self._named.subtract(brokers_named(before))
        self.lingering.route_changed(topic, before, now)
        self.lookout.route_changed(topic, masters_named(before), masters_named(now))
        self.brokers.merge(now)
        self._take_addresses_away(now)
        for broker in concerned:
            named = self._is_named(broker)
            if not named and broker not in self._used:
                self._forget(broker)
            elif broker in self._used:
                self._note(broker, named=named)

    def _take_addresses_away(self, now: TopicRouteData) -> None:
        """An address that a route gives to one broker is not another's any longer: addresses of pods are used again."""
        kept = self.lookout.unnamed - brokers_named(now)
        taken = {address for broker in now.broker_datas for address in broker.broker_addrs.values()} if kept else set()
        for broker in kept:
            if self._master(broker) in taken and not self._is_named(broker):
                self._forget(broker)

    def _note(self, broker: str, *, named: bool) -> None:
        master = self._master(broker)
        connected = master is not None and self._remoting.is_connected(master)
        self.lookout.note(broker, master, named=named and master is not None, connected=connected)
        self._stirred.set()

    def _met(self, address: str) -> None:
        """A connection was made to the address, or could not be."""
        for broker, master in self.brokers.masters().items():
            if master == address:
                self._used.add(broker)
                self._note(broker, named=self._is_named(broker))

    def _lost(self, address: str) -> None:
        for broker, addresses in self.brokers.table.items():
            if address not in addresses.values():
                continue
            named = self._is_named(broker)
            if address != addresses.get(MASTER_ID):
                self.lookout.suspect(broker)
            elif named or broker in self.lookout.unnamed:
                self._note(broker, named=named)
            # Else its topics are no longer in use, and it is forgotten with them.
        self._stirred.set()

    def _forget(self, broker: str) -> None:
        self.brokers.forget(broker)
        self.lookout.forget(broker)
        self._used.discard(broker)

    # -- what is done -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look after brokers that are away, until cancelled."""
        while True:
            self._stirred.clear()
            self._act()
            now = self._clock()
            if now >= self._sweep_at:
                self._sweep_at = now + _SWEEP
                self._sweep()
            pause = max(0.0, min(self._sweep_at, self.lookout.wake_at()) - now)
            try:
                async with asyncio.timeout(pause):
                    await self._stirred.wait()
            except TimeoutError:
                pass

    async def close(self) -> None:
        """End the attempts to connect that are under way."""
        attempts = list(self._attempts)
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)

    def _act(self) -> None:
        due = self.lookout.due()
        for topic in due.topics:
            if not self._cache.hurry(topic):
                self.lookout.forget_topic(topic)
        for broker in due.brokers:
            attempt = asyncio.get_running_loop().create_task(self._reach(broker), name=f"connect to {broker} again")
            self._attempts.add(attempt)
            attempt.add_done_callback(self._attempts.discard)

    async def _reach(self, broker: str) -> None:
        address = self._master(broker)
        if address is None:
            return
        try:
            await self._remoting.connect(address)
        except ConnectError as error:
            self.lookout.failed(broker, address, error.retry_in or 0.0)
            self._stirred.set()
        except RocketMQError:
            return  # the client is being closed
        else:
            self._met(address)  # if the connection was there already, nobody was told

    def _sweep(self) -> None:
        self.lingering.forget_past()
        for broker in self.lookout.given_up():
            self._forget(broker)
        # Topics that nobody used were let go without a word, and with them goes what only their routes have named.
        self._named = Counter(broker for _, route in self._cache.in_use() for broker in brokers_named(route))
        for broker in self.brokers.table.keys() - self._named.keys() - self.lookout.unnamed:
            if not self.is_connected(broker):
                self._forget(broker)
