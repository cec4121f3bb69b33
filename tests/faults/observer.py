"""Looks at the group from outside, about once per second, and writes down what brokers say.

It asks by single typed requests and uses nothing of the consumer. Offsets and ends are one request to each broker.
Members are asked for their queues every few seconds only, and one that did not answer is left alone for a while: the
broker waits ten seconds for a silent member, on one of 16 threads that also serve locks.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_members, broker_offsets, broker_topics
from rocketfleet.testing.history import ChangeName, EventKind, Recorder
from rocketfleet.wire.queue import MessageQueue

LOOK_SECONDS = 1.0
OWNERS_EVERY = 3  # looks
ASK_SECONDS = 1.0
LEFT_ALONE_SECONDS = 15.0
RETRY_PREFIX = "%RETRY%"
MARKS_FROM = 1 << 30
"""From this number on, offsets are no offsets but say when a group began."""


@dataclass(frozen=True)
class Sight:
    """What was seen at the last look. Queues of brokers that did not answer are missing."""

    at: float = 0.0
    committed: Mapping[MessageQueue, int] = field(default_factory=dict)
    ends: Mapping[MessageQueue, int] = field(default_factory=dict)
    silent_brokers: tuple[str, ...] = ()

    @property
    def behind(self) -> dict[MessageQueue, int]:
        """Queues with how many messages in them are not committed."""
        return {
            queue: end - self.committed.get(queue, 0)
            for queue, end in self.ends.items()
            if end > self.committed.get(queue, 0)
        }


class Observer:
    """Use as `async with`; it looks until it is left. `masters` gives each broker's address at this moment."""

    def __init__(
        self,
        name_server: str,
        topic: str,
        group: str,
        masters: Callable[[], Mapping[str, str]],
        brokers: int,
        recorder: Recorder,
    ) -> None:
        self._client = Client(ClientConfig(name_server, timeout=ASK_SECONDS, connect_timeout=ASK_SECONDS))
        self._topic = topic
        self._group = group
        self._masters = masters
        self._recorder = recorder
        self._brokers = brokers
        self._looking: asyncio.Task[None] | None = None
        self._left_alone: dict[tuple[str, str], float] = {}
        self._retry_queues: set[MessageQueue] = set()
        self.sight = Sight()
        self.owners: dict[MessageQueue, list[str]] = {}

    async def __aenter__(self) -> Self:
        self._client.start()
        self._looking = asyncio.create_task(self._look_for_ever(), name="observe")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._looking is not None
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)
        await self._client.close()

    @property
    def looking(self) -> "asyncio.Task[None]":
        assert self._looking is not None
        return self._looking

    async def _look_for_ever(self) -> None:
        looks = 0
        while True:
            began = time.monotonic()
            await self.look(owners=looks % OWNERS_EVERY == 0)
            looks += 1
            await asyncio.sleep(max(0.1, began + LOOK_SECONDS - time.monotonic()))

    async def look(self, *, owners: bool) -> Sight:
        """Ask all brokers once."""
        masters = await asyncio.to_thread(self._masters)
        answers = await asyncio.gather(
            *(self._ask(broker, address) for broker, address in masters.items()), return_exceptions=True
        )
        committed: dict[MessageQueue, int] = {}
        ends: dict[MessageQueue, int] = {}
        silent = []
        for broker, answer in zip(masters, answers, strict=True):
            if isinstance(answer, RocketMQError):
                silent.append(broker)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                committed |= answer[0]
                ends |= answer[1]
        self.sight = Sight(time.monotonic(), committed, ends, tuple(silent))
        if owners:
            await self._ask_for_owners(masters, ends)
        return self.sight

    async def _ask(self, broker: str, address: str) -> tuple[dict[MessageQueue, int], dict[MessageQueue, int]]:
        topics = (self._topic, RETRY_PREFIX + self._group)
        remoting, began = self._client.remoting, time.monotonic()
        pairs = {(topic, self._group) for topic in topics}
        offsets, _ = await broker_offsets.offsets_of_groups(remoting, address, pairs)
        committed = {
            MessageQueue(topic, broker, number): offset
            for (topic, _), table in offsets.items()
            for number, offset in table.items()
            if number < MARKS_FROM
        }
        ends: dict[MessageQueue, int] = {}
        asked = time.monotonic()
        for topic in topics:
            try:
                found = await broker_topics.queue_ends(remoting, address, topic)
            except RocketMQError as error:
                if not hasattr(error, "code"):
                    raise
                continue  # the broker does not have this topic (yet)
            ends |= {MessageQueue(topic, broker, number): end for number, (_, end) in found.items()}
        self._note_retry_queues(ends)
        event = self._recorder.event
        self._recorder.write(
            [
                *(event(EventKind.COMMITTED, queue=q, offset=o, began=round(began, 6)) for q, o in committed.items()),
                *(event(EventKind.END_OFFSET, queue=q, offset=o, began=round(asked, 6)) for q, o in ends.items()),
            ]
        )
        return committed, ends

    def _note_retry_queues(self, ends: Mapping[MessageQueue, int]) -> None:
        """A broker makes a group's retry topic as its first member comes: to the others a topic that grows."""
        new = {queue for queue in ends if queue.topic.startswith(RETRY_PREFIX)} - self._retry_queues
        self._retry_queues |= new
        for queue in new:
            self._recorder.note(EventKind.CHANGE, what=ChangeName.TOPIC_GREW, topic=queue.topic, made_at=queue.broker)

    async def _ask_for_owners(self, masters: Mapping[str, str], queues: Mapping[MessageQueue, int]) -> None:
        remoting, began = self._client.remoting, time.monotonic()
        unknown = len(masters) < self._brokers
        where: dict[str, str] = {}  # member → a broker that can ask it
        known: set[str] = set()
        for address in masters.values():
            try:
                for member in await broker_members.consumer_ids(remoting, address, self._group):
                    known.add(member)
                    if self._left_alone.get((member, address), 0.0) <= began:
                        where.setdefault(member, address)
            except RocketMQError:
                unknown = True
        asked = list(where)
        infos = await asyncio.gather(
            *(broker_members.running_info(remoting, where[member], self._group, member) for member in asked),
            return_exceptions=True,
        )
        owners: dict[MessageQueue, list[str]] = {queue: [] for queue in queues}
        silent = sorted(known - where.keys())
        for member, info in zip(asked, infos, strict=True):
            if isinstance(info, RocketMQError):
                self._left_alone[member, where[member]] = time.monotonic() + LEFT_ALONE_SECONDS
                silent.append(member)
            elif isinstance(info, BaseException):
                raise info
            else:
                for queue, state in info.mq_table.items():
                    if not state.dropped:
                        owners.setdefault(queue, []).append(member)
        if silent or unknown:
            # Who did not answer may own what nobody else does.
            owners = {queue: members for queue, members in owners.items() if members}
        self.owners = owners
        self._recorder.note(
            EventKind.OWNERS,
            owners={str(queue): members for queue, members in owners.items()},
            began=round(began, 6),
            silent=silent,
        )
