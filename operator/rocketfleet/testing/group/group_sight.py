"""Looks at a group from outside, a few times per second, and writes down what brokers and workers say."""

import asyncio
import time
from collections.abc import Callable, Sequence

from rocketfleet.client.client import Client
from rocketfleet.client.errors import RocketMQError
from rocketfleet.group.at_brokers import GroupAtBrokers
from rocketfleet.testing.group.worker_under_test import WorkerUnderTest
from rocketfleet.testing.history import EventKind, Recorder

_LOOK_SECONDS = 0.5


class GroupSight:
    """`look_for_ever` is a task for as long as the group is under test."""

    def __init__(
        self,
        client: Client,
        group: str,
        topic: str,
        recorder: Recorder,
        workers: Callable[[], Sequence[WorkerUnderTest]],
    ) -> None:
        self._place = GroupAtBrokers(client, group, [topic])
        self._recorder = recorder
        self._workers = workers
        self._owned: dict[str, frozenset[str]] = {}

    async def look_for_ever(self) -> None:
        while True:
            await asyncio.gather(self.behind(), self._look_at_owners())
            await asyncio.sleep(_LOOK_SECONDS)

    async def behind(self) -> int | None:
        """Look at the offsets: how many messages are not committed, None if that is not known."""
        began = round(time.monotonic(), 6)
        try:
            queues = await self._place.queues(retries=True)
            reading = await self._place.read(queues)
        except RocketMQError:
            return None  # the test may have taken the broker away
        event = self._recorder.event
        self._recorder.write(
            [
                *(
                    event(EventKind.COMMITTED, queue=queue, offset=offset, began=began)
                    for queue, offset in reading.committed.items()
                    if offset is not None
                ),
                *(
                    event(EventKind.END_OFFSET, queue=queue, offset=end, began=began)
                    for queue, (_, end) in reading.ends.items()
                ),
            ]
        )
        behind = [end - (reading.committed.get(queue) or begin) for queue, (begin, end) in reading.ends.items()]
        return None if reading.errors else sum(behind)

    async def _look_at_owners(self) -> None:
        workers = self._workers()
        for worker, queues in zip(workers, await asyncio.gather(*(one.owned() for one in workers)), strict=True):
            if queues is not None and queues != self._owned.get(worker.name, frozenset()) and worker.alive:
                self._owned[worker.name] = queues
                worker.owns(queues)
