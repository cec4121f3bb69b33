"""Reading one broker: all that the groups watched there need, in as few calls as it takes.

Theory. Four questions, in this order, so that an end is never older than the offset it is compared with:

1. Where are the groups? One call gives the offsets of every group of a broker (GET_ALL_CONSUMER_OFFSET), a call per
   queue gives one of them (QUERY_CONSUMER_OFFSET). On a broker with 2,000 groups and 16,000 offsets the one took 20 ms
   and 0.2 MB, the others 2 s. But the one costs what the broker holds and the others what we watch: for a handful of
   groups on a broker that serves a whole company, the others are cheaper (`prefers_bulk`). A broker that refuses the
   one call (rights) is asked queue by queue. Not used are the consume stats of a group (GET_CONSUME_STATS): the broker
   searches its whole table for each group, says nothing of smallest offsets, reads the end before the offset, and shows
   0 for "none".
2. Where do the queues end? A call per topic (GET_TOPIC_STATS_INFO), however many groups share it.
3. How old is the next message? A call for a group and topic (QUERY_CONSUME_TIME_SPAN): the broker looks the store time
   up at the group's offset, for all queues at once, and answers with an age, by its own clock. It is asked only where
   there is lag, and only when the offset has moved since it was asked last; while it stands still the same message is
   the next one. What does not fit into one sweep waits for the next, whoever has waited longest first.
4. Who is in the group? A call per group (GET_CONSUMER_LIST_BY_GROUP). Members are known to every broker of their
   topics, so one is asked.

Calls are made side by side, a bounded number at once. The reading is filled as answers come: whoever gives up on a slow
broker has what it said so far. Once a broker fails to answer, it is left alone until the next sweep. What it refuses is
noted and costs only itself.

`group/at_brokers.py` asks for one group at a time. Here each broker is asked once for thousands of them (ADR 0007).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from rocketfleet.client.errors import NoBroker, NoPermission, RequestNotSupported, ResponseError, RocketMQError
from rocketfleet.client.fanout import bounded
from rocketfleet.client.requests import broker_groups, broker_members, broker_messages, broker_offsets, broker_topics
from rocketfleet.lag.collecting.reckoning import lag_of
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable

    from rocketfleet.client.client import Client
    from rocketfleet.client.requests.calls import Caller

K = TypeVar("K", bound="Hashable")
MOST_AGES: Final = 3000
"""Questions after ages in one sweep of one broker."""
_FEW: Final = 256
_TOO_MANY: Final = 50
_LONGEST_AGE: Final = 50 * 365 * 86_400.0  # the broker reckons from a message it did not find as if it were of 1970


@dataclass(slots=True)
class Wanted:
    """What the groups watched need of one broker."""

    queues: dict[tuple[str, str], set[int]] = field(default_factory=dict)  # (topic, group) → queue ids
    from_beginning: set[tuple[str, str]] = field(default_factory=set)
    once_begun: set[tuple[str, str]] = field(default_factory=set)  # new queues from their beginning, once it has begun
    topics: set[str] = field(default_factory=set)  # dead letters too, which have no group
    members: set[str] = field(default_factory=set)  # groups


@dataclass(slots=True)
class Age:
    """The message that a group consumes next in a queue, and when it was stored, by our clock."""

    offset: int | None
    stored_at: float


@dataclass(slots=True)
class BrokerMemory:
    """What is remembered of a broker from one sweep to the next."""

    bulk_refused: bool = False
    bulk_size: int = 0  # pairs of topic and group in its whole table, when it was last read
    ages: dict[tuple[str, str], dict[int, Age]] = field(default_factory=dict)  # (topic, group) → queue id → age
    asked: dict[tuple[str, str], float] = field(default_factory=dict)  # when ages were asked for last


@dataclass(slots=True)
class BrokerReading:
    """What a broker said. What is missing was not read."""

    started: float
    offsets: dict[tuple[str, str], dict[int, int | None]] = field(default_factory=dict)  # None: none is stored
    ends: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    ages: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)  # seconds, where there is lag
    members: dict[str, frozenset[str]] = field(default_factory=dict)
    error: RocketMQError | None = None


def prefers_bulk(queues: int, pairs: int, memory: BrokerMemory) -> bool:
    """Whether to read the whole table of offsets for so many queues, or pairs of topic and group.

    Not for a few queues, and not if the last whole table was mostly others'.
    """
    return not memory.bulk_refused and queues > _FEW and memory.bulk_size <= pairs * _TOO_MANY


async def read_within(
    patience: float | None, client: Client, broker: str, wanted: Wanted, memory: BrokerMemory, *,
    clock: Callable[[], float], timeout: float,
) -> BrokerReading:  # fmt: skip
    """What a broker says in so many seconds: what it has not said by then is not known."""
    reading = BrokerReading(clock())
    try:
        async with asyncio.timeout(patience):
            await read_broker(
                client.remoting, broker, client.master(broker), wanted, memory, reading, clock=clock, timeout=timeout
            )
    except NoBroker as error:
        reading.error = error
    except TimeoutError:
        reading.error = RocketMQError(f"{broker} did not answer everything within {patience:g} s")
    return reading


async def read_broker(
    caller: Caller, broker: str, address: str, wanted: Wanted, memory: BrokerMemory, reading: BrokerReading, *,
    clock: Callable[[], float], timeout: float,
) -> None:  # fmt: skip
    """Fill the reading. An error of the connection ends it and is noted; it is not raised."""
    reader = _Reader(caller, broker, address, wanted, memory, reading, clock, timeout)
    try:
        await reader.offsets()
        await reader.ends()
        await reader.ages()
        await reader.members()
    except RocketMQError as error:
        reading.error = error


class _Reader:
    def __init__(
        self, caller: Caller, broker: str, address: str, wanted: Wanted, memory: BrokerMemory, reading: BrokerReading,
        clock: Callable[[], float], timeout: float,
    ) -> None:  # fmt: skip
        self._caller = caller
        self._broker = broker
        self._address = address
        self._wanted = wanted
        self._memory = memory
        self._reading = reading
        self._clock = clock
        self._timeout = timeout

    # -- 1: where the groups are --------------------------------------------------------------------------------------

    async def offsets(self) -> None:
        wanted = self._wanted.queues
        count = sum(len(ids) for ids in wanted.values())
        if prefers_bulk(count, len(wanted), self._memory):
            try:
                await self._all_offsets()
            except (NoPermission, RequestNotSupported) as error:
                self._memory.bulk_refused = True
                self._note(error)
            else:
                return
        single = [(pair, number) for pair, ids in wanted.items() for number in ids]
        await self._each(single, lambda one: self._one_offset(*one))

    async def _all_offsets(self) -> None:
        wanted = self._wanted.queues
        found, self._memory.bulk_size = await broker_offsets.offsets_of_groups(
            self._caller, self._address, wanted, timeout=self._timeout
        )
        none: dict[int, int] = {}
        for pair, ids in wanted.items():
            stored = found.get(pair, none)
            self._reading.offsets[pair] = {number: stored.get(number) for number in ids}

    async def _one_offset(self, pair: tuple[str, str], number: int) -> None:
        topic, group = pair
        stored = await broker_offsets.query_offset(
            self._caller, self._address, group, MessageQueue(topic, self._broker, number),
            zero_if_not_found=False, timeout=self._timeout,
        )  # fmt: skip
        self._reading.offsets.setdefault(pair, {})[number] = stored

    # -- 2: where the queues end --------------------------------------------------------------------------------------

    async def ends(self) -> None:
        await self._each(self._wanted.topics, self._ends_of)

    async def _ends_of(self, topic: str) -> None:
        self._reading.ends[topic] = await broker_topics.queue_ends(
            self._caller, self._address, topic, timeout=self._timeout
        )

    # -- 3: how old the next messages are -----------------------------------------------------------------------------

    async def ages(self) -> None:
        waiting, memory = self._waiting(), self._memory
        unknown = [pair for pair, starts in waiting.items() if not _are_known(memory.ages.get(pair), starts)]
        unknown.sort(key=lambda pair: memory.asked.get(pair, 0.0))
        await self._each(unknown[:MOST_AGES], lambda pair: self._ages_of(pair, waiting[pair]))
        for table in (memory.ages, memory.asked):  # who caught up is forgotten
            for pair in table.keys() - waiting.keys():
                del table[pair]
        now = self._clock()
        for pair, starts in waiting.items():
            known = memory.ages.get(pair, {})
            self._reading.ages[pair] = {
                number: max(0.0, now - age.stored_at)
                for number, offset in starts.items()
                if (age := known.get(number)) is not None and age.offset == offset
            }

    def _waiting(self) -> dict[tuple[str, str], dict[int, int | None]]:
        """Where there is lag: (topic, group) → queue id → offset."""
        waiting: dict[tuple[str, str], dict[int, int | None]] = {}
        for pair, stored in self._reading.offsets.items():
            ends = self._reading.ends.get(pair[0])
            if ends is None:
                continue
            beginning = pair in self._wanted.from_beginning or (
                pair in self._wanted.once_begun and any(offset is not None for offset in stored.values())
            )
            behind = {
                number: offset
                for number, offset in stored.items()
                if number in ends and lag_of(offset, ends[number], from_beginning=beginning)
            }
            if behind:
                waiting[pair] = behind
        return waiting

    async def _ages_of(self, pair: tuple[str, str], starts: dict[int, int | None]) -> None:
        topic, group = pair
        self._memory.asked[pair] = self._clock()
        spans = await broker_groups.consume_time_spans(self._caller, self._address, group, topic, timeout=self._timeout)
        now = self._clock()
        found: dict[int, Age] = {}
        for span in spans:
            queue = span.message_queue
            if queue is None or queue.queue_id not in starts:
                continue
            offset = starts[queue.queue_id]
            age = span.delay_time / 1000
            if offset is None or age > _LONGEST_AGE or offset < self._reading.ends[topic][queue.queue_id][0]:
                # The group's own message is not there: the oldest that is comes next. Its time is the broker's.
                age = now - span.min_time_stamp / 1000 if span.min_time_stamp > 0 else -1.0
            if age >= 0:
                found[queue.queue_id] = Age(offset, now - age)
        self._memory.ages[pair] = found
        for number in starts.keys() - found.keys():  # a queue that is only read, while a topic shrinks, has no span
            start = max(starts[number] or 0, self._reading.ends[topic][number][0])
            stored = await broker_messages.store_time(
                self._caller, self._address, MessageQueue(topic, self._broker, number), start, timeout=self._timeout
            )
            if stored is not None:
                found[number] = Age(starts[number], stored / 1000)

    # -- 4: who is there ----------------------------------------------------------------------------------------------

    async def members(self) -> None:
        await self._each(self._wanted.members, self._members_of)

    async def _members_of(self, group: str) -> None:
        found = await broker_members.consumer_ids(self._caller, self._address, group, timeout=self._timeout)
        self._reading.members[group] = frozenset(found)

    # -- calls --------------------------------------------------------------------------------------------------------

    async def _each(self, items: Iterable[K], call: Callable[[K], Awaitable[None]]) -> None:
        """The call for each item. What the broker refuses is noted; if it does not answer, the first error is raised
        and the rest is left.
        """

        async def one(item: K) -> None:
            try:
                await call(item)
            except ResponseError as error:
                self._note(error)

        await bounded(items, one)

    def _note(self, error: RocketMQError) -> None:
        if self._reading.error is None:
            self._reading.error = error


def _are_known(ages: dict[int, Age] | None, starts: dict[int, int | None]) -> bool:
    return ages is not None and all(
        (age := ages.get(number)) is not None and age.offset == offset for number, offset in starts.items()
    )
