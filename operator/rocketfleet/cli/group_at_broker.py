"""A group as its brokers have it: offsets, members and owners, read and written by calls that need no running consumer.

Offsets are read from masters only: a slave's are old. A group's offset is read before the end of its queue: the other
way round, a busy queue would show less than no lag. What a broker did not answer is missing from a reading, with the
reason beside it; it never becomes 0.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from rocketfleet.client import admin, broker_groups, broker_members, broker_offsets, broker_topics
from rocketfleet.client.errors import ConsumerNotOnline, NoRoute, RocketMQError
from rocketfleet.client.fanout import Partial, each
from rocketfleet.client.routes import RETRY_PREFIX
from rocketfleet.controller.offset_change import QueueOffsets
from rocketfleet.wire.bodies import ConsumerConnection
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

    from rocketfleet.client.client import Client

T = TypeVar("T")
AT_ONCE: Final = 64
"""Calls under way: enough to keep a broker busy, too few to be taken for an attack."""


@dataclass(slots=True)
class Reading:
    """What brokers said. A queue that is missing in one of the tables is not known; None in `committed` is "none"."""

    queues: tuple[MessageQueue, ...] = ()
    committed: dict[MessageQueue, int | None] = field(default_factory=dict)
    ends: dict[MessageQueue, tuple[int, int]] = field(default_factory=dict)
    errors: dict[str, RocketMQError] = field(default_factory=dict)

    def offsets(self) -> dict[MessageQueue, QueueOffsets]:
        """The queues of which everything is known."""
        return {
            queue: QueueOffsets(self.committed[queue], *self.ends[queue])
            for queue in self.queues
            if queue in self.committed and queue in self.ends
        }


class GroupAtBroker:
    """One group and its topics."""

    def __init__(self, client: Client, group: str, topics: Iterable[str]) -> None:
        self._client = client
        self.group = group
        self.topics = tuple(dict.fromkeys(topics))

    @property
    def retry_topic(self) -> str:
        return RETRY_PREFIX + self.group

    # -- queues

    async def queues(
        self, *, retries: bool, absent: dict[str, RocketMQError] | None = None
    ) -> tuple[MessageQueue, ...]:
        """The queues of the topics. One that has no route is noted in `absent`, or raised without it."""
        found: list[MessageQueue] = []
        for topic in self.topics:
            try:
                found += await self._client.subscribe_queues(topic)
            except NoRoute as error:
                if absent is None:
                    raise
                absent[topic] = error
        if retries and self.retry_topic not in self.topics:
            with suppress(NoRoute):  # nothing has failed yet, or the group never ran
                found += await self._client.subscribe_queues(self.retry_topic)
        return tuple(sorted(found))

    async def clusters(self) -> tuple[str, ...]:
        """The names of the RocketMQ clusters that have the topics."""
        await self.queues(retries=False)
        return tuple(sorted(set(self._client.brokers.clusters.values())))

    # -- reading

    async def read(
        self, queues: Collection[MessageQueue], errors: Mapping[str, RocketMQError] | None = None
    ) -> Reading:
        """Where the group is in these queues, then where they end. Raises if no broker answered."""
        reading = Reading(tuple(queues), errors=dict(errors or {}))
        committed = await self._each_broker(queues, self._committed)
        for found in committed.some_or_raise().values():
            reading.committed.update(found)
        ends = await self._each_broker(queues, self._ends)
        for limits in ends.some_or_raise().values():
            reading.ends.update(limits)
        reading.errors.update({**committed.errors, **ends.errors})
        return reading

    async def committed(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, int | None]:
        """The group's offsets, or the error if a broker does not answer."""
        found = (await self._each_broker(queues, self._committed)).all_or_raise()
        return {queue: offset for table in found.values() for queue, offset in table.items()}

    async def at_time(self, queues: Collection[MessageQueue], milliseconds: int) -> dict[MessageQueue, int]:
        """The first message of each queue that was stored at or after a time."""

        async def search(queue: MessageQueue) -> int:
            return await broker_offsets.search_offset(
                self._client.remoting, self._client.master(queue.broker), queue, milliseconds
            )

        return await _gather(queues, search)

    async def ages(self, topics: Iterable[str], brokers: Iterable[str]) -> dict[MessageQueue, tuple[int, int]]:
        """For each queue, milliseconds: the delay that its broker works out, and when its oldest message was stored.

        One call a topic and broker. It is a nicety, so who does not answer is left out.
        """
        wanted = list(topics)

        async def spans(broker: str) -> dict[MessageQueue, tuple[int, int]]:
            caller, address = self._client.remoting, self._client.master(broker)
            return {
                span.message_queue: (span.delay_time, span.min_time_stamp)
                for topic in wanted
                for span in await broker_groups.consume_time_spans(caller, address, self.group, topic)
                if span.message_queue is not None
            }

        found = await each(brokers, spans)
        return {queue: span for table in found.results.values() for queue, span in table.items()}

    async def _committed(self, broker: str, queues: Collection[MessageQueue]) -> dict[MessageQueue, int | None]:
        address = self._client.master(broker)

        async def query(queue: MessageQueue) -> int | None:
            # Left to itself, the broker answers 0 for "none" in a young queue.
            return await broker_offsets.query_offset(
                self._client.remoting, address, self.group, queue, zero_if_not_found=False
            )

        return await _gather(queues, query)

    async def _ends(self, broker: str, queues: Collection[MessageQueue]) -> dict[MessageQueue, tuple[int, int]]:
        address, ends = self._client.master(broker), dict[MessageQueue, tuple[int, int]]()
        for topic in sorted({queue.topic for queue in queues}):
            table = (await broker_topics.topic_stats(self._client.remoting, address, topic)).offset_table
            for queue in queues:
                if queue.topic == topic and queue in table:
                    ends[queue] = max(table[queue].min_offset, 0), max(table[queue].max_offset, 0)
        return ends

    async def _each_broker(
        self, queues: Collection[MessageQueue], call: Callable[[str, list[MessageQueue]], Awaitable[T]]
    ) -> Partial[T]:
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker, []).append(queue)
        return await each(by_broker, lambda name: call(name, by_broker[name]))

    # -- members

    async def member_ids(self) -> Partial[tuple[str, ...]]:
        """The client ids that each master has."""
        masters = await admin.masters(self._client)
        return await each(
            masters, lambda name: broker_members.consumer_ids(self._client.remoting, masters[name], self.group)
        )

    async def members(self) -> frozenset[str]:
        """The client ids at all masters; the error if one does not answer, for it may be the one that knows."""
        found = await self.member_ids()
        return frozenset(member for ids in found.all_or_raise().values() for member in ids)

    async def connections(self) -> Partial[ConsumerConnection]:
        """The members as each master sees them."""
        masters = await admin.masters(self._client)
        return await each(masters, lambda name: self._connections(masters[name]))

    async def _connections(self, address: str) -> ConsumerConnection:
        try:
            return await broker_members.consumer_connections(self._client.remoting, address, self.group)
        except ConsumerNotOnline:
            return ConsumerConnection()

    async def holdings(self, members: Iterable[str]) -> Partial[frozenset[MessageQueue] | None]:
        """The queues that each member says it has; None if it is gone meanwhile."""
        return await each(members, self._holdings)

    async def _holdings(self, member: str) -> frozenset[MessageQueue] | None:
        try:
            info = await admin.running_info(self._client, self.group, member)
        except ConsumerNotOnline:
            return None
        return frozenset({*info.mq_table, *info.mq_pop_table})

    # -- writing

    async def write(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Store offsets. Raises at the first that a broker refuses; to read back is the caller's."""

        async def move(queue: MessageQueue) -> None:
            caller, address = self._client.remoting, self._client.master(queue.broker)
            if not await broker_offsets.update_first_offset(caller, address, self.group, queue, offsets[queue]):
                # An earlier reset at the broker waits to be taken up, and until then updates are dropped: replace it.
                await broker_offsets.reset_queue_offset(caller, address, self.group, queue, offsets[queue])

        await _gather(offsets, move)


async def _gather(
    queues: Collection[MessageQueue], call: Callable[[MessageQueue], Awaitable[T]]
) -> dict[MessageQueue, T]:
    """The call for each queue, a bounded number at once. An error is raised when all have come to an end."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(queue: MessageQueue) -> T:
        async with turn:
            return await call(queue)

    outcomes = await asyncio.gather(*(one(queue) for queue in queues), return_exceptions=True)
    results: dict[MessageQueue, T] = {}
    for queue, outcome in zip(queues, outcomes, strict=True):
        if isinstance(outcome, BaseException):
            raise outcome
        results[queue] = outcome
    return results
