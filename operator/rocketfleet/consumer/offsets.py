"""Where a group stands at the broker: read when a queue is taken over, written as messages are finished.

Written offsets never go back. The broker would accept anything (backwards, beyond the end, for queues that do not
exist), so the guard is here: what is told to the broker is what is higher than what it was told last. An asked-for
reset is the one exception, and starts a new count.

Reading tells "no offset stored" from every kind of failure: a failure is raised and tried again, never taken for
"none".
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping

from rocketfleet.client import broker_offsets
from rocketfleet.client.client import Client
from rocketfleet.client.errors import RocketMQError
from rocketfleet.consumer.settings import ConsumerSettings, InitialOffset
from rocketfleet.consumer.start_offset import Start, start_without_offset
from rocketfleet.consumer.tally import Tally
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)


class _Told:
    """The highest offset that the broker was told of a queue, in one ownership of it."""

    __slots__ = ("offset",)

    def __init__(self) -> None:
        self.offset = -1


class BrokerOffsets:
    """The offsets of a clustering group."""

    def __init__(self, client: Client, settings: ConsumerSettings, tally: Tally | None = None) -> None:
        self._client = client
        self._settings = settings
        self._tally = tally or Tally()
        self._told: defaultdict[MessageQueue, _Told] = defaultdict(_Told)
        self._sending: dict[MessageQueue, asyncio.Task[None]] = {}
        self._stored: set[MessageQueue] = set()  # known to have an offset at the broker

    async def start(self, queue: MessageQueue) -> int:
        """Where to begin: the stored offset, or what consumeFromWhere says if there is none."""
        remoting, group = self._client.remoting, self._settings.group
        master = self._client.master(queue.broker)
        stored = await broker_offsets.query_offset(
            remoting, master, group, queue, zero_if_not_found=self._settings.initial_offset is InitialOffset.NATIVE
        )
        if stored is not None:
            if self._settings.initial_offset is InitialOffset.STRICT:  # else 0 may mean that there is none
                self._stored.add(queue)
            self._told[queue].offset = stored
            return stored
        start = start_without_offset(self._settings.consume_from_where, queue.topic)
        if start is Start.BEGINNING:
            offset = 0
        elif start is Start.END:
            offset = await broker_offsets.max_offset(remoting, master, queue)
        else:
            assert self._settings.consume_timestamp is not None
            offset = await broker_offsets.search_offset(
                remoting, master, queue, int(self._settings.consume_timestamp * 1000)
            )
        _log.info("%s: group %s has no offset, it starts at %d (%s)", queue, group, offset, start.name.lower())
        return offset

    def is_news(self, queue: MessageQueue, offset: int) -> bool:
        """Whether the broker has not been told this offset, or a higher one."""
        return offset > self._told[queue].offset

    async def persist(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Tell the brokers what they do not know yet. One that does not answer is logged, and told next time."""

        async def one(queue: MessageQueue, offset: int) -> None:
            try:
                await self._send(queue, offset, only_news=True)
            except RocketMQError as error:
                _log.warning("%s: offset %d was not committed, it is tried again: %s", queue, offset, error)

        await asyncio.gather(*(one(queue, offset) for queue, offset in offsets.items() if self.is_news(queue, offset)))

    async def confirm(self, queue: MessageQueue, offset: int, *, timeout: float | None = None) -> None:
        """Tell the broker and wait for its reply, also if it knows the offset already: the reply is what is wanted."""
        await self._send(queue, offset, timeout=timeout)

    async def _send(
        self, queue: MessageQueue, offset: int, *, only_news: bool = False, timeout: float | None = None
    ) -> None:
        """Send an offset, after any that is on its way: the broker has many threads, and a lower one that overtakes a
        higher one would stay. So it is waited for even if whoever sent it has stopped waiting.
        """
        told = self._told[queue]
        while (sending := self._sending.get(queue)) is not None:
            await asyncio.wait([sending])
        if offset < told.offset or (only_news and offset == told.offset):
            return
        task = asyncio.get_running_loop().create_task(self._update(queue, offset, told, timeout))
        self._sending[queue] = task
        task.add_done_callback(lambda _: self._sending.pop(queue))
        await asyncio.shield(task)

    async def _update(self, queue: MessageQueue, offset: int, told: _Told, timeout: float | None) -> None:
        if self._told.get(queue) is not told:
            return  # given up, or reset, since this was asked for: it is no longer ours to tell
        update = broker_offsets.update_offset if queue in self._stored else broker_offsets.update_first_offset
        stored = await update(
            self._client.remoting,
            self._client.master(queue.broker),
            self._settings.group,
            queue,
            offset,
            timeout=timeout,
        )
        if stored:  # else the group was reset meanwhile: the next pull says where to
            self._stored.add(queue)
            told.offset = max(told.offset, offset)
            self._tally.commits += 1

    def forget(self, queue: MessageQueue) -> None:
        """The queue was given up: what was told no longer counts."""
        self._told.pop(queue, None)

    def reset(self, queue: MessageQueue, offset: int) -> None:
        """The queue starts again at this offset: what was told no longer counts."""
        self.forget(queue)
