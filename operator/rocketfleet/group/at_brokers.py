"""A group as its brokers have it: queues, members, owners and offsets, by calls that need no running consumer.

It never decides: an error is raised for whoever asked, or told beside what could be found out.

*Which brokers.* Offsets belong to their queue's broker. Members are known to every broker of their topics, and possibly
to others: the caller says which masters to ask, those that have the group's topics (`masters`), or all that the name
servers know by saying nothing.

*Offsets.* They are asked of masters, for a slave's are old; a reader that would rather have an old one than none says
so (`or_slave`). "None is stored" is None. Left to itself the broker answers 0 for "none" in a young queue, so it is
told not to. A group's offset is read before the end of its queue: the other way round, a busy queue would show less
than no lag. What a broker did not answer is missing, with the reason beside it; it never becomes 0.

Not read here is the lag of thousands of groups: `lag/collecting/broker_reading.py` asks broker by broker, not group by
group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from rocketfleet.client import admin
from rocketfleet.client.errors import ConnectError, ConsumerNotOnline, NoBroker, NoRoute, RocketMQError
from rocketfleet.client.fanout import Partial, bounded, each
from rocketfleet.client.requests import broker_locks, broker_members, broker_offsets, broker_topics
from rocketfleet.group.offset_change import QueueOffsets
from rocketfleet.wire.bodies import ConsumerConnection
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

    from rocketfleet.client.client import Client
    from rocketfleet.wire.bodies import ConsumerRunningInfo

T = TypeVar("T")
Failures = dict[MessageQueue, RocketMQError]


@dataclass(slots=True)
class Reading:
    """What brokers said. A queue that is missing in one of the tables is not known; None in `committed` is "none"."""

    queues: tuple[MessageQueue, ...] = ()
    committed: dict[MessageQueue, int | None] = field(default_factory=dict)
    ends: dict[MessageQueue, tuple[int, int]] = field(default_factory=dict)
    errors: dict[str, RocketMQError] = field(default_factory=dict)  # by broker

    def offsets(self) -> dict[MessageQueue, QueueOffsets]:
        """The queues of which everything is known."""
        return {
            queue: QueueOffsets(self.committed[queue], *self.ends[queue])
            for queue in self.queues
            if queue in self.committed and queue in self.ends
        }


class GroupAtBrokers:
    """One group and its topics. With `or_slave`, offsets and ends come from a slave where there is no master now."""

    def __init__(self, client: Client, group: str, topics: Iterable[str] = (), *, or_slave: bool = False) -> None:
        self.client = client
        self.group = group
        self.topics = tuple(dict.fromkeys(topics))
        self._or_slave = or_slave

    @property
    def retry_topic(self) -> str:
        return RETRY_PREFIX + self.group

    # -- queues and brokers -------------------------------------------------------------------------------------------

    async def queues(
        self, *, retries: bool = False, absent: dict[str, RocketMQError] | None = None
    ) -> tuple[MessageQueue, ...]:
        """The queues of the topics, sorted. A topic that has no route is noted in `absent`, or raised without it."""
        found = await bounded(self.topics, self._queues_of)
        for topic, there in found.items():
            if isinstance(there, NoRoute):
                if absent is None:
                    raise there
                absent[topic] = there
        if retries and self.retry_topic not in found:
            found[self.retry_topic] = await self._queues_of(self.retry_topic)  # NoRoute: nothing has failed yet
        return tuple(sorted(queue for there in found.values() if not isinstance(there, NoRoute) for queue in there))

    async def _queues_of(self, topic: str) -> tuple[MessageQueue, ...] | NoRoute:
        try:
            return await self.client.subscribe_queues(topic)
        except NoRoute as error:
            return error

    async def masters(self) -> dict[str, str]:
        """The masters of the brokers that have the group's topics: broker name → address. NoRoute if a topic is not
        there, NoBroker if a broker has no master now.
        """
        return {name: self.client.master(name) for name in sorted({queue.broker for queue in await self.queues()})}

    async def clusters(self) -> tuple[str, ...]:
        """The names of the RocketMQ clusters that have the topics."""
        await self.queues()
        return tuple(sorted(set(self.client.brokers.clusters.values())))

    # -- members ------------------------------------------------------------------------------------------------------

    async def member_ids(self, masters: Mapping[str, str] | None = None) -> Partial[tuple[str, ...]]:
        """The client ids that each master has."""
        table = await self._asked(masters)
        return await each(
            table, lambda name: broker_members.consumer_ids(self.client.remoting, table[name], self.group)
        )

    async def members(self, masters: Mapping[str, str] | None = None) -> frozenset[str]:
        """The client ids at all masters; the error if one does not answer, for it may be the one that knows."""
        found = (await self.member_ids(masters)).all_or_raise()
        return frozenset(member for ids in found.values() for member in ids)

    async def connections(self, masters: Mapping[str, str] | None = None) -> Partial[ConsumerConnection]:
        """The members and subscriptions as each master sees them; nothing where nobody is in the group."""
        table = await self._asked(masters)

        async def ask(name: str) -> ConsumerConnection:
            try:
                return await broker_members.consumer_connections(self.client.remoting, table[name], self.group)
            except ConsumerNotOnline:
                return ConsumerConnection()

        return await each(table, ask)

    async def running_infos(
        self, members: Iterable[str], masters: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> Partial[ConsumerRunningInfo]:
        """What members say of themselves, by client id; ConsumerNotOnline for one that no master knows.

        Each question occupies a thread of the broker that also serves locks, for as long as the member does not answer:
        not to be asked often. A member that one broker has asked in vain is not asked through the next.
        """
        table = await self._asked(masters)

        async def ask(client_id: str) -> ConsumerRunningInfo:
            last: RocketMQError = NoBroker(f"of group {self.group}", "no broker has a master now")
            for address in table.values():
                try:
                    return await broker_members.running_info(
                        self.client.remoting, address, self.group, client_id, timeout=timeout
                    )
                except ConsumerNotOnline as error:
                    # That one broker does not know it says less than that another could not be asked.
                    last = last if isinstance(last, ConnectError) else error
                except ConnectError as error:
                    last = error
            raise last

        return await each(members, ask)

    async def holdings(
        self, members: Iterable[str], masters: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> Partial[frozenset[MessageQueue]]:
        """The queues that each member says it has. Who is gone meanwhile is left out."""
        infos = await self.running_infos(members, masters, timeout=timeout)
        return Partial(
            {member: held_queues(info) for member, info in infos.results.items()},
            {member: error for member, error in infos.errors.items() if not isinstance(error, ConsumerNotOnline)},
        )

    async def _asked(self, masters: Mapping[str, str] | None) -> Mapping[str, str]:
        return await admin.masters(self.client) if masters is None else masters

    # -- offsets ------------------------------------------------------------------------------------------------------

    async def committed(
        self, queues: Iterable[MessageQueue], failures: Failures | None = None
    ) -> dict[MessageQueue, int | None]:
        """The group's offsets. A queue whose broker does not answer is noted in `failures`; without, it is an error."""

        async def ask(address: str, queue: MessageQueue) -> int | None:
            return await broker_offsets.query_offset(
                self.client.remoting, address, self.group, queue, zero_if_not_found=False
            )

        return await self._each(queues, ask, failures)

    async def begins(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        """Where the queues begin: the first message that is still there."""

        async def ask(address: str, queue: MessageQueue) -> int:
            return max(0, await broker_offsets.min_offset(self.client.remoting, address, queue))

        return await self._each(queues, ask)

    async def ends(self, queues: Iterable[MessageQueue], failures: Failures | None = None) -> dict[MessageQueue, int]:
        """Where the queues end: the offset of the next message. `failures` is as for `committed`."""

        async def ask(address: str, queue: MessageQueue) -> int:
            return max(0, await broker_offsets.max_offset(self.client.remoting, address, queue))

        return await self._each(queues, ask, failures)

    async def at_time(self, queues: Iterable[MessageQueue], milliseconds: int) -> dict[MessageQueue, int]:
        """The first message of each queue that was stored at or after a time; the queue's end if there is none."""

        async def search(address: str, queue: MessageQueue) -> int:
            return await broker_offsets.search_offset(self.client.remoting, address, queue, milliseconds)

        return await self._each(queues, search)

    async def read(self, queues: Collection[MessageQueue]) -> Reading:
        """Where the group is in these queues, then where they begin and end. Raises if no broker answered."""
        failures: Failures = {}
        committed = await self.committed(queues, failures)
        by_broker = {queue.broker: error for queue, error in reversed(failures.items())}
        Partial({queue.broker: True for queue in committed}, by_broker).some_or_raise()
        topics: dict[str, set[str]] = {}
        for queue in queues:
            topics.setdefault(queue.broker, set()).add(queue.topic)
        ends = await each(topics, lambda broker: self._topic_ends(broker, topics[broker]))
        tables = {queue: limits for table in ends.some_or_raise().values() for queue, limits in table.items()}
        return Reading(
            tuple(queues),
            committed,
            {queue: tables[queue] for queue in queues if queue in tables},
            {**by_broker, **ends.errors},
        )

    async def _topic_ends(self, broker: str, topics: Iterable[str]) -> dict[MessageQueue, tuple[int, int]]:
        """By one call for each topic."""
        address, ends = self._address(broker), dict[MessageQueue, tuple[int, int]]()
        for topic in sorted(topics):
            table = (await broker_topics.topic_stats(self.client.remoting, address, topic)).offset_table
            ends |= {queue: (max(at.min_offset, 0), max(at.max_offset, 0)) for queue, at in table.items()}
        return ends

    # -- changing -----------------------------------------------------------------------------------------------------

    async def write(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Store offsets. An error is raised when every queue was tried; to read back is the caller's."""

        async def move(address: str, queue: MessageQueue) -> None:
            caller, offset = self.client.remoting, offsets[queue]
            if not await broker_offsets.update_first_offset(caller, address, self.group, queue, offset):
                # An earlier reset at the broker waits to be taken up, and until then updates are dropped: replace it.
                await broker_offsets.reset_queue_offset(caller, address, self.group, queue, offset)

        failures: Failures = {}
        await self._each(offsets, move, failures)
        for error in failures.values():
            raise error

    async def unlock(self, queues: Iterable[MessageQueue], client_ids: Iterable[str]) -> None:
        """Release these members' locks of the queues. Whether they may be released is the caller's to know."""
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker, []).append(queue)

        async def one(place: tuple[str, str]) -> None:
            broker, client_id = place
            await broker_locks.unlock(
                self.client.remoting, self.client.master(broker), self.group, client_id, by_broker[broker]
            )

        members = list(client_ids)
        await bounded([(broker, member) for broker in by_broker for member in members], one)

    # -- calls --------------------------------------------------------------------------------------------------------

    def _address(self, broker: str) -> str:
        return self.client.reader(broker).address if self._or_slave else self.client.master(broker)

    async def _each(
        self,
        queues: Iterable[MessageQueue],
        call: Callable[[str, MessageQueue], Awaitable[T]],
        failures: Failures | None = None,
    ) -> dict[MessageQueue, T]:
        """The call for each queue, with the address of its broker."""
        if failures is None:
            return await bounded(queues, lambda queue: call(self._address(queue.broker), queue))
        noted, found = failures, dict[MessageQueue, T]()

        async def one(queue: MessageQueue) -> None:
            try:
                found[queue] = await call(self._address(queue.broker), queue)
            except RocketMQError as error:
                noted[queue] = error

        await bounded(queues, one)
        return found


def pulled_queues(info: ConsumerRunningInfo) -> frozenset[MessageQueue]:
    """The queues that a member says it pulls from."""
    return frozenset(queue for queue, state in info.mq_table.items() if not state.dropped)


def held_queues(info: ConsumerRunningInfo) -> frozenset[MessageQueue]:
    """The same with those it pops from, which it may share with others."""
    return pulled_queues(info) | frozenset(info.mq_pop_table)


def owners_of(holdings: Mapping[str, Iterable[MessageQueue]]) -> dict[MessageQueue, list[str]]:
    """Who has a queue, from what each member says it has. More than one is possible for a moment, and worth seeing."""
    owners: dict[MessageQueue, list[str]] = {}
    for member in sorted(holdings):
        for queue in holdings[member]:
            owners.setdefault(queue, []).append(member)
    return owners
