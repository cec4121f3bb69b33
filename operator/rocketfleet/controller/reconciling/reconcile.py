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
from functools import partial
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.names import REBALANCE_REQUESTED
from rocketfleet.api.status import Condition, ConsumerGroupStatus, LastDrain, LastRebalance, Truth
from rocketfleet.base.clock import lease_clock
from rocketfleet.base.counting import counted
from rocketfleet.base.timestamps import timestamp
from rocketfleet.controller.lag.lag_watch import LagView, LagWatch, lag_state_of
from rocketfleet.controller.planning import rebalance_tracking
from rocketfleet.controller.planning.actions import Action, Emit, Event, EventReason, RequestDrain, TellMembers
from rocketfleet.controller.planning.plan import plan
from rocketfleet.controller.planning.snapshot import Snapshot
from rocketfleet.controller.planning.wanted import (
    balanced,
    desired_replicas,
    limited_by_queues,
    ready_replicas,
    shares_queues,
)
from rocketfleet.controller.reconciling.apply import Applier
from rocketfleet.controller.reconciling.backend import Backend, BackendError
from rocketfleet.controller.reconciling.group_state import Asking, Counts, GroupState
from rocketfleet.controller.reconciling.observe import Observation, Observer
from rocketfleet.controller.reconciling.rolling_budget import RollingBudget
from rocketfleet.controller.reconciling.work_queue import Requeue
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


class Reconciler:
    """Looks after groups. One pass over one group at a time; passes over different groups may run side by side."""

    def __init__(
        self,
        backend: Backend,
        brokers: BrokerAccess,
        *,
        workers: WorkerCalls | None = None,
        defaults: Defaults = NO_DEFAULTS,
        wake: Callable[[GroupKey], None] = lambda key: None,
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
        self._states: dict[GroupKey, GroupState] = {}

    async def reconcile(self, group: ConsumerGroup) -> Requeue:
        """One pass. Says when the next look is due."""
        state = await self._state(group)
        requested = group.metadata.annotations.get(REBALANCE_REQUESTED)
        if requested != state.tracked.requested:
            state.tracked.requested = requested
            self._applier.tell_again(state.applied)
        now, wall = self._ticks(), self._clock()
        try:
            observation = await self._observer.look(group, state, now, wall)
        except BackendError as error:
            state.tracked.failures += 1
            state.tracked.troubled = True
            _log.warning("%s: %s", "/".join(group.key), error)
            return Requeue(min(LONGEST_PAUSE, 2.0 ** min(state.tracked.failures, 10)))
        state.observed = observation.observed
        view = self._lag_of(group, observation, state, wall)
        may_roll = self._may_roll(group, observation.snapshot)
        snapshot = replace(observation.snapshot, advised=view.advised, may_roll=may_roll)
        observation = replace(observation, snapshot=snapshot)
        actions = plan(group, snapshot, now)
        failures = await self._applier.apply(group, actions, observation, state.applied)
        state.tracked.troubled = bool(failures) or state.applied.evictions_unlimited
        for failure in failures:
            _log.warning("%s: %s", "/".join(group.key), failure)
        state.tracked.last_desired = desired_replicas(group, snapshot)
        state.tracked.ready = ready_replicas(group, snapshot)
        events = self._track(group, observation, state, now)
        await self._show(group, observation, state, failures, events, view)
        return Requeue(self._pause(group, observation, state, actions, failures, now))

    async def forget(self, key: GroupKey) -> None:
        """The object is gone, or no longer ours."""
        state = self._states.pop(key, None)
        if state is not None:
            await _cancel(state)
        if self._lag is not None:
            self._lag.forget(key)
        self._rolling.forget(key)
        await self._brokers.forget(key)

    async def close(self) -> None:
        """End what is under way. Workers that were asked to drain go on by themselves."""
        await asyncio.gather(*(self.forget(key) for key in list(self._states)))

    def troubled(self, key: GroupKey) -> bool:
        """Whether the last pass could not do all that it wanted to: the API server or a broker refused it."""
        state = self._states.get(key)
        return state is not None and state.tracked.troubled

    def conditions(self) -> list[tuple[GroupKey, Sequence[Condition]]]:
        """The conditions of each group, as of its last pass."""
        shown = [(key, state.reported.shown) for key, state in list(self._states.items())]
        return [(key, status.conditions or ()) for key, status in shown if status is not None]

    def counts(self) -> list[tuple[GroupKey, Counts]]:
        """What is counted of each group."""
        return [(key, state.counts) for key, state in list(self._states.items())]

    async def _state(self, group: ConsumerGroup) -> GroupState:
        state = self._states.get(group.key)
        if state is not None and state.uid != group.metadata.uid:
            await _cancel(state)
            if self._lag is not None:
                self._lag.forget(group.key)
            state = None
        if state is None:
            state = self._states[group.key] = GroupState(group.metadata.uid)
            state.tracked.requested = group.metadata.annotations.get(REBALANCE_REQUESTED)
        return state

    def _may_roll(self, group: ConsumerGroup, snapshot: Snapshot) -> bool:
        goes_on = snapshot.reachable is not False and desired_replicas(group, snapshot) > 0
        counts = goes_on and on_default_image(group)
        image = image_of(group, self._defaults) if counts else ""
        return self._rolling.may_roll(group.key, counts, image, snapshot.revision, snapshot.pods)

    def _lag_of(self, group: ConsumerGroup, observation: Observation, state: GroupState, wall: float) -> LagView:
        if self._lag is None:
            return LagView()
        if observation.snapshot.taken_by is not None:  # its lag is shown with whoever has the group
            self._lag.forget(group.key)
            state.lag = None
            return LagView()
        if state.lag is None:
            state.lag = lag_state_of(group)
        target = None if observation.access is None else observation.access.lag_target()
        return self._lag.look(group, state.lag, target, observation.snapshot, wall, observation.work)

    # -- between two plans --------------------------------------------------------------------------------------------

    def _track(self, group: ConsumerGroup, observation: Observation, state: GroupState, now: float) -> list[Event]:
        """What a look tells that no single snapshot can."""
        snapshot, events = observation.snapshot, list[Event]()
        whole = balanced(group, snapshot)
        if whole:
            state.tracked.unbalanced_since = None
        elif state.tracked.unbalanced_since is None:
            state.tracked.unbalanced_since = now
        if snapshot.reachable and state.applied.telling and not _telling(state):
            in_vain = not whole and now - max(state.applied.told_at, state.tracked.unbalanced_since or now) > TELL_AGAIN
            failed = state.applied.told != state.applied.telling and now - state.applied.told_at > TELL_AGAIN
            if in_vain or failed:
                self._applier.tell_again(state.applied)
        if shares_queues(group):
            owners = {} if snapshot.ownership is None else snapshot.ownership.owners
            queues = snapshot.queues or frozenset()
            seen = rebalance_tracking.SharingSeen(
                snapshot.members,
                {queue: them for queue, them in owners.items() if queue in queues},
                balanced=whole,
                agreed=observation.agreed,
            )
            state.tracked.tracking, done = rebalance_tracking.track(state.tracked.tracking, seen, now)
            if done is not None:
                events.append(self._rebalanced(group, state, done))
        if snapshot.code_missing is not None and state.reported.code_missing is None:
            events.append(Event(EventReason.CONFIG_MAP_MISSING, snapshot.code_missing, warning=True))
        state.reported.code_missing = snapshot.code_missing
        hindrance = snapshot.hindrance
        if hindrance is not None and hindrance is not state.reported.hindrance:
            events.append(Event(EventReason(hindrance.value), observation.trouble or "no broker answers", warning=True))
        state.reported.hindrance = hindrance
        if snapshot.queues is not None:
            limited = limited_by_queues(group, snapshot)
            if limited is not None and limited != state.reported.limited:
                events.append(Event(EventReason.LIMITED_BY_QUEUES, limited_text(*limited)))
            state.reported.limited = limited
        consistent = subscriptions_verdict(group, snapshot)
        differ = consistent.message if consistent.reason == MEMBERS_DIFFER else None
        if differ is not None and differ != state.reported.disagreement:
            events.append(Event(EventReason.SUBSCRIPTIONS_DIFFER, differ, warning=True))
        if consistent.status is not Truth.UNKNOWN:
            state.reported.disagreement = differ
        return events

    def _rebalanced(self, group: ConsumerGroup, state: GroupState, done: rebalance_tracking.Rebalanced) -> Event:
        state.reported.last_rebalance = LastRebalance(
            generation=group.metadata.generation,
            reason=done.reason,
            moved=done.moved,
            seconds=round(done.seconds, 3),
            completed_at=timestamp(self._clock()),
        )
        state.reported.rebalances += 1
        self._told_rebalanced(state.reported.last_rebalance)
        text = f"{done.reason}: each queue has one owner after {done.seconds:.1f} s"
        text += "" if done.moved is None else f", {counted(done.moved, 'queue')} moved"
        return Event(EventReason.REBALANCED, text)

    async def _show(
        self,
        group: ConsumerGroup,
        observation: Observation,
        state: GroupState,
        failures: Sequence[str],
        events: Sequence[Event],
        view: LagView,
    ) -> None:
        """Events and status. If they cannot be written, the next pass tries again."""
        operator = self._defaults.operator or None
        before = state.reported.status or group.status or ConsumerGroupStatus()
        if group.status is not None and group.status.operator not in (None, operator):
            before = group.status  # another has written it since
        known = statuses.StatusInputs(
            prepared=state.observed.prepared,
            code=state.observed.code,
            last_rebalance=state.reported.last_rebalance,
            last_drain=state.applied.last_drain,
            lag=view.lag,
            lag_health=view.health,
            lag_of_members=view.members,
            scaling=view.scaling,
            progress=observation.progress,
            broker_trouble=observation.trouble,
            trouble=failures[0] if failures else None,
            refused=state.applied.refused,
            operator=operator,
        )
        status = statuses.status_of(group, observation.snapshot, known, before, self._clock(), self._ticks())
        state.reported.shown = status
        try:
            for event in events:
                await self._backend.emit(group, event)
            if self._lag is not None:
                await self._lag.tell(group.key, partial(self._backend.emit, group))
            groups = 1 if self._lag is None else len(self._lag)
            if statuses.differs(before, status, group.spec.autoscaling, groups):
                await self._backend.write_status(group, as_json(status))
                state.reported.status = status
        except BackendError as error:
            state.tracked.troubled = True
            _log.warning("%s: %s", "/".join(group.key), error)

    # -- when to look again -------------------------------------------------------------------------------------------

    def _pause(
        self,
        group: ConsumerGroup,
        observation: Observation,
        state: GroupState,
        actions: Sequence[Action],
        failures: Sequence[str],
        now: float,
    ) -> float:
        snapshot = observation.snapshot
        amiss = bool(failures) or state.applied.evictions_unlimited or snapshot.reachable is False
        state.tracked.failures = state.tracked.failures + 1 if amiss else 0
        digest = _digest(snapshot)
        if digest != state.tracked.seen or any(not isinstance(action, _ONGOING) for action in actions):
            state.tracked.seen, state.tracked.seen_since = digest, now
        if at_rest(group, observation, state, actions):
            return AT_REST if snapshot.taken_by is None else TAKEN_PAUSE
        if state.tracked.failures:
            return min(LONGEST_PAUSE, MOVING * 2.0 ** min(state.tracked.failures, 10))
        unchanged = now - state.tracked.seen_since
        return next((pause for limit, pause in SLOWER if unchanged < limit), SLOWEST)


def at_rest(group: ConsumerGroup, observation: Observation, state: GroupState, actions: Sequence[Action]) -> bool:
    """Whether nothing is under way and nothing is missing."""
    snapshot = observation.snapshot
    if state.applied.tasks or state.tracked.failures or any(not isinstance(action, Emit) for action in actions):
        return False
    if snapshot.deleting_since is not None:
        return False  # it waits for somebody
    if len(snapshot.pods) != desired_replicas(group, snapshot):
        return False
    if any(pod.leaving or not pod.ready for pod in snapshot.pods):
        return False
    if state.tracked.tracking.since is not None and shares_queues(group):
        return False  # a rebalance is under way
    return not snapshot.pods or balanced(group, snapshot)


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


def _telling(state: GroupState) -> bool:
    return any(asking is Asking.REBALANCE for asking, _ in state.applied.tasks)


async def _cancel(state: GroupState) -> None:
    tasks = list(state.applied.tasks.values())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
