"""The lag of all groups between their passes: what is new in it, what that means for each, and whom to wake.

The monitor reads figures in its own time, a pass comes when there is something to do. Here the two meet. When the
monitor has new figures of a group, the rules' verdict is compared with the last one and the autoscaler asked; the group
is woken only if a pass would now do, or tell, something else than before. A pass brings what it knows and the figures
do not: the replicas that are wanted and ready, and who owns which queue.

All of it is memory. Whoever leads next goes on from the status: the replicas, what was learnt, the last state.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.names import OFFSETS_MOVED
from rocketfleet.api.status import MOST_DECISIONS, Lag, Scaling, ScalingDecision
from rocketfleet.autoscale.decide import Decision, decide
from rocketfleet.autoscale.history import LoadHistory
from rocketfleet.autoscale.policy import ScalingPolicy
from rocketfleet.controller.lag.scaling import (
    Meter,
    event_of,
    first_history,
    longest_window,
    noted,
    policy_of,
    sample_of,
    scaling_status,
)
from rocketfleet.controller.lag.work_meter import WorkMeter
from rocketfleet.controller.planning.actions import Event
from rocketfleet.controller.planning.snapshot import Ownership, Snapshot
from rocketfleet.controller.planning.wanted import desired_replicas, queues_to_own, ready_replicas
from rocketfleet.controller.reporting.conditions import ConditionVerdict
from rocketfleet.controller.reporting.lag_health import (
    findings_of,
    in_words,
    lag_events,
    lag_of_members,
    lag_status,
    lag_verdict,
    remembered,
)
from rocketfleet.lag.figures import GroupLag, Work
from rocketfleet.lag.judging.rules import DEFAULT_LIMITS, GroupVerdict, LagFinding
from rocketfleet.lag.target import Target
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
MOST_EVENTS = 20
REWORD_SECONDS = 60.0  # a sentence with figures in it is true for about so long


class Monitor(Protocol):
    """As much of the LagMonitor as is used here."""

    def follow(self, key: GroupKey, target: Target, published: Callable[[], None]) -> None: ...
    def forget(self, key: GroupKey) -> None: ...
    def latest(self, key: GroupKey) -> GroupLag | None: ...
    def verdict(self, key: GroupKey) -> GroupVerdict: ...
    def note_owners(self, key: GroupKey, owners: Mapping[MessageQueue, str]) -> None: ...
    def note_reset(self, key: GroupKey, now: float) -> None: ...
    def note_rest(self, key: GroupKey, resting: bool) -> None: ...
    def note_work(self, key: GroupKey, work: Work | None) -> None: ...
    async def run(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LagView:
    """What a pass is told. None is not known, or not ours to say."""

    advised: int | None = None
    health: ConditionVerdict | None = None
    lag: Lag | None = None
    members: Mapping[str, int] = field(default_factory=dict)  # client id → messages
    scaling: Scaling | None = None


@dataclass(slots=True)
class LagState:
    """What is known of one group between two sweeps: its owner keeps it, and only the watch writes it."""

    resting: bool = False  # suspended, or on its way out: nobody expects it to consume
    policy: ScalingPolicy | None = None
    history: LoadHistory = field(default_factory=lambda: LoadHistory(0))
    meter: Meter = field(default_factory=Meter)
    work: WorkMeter = field(default_factory=WorkMeter)
    desired: int = 0
    ready: int = 0
    queues: int | None = None
    moved: str | None = None  # the last time that somebody moved the offsets by hand
    figures: GroupLag | None = None
    state: LagFinding | None = None
    findings: frozenset[LagFinding] = frozenset()  # beside the worst, which is the state
    told: frozenset[LagFinding] = frozenset()  # in events
    to_confirm: int = 0  # looks for which a state out of the status is believed
    sentence: str = ""
    worded: float = 0.0  # when that sentence was made
    decision: Decision | None = None
    decisions: list[ScalingDecision] = field(default_factory=list)  # newest first
    events: list[Event] = field(default_factory=list)  # to be told in the next pass


class LagWatch:
    """One for all groups that this process looks after. `wake` is called with a group that wants a pass."""

    def __init__(
        self, monitor: Monitor, interval: float, wake: Callable[[GroupKey], None], clock: Callable[[], float]
    ) -> None:
        self._monitor = monitor
        self._interval = interval
        self._wake = wake
        self._clock = clock
        self._groups: dict[GroupKey, LagState] = {}
        self._reading: asyncio.Task[None] | None = None

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read."""
        self._reading = asyncio.get_running_loop().create_task(self._monitor.run(), name="read lag")

    async def close(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    def forget(self, key: GroupKey) -> None:
        self._groups.pop(key, None)
        self._monitor.forget(key)

    def __len__(self) -> int:
        return len(self._groups)

    # -- a pass -------------------------------------------------------------------------------------------------------

    def look(
        self,
        group: ConsumerGroup,
        watched: LagState,
        target: Target | None,
        snapshot: Snapshot,
        now: float,
        work: Mapping[str, Work] | None = None,
    ) -> LagView:
        """What is known of a group's lag, and how many replicas it calls for. Watches it from now on, and notes in
        `watched` what comes up, until it is told to forget the group. `work` is what each member says of its handlers.
        """
        self._groups[group.key] = watched
        if target is not None:
            self._monitor.follow(group.key, target, partial(self._published, group.key))
        self._follow_rest(watched, group, now)
        moved = group.metadata.annotations.get(OFFSETS_MOVED)
        if moved != watched.moved:
            watched.moved = moved
            self._begin_anew(watched, group.key, now)
        if group.spec.engine.is_ours:
            watched.work = watched.work.after(work or {})
            self._monitor.note_work(group.key, watched.work.total)
        else:  # its members do not say
            watched.work = WorkMeter()
            self._monitor.note_work(group.key, None)
        queues = queues_to_own(group, snapshot)
        if queues is not None:
            watched.queues = len(queues)
        self._follow_policy(watched, group, snapshot.last_desired, now)
        if snapshot.ownership is not None:
            self._monitor.note_owners(group.key, _owners(snapshot.ownership))
        view = _view(watched, group, snapshot.ownership)
        advised = replace(snapshot, advised=view.advised)
        watched.desired, watched.ready = desired_replicas(group, advised), ready_replicas(group, advised)
        return view

    async def tell(self, key: GroupKey, emit: Callable[[Event], Awaitable[None]]) -> None:
        """Tell what came up since the last pass. What cannot be told now is told in the next one."""
        watched = self._groups.get(key)
        while watched is not None and watched.events:
            event = watched.events[0]
            await emit(event)
            if watched.events and watched.events[0] is event:  # else it has gone to make room meanwhile
                del watched.events[0]

    def latest(self, key: GroupKey) -> GroupLag | None:
        """The figures as they are."""
        return self._monitor.latest(key)

    # -- what is new --------------------------------------------------------------------------------------------------

    def _published(self, key: GroupKey) -> None:
        """There are new figures of a group. A bug in what is made of them costs that group, and no other."""
        watched = self._groups.get(key)
        try:
            if watched is not None and self._take_in(key, watched, self._clock()):
                self._wake(key)
        except Exception:
            _log.exception("%s: the lag could not be judged", "/".join(key))

    def _take_in(self, key: GroupKey, watched: LagState, now: float) -> bool:
        """Draw conclusions from figures that are new. Says whether a pass has something to do or to tell."""
        figures = self._monitor.latest(key)
        if figures is None or figures is watched.figures:
            return False
        watched.figures = figures
        changed = self._judge(key, watched, now)
        if watched.policy is not None:
            watched.meter = watched.meter.after(figures.queues)
            if not watched.resting:
                sample = sample_of(figures, watched.meter, watched.desired, watched.ready, watched.queues)
                watched.history = watched.history.add(sample, longest_window(watched.policy))
                changed = self._decide(watched, now) or changed
        return changed

    def _judge(self, key: GroupKey, watched: LagState, now: float) -> bool:
        """Whether the rules say something else than before. A sentence with figures in it is made anew now and then."""
        verdict = self._monitor.verdict(key)
        if watched.to_confirm > 0 and verdict.state in (LagFinding.OK, LagFinding.UNKNOWN):
            watched.to_confirm -= 1  # whoever led before us had seen more than we have yet
            return False
        watched.to_confirm = 0
        if verdict.early and watched.findings:
            return False  # members have come anew: that nothing is found yet does not mean that all is well
        findings, sentence = findings_of(verdict), in_words(verdict)
        if verdict.state is watched.state and findings.keys() == watched.findings:
            recent = verdict.state is not LagFinding.OK and now - watched.worded < REWORD_SECONDS
            if recent or sentence == watched.sentence:
                return False
            watched.sentence, watched.worded = sentence, now
            return True
        watched.state, watched.findings = verdict.state, frozenset(findings)
        watched.sentence, watched.worded = sentence, now
        if verdict.state is not LagFinding.UNKNOWN and not watched.resting:  # UNKNOWN is neither better nor worse
            events = lag_events(watched.told, findings, verdict.sentence)
            watched.events = [*watched.events, *events][-MOST_EVENTS:]
            watched.told = watched.findings
        return True

    def _follow_rest(self, watched: LagState, group: ConsumerGroup, now: float) -> None:
        """A rest ends what was told, and what came in during it is not held against the group when it goes on."""
        before = watched.resting
        watched.resting = group.spec.suspend or group.metadata.deletion_timestamp is not None
        self._monitor.note_rest(group.key, watched.resting)
        if watched.resting and not before:
            _acquit(watched)
        elif before and not watched.resting:
            self._begin_anew(watched, group.key, now)

    def _begin_anew(self, watched: LagState, key: GroupKey, now: float) -> None:
        """Hold nothing against the group that was before, neither figures nor what was made of them."""
        self._monitor.note_reset(key, now)
        _acquit(watched)

    def _follow_policy(self, watched: LagState, group: ConsumerGroup, last_desired: int | None, now: float) -> None:
        """Go by the manifest as it is now. One that is new, or goes on after a rest, begins with no samples."""
        policy = policy_of(group, self._interval)
        before, watched.policy = watched.policy, policy
        if policy is None:
            watched.decision, watched.meter = None, Meter()
            return
        if before is None:
            watched.history = first_history(group, policy, last_desired)
        if watched.resting:
            watched.history = LoadHistory(watched.history.replicas, mind=watched.history.mind)
        elif policy != before:
            self._decide(watched, now)

    def _decide(self, watched: LagState, now: float) -> bool:
        """Ask the autoscaler. Says whether it wants something else than before."""
        assert watched.policy is not None
        decision = decide(watched.policy, watched.history, now)
        before, watched.decision = watched.decision, decision
        watched.history = LoadHistory(decision.replicas, watched.history.samples, decision.mind)
        if decision.changes:
            watched.decisions = [noted(decision), *watched.decisions][:MOST_DECISIONS]
            watched.events = [*watched.events, event_of(decision)][-MOST_EVENTS:]
        return decision.changes or (before is not None and before.reason is not decision.reason)


def _view(watched: LagState, group: ConsumerGroup, ownership: Ownership | None) -> LagView:
    figures, decision = watched.figures, watched.decision
    return LagView(
        advised=None if watched.policy is None else watched.history.replicas,
        health=lag_verdict(group, watched.state, watched.sentence),
        lag=None if figures is None else lag_status(figures, watched.state),
        members={} if figures is None else lag_of_members(figures, ownership),
        scaling=None if decision is None else scaling_status(decision, watched.decisions),
    )


def lag_state_of(group: ConsumerGroup) -> LagState:
    """What the status still knows of former times."""
    status = group.status
    watched = LagState(moved=group.metadata.annotations.get(OFFSETS_MOVED))
    before = None if status is None else remembered(status)
    if before is not None:
        watched.state, watched.sentence = before
        if watched.state not in (LagFinding.OK, LagFinding.UNKNOWN):
            watched.findings = watched.told = frozenset({watched.state})
            watched.to_confirm = DEFAULT_LIMITS.moments
    if status is not None and status.autoscaling is not None:
        watched.decisions = list(status.autoscaling.decisions or ())
    return watched


def _acquit(watched: LagState) -> None:
    """What was made of the figures so far no longer counts."""
    watched.state, watched.sentence, watched.to_confirm = None, "", 0
    watched.findings = watched.told = frozenset()


def _owners(ownership: Ownership) -> dict[MessageQueue, str]:
    return {queue: next(iter(them)) for queue, them in ownership.owners.items() if len(them) == 1}
