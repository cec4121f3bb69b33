"""One pass over one group: look, plan, act, show. The planner decides; here is what lies between two of its plans.

A pass never waits for a member: drains and rebalances are tasks beside it, and every question has its time-out. Nothing
that a broker or a backend answers ends the loop; it is said in the status, and the next pass comes later.

`reconcile` says when to look again. While something moves, that is a quarter of a second; when nothing has changed for
a while, although not all is well, less and less often; at rest twice a minute. Whoever hears of a change wakes the
group earlier.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import REBALANCE_REQUESTED
from rocketfleet.api.status import Condition, ConsumerGroupStatus, LastDrain, LastRebalance, Truth
from rocketfleet.base.clock import lease_clock
from rocketfleet.base.counting import counted
from rocketfleet.base.timestamps import timestamp
from rocketfleet.controller.lag.lag_watch import LagView, LagWatch
from rocketfleet.controller.planning import rebalance_tracking
from rocketfleet.controller.planning.actions import Action, Emit, Event, Reason, RequestDrain, TellMembers
from rocketfleet.controller.planning.plan import plan
from rocketfleet.controller.planning.snapshot import Snapshot
from rocketfleet.controller.planning.wanted import balanced, desired_replicas, limited_by_queues, shares_queues
from rocketfleet.controller.reconciling.apply import Applier
from rocketfleet.controller.reconciling.backend import Backend, BackendError
from rocketfleet.controller.reconciling.group_memory import Asking, Counts, Memory
from rocketfleet.controller.reconciling.observe import Observation, Observer
from rocketfleet.controller.reconciling.rolling_budget import RollingBudget
from rocketfleet.controller.reconciling.worker_calls import WorkerCalls
from rocketfleet.controller.reporting import status as statuses
from rocketfleet.controller.reporting.conditions import MEMBERS_DIFFER, limited_text, subscriptions_verdict
from rocketfleet.controller.resources.pod import NO_DEFAULTS, Defaults, image_of, on_default_image
from rocketfleet.controller.rocketmq.brokers import BrokerAccess

_log = logging.getLogger(__name__)
MOVING = 0.25
SLOWER = ((10.0, MOVING), (60.0, 1.0))  # nothing has changed for less than this → look again after that
SLOWEST = 5.0
AT_REST = 30.0
TAKEN_PAUSE = 5.0  # between two looks, which cost nothing, whether whoever has the group is still there
TELL_AGAIN = 3.0  # seconds after which members that have not shared out the queues are told again
LONGEST_PAUSE = 30.0
_ONGOING = (RequestDrain, TellMembers, Emit)  # wanted again and again until what they are about has happened

Key = tuple[str, str]


class Reconciler:
    """Looks after groups. One pass over one group at a time; passes over different groups may run side by side."""

    def __init__(
        self,
        backend: Backend,
        brokers: BrokerAccess,
        *,
        workers: WorkerCalls | None = None,
        defaults: Defaults = NO_DEFAULTS,
        wake: Callable[[Key], None] = lambda key: None,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = lease_clock,
        rebalanced: Callable[[LastRebalance], None] = lambda done: None,
        drained: Callable[[LastDrain], None] = lambda done: None,
        lag: LagWatch | None = None,
    ) -> None:
        workers = workers or WorkerCalls()
        self._backend = backend
        self._brokers = brokers
        self._clock = clock  # the time of day, for whoever reads it
        self._ticks = ticks  # what durations are measured with: nobody sets it
        self._told_rebalanced = rebalanced
        self._defaults = defaults
        self._rolling = RollingBudget(defaults.most_rolling)
        self._lag = lag
        self._observer = Observer(backend, brokers, workers, defaults)
        self._applier = Applier(backend, workers, wake, clock, ticks, drained)
        self._memories: dict[Key, Memory] = {}

    async def reconcile(self, group: ConsumerGroup) -> float:
        """One pass. Returns the seconds until the next look is due."""
        memory = await self._memory(group)
        requested = group.metadata.annotations.get(REBALANCE_REQUESTED)
        if requested != memory.requested:
            memory.requested, memory.told, memory.telling = requested, frozenset(), frozenset()
        now, wall = self._ticks(), self._clock()
        try:
            observation = await self._observer.look(group, memory, now, wall)
        except BackendError as error:
            memory.failures += 1
            memory.troubled = True
            _log.warning("%s: %s", "/".join(group.key), error)
            return min(LONGEST_PAUSE, 2.0 ** min(memory.failures, 10))
        view = self._lag_of(group, observation, wall)
        may_roll = self._may_roll(group, observation.snapshot)
        snapshot = replace(observation.snapshot, advised=view.advised, may_roll=may_roll)
        observation = replace(observation, snapshot=snapshot)
        actions = plan(group, snapshot, now)
        memory.refused = memory.evictions_unlimited = False
        failures = await self._applier.apply(group, actions, observation, memory)
        memory.troubled = bool(failures) or memory.evictions_unlimited
        for failure in failures:
            _log.warning("%s: %s", "/".join(group.key), failure)
        memory.last_desired = desired_replicas(group, snapshot)
        memory.counts.desired, memory.counts.ready = memory.last_desired, _able(snapshot, memory.last_desired)
        if self._lag is not None:
            self._lag.note_replicas(group.key, memory.counts.desired, memory.counts.ready)
        events = self._track(group, observation, memory, now)
        await self._show(group, observation, memory, failures, events, view)
        return self._pause(group, observation, memory, actions, failures, now)

    async def forget(self, key: Key) -> None:
        """The object is gone, or no longer ours."""
        memory = self._memories.pop(key, None)
        if memory is not None:
            await _cancel(memory)
        if self._lag is not None:
            self._lag.forget(key)
        self._rolling.forget(key)
        await self._brokers.forget(key)

    async def close(self) -> None:
        """End what is under way. Workers that were asked to drain go on by themselves."""
        await asyncio.gather(*(self.forget(key) for key in list(self._memories)))

    def troubled(self, key: Key) -> bool:
        """Whether the last pass could not do all that it wanted to: the API server or a broker refused it."""
        memory = self._memories.get(key)
        return memory is not None and memory.troubled

    def conditions(self) -> list[tuple[Key, Sequence[Condition]]]:
        """The conditions of each group, as of its last pass."""
        return [(key, memory.shown.conditions or ()) for key, memory in list(self._memories.items()) if memory.shown]

    def counts(self) -> list[tuple[Key, Counts]]:
        """What is counted of each group."""
        return [(key, memory.counts) for key, memory in list(self._memories.items())]

    async def _memory(self, group: ConsumerGroup) -> Memory:
        memory = self._memories.get(group.key)
        if memory is not None and memory.uid != group.metadata.uid:
            await _cancel(memory)
            memory = None
        if memory is None:
            memory = self._memories[group.key] = Memory(group.metadata.uid)
            memory.requested = group.metadata.annotations.get(REBALANCE_REQUESTED)
        return memory

    def _may_roll(self, group: ConsumerGroup, snapshot: Snapshot) -> bool:
        goes_on = snapshot.reachable is not False and desired_replicas(group, snapshot) > 0
        counts = goes_on and on_default_image(group)
        image = image_of(group, self._defaults) if counts else ""
        return self._rolling.may_roll(group.key, counts, image, snapshot.revision, snapshot.pods)

    def _lag_of(self, group: ConsumerGroup, observation: Observation, wall: float) -> LagView:
        if self._lag is None:
            return LagView()
        if observation.snapshot.taken_by is not None:  # its lag is shown with whoever has the group
            self._lag.forget(group.key)
            return LagView()
        target = None if observation.access is None else observation.access.lag_target()
        return self._lag.look(group, target, observation.snapshot, wall, observation.work)

    # -- between two plans --------------------------------------------------------------------------------------------

    def _track(self, group: ConsumerGroup, observation: Observation, memory: Memory, now: float) -> list[Event]:
        """What a look tells that no single snapshot can."""
        snapshot, events = observation.snapshot, list[Event]()
        whole = balanced(group, snapshot)
        if whole:
            memory.unbalanced_since = None
        elif memory.unbalanced_since is None:
            memory.unbalanced_since = now
        if snapshot.reachable and memory.telling and not _telling(memory):
            in_vain = not whole and now - max(memory.told_at, memory.unbalanced_since or now) > TELL_AGAIN
            failed = memory.told != memory.telling and now - memory.told_at > TELL_AGAIN
            if in_vain or failed:
                memory.told, memory.telling = frozenset(), frozenset()
        if shares_queues(group):
            owners = {} if snapshot.ownership is None else snapshot.ownership.owners
            queues = snapshot.queues or frozenset()
            seen = rebalance_tracking.Seen(
                snapshot.members,
                {queue: them for queue, them in owners.items() if queue in queues},
                balanced=whole,
                agreed=observation.agreed,
            )
            memory.tracking, done = rebalance_tracking.track(memory.tracking, seen, now)
            if done is not None:
                events.append(self._rebalanced(group, memory, done))
        if snapshot.code_missing is not None and memory.code_missing is None:
            events.append(Event(Reason.CONFIG_MAP_MISSING, snapshot.code_missing, warning=True))
        memory.code_missing = snapshot.code_missing
        hindrance = snapshot.hindrance
        if hindrance is not None and hindrance is not memory.hindrance:
            events.append(Event(Reason(hindrance.value), observation.trouble or "no broker answers", warning=True))
        memory.hindrance = hindrance
        if snapshot.queues is not None:
            limited = limited_by_queues(group, snapshot)
            if limited is not None and limited != memory.limited:
                events.append(Event(Reason.LIMITED_BY_QUEUES, limited_text(*limited)))
            memory.limited = limited
        consistent = subscriptions_verdict(group, snapshot)
        differ = consistent.message if consistent.reason == MEMBERS_DIFFER else None
        if differ is not None and differ != memory.disagreement:
            events.append(Event(Reason.SUBSCRIPTIONS_DIFFER, differ, warning=True))
        if consistent.status is not Truth.UNKNOWN:
            memory.disagreement = differ
        return events

    def _rebalanced(self, group: ConsumerGroup, memory: Memory, done: rebalance_tracking.Rebalanced) -> Event:
        memory.last_rebalance = LastRebalance(
            generation=group.metadata.generation,
            reason=done.reason,
            moved=done.moved,
            seconds=round(done.seconds, 3),
            completed_at=timestamp(self._clock()),
        )
        memory.counts.rebalances += 1
        self._told_rebalanced(memory.last_rebalance)
        text = f"{done.reason}: each queue has one owner after {done.seconds:.1f} s"
        text += "" if done.moved is None else f", {counted(done.moved, 'queue')} moved"
        return Event(Reason.REBALANCED, text)

    async def _show(
        self,
        group: ConsumerGroup,
        observation: Observation,
        memory: Memory,
        failures: Sequence[str],
        events: Sequence[Event],
        view: LagView,
    ) -> None:
        """Events and status. If they cannot be written, the next pass tries again."""
        operator = self._defaults.operator or None
        before = memory.status or group.status or ConsumerGroupStatus()
        if group.status is not None and group.status.operator not in (None, operator):
            before = group.status  # another has written it since
        known = statuses.Memory(
            prepared=memory.prepared,
            code=memory.code,
            last_rebalance=memory.last_rebalance,
            last_drain=memory.last_drain,
            lag=view.lag,
            lag_health=view.health,
            lag_of_members=view.members,
            scaling=view.scaling,
            progress=observation.progress,
            broker_trouble=observation.trouble,
            trouble=failures[0] if failures else None,
            refused=memory.refused,
            operator=operator,
        )
        status = statuses.status_of(group, observation.snapshot, known, before, self._clock(), self._ticks())
        memory.shown = status
        try:
            for event in events:
                await self._backend.emit(group, event)
            await self._tell_of_lag(group)
            groups = 1 if self._lag is None else len(self._lag)
            if statuses.differs(before, status, group.spec.autoscaling, groups):
                await self._backend.write_status(group, as_json(status))
                memory.status = status
        except BackendError as error:
            memory.troubled = True
            _log.warning("%s: %s", "/".join(group.key), error)

    async def _tell_of_lag(self, group: ConsumerGroup) -> None:
        """What came up since the last pass. What cannot be told now is told in the next."""
        for event in [] if self._lag is None else self._lag.events(group.key):
            await self._backend.emit(group, event)
            assert self._lag is not None
            self._lag.told(group.key, 1)

    # -- when to look again -------------------------------------------------------------------------------------------

    def _pause(
        self,
        group: ConsumerGroup,
        observation: Observation,
        memory: Memory,
        actions: Sequence[Action],
        failures: Sequence[str],
        now: float,
    ) -> float:
        snapshot = observation.snapshot
        amiss = bool(failures) or memory.evictions_unlimited or snapshot.reachable is False
        memory.failures = memory.failures + 1 if amiss else 0
        digest = _digest(snapshot)
        if digest != memory.seen or any(not isinstance(action, _ONGOING) for action in actions):
            memory.seen, memory.seen_since = digest, now
        if at_rest(group, observation, memory, actions):
            return AT_REST if snapshot.taken_by is None else TAKEN_PAUSE
        if memory.failures:
            return min(LONGEST_PAUSE, MOVING * 2.0 ** min(memory.failures, 10))
        unchanged = now - memory.seen_since
        return next((pause for limit, pause in SLOWER if unchanged < limit), SLOWEST)


def at_rest(group: ConsumerGroup, observation: Observation, memory: Memory, actions: Sequence[Action]) -> bool:
    """Whether nothing is under way and nothing is missing."""
    snapshot = observation.snapshot
    if memory.tasks or memory.failures or any(not isinstance(action, Emit) for action in actions):
        return False
    if snapshot.deleting_since is not None:
        return False  # it waits for somebody
    if len(snapshot.pods) != desired_replicas(group, snapshot):
        return False
    if any(pod.leaving or not pod.ready for pod in snapshot.pods):
        return False
    if memory.tracking.since is not None and shares_queues(group):
        return False  # a rebalance is under way
    return not snapshot.pods or balanced(group, snapshot)


def _able(snapshot: Snapshot, desired: int) -> int:
    """Pods that do the group's work: an update's extra one, and those on their way out, are not counted on."""
    return sum(pod.ready and not pod.leaving and pod.ordinal < desired for pod in snapshot.pods)


def as_json(status: ConsumerGroupStatus) -> dict[str, Any]:
    """The status as it is written."""
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


def _digest(snapshot: Snapshot) -> object:
    """What changes when something moves."""
    pods = tuple((pod.uid, pod.phase, pod.ready, pod.drain, pod.deleting, pod.trouble) for pod in snapshot.pods)
    owners = None
    if snapshot.ownership is not None:
        owners = tuple(sorted((queue, tuple(sorted(them))) for queue, them in snapshot.ownership.owners.items()))
    return pods, snapshot.members, owners, snapshot.reachable, snapshot.prepared, snapshot.revision


def _telling(memory: Memory) -> bool:
    return any(asking is Asking.REBALANCE for asking, _ in memory.tasks)


async def _cancel(memory: Memory) -> None:
    tasks = list(memory.tasks.values())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
