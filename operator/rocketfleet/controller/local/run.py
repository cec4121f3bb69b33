"""`rocketfleet run` without its screen: manifests, the local backend and the reconciler put together.

Stopping is suspending: every group is looked after as if its manifest said `suspend: true`, until no process is left.
Nothing of that is written down, so the next run starts the members again.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from rocketfleet.api.checking import ManifestError, problems
from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.controller.lag.lag_watch import LagWatch
from rocketfleet.controller.local.backend import LocalBackend
from rocketfleet.controller.local.command import LOCAL_DEFAULTS
from rocketfleet.controller.local.manifests import DesiredObjects
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.reconciling.reconcile import Reconciler
from rocketfleet.controller.reconciling.work_queue import Requeue, WorkQueue
from rocketfleet.controller.rocketmq.brokers import BrokerClients
from rocketfleet.lag.collecting.monitor import LagMonitor

_log = logging.getLogger(__name__)
LAG_SECONDS = 3.0  # between two looks at the lag: few groups, and somebody watches
# A drain that ran out of time is not among them: whether its offsets are safe, the member's last words tell.
UNSAFE = frozenset({EventReason.OFFSETS_UNSAFE, EventReason.DELETION_GAVE_UP})

Tell = Callable[[ConsumerGroup, Event], None]


class LocalRun:
    """Use as `async with`. `tell` gets every event."""

    def __init__(
        self,
        state: Path,
        tell: Tell = lambda group, event: None,
        *,
        monitor: LagMonitor | None = None,
        lag_seconds: float = LAG_SECONDS,
    ) -> None:
        self._tell = tell
        self.backend = LocalBackend(state, tell=self._told)
        self.brokers = BrokerClients()
        if monitor is None:  # an empty one is false
            monitor = LagMonitor(interval=lag_seconds)
        self.watch = LagWatch(monitor, lag_seconds, self.wake, time.time)
        self.reconciler = Reconciler(
            self.backend, self.brokers, defaults=LOCAL_DEFAULTS, wake=self.wake, lag=self.watch
        )
        self.queue: WorkQueue[GroupKey] = WorkQueue(self._pass)
        self.backend.woken = self.wake
        self._working: asyncio.Task[None] | None = None
        self._wish = DesiredObjects()
        self._moved = asyncio.Event()
        self.stopping = False
        self.hurried = False
        self._may_start = 0  # passes under way that began before the stop, and may start members yet
        self.unsafe = False  # whether a drain has failed
        self._timed_out = False  # whether one has run out of time

    async def __aenter__(self) -> Self:
        await self.backend.__aenter__()
        self._working = asyncio.get_running_loop().create_task(self.queue.run(), name="reconcile")
        self.queue.open()
        self.watch.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of everything. Processes that run go on; the next run finds them."""
        await self.queue.close(grace=5.0)
        if self._working is not None:
            self._working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._working
        await self.watch.close()
        await self.reconciler.close()
        await self.brokers.close()
        await self.backend.__aexit__()

    # -- what is wanted -----------------------------------------------------------------------------------------------

    def apply(self, wish: DesiredObjects) -> None:
        """From now on, this. ManifestError, and no change at all, if an object may not be changed like that."""
        wrong = []
        for key, (group, _) in wish.groups.items():
            held = self.backend.objects.get(key)
            if held is not None and held.group.metadata.deletion_timestamp is None:
                wrong += [f"{group.metadata.name}: {line}" for line in problems(group, held.group)]
        if wrong:
            raise ManifestError(wrong)
        self._wish = wish
        self.backend.secrets.secrets = wish.secrets
        self.backend.secrets.config_maps = wish.config_maps
        for key in self.backend.objects.keys - wish.groups.keys():
            self.backend.objects.delete(key)
        for group, base in wish.groups.values():
            self.backend.objects.put(group, base)
        for key in self.backend.objects.keys:
            self.wake(key)

    def wake(self, key: GroupKey) -> None:
        self._moved.set()
        self.queue.wake(key)

    async def stop(self) -> bool:
        """Drain all members; returns whether all their offsets are safe."""
        self.stopping, self.unsafe, self._timed_out = True, False, False
        self.backend.ended.clear()
        for key in self.backend.objects.keys:
            self.wake(key)
        while self._may_start or any(True for _ in self.backend.members):
            self._moved.clear()
            await self._moved.wait()
        confirmed = all(words is not None and words.confirmed for words in self.backend.ended)
        return not self.unsafe and (confirmed or not self._timed_out)

    def hurry(self) -> None:
        """While stopping: wait for handlers no longer."""
        self.hurried = True
        self.backend.hurry()

    @property
    def abandoned(self) -> int:
        """Messages whose handlers were cut short while stopping: they come again."""
        return sum(words.unfinished for words in self.backend.ended if words is not None)

    def logs(self, key: GroupKey) -> Path:
        """The directory of a group's logs."""
        return self.backend.state.group(key).pod(0).log.parent

    def left_over(self, wish: DesiredObjects) -> list[GroupKey]:
        """Groups that a former run has left here and that are wanted no more."""
        return sorted(self.backend.objects.keys - wish.groups.keys())

    def lag(self, key: GroupKey) -> int | None:
        """How far a group is behind, as last read; None: nobody knows."""
        figures = self.watch.latest(key)
        return None if figures is None else figures.messages

    # -- passes -------------------------------------------------------------------------------------------------------

    async def _pass(self, key: GroupKey) -> Requeue | None:
        held = self.backend.objects.get(key)
        if held is None:
            await self.reconciler.forget(key)
            wanted = self._wish.groups.get(key)
            if wanted is not None and not self.stopping:  # it was deleted, and is wanted again
                self.backend.objects.put(*wanted)
            return None
        if self.stopping:
            again = await self.reconciler.reconcile(_suspended(held.group))
        else:
            self._may_start += 1
            try:
                again = await self.reconciler.reconcile(held.group)
            finally:
                self._may_start -= 1
                self._moved.set()
        if self.hurried:
            self.backend.hurry()  # a drain that has only begun now is meant too
        return again

    def _told(self, group: ConsumerGroup, event: Event) -> None:
        self.unsafe = self.unsafe or event.reason in UNSAFE
        self._timed_out = self._timed_out or event.reason is EventReason.DRAIN_TIMED_OUT
        self._tell(group, event)


def _suspended(group: ConsumerGroup) -> ConsumerGroup:
    return group.model_copy(update={"spec": group.spec.model_copy(update={"suspend": True})})
