"""The client: connections, name servers and routes under one roof, with a life that begins and ends.

Everything above (producers, consumers, the operator) holds one `Client` per cluster and makes its calls through it:
`client.remoting` is the caller that the typed calls of broker_*.py take, `client.routes` knows the topics in use, and
`client.master("broker-a")` says where to send. What it does by itself about brokers that come and go is in `upkeep.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random as random_numbers
import time
from typing import TYPE_CHECKING, Self, TypeVar

from rocketfleet.client import fanout
from rocketfleet.client.routing import routes
from rocketfleet.client.routing.nameserver import NameServers
from rocketfleet.client.routing.route_cache import RouteCache
from rocketfleet.client.routing.upkeep import RouteUpkeep
from rocketfleet.client.transport.remoting import Remoting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from rocketfleet.client.config import ClientConfig
    from rocketfleet.wire.bodies import TopicRouteData
    from rocketfleet.wire.queue import MessageQueue

T = TypeVar("T")
KEYS_SECONDS = 10.0  # between two looks whether the file with the credentials has changed


class Client:
    """`async with Client(config) as client:` starts the refresh of routes and ends with all sockets closed.

    A master that somebody has connected to, or tried to, is kept connected for as long as it is known: when it is away,
    the routes are asked at once and about every second where it is, and it is connected to again without anybody's
    making a call (`lookout.py` has the bounds). Whoever needs to know hears of it by `remoting.on_connect`.
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        remoting: Callable[[ClientConfig], Remoting] = Remoting,
    ) -> None:
        self.config = config
        self.client_id = config.client_id
        self.remoting = remoting(config)
        self.name_servers = NameServers(self.remoting, tuple(config.name_servers))
        self.routes = RouteCache(
            self.name_servers.route, clock=clock, refresh=config.route_refresh, expiry=config.route_expiry
        )
        self._upkeep = RouteUpkeep(self.remoting, self.routes, clock=clock, random=random_numbers.random)
        self.brokers = self._upkeep.brokers
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Begin to refresh routes. Needs a running event loop; connects to nobody yet."""
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = (
                loop.create_task(self.routes.run(), name="refresh routes"),
                loop.create_task(self._upkeep.run(), name="look after brokers"),
            )
            if self.config.credentials_path is not None:
                self._tasks += (loop.create_task(self._follow_keys(), name="follow credentials"),)

    async def _follow_keys(self) -> None:
        while True:
            await asyncio.sleep(KEYS_SECONDS)
            self.remoting.keys.refresh()

    async def close(self) -> None:
        """End the refresh and close all connections."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks = ()
        await self._upkeep.close()
        await self.routes.close()
        await self.remoting.close()

    # -- topics -------------------------------------------------------------------------------------------------------

    async def route(self, topic: str) -> TopicRouteData:
        """The topic's route, from memory if it is known; NoRoute if the topic does not exist."""
        return await self.routes.get(topic)

    async def publish_info(self, topic: str) -> routes.PublishInfo:
        """The queues of the topic that can be written."""
        return routes.publish_info(topic, await self.route(topic))

    async def subscribe_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues of the topic that can be read, sorted.

        Those of a broker that has vanished from the topic's route are among them for up to a minute, as long as we are
        connected to its master: a name server that has restarted knows its brokers one by one (`lingering.py`).
        """
        queues = routes.subscribe_queues(topic, await self.route(topic))
        lingering = self._upkeep.lingering.queues(topic, self.is_connected)
        return tuple(sorted({*queues, *lingering})) if lingering else queues

    def absent_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues of brokers that have vanished from the topic's route within the last minute and are away."""
        return self._upkeep.lingering.queues(topic, lambda broker: not self.is_connected(broker))

    # -- brokers ------------------------------------------------------------------------------------------------------

    def master(self, broker: str) -> str:
        """The address of a broker's master, as far as the routes at hand tell, or told of late; else NoBroker."""
        return self.brokers.master(broker)

    def is_connected(self, broker: str) -> bool:
        """Whether there is a connection to the broker's master now."""
        return self._upkeep.is_connected(broker)

    def reader(self, broker: str, broker_id: int = 0, *, only_this: bool = False) -> routes.FoundBroker:
        """The replica of a broker to read from."""
        return self.brokers.reader(broker, broker_id, only_this=only_this)

    async def each_replica(self, call: Callable[[str], Awaitable[T]]) -> fanout.Partial[T]:
        """Make a call to every replica of every broker that the routes at hand name; results and errors by address.

        A broker that the routes no longer name is called too, if we are connected to its master.
        """
        present = self._upkeep.present()
        return await fanout.each([address for one in present.values() for address in one.values()], call)
