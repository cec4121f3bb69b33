"""The lag of a broadcasting group: each member consumes every queue and keeps its offsets itself.

So there is no lag of the group but that of its members, and it can be seen only while they run: they are asked, through
a broker, where they are (GET_CONSUMER_RUNNING_INFO; members of any language answer it), then the brokers where the
queues end. A row is a member's place in a queue, and the group's lag is all that its members have still to consume. A
member that does not answer keeps its last rows; a group without members has a lag that nobody knows.

The question occupies a thread of the broker for as long as the member does not answer, so few are under way at once,
with a short time-out.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from rocketfleet.client.errors import ConsumerNotOnline, RocketMQError
from rocketfleet.client.fanout import bounded
from rocketfleet.client.requests import broker_members, broker_messages, broker_topics
from rocketfleet.lag.collecting.reckoning import lag_of, with_sums
from rocketfleet.lag.figures import GroupLag, QueueLag

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping

    from rocketfleet.lag.collecting.layout import GroupLayout
    from rocketfleet.lag.target import Target
    from rocketfleet.wire.queue import MessageQueue

K = TypeVar("K", bound="Hashable")
MEMBER_TIMEOUT: Final = 2.0
MEMBERS_AT_ONCE: Final = 4
MOST_AGES: Final = 64
Places = dict[str, dict["MessageQueue", int]]


async def read_broadcast(
    target: Target,
    layout: GroupLayout,
    before: Mapping[tuple[MessageQueue, str | None], QueueLag],
    at: float,
    *,
    clock: Callable[[], float],
    timeout: float,
    patience: float | None,
) -> GroupLag:
    """The group as it is now. Whoever is not heard within `patience` is not waited for."""
    look = _Look(target, layout, timeout)
    read_at = clock()
    try:
        async with asyncio.timeout(patience):
            await look.members()
            await look.places()
            await look.ends()
            await look.ages(clock)
    except TimeoutError:
        pass  # what was heard is used
    return look.moment(before, at, read_at, clock())


class _Look:
    def __init__(self, target: Target, layout: GroupLayout, timeout: float) -> None:
        self._target = target
        self._client = target.client
        self._queues = layout.queues
        self._missing = layout.missing
        self._timeout = timeout
        self._brokers = sorted({queue.broker for queue in layout.queues})
        self._ids: set[str] | None = None
        self._places: Places = {}
        self._ends: dict[MessageQueue, tuple[int, int]] = {}
        self._stored: dict[tuple[MessageQueue, str], float] = {}

    async def members(self) -> None:
        async def ask(broker: str) -> None:
            address = self._client.master(broker)
            found = await broker_members.consumer_ids(
                self._client.remoting, address, self._target.group, timeout=self._timeout
            )
            self._ids = (self._ids or set()) | set(found)

        await _each(self._brokers, ask, len(self._brokers))

    async def places(self) -> None:
        async def ask(member: str) -> None:
            for broker in self._brokers:
                try:
                    info = await broker_members.running_info(
                        self._client.remoting, self._client.master(broker), self._target.group, member,
                        timeout=MEMBER_TIMEOUT,
                    )  # fmt: skip
                except ConsumerNotOnline:
                    continue  # another broker may know it
                self._places[member] = {
                    queue: state.commit_offset for queue, state in info.mq_table.items() if state.commit_offset >= 0
                }
                return

        await _each(sorted(self._ids or ()), ask, MEMBERS_AT_ONCE)

    async def ends(self) -> None:
        async def ask(where: tuple[str, str]) -> None:
            topic, broker = where
            found = await broker_topics.queue_ends(
                self._client.remoting, self._client.master(broker), topic, timeout=self._timeout
            )
            for queue in self._queues:
                if (queue.topic, queue.broker) == where and queue.queue_id in found:
                    self._ends[queue] = found[queue.queue_id]

        await _each(sorted({(queue.topic, queue.broker) for queue in self._queues}), ask, 8)

    async def ages(self, clock: Callable[[], float]) -> None:
        """Of the messages that members consume next, a bounded number: each takes a call of its own."""
        waiting = [
            (queue, member)
            for member, offsets in self._places.items()
            for queue, offset in offsets.items()
            if queue in self._ends and lag_of(offset, self._ends[queue], from_beginning=False)
        ]

        async def ask(place: tuple[MessageQueue, str]) -> None:
            queue, member = place
            stored = await broker_messages.store_time(
                self._client.remoting,
                self._client.master(queue.broker),
                queue,
                max(self._places[member][queue], self._ends[queue][0]),
                timeout=self._timeout,
            )
            if stored is not None:
                self._stored[place] = min(stored / 1000, clock())

        await _each(waiting[:MOST_AGES], ask, 8)

    def moment(
        self, before: Mapping[tuple[MessageQueue, str | None], QueueLag], at: float, read_at: float, now: float
    ) -> GroupLag:
        rows = [
            self._row(queue, member, before.get((queue, member)), read_at, now)
            for member in sorted(self._ids or ())
            for queue in self._queues
        ]
        if self._ids is None:  # no broker said who is there
            rows = list(before.values())
        known = None if self._ids is None else frozenset(self._ids)
        return with_sums(
            GroupLag(
                group=self._target.group,
                observed_at=at,
                queues=tuple(rows) or tuple(_unseen(queue) for queue in self._queues),
                retry=0,  # a broadcast that fails is not sent back
                dlq=0,
                unknown=self._missing,
                members=None if known is None else len(known),
                member_ids=known,
            )
        )

    def _row(self, queue: MessageQueue, member: str, before: QueueLag | None, read_at: float, now: float) -> QueueLag:
        offsets, ends = self._places.get(member), self._ends.get(queue)
        if offsets is None or ends is None:
            return before or QueueLag(queue, None, None, None, None, None, member, 0.0)
        offset = offsets.get(queue)
        lag = lag_of(offset, ends, from_beginning=False)
        stored = self._stored.get((queue, member))
        seconds = 0.0 if lag == 0 else None if stored is None else max(0.0, now - stored)
        return QueueLag(queue, *ends, offset, lag, seconds, member, read_at)


def _unseen(queue: MessageQueue) -> QueueLag:
    return QueueLag(queue, None, None, None, None, None, None, 0.0)


async def _each(items: Iterable[K], call: Callable[[K], Awaitable[None]], at_once: int) -> None:
    """The call for each, so many at once. Who fails is left out: it is not known then."""

    async def one(item: K) -> None:
        with suppress(RocketMQError):
            await call(item)

    await bounded(items, one, at_once)
