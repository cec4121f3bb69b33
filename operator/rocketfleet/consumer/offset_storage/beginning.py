"""Where a LastOffset group began: stored at the brokers before its first delivery, so that nothing after it is skipped.

Theory. "From the last offset" means: from the moment the group began. A queue without a stored offset can be two
things. Before the group has begun, all that lies in it is history, and the group starts at its end. Afterwards, the
queue is new (the topic was expanded, a broker was added, the topic was created late), and everything in it came after
the group began: it starts at its beginning. Which of the two it is has to be known by members that never meet: they
start at the same instant, are killed in their first second, or come back a year later. So the group's beginning is
written down for each topic, once:

1. Under a lock, so that one member does it and the others wait.
2. The mark "beginning" is stored. Should its writer die, the next one knows that what it finds is half of a beginning.
3. The end of every queue that has no offset is stored as its offset.
4. The mark "begun at this time" is stored at every broker.

Nothing is delivered before that. A queue without an offset then starts at its beginning if the topic was there at its
broker when the group began (another queue of it has an offset), and else at the first message stored since the group
began: the broker was away then, or is new, or the topic is.

A group without a mark but with offsets in the topic was begun by somebody else, another client or an earlier version of
this one. It has begun.

Where a mark is kept. The broker stores offsets for any queue number, also of queues that do not exist, next to the
group's real ones: on disk, replicated to slaves, removed with the group, readable by whoever may read the group. So the
mark of a topic is an offset of the group's own retry topic, in a queue numbered by the topic's name beyond any real
one. Its value is 0 for "beginning", and else twice the milliseconds since the epoch, plus one at a broker that was not
there when the group began. The lock is the broker's lock of that queue.
"""

import asyncio
import logging
import re
import time
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from rocketfleet.base.counting import counted
from rocketfleet.client import fanout
from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoRoute, RocketMQError, TopicNotExist
from rocketfleet.client.requests import broker_admin, broker_locks, broker_offsets
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX

_log = logging.getLogger(__name__)
SKIPPED = (
    "%s there before group %s began, and not consumed (LastOffset). To read what is left: a new group "
    "with --consume-from-where FirstOffset, or `rocketfleet reset-offsets %s --to earliest`"
)
BEGINNING = 0
LONG_AGO = 1  # as a time: before all messages
_FIRST_MARK = 1 << 30  # marks are numbered from here up: no topic has a billion queues
TRY_AGAIN_SECONDS = 0.2
_AT_ONCE = 64
_RUNTIME = re.compile(r"\[ (\d+) days, (\d+) hours, (\d+) minutes, (\d+) seconds \]")


def mark_queue(group: str, topic: str, broker: str) -> MessageQueue:
    """The queue whose "offset" says when the group began with a topic."""
    return MessageQueue(RETRY_PREFIX + group, broker, _FIRST_MARK + zlib.crc32(topic.encode()) % _FIRST_MARK)


class Mark(NamedTuple):
    """What a broker has stored about the group and a topic, once the group has begun."""

    since: int  # milliseconds since the epoch
    late: bool  # the broker was not there then, or not all of its queues were written

    def encode(self) -> int:
        return 2 * self.since + self.late


def decode_mark(stored: int | None) -> Mark | None:
    """None: the group has not begun with the topic, as far as this broker knows, or somebody has not finished."""
    return Mark(stored >> 1, bool(stored & 1)) if stored else None


def begun_at(stored: Iterable[int | None]) -> int | None:
    """When the group began with a topic, by what all brokers have stored; None: it has not."""
    return min((mark.since for mark in map(decode_mark, stored) if mark is not None), default=None)


def begun_by_others(stored: Iterable[int | None], offsets: Iterable[int | None]) -> bool:
    """Whether there are offsets that no beginning of ours has left behind."""
    return all(mark is None for mark in stored) and any(offset is not None for offset in offsets)


def starts_at_zero(mark: Mark | None, siblings: Iterable[int | None]) -> bool:
    """Whether a queue without an offset is new at a broker where the topic was when the group began."""
    return mark is not None and not mark.late and any(offset is not None for offset in siblings)


def uptime(runtime_info: Mapping[str, str]) -> float | None:
    """For how many seconds a broker has been up, by its own clock."""
    found = _RUNTIME.search(runtime_info.get("runtime", ""))
    if found is None:
        return None
    days, hours, minutes, seconds = map(int, found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds


class Beginnings:
    """The beginnings of one group. `departed` names members whose lock may be released in their name. `brokers` are
    those that have the group's topics, where the client knows others too; left out, all that it knows.
    """

    def __init__(
        self,
        client: Client,
        group: str,
        *,
        departed: Callable[[], Awaitable[frozenset[str]]] | None = None,
        brokers: Collection[str] | None = None,
        wall_clock: Callable[[], float] = time.time,
        try_again: float = TRY_AGAIN_SECONDS,
    ) -> None:
        self._client = client
        self._group = group
        self._departed = departed
        self._only = brokers
        self._wall_clock = wall_clock
        self._try_again = try_again
        self._begun: dict[str, int] = {}
        self.started = 0  # queues whose end we have stored as their start
        self._ensuring: dict[str, asyncio.Lock] = {}

    async def ensure_all(self, topics: Iterable[str]) -> None:
        """See to it that the group has begun with all of these topics, whether they exist or not."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(topic: str) -> None:
            async with gate:
                await self.ensure(topic)

        await asyncio.gather(*(one(topic) for topic in topics))

    async def ensure(self, topic: str) -> int:
        """See to it that the group has begun with a topic. Returns when it has, in milliseconds since the epoch."""
        async with self._ensuring.setdefault(topic, asyncio.Lock()):
            if topic not in self._begun:
                await self._queues(topic)  # so that its brokers are known
                stored = await self._stored(topic)
                since = begun_at(stored.values())
                if since is None:
                    since = await self._begin(topic)
                else:
                    await self._pass_on(topic, since, [broker for broker, mark in stored.items() if mark is None])
                self._begun[topic] = since
            return self._begun[topic]

    async def start(self, queue: MessageQueue) -> int | None:
        """Where a queue without an offset starts; None if it has one after all, written when the group began."""
        since = await self.ensure(queue.topic)
        remoting, master = self._client.remoting, self._client.master(queue.broker)
        siblings = [one for one in await self._queues(queue.topic) if one.broker == queue.broker]
        offsets = await self._offsets({queue, *siblings})
        if offsets.get(queue) is not None:
            return None
        mark = decode_mark(await self._stored_at(queue.topic, queue.broker))
        if mark is None:
            await self._store(queue.topic, queue.broker, Mark(since, late=True).encode())
        if starts_at_zero(mark, offsets.values()):
            return 0
        return await broker_offsets.search_offset(remoting, master, queue, since)

    async def _pass_on(self, topic: str, since: int, brokers: Iterable[str]) -> None:
        """Tell brokers that were not there when the group began: those that were may be away when it is asked for."""
        mark = Mark(since, late=True).encode()
        answers = await fanout.each(brokers, lambda broker: self._store(topic, broker, mark))
        for broker, error in answers.errors.items():
            _log.info("%s is not told yet when group %s began with %s: %s", broker, self._group, topic, error)

    # -- beginning ----------------------------------------------------------------------------------------------------

    async def _begin(self, topic: str) -> int:
        broker = await self._lock(topic)
        try:
            stored = await self._stored(topic)  # somebody may have finished before we had the lock
            since = begun_at(stored.values())
            if since is not None:
                return since
            queues = await self._queues(topic)
            offsets = await self._offsets(queues)
            if begun_by_others(stored.values(), offsets.values()):
                await self._store_all(topic, dict.fromkeys(stored, Mark(LONG_AGO, late=False).encode()))
                return LONG_AGO
            since = await self._now(broker)
            # All of this may have taken long: it goes on only if nobody else has begun meanwhile.
            if not await self._lock_again(topic, broker):
                return await self._begin(topic)
            await self._store_all(topic, dict.fromkeys(stored, BEGINNING))
            missed = {queue.broker for queue in queues if queue not in offsets}
            failed, skipped = await self._write_ends([queue for queue, offset in offsets.items() if offset is None])
            missed |= failed
            await self._store_all(topic, {name: Mark(since, late=name in missed).encode() for name in stored})
            _log.info(
                "group %s begins with topic %s, at the end of %s", self._group, topic, counted(len(queues), "queue")
            )
            if skipped:
                were = counted(skipped, f"message of topic {topic} was", f"messages of topic {topic} were")
                _log.warning(SKIPPED, were, self._group, self._group)
            return since
        finally:
            await self._unlock(topic, broker)

    async def _write_ends(self, queues: Iterable[MessageQueue]) -> tuple[set[str], int]:
        """Store the end of each queue as its offset; returns the brokers where that did not work, and how many messages
        were stored before."""

        async def one(queue: MessageQueue) -> int:
            remoting, master = self._client.remoting, self._client.master(queue.broker)
            end = await broker_offsets.max_offset(remoting, master, queue)
            # Asked for once more just before it is written: should this process have been frozen since it had the
            # lock, another has begun, and its offset must not be written over.
            if (await self._offsets([queue])).get(queue, end) is not None:
                return 0
            await broker_offsets.update_first_offset(remoting, master, self._group, queue, end)
            return end

        by_name = {str(queue): queue for queue in queues}
        answers = await fanout.each(by_name, lambda name: one(by_name[name]))
        for name, error in answers.errors.items():
            _log.warning("the end of %s could not be stored; it starts by the time of its messages: %s", name, error)
        self.started += len(answers.results)
        return {by_name[name].broker for name in answers.errors}, sum(answers.results.values())

    async def _now(self, broker: str) -> int:
        """The time, by the broker's clock if it is behind ours: messages are found by when a broker stored them."""
        ours = int(self._wall_clock() * 1000)
        try:
            info = await broker_admin.runtime_info(self._client.remoting, self._client.master(broker))
            up = uptime(info)
            return ours if up is None else max(LONG_AGO + 1, min(ours, int(info["bootTimestamp"]) + int(up * 1000)))
        except (RocketMQError, KeyError, ValueError):
            return ours

    # -- the lock -----------------------------------------------------------------------------------------------------

    async def _lock(self, topic: str) -> str:
        """Lock the topic's mark at the first broker that answers; returns that broker."""
        while True:
            problem: RocketMQError | None = RocketMQError(
                f"no broker has a master now: where group {self._group} begins cannot be stored"
            )
            for broker in self._brokers():
                queue = mark_queue(self._group, topic, broker)
                try:
                    granted = await broker_locks.lock(
                        self._client.remoting, self._client.master(broker), self._group, self._client.client_id, [queue]
                    )
                except RocketMQError as error:
                    problem = error
                    continue
                if queue in granted:
                    return broker
                await self._release_departed(broker, queue)
                problem = None
                break
            if problem is not None:
                raise problem
            await asyncio.sleep(self._try_again)

    async def _lock_again(self, topic: str, broker: str) -> bool:
        """Whether the topic's mark is still locked by us, and nobody has begun."""
        queue = mark_queue(self._group, topic, broker)
        granted = await broker_locks.lock(
            self._client.remoting, self._client.master(broker), self._group, self._client.client_id, [queue]
        )
        return queue in granted and begun_at([await self._stored_at(topic, broker)]) is None

    async def _release_departed(self, broker: str, queue: MessageQueue) -> None:
        for member in () if self._departed is None else await self._departed():
            await broker_locks.unlock(self._client.remoting, self._client.master(broker), self._group, member, [queue])

    async def _unlock(self, topic: str, broker: str) -> None:
        try:
            await broker_locks.unlock(
                self._client.remoting,
                self._client.master(broker),
                self._group,
                self._client.client_id,
                [mark_queue(self._group, topic, broker)],
            )
        except RocketMQError as error:
            _log.warning("the lock of the beginning of group %s ends by itself: %s", self._group, error)

    def _brokers(self) -> list[str]:
        """The brokers that have a master, in the order in which all members try to lock at them."""
        known = self._client.brokers.masters()
        return sorted(known if self._only is None else known.keys() & set(self._only))

    # -- what is stored -----------------------------------------------------------------------------------------------

    async def _queues(self, topic: str) -> tuple[MessageQueue, ...]:
        try:
            return await self._client.subscribe_queues(topic)
        except NoRoute:
            return ()

    async def _offsets(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int | None]:
        """The group's offsets; queues whose broker does not answer are missing."""

        async def one(queue: MessageQueue) -> int | None:
            return await broker_offsets.query_offset(
                self._client.remoting,
                self._client.master(queue.broker),
                self._group,
                queue,
                zero_if_not_found=False,
            )

        by_name = {str(queue): queue for queue in queues}
        answers = await fanout.each(by_name, lambda name: one(by_name[name]))
        return {by_name[name]: offset for name, offset in answers.results.items()}

    async def _stored_at(self, topic: str, broker: str) -> int | None:
        return await broker_offsets.query_offset(
            self._client.remoting,
            self._client.master(broker),
            self._group,
            mark_queue(self._group, topic, broker),
            zero_if_not_found=False,
        )

    async def _stored(self, topic: str) -> dict[str, int | None]:
        """What each broker has stored of the topic's mark; brokers that do not answer are missing."""
        masters = self._brokers()
        if not masters:
            raise RocketMQError(f"no broker can be asked where group {self._group} began: none has a master now")
        answers = await fanout.each(masters, lambda name: self._stored_at(topic, name))
        return answers.some_or_raise()

    async def _store(self, topic: str, broker: str, value: int) -> bool:
        """False if the broker has no retry topic of the group yet: it has not heard of the group."""
        queue = mark_queue(self._group, topic, broker)
        master = self._client.master(broker)
        try:
            await broker_offsets.update_first_offset(self._client.remoting, master, self._group, queue, value)
        except TopicNotExist:
            return False
        return True

    async def _store_all(self, topic: str, values: Mapping[str, int]) -> None:
        """Store the topic's mark at these brokers; one of them at least has to keep it."""
        answers = await fanout.each(values, lambda name: self._store(topic, name, values[name]))
        if not any(answers.results.values()):
            raise next(
                iter(answers.errors.values()),
                RocketMQError(f"no broker keeps where group {self._group} began: it has no retry topic yet"),
            )
