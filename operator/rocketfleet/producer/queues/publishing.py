"""The topics a producer sends to: a ring of writable queues each, kept in step with the routes.

`rings` is what the hot path reads, one dictionary look-up a message. A topic is not there before its first message,
and while it does not exist yet: a broker that creates topics on demand does so at the first message, so such a topic
is sent to by the route of the model topic (TBW102), and its own is asked for again every second until it is there.
"""

import asyncio
import time
from collections.abc import Callable

from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoRoute, RocketMQError
from rocketfleet.client.routing import routes
from rocketfleet.producer.queues.absence import Absences
from rocketfleet.producer.queues.choice import QueueRing
from rocketfleet.wire.bodies import TopicRouteData
from rocketfleet.wire.queue import MessageQueue

_MODEL_LIFE = 60.0
_ASK_AGAIN = 1.0  # seconds between two requests for a route that is not as it should be


class Publishing:
    """See the module. Belongs to one event loop, like the client."""

    def __init__(
        self,
        client: Client,
        *,
        create_topic_key: str,
        default_queues: int,
        clock: Callable[[], float] = time.monotonic,
        absence_interval: float = 2.0,
    ) -> None:
        self.rings: dict[str, QueueRing] = {}
        self._client = client
        self._create_topic_key = create_topic_key
        self._default_queues = default_queues
        self._clock = clock
        self._models: dict[str, tuple[float, QueueRing]] = {}
        self._suspected: dict[str, float] = {}
        self._refreshing: set[asyncio.Task[None]] = set()
        self._absences = Absences(clock, interval=absence_interval)
        self._unsubscribe = client.routes.on_change(self._route_changed)

    async def find(self, topic: str) -> QueueRing:
        """The topic's ring, by way of the name server if need be; NoRoute if there is nothing to write to."""
        ring = self.rings.get(topic)
        if ring is not None:
            return ring
        provisional = self._models.get(topic)
        if provisional is not None and self._clock() < provisional[0]:
            return provisional[1]
        try:
            route = await self._client.route(topic)
        except NoRoute as unknown:
            return await self._model(topic, unknown)
        self._models.pop(topic, None)
        return self._install(topic, route)

    def brokers(self) -> frozenset[str]:
        """The names of the brokers that the producer may send to."""
        rings = [*self.rings.values(), *(ring for _, ring in self._models.values())]
        return frozenset().union(*(ring.brokers for ring in rings))

    def topic_on(self, broker: str) -> MessageQueue | None:
        """Some queue that the broker has, for asking it something harmless."""
        for ring in (*self.rings.values(), *(ring for _, ring in self._models.values())):
            for queue in ring.queues:
                if queue.broker == broker:
                    return queue
        return None

    def suspect(self, topic: str) -> None:
        """A send failed on the way: the route may be old. Ask for it again, in the background and not too often."""
        now = self._clock()
        if now >= self._suspected.get(topic, now):
            self._suspected[topic] = now + _ASK_AGAIN
            self._refresh(topic)

    def look_for_absent_brokers(self) -> None:
        """Ask for the routes that will show first that a broker is back."""
        for topic in self._absences.canaries():
            self._refresh(topic)

    def drop_unused(self) -> None:
        """Tell the route cache which topics are still in use, and forget those that it has let go."""
        kept = set(self._client.routes.topics)
        for topic, ring in list(self.rings.items()):
            if topic not in kept:
                del self.rings[topic]
                self._absences.forget_topic(topic)
            elif ring.used:
                ring.used = False
                self._client.routes.cached(topic)
        now = self._clock()
        self._suspected = {topic: until for topic, until in self._suspected.items() if until > now}
        self._models = {topic: model for topic, model in self._models.items() if now - model[0] < _MODEL_LIFE}

    async def close(self) -> None:
        """Hear no more of routes."""
        self._unsubscribe()
        tasks = list(self._refreshing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _install(self, topic: str, route: TopicRouteData) -> QueueRing:
        queues = routes.publish_info(topic, route).queues
        if not queues:
            self.rings.pop(topic, None)
            brokers = ", ".join(sorted(data.broker_name for data in route.queue_datas)) or "none"
            raise NoRoute(
                topic,
                f"its brokers ({brokers}) offer no queue for writing; a master is down, or the topic is read-only",
            )
        former = self.rings.get(topic)
        ring = self.rings[topic] = QueueRing(queues) if former is None else former.replaced(queues)
        return ring

    async def _model(self, topic: str, unknown: NoRoute) -> QueueRing:
        try:
            model = await self._client.route(self._create_topic_key)
        except NoRoute:
            servers = ", ".join(self._client.name_servers.addresses)
            raise NoRoute(
                topic,
                f"the name servers ({servers}) know no broker that has it, and no broker creates topics by itself; "
                "create the topic, or check its name and the name servers' addresses",
            ) from unknown
        route = routes.route_for_new_topic(model, self._default_queues)
        former = self._models.get(topic)
        queues = routes.publish_info(topic, route).queues
        if not queues:
            raise NoRoute(topic, "it does not exist, and no master that would create it is up now") from unknown
        ring = QueueRing(queues) if former is None else former[1].replaced(queues)
        self._models[topic] = (self._clock() + _ASK_AGAIN, ring)
        return ring

    def _route_changed(self, topic: str, _before: TopicRouteData | None, now: TopicRouteData) -> None:
        former = self.rings.get(topic)
        queues = routes.publish_info(topic, now).queues
        if former is not None:
            if queues:
                self.rings[topic] = former.replaced(queues)
            else:
                del self.rings[topic]
        brokers = frozenset(queue.broker for queue in queues)
        for other in self._absences.route_changed(topic, frozenset() if former is None else former.brokers, brokers):
            self._refresh(other)

    def _refresh(self, topic: str) -> None:
        task = asyncio.get_running_loop().create_task(self._refresh_quietly(topic), name=f"refresh route of {topic}")
        self._refreshing.add(task)
        task.add_done_callback(self._refreshing.discard)

    async def _refresh_quietly(self, topic: str) -> None:
        try:
            await self._client.routes.refresh(topic)
        except RocketMQError:
            return  # the cache has logged it and keeps the route it has
