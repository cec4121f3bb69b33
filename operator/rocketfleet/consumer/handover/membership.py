"""Being a member of the group: heartbeats, who the others are, and leaving.

The brokers know a group's members from their heartbeats. Every broker that has the group's topics is asked for its
list, all at once, and what the lists say together is judged in `roster.py`: who is a member, and who has departed, so
that its locks may be released.

Slaves hear our heartbeats too, and are asked where a broker has no master.
"""

import asyncio
import logging
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from rocketfleet.client import fanout
from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoBroker, RocketMQError
from rocketfleet.client.requests import broker_admin, broker_members
from rocketfleet.consumer.handover.roster import (
    REJOIN_SECONDS,
    Roster,
    departed,
    in_office,
    look,
    newcomer_waits,
    releases,
)
from rocketfleet.consumer.offset_storage.beginning import uptime
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import ConsumerData, ConsumerRunningInfo, ConsumeType, HeartbeatData
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
_CALL_SECONDS = 3.0
_LIST_TIMEOUT = 1.5  # one broker that hangs must not hold up the rounds for long


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
        self._roster = Roster()
        self.queues: tuple[MessageQueue, ...] = ()  # all of the group's, by the last round
        self.brokers: tuple[str, ...] = ()  # that were asked in the last round
        self._in_trouble: frozenset[str] = frozenset()  # brokers that did not answer the last time
        self._known: list[str] = []  # brokers that listed us in the last round
        self._beats: set[asyncio.Task[object]] = set()  # heartbeats on their way
        self.refusals: dict[str, RocketMQError] = {}  # who did not take the last one, and why
        self._leaving = False
        self._interrupted: set[str] = set()  # brokers whose connection broke, and that have not been looked at since
        self.first_of_its_group = False  # nobody has ever been a member before us: there is nobody to wait for
        self._whole_at: float | None = None  # when the lists can be believed; None: not looked yet
        self._took_office: dict[str, float] = {}  # broker → since when it has its master, where we came as a newcomer
        self._released: set[tuple[str, str]] = set()  # departed member and broker: done
        data = ConsumerData(
            group_name=settings.group,
            consume_type=consume_type,
            message_model=settings.message_model.wire,
            consume_from_where=settings.consume_from_where.wire,
            subscription_data_set=tuple(subscription.data for subscription in subscriptions),
        )
        self._heartbeat = HeartbeatData(client_id=client.client_id, consumer_data_set=(data,))

    # -- heartbeats ---------------------------------------------------------------------------------------------------

    async def heartbeat(self) -> int:
        """Tell every replica that we are here, slaves too, for they may serve our pulls. How many heard it."""
        answers = await self._client.each_replica(self._one_heartbeat)
        self.refusals = dict(answers.errors)
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
            broker_members.heartbeat(self._client.remoting, address, self._heartbeat, timeout=_CALL_SECONDS)
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
            await asyncio.wait(self._beats, timeout=_CALL_SECONDS)

        async def one(address: str) -> None:
            await broker_members.unregister(
                self._client.remoting,
                address,
                self._client.client_id,
                consumer_group=self._settings.group,
                timeout=_CALL_SECONDS,
            )

        answers = await self._client.each_replica(one)
        for address, error in answers.errors.items():
            _log.warning("%s was not told that we leave; it notices by itself: %s", address, error)

    # -- the others ---------------------------------------------------------------------------------------------------

    async def members(self, queues: Iterable[MessageQueue]) -> tuple[str, ...] | None:
        """The group's members, by the lists of the brokers that have these queues.

        None if no broker answers; none at all if those that do don't know us.
        """
        self.queues = tuple(queues)
        self.brokers = tuple(sorted({queue.broker for queue in self.queues} or self._client.brokers.masters()))
        lists = await self._lists()
        known = self._known = [broker for broker, members in lists.items() if self._client.client_id in members]
        if not known:  # they do not know us (yet), so they say nothing about the others either
            return () if lists else None
        steady = [broker for broker in known if broker not in self._interrupted]
        now = self._clock()
        self._note(look(self._roster, list(lists.values()), interrupted=not steady, now=now))
        self._interrupted -= set(known)
        if self._whole_at is None:
            self._whole_at = now + await self._wait_as_newcomer(known)
        return self._roster.members

    @property
    def whole_in(self) -> float:
        """In how many seconds the lists can be believed. More than 0 only for a newcomer at brokers that have just
        started: who else is a member has had no time to come back."""
        return 0.0 if self._whole_at is None else max(0.0, self._whole_at - self._clock())

    async def _wait_as_newcomer(self, brokers: Iterable[str]) -> float:
        if not self._settings.locks_queues or self.first_of_its_group:
            return 0.0

        answers = await fanout.each(brokers, self._in_office)
        # A broker that has only just started fails to answer this; and one may not let us ask.
        seconds = {**answers.results, **dict.fromkeys(answers.errors)}
        now = self._clock()
        self._took_office = {broker: now - (so_long or 0.0) for broker, so_long in seconds.items()}
        return newcomer_waits(seconds.values())

    async def _in_office(self, broker: str) -> float | None:
        """For how long a broker has had the master that it has; None if it does not say."""
        address, cluster = self._replica(broker), self._client.brokers.clusters.get(broker, "")
        info = await broker_admin.runtime_info(self._client.remoting, address, timeout=_CALL_SECONDS)
        try:
            version = await self._client.name_servers.topics_version(cluster, broker, address, _CALL_SECONDS)
        except RocketMQError as error:  # one that is too old to be asked knows of no elections
            _log.debug("since when %s is the master of %s is not known: %s", address, broker, error)
            version = None
        booted = info.get("bootTimestamp", "")
        return in_office(uptime(info), int(booted) / 1000 if booted.isdecimal() else 0.0, version)

    def took_office(self, broker: str) -> float:
        """When the broker's master started or was elected, as far as it mattered to us as a newcomer."""
        return self._took_office.get(broker, -math.inf)

    def interrupted(self, broker: str) -> None:
        """Our connection to the broker broke: it may have restarted, and know nobody."""
        self._interrupted.add(broker)

    @property
    def awaits(self) -> bool:
        """Whether the last list holds members that are not back yet."""
        return bool(self._roster.awaited)

    @property
    def has_departed(self) -> bool:
        """Whether somebody has departed, by the last look."""
        return bool(departed(self._roster, self._clock()))

    async def departed(self, broker: str) -> frozenset[str]:
        """Members that have departed, after a fresh look at all lists. None if this broker's list is not among them."""
        if not departed(self._roster, self._clock()):
            return frozenset()
        lists = await self._lists()
        if broker not in lists:
            return frozenset()
        present = {member for members in lists.values() for member in members}
        absent = {member: since for member, since in self._roster.absent.items() if member not in present}
        self._note(replace(self._roster, absent=absent))
        return departed(self._roster, self._clock())

    async def departed_anywhere(self) -> frozenset[str]:
        """Members that have departed, after a fresh look at all lists."""
        return await self.departed(self.relay)

    async def to_release(self, broker: str) -> frozenset[str]:
        """Departed members whose locks at this broker it falls to us to release, and that were not released yet."""
        mine = {
            member
            for member in departed(self._roster, self._clock())
            if (member, broker) not in self._released and releases(self._client.client_id, member, self._roster)
        }
        return frozenset(mine & await self.departed(broker)) if mine else frozenset()

    def released(self, member: str, broker: str) -> None:
        """The locks of a departed member at a broker are released."""
        self._released.add((member, broker))

    def presume_departed(self, members: Iterable[str]) -> None:
        """These are known to be dead, by other means than lists: their locks may be released at once."""
        long_ago = self._clock() - REJOIN_SECONDS
        self._roster = replace(self._roster, absent={**self._roster.absent, **dict.fromkeys(members, long_ago)})

    def _note(self, roster: Roster) -> None:
        """Whoever is back takes locks again, so it may have to be released again."""
        self._roster = roster
        self._released = {one for one in self._released if one[0] in roster.absent}

    async def _lists(self) -> dict[str, tuple[str, ...]]:
        """The list of each broker that answers."""

        async def one(broker: str) -> tuple[str, ...]:
            return await broker_members.consumer_ids(
                self._client.remoting, self._replica(broker), self._settings.group, timeout=_LIST_TIMEOUT
            )

        answers = await fanout.each(self.brokers, one)
        for broker, error in answers.errors.items():
            level = logging.DEBUG if broker in self._in_trouble else logging.WARNING  # there is a look every second
            _log.log(level, "%s does not say who is in group %s: %s", broker, self._settings.group, error)
        self._in_trouble = frozenset(answers.errors)
        return answers.results

    def _replica(self, broker: str) -> str:
        try:
            return self._client.master(broker)
        except NoBroker:
            return self._client.reader(broker).address

    @property
    def relay(self) -> str:
        """The broker through which other members are asked: the first that knows us."""
        return self._known[0] if self._known else min(self.brokers, default="")

    # -- what the others hold -----------------------------------------------------------------------------------------

    async def ask_after(
        self, members: Iterable[str], broker: str, timeout: float
    ) -> fanout.Partial[ConsumerRunningInfo]:
        """Ask members, through a broker, what they hold. Each has `timeout` to answer."""
        address = self._replica(broker)
        return await fanout.each(
            members,
            lambda member: broker_members.running_info(
                self._client.remoting, address, self._settings.group, member, timeout=timeout
            ),
        )


def jittered(seconds: float) -> float:
    """A little off the beat, so that a group's members do not all call in the same instant."""
    return seconds * random.uniform(0.9, 1.1)  # noqa: S311 - not a secret
