"""Where a group stands at the broker: read when a queue is taken over, written as messages are finished.

Written offsets never go back. The broker would accept anything (backwards, beyond the end, for queues that do not
exist), so the guard is here: what is told to the broker is what is higher than what it was told last. An asked-for
reset is the one exception, and starts a new count.

What was told may be forgotten: a broker that is killed loses its last seconds of offsets, a slave that takes over is
behind. So after every interruption the stored offset is read (`check`), which says two things: whether somebody else
has had the queue meanwhile, and what has to be told again.

Where a queue starts is stored before its first pull. Otherwise a member that is killed before its first commit would
leave nothing behind, and the next owner would start at the end, beyond what was sent in the meantime.

Reading tells "no offset stored" from every kind of failure: a failure is raised and tried again, never taken for
"none".
"""

import asyncio
import logging
from collections.abc import Mapping

from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoBroker, RocketMQError
from rocketfleet.client.requests import broker_offsets
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.handover.ownership import CONFIRM_APART, nobody_else_had_it
from rocketfleet.consumer.offset_storage.beginning import Beginnings
from rocketfleet.consumer.offset_storage.start_offset import Start, start_without_offset
from rocketfleet.consumer.settings import ConsumerSettings, InitialOffset
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
_READ_BACK_TRIES = 5


class _Told:
    """What the broker was told of a queue, in one ownership of it."""

    __slots__ = ("offset", "sent", "unanswered")

    def __init__(self, offset: int = -1) -> None:
        self.offset = offset  # the highest that it has confirmed
        self.sent = offset  # the highest that was sent, confirmed or not
        self.unanswered: float | None = None  # since when an update may be on its way, and be handled after a later one


class BrokerOffsets:
    """The offsets of a clustering group."""

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        tally: ConsumerCounters | None = None,
        beginnings: Beginnings | None = None,
        *,
        confirm_apart: float = CONFIRM_APART,
    ) -> None:
        self._client = client
        self._settings = settings
        self._tally = tally or ConsumerCounters()
        self._beginnings = beginnings or Beginnings(client, settings.group)
        self._confirm_apart = confirm_apart
        self._told: dict[MessageQueue, _Told] = {}
        self._sending: dict[MessageQueue, asyncio.Task[int | None]] = {}
        self._stored: set[MessageQueue] = set()  # known to have an offset at the broker

    # -- reading ------------------------------------------------------------------------------------------------------

    async def start(self, queue: MessageQueue) -> int:
        """Where to begin: the stored offset, or what consumeFromWhere says, which is stored then."""
        native = self._settings.initial_offset is InitialOffset.NATIVE
        stored = await self._query(queue, zero_if_not_found=native)
        if stored is None:
            stored = await self._start_without_offset(queue)
        elif not native:  # there, 0 may mean that there is none
            self._stored.add(queue)
        self._told[queue] = _Told(stored)
        return stored

    async def _start_without_offset(self, queue: MessageQueue) -> int:
        remoting, group = self._client.remoting, self._settings.group
        master = self._client.master(queue.broker)
        start = start_without_offset(self._settings.consume_from_where, queue.topic)
        offset: int | None
        if start is Start.BEGINNING:
            offset = 0  # the broker moves whoever pulls below the minimum; to ask for that takes a right more
        elif start is Start.BY_TIME:
            assert self._settings.consume_timestamp is not None
            offset = await broker_offsets.search_offset(
                remoting, master, queue, int(self._settings.consume_timestamp * 1000)
            )
        elif self._settings.initial_offset is InitialOffset.NATIVE:
            offset = await broker_offsets.max_offset(remoting, master, queue)
        else:
            offset = await self._beginnings.start(queue)
            if offset is None:  # written a moment ago, as the group began
                stored = await self._query(queue, zero_if_not_found=False)
                if stored is not None:
                    self._stored.add(queue)
                    return stored
                raise RocketMQError(f"{queue} had an offset of group {group} a moment ago, and has none now")
        await broker_offsets.update_first_offset(remoting, master, group, queue, offset)
        self._stored.add(queue)
        _log.info("%s: group %s has no offset, it starts at %d (%s)", queue, group, offset, start.name.lower())
        return offset

    async def check(self, queue: MessageQueue) -> bool:
        """After an interruption: whether the stored offset is ours. What the broker has forgotten is told again."""
        told = self._told.get(queue)
        stored = await self._query(queue, zero_if_not_found=False)
        if told is None or not nobody_else_had_it(stored, told.sent):
            return False
        if stored is None:
            self._stored.discard(queue)
        elif stored < told.offset:
            _log.info(
                "%s: the broker has forgotten offset %d and says %d",
                queue,
                told.offset,
                stored,
                extra={"offset": told.offset},
            )
        told.offset = -1 if stored is None else stored
        return True

    async def _query(self, queue: MessageQueue, *, zero_if_not_found: bool) -> int | None:
        try:
            address = self._client.master(queue.broker)
        except NoBroker:
            address = self._client.reader(queue.broker).address  # a slave knows it too, some seconds late
        return await broker_offsets.query_offset(
            self._client.remoting, address, self._settings.group, queue, zero_if_not_found=zero_if_not_found
        )

    # -- writing ------------------------------------------------------------------------------------------------------

    def is_news(self, queue: MessageQueue, offset: int) -> bool:
        """Whether the broker has not been told this offset, or a higher one."""
        told = self._told.get(queue)
        return told is None or offset > told.offset or told.unanswered is not None

    async def persist(self, offsets: Mapping[MessageQueue, int], *, again: bool = False) -> None:
        """Tell the brokers what they do not know yet, or everything again. Who does not answer is told next time."""

        async def one(queue: MessageQueue, offset: int) -> None:
            try:
                await self._send(queue, offset, only_news=not again)
            except RocketMQError as error:
                _log.warning(
                    "%s: offset %d was not committed, it is tried again: %s",
                    queue,
                    offset,
                    error,
                    extra={"offset": offset},
                )

        news = (item for item in offsets.items() if again or self.is_news(*item))
        await asyncio.gather(*(one(queue, offset) for queue, offset in news))

    async def confirm(self, queue: MessageQueue, offset: int, *, timeout: float | None = None) -> int:
        """Tell the broker and wait for its reply, also if it knows the offset already: the reply is what is wanted.

        Returns what it has stored then: another offset only if the group was reset meanwhile. The broker tells a reset
        once, in the answer to a pull, which nobody hears when the queue is given up just then: so it is looked for.
        If an earlier update was never answered it may still be on its way, so the offset is read back, and sent again
        if it has gone back.
        """
        told = self._told.get(queue)
        doubtful = told is not None and told.unanswered is not None
        if told is not None and not doubtful and told.offset >= 0:
            found = await self._query(queue, zero_if_not_found=False)
            if found is not None and not told.offset <= found <= told.sent:
                _log.warning(
                    "%s: the group was reset to %d while the queue is given up; it is left there", queue, found
                )
                return found
        for _ in range(_READ_BACK_TRIES):
            stored = await self._send(queue, offset, timeout=timeout)
            if stored is None:  # dropped, because the group was reset
                found = await self._query(queue, zero_if_not_found=False)
                return offset if found is None else found
            if told is None or not (doubtful or told.unanswered is not None):
                return stored
            await asyncio.sleep(self._confirm_apart)
            found = await self._query(queue, zero_if_not_found=False)
            if found is not None and found >= stored:
                told.unanswered = None
                return stored
            told.offset = -1 if found is None else found
        raise RocketMQError(f"{queue}: offset {offset} does not stay, other updates come in between")

    async def _send(
        self, queue: MessageQueue, offset: int, *, only_news: bool = False, timeout: float | None = None
    ) -> int | None:
        """Send an offset, after any that is on its way: the broker has many threads, and a lower one that overtakes a
        higher one would stay. So it is waited for even if whoever sent it has stopped waiting.

        Returns the offset that the broker has now; None: it has dropped ours, because the group was reset.
        """
        told = self._told.setdefault(queue, _Told())
        while (sending := self._sending.get(queue)) is not None:
            await asyncio.wait([sending])
        if offset < told.offset or (only_news and offset == told.offset and told.unanswered is None):
            return told.offset
        task = asyncio.get_running_loop().create_task(self._update(queue, offset, told, timeout))
        self._sending[queue] = task
        task.add_done_callback(lambda _: self._sending.pop(queue))
        return await asyncio.shield(task)

    async def _update(self, queue: MessageQueue, offset: int, told: _Told, timeout: float | None) -> int | None:
        if self._told.get(queue) is not told:
            return told.offset  # given up, or reset, since this was asked for: it is no longer ours to tell
        update = broker_offsets.update_offset if queue in self._stored else broker_offsets.update_first_offset
        told.sent = max(told.sent, offset)
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        try:
            stored = await update(
                self._client.remoting,
                self._client.master(queue.broker),
                self._settings.group,
                queue,
                offset,
                timeout=timeout,
            )
        except RocketMQError:
            told.unanswered = loop.time()
            raise
        if not stored:  # the group was reset meanwhile: the next pull says where to
            return None
        self._stored.add(queue)
        told.offset = max(told.offset, offset)
        if told.unanswered is not None and asked_at - told.unanswered >= self._confirm_apart:
            told.unanswered = None  # whatever was on its way has been handled before this one
        self._tally.commits += 1
        return told.offset

    def forget(self, queue: MessageQueue) -> None:
        """The queue was given up: what was told no longer counts."""
        self._told.pop(queue, None)

    def reset(self, queue: MessageQueue, offset: int) -> None:
        """The queue starts again at this offset: what was told no longer counts."""
        self._told[queue] = _Told()
        self._told[queue].sent = offset
