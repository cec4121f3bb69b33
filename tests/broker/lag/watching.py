"""A scene whose groups are watched, and mqadmin's word on the same groups."""

import asyncio
import re
from typing import Any, NamedTuple

from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Scene, until
from tests.unit.lag.recorded import LIMITS

from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.lag.collecting.monitor import LagMonitor, Target
from rocketfleet.lag.figures import GroupLag, QueueLag
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.queue import MessageQueue

_ROW = re.compile(
    r"(\S+)\s+(\S+)\s+(\d+)\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)\s+(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|N/A)\s*"
)

NOTHING = ("Not found the consumer group consume stats", "No topic route", "CODE: 17", "CODE: 206")


class Told(NamedTuple):
    """A line of `mqadmin consumerProgress -g`."""

    end: int
    offset: int
    diff: int
    last: str  # when the last consumed message was stored


class Watch(Scene):
    """See the module."""

    def __init__(self, cluster: Cluster, **settings: Any) -> None:
        super().__init__(cluster)
        self.monitor = LagMonitor(**{"timeout": 30.0, "patience": 60.0, "limits": LIMITS, **settings})

    def follow(
        self,
        group: str,
        *topics: str,
        where: ConsumeFromWhere = ConsumeFromWhere.LAST_OFFSET,
        broadcast: bool = False,
    ) -> None:
        self.monitor.follow(group, Target(self.client, group, topics, where, broadcast, "test", "test", group))

    async def look(self, group: str) -> GroupLag:
        """One sweep, and what it saw of a group."""
        await self.monitor.sweep()
        seen = self.monitor.latest(group)
        assert seen is not None
        return seen

    async def rows(self, group: str) -> dict[MessageQueue, QueueLag]:
        return {row.queue: row for row in (await self.look(group)).queues}

    async def told(self, group: str) -> dict[MessageQueue, Told]:
        """What mqadmin says; nothing if it says that there is nothing."""
        text = await self._progress(group)
        rows = {}
        for line in text.splitlines():
            match = _ROW.fullmatch(line)
            if match is not None:
                topic, broker, number, end, offset, diff, _, last = match.groups()
                rows[MessageQueue(topic, broker, int(number))] = Told(int(end), int(offset), int(diff), last)
        return rows

    async def agreed(self, group: str) -> GroupLag:
        """What we see, checked against what mqadmin sees, queue by queue. mqadmin takes seconds, and a member may store
        an offset meanwhile, if only its first, of 0: so we look before and after it, until nothing moved between.
        """
        async with asyncio.timeout(240):
            while True:
                before = await self.look(group)
                told = await self.told(group)
                seen = await self.look(group)
                if places(before) == places(seen):
                    agree({row.queue: row for row in seen.queues}, told)
                    return seen

    async def _progress(self, group: str) -> str:
        """mqadmin waits three seconds for an answer and fails; a busy machine may need longer, so it is run again."""
        for _ in range(5):
            try:
                return await asyncio.to_thread(self.cluster.admin, "consumerProgress", "-g", group, timeout=120.0)
            except DevBrokerError as error:
                if any(words in str(error) for words in NOTHING):
                    return ""
                if "RemotingTimeoutException" not in str(error):
                    raise
        raise AssertionError("mqadmin found no time to answer")

    async def committed_everywhere(self, group: str, topic: str, total: int, queues: int) -> None:
        """Wait until the group's offsets in a topic come to so many messages."""

        async def there() -> bool:
            found = [await self.committed(group, topic, number) for number in range(queues)]
            return sum(offset or 0 for offset in found) == total

        await until(there, f"{total} messages of {topic} are committed")


def places(seen: GroupLag) -> list[tuple[int | None, int | None]]:
    return [(row.consumer_offset, row.max_offset) for row in seen.queues]


def agree(ours: dict[MessageQueue, QueueLag], told: dict[MessageQueue, Told]) -> None:
    """Ours and mqadmin's, queue by queue; mqadmin shows the queues in which the group has an offset."""
    assert told, "mqadmin says nothing: there is nothing to agree with"
    shown = {queue: (row.max_offset, row.consumer_offset, row.lag) for queue, row in ours.items() if queue in told}
    assert shown == {queue: (row.end, row.offset, row.diff) for queue, row in told.items() if queue in ours}
    assert {queue for queue, row in ours.items() if row.consumer_offset is not None} == told.keys() & ours.keys()
