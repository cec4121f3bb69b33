"""Being a member of the group: heartbeats, who the others are, and leaving.

The brokers know a group's members from their heartbeats. All members must see the same list to agree on who owns
what, so all ask the same broker: the first by name that answers, of those that have the group's topics.

A member that was in the list and is no longer has *departed*; that is remembered for a while, because its locks are
not released by anybody but us. One that comes back is a member again.

A broker that restarts has forgotten everybody, and its members come back one by one. The first to be back would find
itself alone, take all queues, and repeat what their owners have handled and could not commit yet. So after our own
connection to a broker broke, its list is taken for complete only when everybody is in it who was there before, or has
had the time to come back.
"""

import asyncio
import logging
import math
import random
from collections.abc import Callable, Iterable

from rocketfleet.client import broker_members, fanout
from rocketfleet.client.client import Client
from rocketfleet.client.errors import RocketMQError
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import ConsumerData, ConsumerRunningInfo, ConsumeType, HeartbeatData

_log = logging.getLogger(__name__)
_REMEMBERED = 180.0  # seconds; longer than a lock lives
_TIMEOUT = 3.0
REJOIN_SECONDS = 10.0  # to come back after a broker restarted; a member tries at least every 5 s


class Membership:
    """This member's place in its group."""

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        subscriptions: Iterable[Subscription],
        *,
        clock: Callable[[], float],
        consume_type: ConsumeType = ConsumeType.PUSH,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._seen: frozenset[str] = frozenset()
        self._departed: dict[str, float] = {}
        self._beats: set[asyncio.Task[object]] = set()  # heartbeats on their way
        self._leaving = False
        self._lost: set[str] = set()  # brokers whose connection broke, and that have not counted us in again
        self._awaited: frozenset[str] = frozenset()  # who should be back at such a broker
        self._awaited_until = -math.inf
        data = ConsumerData(
            group_name=settings.group,
            consume_type=consume_type,
            message_model=settings.message_model,
            consume_from_where=settings.consume_from_where,
            subscription_data_set=tuple(subscription.data for subscription in subscriptions),
        )
        self._heartbeat = HeartbeatData(client_id=client.client_id, consumer_data_set=(data,))

    # -- heartbeats ---------------------------------------------------------------------------------------------------

    async def heartbeat(self) -> int:
        """Tell every replica that we are here, slaves too, for they may serve our pulls. How many heard it."""
        answers = await self._client.each_replica(self._one_heartbeat)
        for address, error in answers.errors.items():
            _log.warning("no heartbeat to %s: %s", address, error)
        return len(answers.results)

    async def heartbeat_to(self, address: str) -> None:
        """Tell one broker, whose connection is new: until then it does not count us in."""
        if address in self._client.brokers.all_addresses():
            try:
                await self._one_heartbeat(address)
            except RocketMQError as error:
                _log.warning("no heartbeat to %s: %s", address, error)

    async def _one_heartbeat(self, address: str) -> None:
        if self._leaving:
            return
        beat = asyncio.get_running_loop().create_task(
            broker_members.heartbeat(self._client.remoting, address, self._heartbeat, timeout=_TIMEOUT)
        )
        self._beats.add(beat)
        beat.add_done_callback(self._beats.discard)
        await asyncio.shield(beat)  # whoever waits for it may be cancelled; it is on its way all the same

    async def leave(self) -> None:
        """Leave the group at every broker; the others are told at once.

        After any heartbeat that is on its way: the broker handles the two in different threads, and one that overtakes
        would make us a member again.
        """
        self._leaving = True
        if self._beats:
            await asyncio.wait(self._beats, timeout=_TIMEOUT)

        async def one(address: str) -> None:
            await broker_members.unregister(
                self._client.remoting,
                address,
                self._client.client_id,
                consumer_group=self._settings.group,
                timeout=_TIMEOUT,
            )

        answers = await self._client.each_replica(one)
        for address, error in answers.errors.items():
            _log.warning("%s was not told that we leave; it notices by itself: %s", address, error)

    # -- the others ---------------------------------------------------------------------------------------------------

    async def members(self, brokers: Iterable[str]) -> tuple[str, ...] | None:
        """The group's members by the first of these brokers that answers; None if none does."""
        for broker in sorted(set(brokers)):
            try:
                members = await self._ask(broker)
            except RocketMQError as error:
                _log.warning("%s does not say who is in group %s: %s", broker, self._settings.group, error)
                continue
            if self._client.client_id in members:  # else it does not know us (yet), and says nothing about the others
                members = self._with_awaited(broker, members)
                self.note(members)
            return members
        return None

    def disconnected(self, broker: str) -> None:
        """Our connection to the broker broke: it may have restarted, and know nobody."""
        self._lost.add(broker)

    @property
    def awaits(self) -> bool:
        """Whether the last list holds members that are not back yet."""
        return bool(self._awaited)

    def _with_awaited(self, broker: str, members: tuple[str, ...]) -> tuple[str, ...]:
        """The list, with those who have not had the time to come back."""
        now = self._clock()
        if broker in self._lost:
            self._lost.discard(broker)
            self._awaited, self._awaited_until = self._seen, now + REJOIN_SECONDS
        self._awaited = frozenset() if now >= self._awaited_until else self._awaited - set(members)
        return (*members, *sorted(self._awaited))

    async def departed(self, broker: str) -> frozenset[str]:
        """Members that have left of late, after a fresh look at this broker's list."""
        if not self._departed:
            return frozenset()
        present = await self._ask(broker)
        for member in present:
            self._departed.pop(member, None)
        return frozenset(self._departed)

    def note(self, members: Iterable[str]) -> None:
        """Remember who was there and is no longer."""
        now, present = self._clock(), frozenset(members)
        for member in self._seen - present - {self._client.client_id}:
            self._departed[member] = now
        self._departed = {
            member: left
            for member, left in self._departed.items()
            if member not in present and now - left < _REMEMBERED
        }
        self._seen = present

    async def _ask(self, broker: str) -> tuple[str, ...]:
        address = self._client.master(broker)
        return await broker_members.consumer_ids(self._client.remoting, address, self._settings.group, timeout=_TIMEOUT)

    # -- what the others hold -----------------------------------------------------------------------------------------

    async def ask_after(
        self, members: Iterable[str], broker: str, timeout: float
    ) -> fanout.Partial[ConsumerRunningInfo]:
        """Ask members, through a broker, what they hold. Each has `timeout` to answer."""
        address = self._client.master(broker)
        return await fanout.each(
            members,
            lambda member: broker_members.running_info(
                self._client.remoting, address, self._settings.group, member, timeout=timeout
            ),
        )


def jittered(seconds: float) -> float:
    """A little off the beat, so that a group's members do not all call in the same instant."""
    return seconds * random.uniform(0.9, 1.1)  # noqa: S311 - not a secret
