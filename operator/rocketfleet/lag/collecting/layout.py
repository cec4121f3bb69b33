"""Which queues of which brokers concern the groups watched, and so what each broker will be asked.

Routes come from the client's cache, which keeps them fresh. Whether a group has retries and dead letters at all is told
by the list of all topics: one call for thousands of groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from rocketfleet.client.errors import NoRoute, RocketMQError
from rocketfleet.client.fanout import bounded
from rocketfleet.client.routing.routes import subscribe_queues
from rocketfleet.lag.collecting.broker_reading import Wanted
from rocketfleet.wire.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocketfleet.client.client import Client
    from rocketfleet.lag.target import Target
    from rocketfleet.wire.bodies import TopicRouteData
    from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """Where a group's figures are. Retries and dead letters are None if it is not known whether there are any."""

    queues: tuple[MessageQueue, ...]
    missing: int = 0  # subscribed topics whose queues are not known
    retries: tuple[MessageQueue, ...] | None = None
    dead_letters: tuple[tuple[str, str], ...] | None = None  # (topic, broker)

    @property
    def brokers(self) -> set[str]:
        found = {queue.broker for queue in (*self.queues, *(self.retries or ()))}
        return found | {broker for _, broker in self.dead_letters or ()}


@dataclass(slots=True)
class ClusterTopics:
    """What is remembered of a cluster's topics from one sweep to the next."""

    client: Client
    names: frozenset[str] | None = None
    queues: dict[str, tuple[TopicRouteData, tuple[MessageQueue, ...]]] = field(default_factory=dict)

    async def refresh(self, targets: Iterable[Target], timeout: float) -> RocketMQError | None:
        """Learn the names and routes that are not known yet. An error is returned: what was known stays."""
        trouble: RocketMQError | None = None
        try:
            self.names = frozenset((await self.client.name_servers.topics(timeout)).topic_list)
        except RocketMQError as error:
            trouble = error
        wanted = {topic for target in targets for topic in self._topics(target)}

        async def learn(topic: str) -> None:
            nonlocal trouble
            try:
                await self.client.route(topic)
            except NoRoute:
                pass  # noted as missing where it is missed
            except RocketMQError as error:
                trouble = error

        await bounded([topic for topic in wanted if self.client.routes.cached(topic) is None], learn)
        for topic in self.queues.keys() - wanted:
            del self.queues[topic]
        return trouble

    def of(self, target: Target) -> GroupLayout:
        """The group's queues, from what is at hand."""
        queues: list[MessageQueue] = []
        missing = 0
        for topic in dict.fromkeys(target.topics):
            found = self._queues(topic)
            queues += found or ()
            missing += not found
        if self.names is None:
            return GroupLayout(tuple(queues), missing)
        return GroupLayout(tuple(queues), missing, self._retries(target), self._dead_letters(target))

    def _retries(self, target: Target) -> tuple[MessageQueue, ...] | None:
        found = [self._queues(topic) for topic in self._retry_topics(target)]
        if None in found:
            return None
        return tuple(queue for queues in found for queue in queues or ())

    def _dead_letters(self, target: Target) -> tuple[tuple[str, str], ...] | None:
        """Nobody may be allowed to read them, so they are where their topic is, readable or not."""
        topic = DEAD_LETTER_PREFIX + target.group
        if topic not in (self.names or ()):
            return ()
        route = self.client.routes.cached(topic)
        return None if route is None else tuple(sorted((topic, data.broker_name) for data in route.queue_datas))

    def _topics(self, target: Target) -> list[str]:
        dead = DEAD_LETTER_PREFIX + target.group
        names = self.names or frozenset()
        return [*target.topics, *self._retry_topics(target), *([dead] if dead in names else ())]

    def _retry_topics(self, target: Target) -> list[str]:
        """Those there are, by pulling (one per group) and by popping (one per topic, in two spellings)."""
        retry = RETRY_PREFIX + target.group
        spelt = (retry, *(f"{retry}{mark}{topic}" for topic in target.topics for mark in "_+"))
        names = self.names or frozenset()
        return [topic for topic in spelt if topic in names and topic not in target.topics]

    def _queues(self, topic: str) -> tuple[MessageQueue, ...] | None:
        route = self.client.routes.cached(topic)
        if route is None:
            return None
        known = self.queues.get(topic)
        if known is None or known[0] is not route:
            known = self.queues[topic] = route, subscribe_queues(topic, route)
        return known[1]


def wanted_of(
    layouts: Iterable[tuple[Target, GroupLayout, bool]], failed: frozenset[str] = frozenset()
) -> dict[str, Wanted]:
    """What each broker is to be asked. A group's members are asked for, if at all, at one broker, if possible one that
    is well.
    """
    table: dict[str, Wanted] = {}

    def at(broker: str) -> Wanted:
        wanted = table.get(broker)
        if wanted is None:
            wanted = table[broker] = Wanted()
        return wanted

    for target, layout, members in layouts:
        for (topic, broker), queues in groupby((*layout.queues, *(layout.retries or ())), key=lambda queue: queue[:2]):
            wanted = at(broker)
            wanted.queues[topic, target.group] = {queue.queue_id for queue in queues}
            wanted.topics.add(topic)
            if target.from_beginning(topic):
                wanted.from_beginning.add((topic, target.group))
            elif target.from_beginning_once_begun(topic):
                wanted.once_begun.add((topic, target.group))
        for topic, broker in layout.dead_letters or ():
            at(broker).topics.add(topic)
        if members and layout.queues:
            brokers = {queue.broker for queue in layout.queues}
            at(min(brokers, key=lambda name: (name in failed, name))).members.add(target.group)
    return table
