"""The driver's place in its group, at the brokers: a member that owns every queue, and writes its offsets back.

The source itself reads without being a member, and a stream of somebody's own may well do so. A group that an operator
looks after is another matter: without a member it would look dead to mqadmin and to every rule about lag, and a worker
that joins it by mistake would find itself alone. So the driver beats for it, answers what it holds (as a worker would:
`consumer/broker_requests.py`), and sees who else is there.

Offsets have one writer, here: what is done is written within a second, not with the next batch, and at the end it is
read back. All calls block; they belong to the driver's main thread.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from rocketfleet.base.counting import counted
from rocketfleet.client.errors import RocketMQError
from rocketfleet.consumer.consumer import NoHeartbeatError
from rocketfleet.consumer.handover.holdings import FinalOffset
from rocketfleet.consumer.handover.membership import Membership
from rocketfleet.consumer.offset_storage.start_offset import Start, start_without_offset
from rocketfleet.spark.source.cluster import SourceCluster
from rocketfleet.spark.source.errors import SourceError
from rocketfleet.spark.source.link import Link
from rocketfleet.spark.source.options import Position, Where
from rocketfleet.wire.bodies import (
    PROP_CLIENT_VERSION,
    PROP_CONSUME_TYPE,
    PROP_NAME_SERVERS,
    PROP_START_TIMESTAMP,
    ConsumerRunningInfo,
    ConsumeType,
    ProcessQueueInfo,
)
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command, reply_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocketfleet.client.config import ClientConfig
    from rocketfleet.consumer.settings import ConsumerSettings
    from rocketfleet.spark.source.offsets import Offsets
    from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
BEAT_SECONDS: Final = 5.0  # a broker that was started again knows us again after this
TRY_AGAIN: Final = 1.0  # seconds for which brokers that do not answer are left alone
_WHERE: Final = {Start.BEGINNING: Where.EARLIEST, Start.END: Where.LATEST, Start.BY_TIME: Where.TIMESTAMP}


class GroupMember:
    """See the module. What it knows may be read from any thread."""

    def __init__(
        self, config: ClientConfig, settings: ConsumerSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._link = Link(config)
        self._client = self._link.client
        self._cluster = SourceCluster(self._client, settings.group)
        self._membership = Membership(
            self._client, settings, settings.subscriptions, clock=clock, consume_type=ConsumeType.PULL
        )
        self._started_at = int(time.time() * 1000)
        self._beat_at = self._write_at = float("-inf")
        self._beats_soon = False
        self._trouble: str | None = None
        self.client_id = config.client_id
        self.queues: tuple[MessageQueue, ...] = ()
        self.members: tuple[str, ...] = ()
        self.written: Offsets = {}
        on = self._client.remoting.on_request
        self._registered = [
            on(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, self._members_changed),
            on(RequestCode.GET_CONSUMER_RUNNING_INFO, self._running_info),
        ]

    # -- the beginning ------------------------------------------------------------------------------------------------

    def start_offsets(self) -> Offsets:
        """Where a query without a checkpoint begins: where the group stands, and where it never was, as the settings
        say. RocketMQError or SourceError if that cannot be found out.
        """
        self.queues = self._look_for_queues()
        self._link.call(self._cluster.ensure_group(self.queues))
        stored = self._link.call(self._cluster.committed(self.queues))
        known = {queue: offset for queue, offset in stored.items() if offset is not None}
        new = [queue for queue in self.queues if queue not in known]
        begin = self._link.call(self._cluster.resolve(self._beginning(), new)) if new else {}
        end = self._link.call(self._cluster.latest(self.queues))
        return {queue: min(offset, end[queue]) for queue, offset in {**known, **begin}.items()}

    def _beginning(self) -> Position:
        where = _WHERE[start_without_offset(self._settings.consume_from_where, "")]
        moment = self._settings.consume_timestamp
        return Position(where, timestamp=None if moment is None else int(moment * 1000), option="startingOffsets")

    def _look_for_queues(self) -> tuple[MessageQueue, ...]:
        topics = [subscription.topic for subscription in self._settings.subscriptions]
        return self._link.call(self._cluster.queues(topics, fresh=True))

    # -- in between ---------------------------------------------------------------------------------------------------

    def tend(self, done: Offsets) -> None:
        """Do what is due: beat, see who is there, write back what is done. Brokers that do not answer are no reason to
        stop a query."""
        now = self._clock()
        try:
            if now >= self._beat_at or self._beats_soon:
                self._beat()
                self._beat_at = self._clock() + BEAT_SECONDS
            if now >= self._write_at:
                self.write_back(done)
            self._trouble = None
        except (RocketMQError, SourceError) as error:
            if str(error) != self._trouble:
                _log.warning("group %s cannot be looked after for the moment: %s", self._settings.group, error)
            self._trouble = str(error)
            self._beat_at = self._write_at = self._clock() + TRY_AGAIN

    def _beat(self) -> None:
        self._beats_soon = False
        self.queues = self._look_for_queues()
        if not self._link.call(self._membership.heartbeat()):
            raise NoHeartbeatError(self._settings.group, self._membership.refusals)
        members = self._link.call(self._membership.members(self.queues))
        if members is not None:
            self.members = members

    def write_back(self, done: Offsets) -> bool:
        """Tell the brokers how far the group is; whether they all know it now."""
        changed = {queue: offset for queue, offset in done.items() if self.written.get(queue) != offset}
        if not changed:
            return True
        first = frozenset(changed.keys() - self.written.keys())
        failed = self._link.call(self._cluster.commit(changed, first))
        self.written = {**self.written, **{queue: at for queue, at in changed.items() if queue not in failed}}
        if failed:
            self._write_at = self._clock() + TRY_AGAIN
            queue, error = next(iter(failed.items()))
            _log.warning("offsets of %s were not written back; %s: %s", counted(len(failed), "queue"), queue, error)
        return not failed

    # -- the end ------------------------------------------------------------------------------------------------------

    def final_offsets(self, done: Offsets, patience: float) -> dict[MessageQueue, FinalOffset]:
        """Write back what is done, however often it takes, and read it back."""
        give_up = self._clock() + patience
        stored: dict[MessageQueue, int | None] = {}
        while True:
            try:
                if self.write_back(done):
                    stored = self._link.call(self._cluster.committed(done))
                    break
            except (RocketMQError, SourceError) as error:
                _log.warning("the offsets could not be written back and read back: %s", error)
            if self._clock() + TRY_AGAIN > give_up:
                break
            time.sleep(TRY_AGAIN)
        return {queue: FinalOffset(at, _reached(stored.get(queue), at)) for queue, at in done.items()}

    def leave(self) -> None:
        """Leave the group, and close the connections."""
        try:
            self._link.call(self._membership.leave())
        finally:
            for remove in self._registered:
                remove()
            self._link.close()

    # -- what brokers ask, on the client's own thread -----------------------------------------------------------------

    def _members_changed(self, _peer: str, command: Command) -> None:
        if command.fields.get("consumerGroup") in (None, self._settings.group):
            self._beats_soon = True

    def _running_info(self, _peer: str, command: Command) -> Command | None:
        if command.fields.get("consumerGroup") != self._settings.group:
            return None
        return reply_to(command, body=self.running_info().encode())

    def running_info(self) -> ConsumerRunningInfo:
        """What this member holds, in the form in which a broker passes it on."""
        return ConsumerRunningInfo(
            properties={
                PROP_NAME_SERVERS: ";".join(self._client.config.name_servers),
                PROP_CONSUME_TYPE: ConsumeType.PULL,
                PROP_START_TIMESTAMP: str(self._started_at),
                PROP_CLIENT_VERSION: "V5_5_0",
                "rocketfleet.engine": "Spark",
            },
            subscription_set=tuple(subscription.data for subscription in self._settings.subscriptions),
            mq_table=_table(self.queues, self.written),
        )


def _table(queues: Sequence[MessageQueue], written: Offsets) -> dict[MessageQueue, ProcessQueueInfo]:
    return {queue: ProcessQueueInfo(commit_offset=written.get(queue, 0)) for queue in queues}


def _reached(stored: int | None, offset: int) -> bool:
    return stored is not None and stored >= offset
