"""The client: connections, name servers and routes under one roof, with a life that begins and ends.

Everything above (producers, consumers, the operator) holds one `Client` per cluster and makes its calls through it:
`client.remoting` is the caller that the typed calls of broker_*.py take, `client.routes` knows the topics in use, and
`client.master("broker-a")` says where to send.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Self, TypeVar

from rocketfleet.client import fanout, routes
from rocketfleet.client.nameserver import NameServers
from rocketfleet.client.remoting import Remoting
from rocketfleet.client.route_cache import RouteCache

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from rocketfleet.client.config import ClientConfig
    from rocketfleet.wire.bodies import TopicRouteData
    from rocketfleet.wire.queue import MessageQueue

T = TypeVar("T")


class Client:
    """`async with Client(config) as client:` starts the refresh of routes and ends with all sockets closed."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.client_id = config.client_id
        self.remoting = Remoting(config)
        self.name_servers = NameServers(self.remoting, tuple(config.name_servers))
        self.routes = RouteCache(
            self.name_servers.route, clock=time.monotonic, refresh=config.route_refresh, expiry=config.route_expiry
        )
        self.brokers = routes.Brokers()
        self.routes.on_change(self._learn)
        self._refreshing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Begin to refresh routes. Needs a running event loop; connects to nobody yet."""
        if self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().create_task(self.routes.run(), name="refresh routes")

    async def close(self) -> None:
        """End the refresh and close all connections."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._refreshing
            self._refreshing = None
        await self.routes.close()
        await self.remoting.close()

    # -- topics

    async def route(self, topic: str) -> TopicRouteData:
        """The topic's route, from memory if it is known; NoRoute if the topic does not exist."""
        return await self.routes.get(topic)

    async def publish_info(self, topic: str) -> routes.PublishInfo:
        """The queues of the topic that can be written."""
        return routes.publish_info(topic, await self.route(topic))

    async def subscribe_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues of the topic that can be read, sorted."""
        return routes.subscribe_queues(topic, await self.route(topic))

    # -- brokers

    def _learn(self, _topic: str, before: TopicRouteData | None, now: TopicRouteData) -> None:
        self.brokers.merge(now)
        if before is not None:  # a topic that is new takes no broker away, and thousands may be
            self.brokers.keep_only(self.routes.routes().values())

    def master(self, broker: str) -> str:
        """The address of a broker's master, as far as the routes at hand tell."""
        return self.brokers.master(broker)

    def reader(self, broker: str, broker_id: int = 0, *, only_this: bool = False) -> routes.FoundBroker:
        """The replica of a broker to read from."""
        return self.brokers.reader(broker, broker_id, only_this=only_this)

    async def each_master(self, call: Callable[[str], Awaitable[T]]) -> fanout.Partial[T]:
        """Make a call to the master of every broker that the routes at hand name; results and errors by broker name."""
        masters = self.brokers.masters()
        return await fanout.each(masters, lambda name: call(masters[name]))

    async def each_replica(self, call: Callable[[str], Awaitable[T]]) -> fanout.Partial[T]:
        """Make a call to every replica of every broker that the routes at hand name; results and errors by address."""
        return await fanout.each(self.brokers.all_addresses(), call)
