"""What the driver asks the cluster: which queues there are, where they begin and end, where the group stands.

Every question goes to the master, or where there is none at the moment, to a slave: a slave can be read.

Beside `group/at_brokers.py`, which it asks, this has what only a reader without a member needs: routes as they are now,
errors that name the source's options, and commits that take no rights of an administrator.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rocketfleet.base.counting import counted
from rocketfleet.client.errors import GroupNotExist, NoPermission, NoRoute, RocketMQError
from rocketfleet.client.fanout import bounded
from rocketfleet.client.requests import broker_groups, broker_members, broker_offsets
from rocketfleet.client.requests.broker_messages import pull_request
from rocketfleet.client.routing.routes import subscribe_queues
from rocketfleet.consumer.subscription import ALL
from rocketfleet.group.at_brokers import Failures, GroupAtBrokers
from rocketfleet.spark.source.errors import SourceError
from rocketfleet.spark.source.offsets import EARLIEST, LATEST, Offsets, nested
from rocketfleet.spark.source.options import Position, Where
from rocketfleet.wire.bodies import ConsumerData, ConsumeType, HeartbeatData, SubscriptionGroupConfig
from rocketfleet.wire.message.sysflag import PULL_SUBSCRIPTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocketfleet.client.client import Client
    from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)


class SourceCluster:
    """The questions of one read. Belongs to the client's event loop."""

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._group = group
        self._at = GroupAtBrokers(client, group, or_slave=True)

    async def queues(self, topics: Iterable[str], *, fresh: bool = False) -> tuple[MessageQueue, ...]:
        """The readable queues of the topics, sorted; `fresh` asks the name server even if the route is at hand."""
        routes = self._client.routes
        found: set[MessageQueue] = set()
        for topic in topics:
            try:
                route = await (routes.refresh(topic) if fresh else routes.get(topic))
            except NoRoute as error:
                raise SourceError(f"topic {topic} cannot be read: {error.reason}") from None
            queues = subscribe_queues(topic, route)
            if not queues:
                raise SourceError(f"topic {topic} cannot be read: it has no queue that may be read")
            found.update(queues)
        return tuple(sorted(found))

    async def earliest(self, queues: Iterable[MessageQueue]) -> Offsets:
        """Where the queues begin."""
        return await self._at.begins(queues)

    async def latest(self, queues: Iterable[MessageQueue]) -> Offsets:
        """Where the queues end: the offset of the next message."""
        return await self._at.ends(queues)

    async def latest_if_there(self, queues: Iterable[MessageQueue]) -> tuple[Offsets, Failures]:
        """The same for those whose broker answers, and why others' did not: one that is away holds up no other."""
        failures: Failures = {}
        return await self._at.ends(queues, failures), failures

    async def since(self, queues: Sequence[MessageQueue], timestamp: int) -> Offsets:
        """The first message stored at or after a time; the queue's end if there is none."""
        found = await self._at.at_time(queues, timestamp)
        end = await self._at.ends(queues)
        return {queue: max(0, min(offset, end[queue])) for queue, offset in found.items()}

    async def committed(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int | None]:
        """Where the group stands; None where it has no offset."""
        return await self._at.committed(queues)

    async def resolve(self, position: Position, queues: Sequence[MessageQueue]) -> Offsets:
        """The offsets that one end of a read means now."""
        if position.where is Where.EARLIEST:
            return await self.earliest(queues)
        if position.where is Where.LATEST:
            return await self.latest(queues)
        if position.where is Where.TIMESTAMP:
            assert position.timestamp is not None
            return await self.since(queues, position.timestamp)
        if position.where is Where.COMMITTED:
            stored, begin = await self.committed(queues), await self.earliest(queues)
            return {queue: begin[queue] if offset is None else offset for queue, offset in stored.items()}
        return await self._explicit(position, queues)

    async def _explicit(self, position: Position, queues: Sequence[MessageQueue]) -> Offsets:
        """Offsets that the user gave. Queues not named are read from their beginning, or to their end."""
        for queue in sorted(position.offsets.keys() - set(queues)):
            raise SourceError(
                f"{position.option} names the queue {queue}, which is not there; the topics read have {_shown(queues)}"
            )
        is_start = position.option.startswith("starting")
        begin, end = await self.earliest(queues), await self.latest(queues)
        default = begin if is_start else end
        marks = {EARLIEST: begin, LATEST: end}
        chosen: Offsets = {}
        for queue in queues:
            given = position.offsets.get(queue)
            if given is not None and given > end[queue]:
                raise SourceError(f"{position.option} has {given} for {queue}, which ends at {end[queue]}")
            chosen[queue] = default[queue] if given is None else marks[given][queue] if given < 0 else given
        return chosen

    async def ensure_group(self, queues: Iterable[MessageQueue]) -> None:
        """Create the group where it does not exist: a broker neither lets an unknown one pull nor keeps its offsets."""
        for broker in sorted({queue.broker for queue in queues}):
            address = self._client.reader(broker)
            if address.slave:
                continue  # it has what its master had, and takes nothing new
            try:
                await broker_groups.group_config(self._client.remoting, address.address, self._group)
            except GroupNotExist:
                await self._create_group(broker, address.address)
            except NoPermission:
                continue  # one may pull without the right to look at groups; the pull itself will tell

    async def _create_group(self, broker: str, address: str) -> None:
        wanted = SubscriptionGroupConfig(group_name=self._group)
        try:
            await broker_groups.create_group(self._client.remoting, address, wanted)
        except NoPermission:
            raise SourceError(
                f"group {self._group} does not exist at {broker} and these credentials may not create it: create it "
                f"with `rocketfleet group create {self._group}`, or name a group that exists"
            ) from None

    async def announce(self, queues: Iterable[MessageQueue]) -> None:
        """Join the group for a moment. That makes its retry topic, by which mqadmin and dashboards find its lag."""
        member = ConsumerData(group_name=self._group, consume_type=ConsumeType.PULL)
        beat = HeartbeatData(client_id=self._client.client_id, consumer_data_set=(member,))
        for broker in sorted({queue.broker for queue in queues}):
            try:
                address = self._client.master(broker)
                await broker_members.heartbeat(self._client.remoting, address, beat)
                await broker_members.unregister(
                    self._client.remoting, address, self._client.client_id, consumer_group=self._group
                )
            except RocketMQError as error:
                _log.info(
                    "%s was not told of group %s, some tools will not find its lag: %s", broker, self._group, error
                )

    async def commit(self, offsets: Offsets, first: frozenset[MessageQueue]) -> Failures:
        """Write the group's offsets back; what failed, by queue. `first`: queues in which it may have none yet."""
        failed: Failures = {}

        async def write(queue: MessageQueue) -> None:
            update = broker_offsets.update_first_offset if queue in first else broker_offsets.update_offset
            remoting, offset = self._client.remoting, offsets[queue]
            try:
                address = self._client.master(queue.broker)
                if await update(remoting, address, self._group, queue, offset):
                    return
                # The group was reset, and the broker drops offsets until a pull has taken note of it.
                note = pull_request(
                    self._group, queue, offset, max_messages=1, sys_flag=PULL_SUBSCRIPTION, subscription=ALL
                )
                await remoting.call(address, note)
                if not await update(remoting, address, self._group, queue, offset):
                    failed[queue] = RocketMQError("a reset of the group is under way")
            except RocketMQError as error:
                failed[queue] = error

        await bounded(offsets, write)
        return failed

    def has_master(self, queue: MessageQueue) -> bool:
        """Whether the queue's broker has a master at the moment, as far as the routes tell."""
        return not self._client.reader(queue.broker).slave


def _shown(queues: Sequence[MessageQueue]) -> str:
    table = nested(dict.fromkeys(queues, 0))
    return "; ".join(
        f"{topic}@{broker} with {counted(len(numbers), 'queue')}"
        for topic, brokers in table.items()
        for broker, numbers in brokers.items()
    )
