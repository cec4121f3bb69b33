"""When offsets are committed: shortly after a message is finished, and all of them now and then.

Soon, so that a member that is killed leaves little to repeat: what was finished is committed 50 ms later. A request
carries one offset only, so with thousands of busy queues not all can be had so often; they take turns, those first
that have waited longest, and `CommitTimings.at_once` for each broker and turn bounds what that costs.

Now and then (`persist_interval`) everything that may be committed is, also of queues in which nothing was finished: a
filter may have passed over messages, or a commit may have failed. And once a minute it is told again although the
broker knows it, in case it has forgotten and nobody noticed: somebody may have deleted the group under its members.

Each broker has a turn of its own: one that hangs holds up nobody else's queues.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING

from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.handover.holdings import Holdings, Offsets

if TYPE_CHECKING:
    from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitTimings:
    """Seconds, but for `at_once`."""

    soon: float = 0.05
    at_once: int = 128  # queues of a broker that have a turn together
    tell_again: float = 60.0


_TIMINGS = CommitTimings()


class Committer:
    """See the module. Only for groups whose offsets are at the brokers."""

    def __init__(
        self,
        holdings: Holdings,
        offsets: Offsets,
        persist_interval: float,
        *,
        clock: Callable[[], float],
        timings: CommitTimings = _TIMINGS,
    ) -> None:
        self._holdings = holdings
        self._offsets = offsets
        self._interval = persist_interval
        self._clock = clock
        self._timings = timings
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._taken: dict[MessageQueue, float] = {}  # when a queue last had its turn
        self._all_at: dict[str, float] = {}  # by broker: when all of its queues last had theirs
        self._told_at: dict[str, float] = {}  # by broker: when it was last told everything again

    async def run(self) -> None:
        """Commit until cancelled."""
        try:
            while True:
                await asyncio.sleep(self._timings.soon)
                self.tick()
        finally:
            for task in self._busy.values():
                task.cancel()

    def tick(self) -> None:
        """Begin a turn for each broker that has something to commit, and whose last turn is over."""
        now = self._clock()
        by_broker: dict[str, list[Lane]] = {}
        for holding, lane in self._holdings.lanes():
            if holding.queue.broker not in self._busy:
                by_broker.setdefault(holding.queue.broker, []).append(lane)
        for broker, lanes in by_broker.items():
            again = False
            if now - self._all_at.setdefault(broker, now) >= self._interval:
                self._all_at[broker] = now
                turn = lanes
                again = now - self._told_at.setdefault(broker, now) >= self._timings.tell_again
                if again:
                    self._told_at[broker] = now
            else:
                moved = [lane for lane in lanes if lane.moved]
                turn = nsmallest(self._timings.at_once, moved, key=lambda lane: self._taken.get(lane.queue, 0.0))
            if turn:
                self._begin(broker, turn, now, again=again)

    def _begin(self, broker: str, turn: list[Lane], now: float, *, again: bool) -> None:
        for lane in turn:
            lane.moved = False
            self._taken[lane.queue] = now
        if len(self._taken) > 2 * len(self._holdings.queues):
            held = self._holdings.queues
            self._taken = {queue: at for queue, at in self._taken.items() if queue in held}
        task = asyncio.get_running_loop().create_task(self._commit(turn, again=again), name=f"commit at {broker}")
        self._busy[broker] = task
        task.add_done_callback(lambda _: self._busy.pop(broker, None))

    async def _commit(self, turn: list[Lane], *, again: bool) -> None:
        try:
            await self._offsets.persist(self._holdings.committable(set(turn)), again=again)
        except Exception:
            _log.exception("offsets were not committed; it is tried again")
