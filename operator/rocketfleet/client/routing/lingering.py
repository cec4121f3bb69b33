"""Queues of brokers that have vanished from a topic's route although they are there. Pure.

A name server that has restarted knows its brokers again one by one, as each registers in its turn, within about half a
minute. Until then its routes lack healthy brokers. A consumer that believed them would give up queues that it reads,
and take them back a moment later. So the queues of a broker that vanished stay readable for as long as the connection
to its master lives, but not longer than `BELIEVED` seconds: then the route is right, for example because the topic was
removed from that broker.

A broker that is away has vanished too. Nobody can read its queues, so they are not shared out; but for the same time
whoever has one may keep it (`absent_queues`), to go on with when the broker is back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rocketfleet.client.routing.lookout import BELIEVED
from rocketfleet.client.routing.routes import brokers_named, subscribe_queues, vanished_brokers

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocketfleet.wire.bodies import TopicRouteData
    from rocketfleet.wire.queue import MessageQueue


class _Vanished(NamedTuple):
    queues: tuple[MessageQueue, ...]
    until: float


class LingeringQueues:
    """The readable queues of each topic's vanished brokers."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._topics: dict[str, dict[str, _Vanished]] = {}  # topic → broker → what it had

    def route_changed(self, topic: str, before: TopicRouteData | None, now: TopicRouteData) -> None:
        """Note who has vanished from a topic's route, and who is back."""
        until = self._clock() + BELIEVED
        here = brokers_named(now) | {data.broker_name for data in now.queue_datas}
        lingering = {broker: vanished for broker, vanished in self._topics.pop(topic, {}).items() if broker not in here}
        gone = vanished_brokers(before, now)
        if before is not None and gone:
            queues = subscribe_queues(topic, before)
            for broker in gone:
                lingering[broker] = _Vanished(tuple(queue for queue in queues if queue.broker == broker), until)
        if lingering:
            self._topics[topic] = lingering

    def queues(self, topic: str, counts: Callable[[str], bool]) -> tuple[MessageQueue, ...]:
        """The queues of those of the topic's vanished brokers that count."""
        lingering = self._topics.get(topic)
        if not lingering:
            return ()
        now = self._clock()
        return tuple(
            queue
            for broker, vanished in lingering.items()
            if now < vanished.until and counts(broker)
            for queue in vanished.queues
        )

    def forget_past(self) -> None:
        """Forget what is too long ago."""
        now = self._clock()
        for topic, lingering in list(self._topics.items()):
            left = {broker: vanished for broker, vanished in lingering.items() if now < vanished.until}
            if left:
                self._topics[topic] = left
            else:
                del self._topics[topic]
