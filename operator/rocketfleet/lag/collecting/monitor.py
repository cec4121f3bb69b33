"""The one collector: every group of every cluster, sweep after sweep.

Theory. A sweep asks each cluster once for its topics, then each of its brokers for everything that concerns any group
there (`broker_reading.py`), all brokers side by side. A group's figures are put together as soon as its own brokers are
done, so a slow broker delays only those who have queues there, and them no longer than `patience`: then its reading is
cut off, and what it has not said is not known. The queues that were not read keep their last figures together with the
time at which they were seen. The next sweep begins a fixed interval after the last one began, or at once if that is
past.

Broadcasting groups keep their offsets with their members, who are asked one by one: `broadcast.py`.

Everything is kept in memory and served from there: whoever asks for figures waits for nobody. Whoever wants to hear of
new ones says so when a group begins to be followed, and is called as soon as they are put together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from rocketfleet.client.errors import RocketMQError
from rocketfleet.lag.collecting.assembly import assemble
from rocketfleet.lag.collecting.broadcast import read_broadcast
from rocketfleet.lag.collecting.broker_reading import BrokerMemory, BrokerReading, Wanted, read_within
from rocketfleet.lag.collecting.layout import ClusterTopics, GroupLayout, wanted_of
from rocketfleet.lag.collecting.reckoning import with_rates
from rocketfleet.lag.judging.handling import Handling
from rocketfleet.lag.judging.rules import DEFAULT_LIMITS, GroupVerdict, LagFinding, RuleLimits, judge
from rocketfleet.lag.judging.window import MOMENTS, Window
from rocketfleet.lag.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from rocketfleet.client.client import Client
    from rocketfleet.lag.figures import GroupLag, Work
    from rocketfleet.wire.queue import MessageQueue

__all__ = ["LagMonitor", "Target"]
_log = logging.getLogger(__name__)
INTERVAL: Final = 15.0
PATIENCE: Final = 12.0
CALL_SECONDS: Final = 5.0
BROADCAST_INTERVAL: Final = 15.0
"""Asking members costs a broker's threads, so they are not asked more often than this."""
CALM_SWEEPS: Final = 4
"""A group without lag is asked for its members at every so many sweeps."""
RESTS: Final = GroupVerdict(LagFinding.UNKNOWN, "the group is suspended: nobody expects it to consume")
_GROUPS_PER_TURN: Final = 25
"""So many are put together, and judged by whoever hears of them, before others get a turn of the event loop: a thousand
at once would hold up all else for a good part of a second."""


def _nobody() -> None:
    """Nobody wants to hear of it."""


class Keeper(Protocol):
    """Whoever keeps what was seen; see `history.py`."""

    async def keep(self, seen: list[tuple[Target, GroupLag]]) -> None: ...


@dataclass(slots=True)
class Followed:
    """A group that is watched, and what is known of it."""

    target: Target
    window: Window
    published: Callable[[], None]
    owners: Mapping[MessageQueue, str] = field(default_factory=dict)
    verdict: GroupVerdict | None = None
    resting: bool = False  # nobody expects it to consume
    work: Work | None = None  # what its members last said of their handlers
    handling: Handling = field(default_factory=Handling)


@dataclass(slots=True)
class _ClusterMemory:
    cluster: ClusterTopics
    brokers: dict[str, BrokerMemory] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    trouble: str = ""


class LagMonitor:
    """See the module. `clock` tells the time of day."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        interval: float = INTERVAL,
        patience: float = PATIENCE,
        timeout: float = CALL_SECONDS,
        moments: int = MOMENTS,
        limits: RuleLimits = DEFAULT_LIMITS,
        keeper: Keeper | None = None,
    ) -> None:
        self._clock = clock
        self._interval = interval
        self._patience = patience
        self._timeout = timeout
        self._moments = moments
        self._limits = limits
        self._keeper = keeper
        self._followed: dict[Hashable, Followed] = {}
        self._clusters: dict[Client, _ClusterMemory] = {}
        self._sweeps = 0
        self.sweep_seconds: float | None = None
        self.swept_at: float | None = None

    # -- what is watched ----------------------------------------------------------------------------------------------

    def follow(self, key: Hashable, target: Target, published: Callable[[], None] = _nobody) -> None:
        """Watch a group, or go on with another target. The window stays, unless it is another group. `published` is
        called whenever there are new figures of it, and must not fail.
        """
        known = self._followed.get(key)
        same = known is not None and (known.target.group, known.target.broadcast) == (target.group, target.broadcast)
        if known is not None and same:
            known.target, known.published = target, published
        else:
            window = Window(broadcast=target.broadcast, size=self._moments)
            self._followed[key] = Followed(target, window, published)

    def forget(self, key: Hashable) -> None:
        """Watch it no more. Its figures are gone at once."""
        self._followed.pop(key, None)

    def note_owners(self, key: Hashable, owners: Mapping[MessageQueue, str]) -> None:
        """Who has which queue, as far as somebody knows: client ids."""
        known = self._followed.get(key)
        if known is not None:
            known.owners = owners

    def note_reset(self, key: Hashable, now: float) -> None:
        """Its offsets were moved on purpose, or it goes on after a rest: nothing before is held against the group."""
        known = self._followed.get(key)
        if known is not None:
            known.window = known.window.reset(now)
            known.handling = known.handling.reset()
            known.verdict = None

    def note_rest(self, key: Hashable, resting: bool) -> None:
        """Whether nobody expects the group to consume: then it is not judged."""
        known = self._followed.get(key)
        if known is not None and known.resting is not resting:
            known.resting, known.verdict = resting, None

    def note_work(self, key: Hashable, work: Work | None) -> None:
        """What the members say of their handlers; None: they cannot be asked."""
        known = self._followed.get(key)
        if known is not None:
            known.work = work

    # -- what is known ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._followed)

    def groups(self) -> Iterator[tuple[Hashable, Target, GroupLag, GroupVerdict]]:
        """Every group of which there are figures."""
        for key, known in list(self._followed.items()):
            latest = known.window.latest
            if latest is not None:
                yield key, known.target, latest, self.verdict(key)

    def latest(self, key: Hashable) -> GroupLag | None:
        """The last figures; None before the first."""
        return self.window(key).latest

    def window(self, key: Hashable) -> Window:
        """The last minutes; empty before the first figures."""
        known = self._followed.get(key)
        return Window() if known is None else known.window

    def verdict(self, key: Hashable) -> GroupVerdict:
        """What the rules say of the window."""
        known = self._followed.get(key)
        if known is None:
            return judge(Window(), self._limits)
        if known.verdict is None:
            known.verdict = RESTS if known.resting else judge(known.window, self._limits)
        return known.verdict

    # -- looking ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Sweep after sweep, until cancelled. A bug in one is logged and costs that one."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            try:
                await self.sweep()
            except Exception:
                _log.exception("a sweep over the groups' lag failed")
            due = max(due + self._interval, loop.time())
            await asyncio.sleep(due - loop.time())

    async def sweep(self) -> None:
        """Look at all groups once."""
        started, at = time.monotonic(), self._clock()
        self._sweeps += 1
        by_client: dict[Client, list[Followed]] = {}
        for followed in self._followed.values():
            by_client.setdefault(followed.target.client, []).append(followed)
        for client in self._clusters.keys() - by_client.keys():
            del self._clusters[client]
        await asyncio.gather(*(self._sweep_cluster(client, groups, at) for client, groups in by_client.items()))
        self.sweep_seconds, self.swept_at = time.monotonic() - started, at
        if self._keeper is not None:
            present = [(one.target, one.window.latest) for one in self._followed.values()]
            await self._keeper.keep(
                [(target, moment) for target, moment in present if moment is not None and moment.observed_at >= at]
            )

    async def _sweep_cluster(self, client: Client, groups: list[Followed], at: float) -> None:
        memory = self._clusters.setdefault(client, _ClusterMemory(ClusterTopics(client)))
        trouble = await self._refresh(memory.cluster, [one.target for one in groups])
        plain = [(one, memory.cluster.of(one.target)) for one in groups if not one.target.broadcast]
        asked = {id(one) for place, (one, _) in enumerate(plain) if self._wants_members(one, place)}
        wanted = wanted_of(((one.target, layout, id(one) in asked) for one, layout in plain), memory.failed)
        readings: dict[str, BrokerReading] = {}
        waits = _Waits(plain)

        async def read(broker: str) -> None:
            readings[broker] = await self._read(client, broker, wanted[broker], memory)
            await self._publish(waits.done(broker), readings, asked, at)

        async with asyncio.TaskGroup() as tasks:
            for broker in wanted:
                tasks.create_task(read(broker))
            tasks.create_task(self._publish(waits.free(), readings, asked, at))
            for one in groups:
                if one.target.broadcast:
                    tasks.create_task(self._look_at_broadcast(one, memory.cluster.of(one.target), at))
        for name in memory.brokers.keys() - wanted.keys():
            del memory.brokers[name]
        errors = {broker: reading.error for broker, reading in readings.items() if reading.error is not None}
        memory.failed = frozenset(errors)
        self._tell(memory, trouble, errors)

    async def _refresh(self, cluster: ClusterTopics, targets: list[Target]) -> RocketMQError | None:
        try:
            async with asyncio.timeout(self._patience):
                return await cluster.refresh(targets, self._timeout)
        except TimeoutError:  # routes that are known serve on
            return RocketMQError(f"the name servers did not answer everything within {self._patience:g} s")

    async def _read(self, client: Client, broker: str, wanted: Wanted, memory: _ClusterMemory) -> BrokerReading:
        return await read_within(
            self._patience, client, broker, wanted, memory.brokers.setdefault(broker, BrokerMemory()),
            clock=self._clock, timeout=self._timeout,
        )  # fmt: skip

    def _wants_members(self, one: Followed, place: int) -> bool:
        """Members matter where messages wait. Groups that keep up are asked for theirs in turn."""
        latest = one.window.latest
        calm = latest is not None and latest.messages == 0 and latest.members is not None
        return not calm or (self._sweeps + place) % CALM_SWEEPS == 0

    async def _publish(
        self, groups: list[tuple[Followed, GroupLayout]], readings: dict[str, BrokerReading], asked: set[int], at: float
    ) -> None:
        for number, (one, layout) in enumerate(groups):
            if number % _GROUPS_PER_TURN == _GROUPS_PER_TURN - 1:
                await asyncio.sleep(0)
            self._add(
                one,
                assemble(
                    one.target, layout, readings, one.window.latest, one.owners, at, asked=id(one) in asked
                ),
            )  # fmt: skip

    async def _look_at_broadcast(self, one: Followed, layout: GroupLayout, at: float) -> None:
        latest = one.window.latest
        if latest is not None and at - latest.observed_at < min(self._interval, BROADCAST_INTERVAL) * 0.9:
            return
        before = {} if latest is None else {(row.queue, row.owner): row for row in latest.queues}
        found = await read_broadcast(
            one.target, layout, before, at, clock=self._clock, timeout=self._timeout, patience=self._patience
        )
        self._add(one, found)

    @staticmethod
    def _add(one: Followed, moment: GroupLag) -> None:
        one.handling, moment = one.handling.after(replace(moment, work=one.work))
        one.window = with_rates(one.window.after(moment))
        one.verdict = None
        one.published()

    @staticmethod
    def _tell(memory: _ClusterMemory, trouble: RocketMQError | None, errors: Mapping[str, RocketMQError]) -> None:
        """Log what is wrong, once each time it changes."""
        words = "; ".join(
            [*([str(trouble)] if trouble else []), *(f"{name}: {errors[name]}" for name in sorted(errors))]
        )
        kind = ",".join(["name servers" if trouble else "", *sorted(errors)])
        if kind != memory.trouble:
            if words:
                _log.warning("not all lag can be read: %s", words)
            elif memory.trouble.strip(","):
                _log.info("all lag can be read again")
            memory.trouble = kind


class _Waits:
    """Which groups wait for which brokers."""

    def __init__(self, groups: list[tuple[Followed, GroupLayout]]) -> None:
        self._left = [layout.brokers for _, layout in groups]
        self._groups = groups
        self._of_broker: dict[str, list[int]] = {}
        for place, brokers in enumerate(self._left):
            for broker in brokers:
                self._of_broker.setdefault(broker, []).append(place)

    def free(self) -> list[tuple[Followed, GroupLayout]]:
        """Those that wait for nobody: none of their topics is known."""
        return [self._groups[place] for place, brokers in enumerate(self._left) if not brokers]

    def done(self, broker: str) -> list[tuple[Followed, GroupLayout]]:
        """Those that waited for this broker last."""
        freed = []
        for place in self._of_broker.get(broker, ()):
            self._left[place].discard(broker)
            if not self._left[place]:
                freed.append(self._groups[place])
        return freed
