"""Lag between passes: what wakes a group, what it is advised, and what whoever leads next still knows."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controller.reconciling.test_reconcile import Passes
from tests.unit.controller.stage import QUEUES, Stage, StageBackend, StageWorkers, group_of

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.names import OFFSETS_MOVED, RECOMMENDED_REPLICAS
from rocketfleet.api.status import ConditionType, ConsumerGroupStatus, Truth
from rocketfleet.controller.lag.lag_watch import LagWatch
from rocketfleet.controller.lag.scaling import Meter, policy_of
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.controller.reconciling.reconcile import Reconciler
from rocketfleet.controller.reporting.lag_health import lag_events
from rocketfleet.lag.figures import GroupLag, QueueLag, Work
from rocketfleet.lag.judging.rules import DEFAULT_LIMITS, GroupVerdict, LagFinding, LagVerdict
from rocketfleet.lag.target import Target
from rocketfleet.wire.queue import MessageQueue

KEY = GroupKey("default", "orders")
SCALED: dict[str, Any] = {
    "replicas": None,
    "autoscaling": {"minReplicas": 1, "maxReplicas": 4, "targetLag": 100, "scaleOutAfterSeconds": 10},
}


class StageMonitor:
    """A monitor that has seen what it is told."""

    def __init__(self) -> None:
        self.figures: dict[GroupKey, GroupLag] = {}
        self.verdicts: dict[GroupKey, GroupVerdict] = {}
        self.targets: dict[GroupKey, Target] = {}
        self.published: dict[GroupKey, Callable[[], None]] = {}
        self.owners: Mapping[MessageQueue, str] = {}
        self.resets: list[float] = []
        self.resting = False
        self.work: Work | None = None

    def follow(self, key: GroupKey, target: Target, published: Callable[[], None]) -> None:
        self.targets[key], self.published[key] = target, published

    def publish(self, key: GroupKey, seen: GroupLag) -> None:
        self.figures[key] = seen
        self.published[key]()

    def forget(self, key: GroupKey) -> None:
        self.targets.pop(key, None)
        self.published.pop(key, None)
        self.figures.pop(key, None)

    def latest(self, key: GroupKey) -> GroupLag | None:
        return self.figures.get(key)

    def verdict(self, key: GroupKey) -> GroupVerdict:
        return self.verdicts.get(key, GroupVerdict(LagFinding.OK, "messages are consumed as they come"))

    def note_owners(self, key: GroupKey, owners: Mapping[MessageQueue, str]) -> None:
        self.owners = owners

    def note_reset(self, key: GroupKey, now: float) -> None:
        self.resets.append(now)

    def note_rest(self, key: GroupKey, resting: bool) -> None:
        self.resting = resting

    def rests(self) -> bool:
        return self.resting

    def note_work(self, key: GroupKey, work: Work | None) -> None:
        self.work = work

    async def run(self) -> None:
        await asyncio.Event().wait()


def figures(at: float, *lags: int | None, retry: int | None = 0, consumed: int = 0) -> GroupLag:
    """So many messages in each queue; None: the queue was not read."""
    rows = tuple(
        QueueLag(
            queue, 0, None if lag is None else consumed + lag, consumed, lag, 1.0, None, at if lag is not None else 0
        )
        for queue, lag in zip(QUEUES, lags, strict=False)
    )
    known = [lag for lag in lags if lag is not None]
    messages = sum(known) if len(known) == len(lags) else None
    return GroupLag("orders", at, rows, messages=messages, seconds=1.0, retry=retry, unknown=len(lags) - len(known))


def accused(*findings: LagFinding | str) -> GroupVerdict:
    """Of this, and maybe of that, the worst first: state and sentence in turn."""
    pairs = list(zip(findings[::2], findings[1::2], strict=True))
    verdicts = tuple(LagVerdict(LagFinding(state), sentence) for state, sentence in pairs)
    return GroupVerdict(verdicts[0].state, verdicts[0].sentence, verdicts)


class Watching(Passes):
    """Passes with lag."""

    def __init__(self, group: ConsumerGroup | None = None) -> None:
        self.monitor = StageMonitor()
        stage = Stage(group=group or group_of(**SCALED))
        super().__init__(stage)

    def another(self) -> Reconciler:
        self.watch = LagWatch(self.monitor, 5.0, self.woken.append, self.stage.clock)
        return Reconciler(
            StageBackend(self.stage), self.brokers, workers=StageWorkers(self.stage), wake=self.woken.append,
            clock=self.stage.clock, lag=self.watch,
        )  # fmt: skip

    async def see(self, *lags: int | None, seconds: float = 5.0, **more: Any) -> None:
        """A sweep, and the pass after it."""
        self.stage.now += seconds
        self.monitor.publish(KEY, figures(self.stage.now, *lags, **more))
        await self.reconciler.reconcile(self.stage.group)

    @property
    def status(self) -> ConsumerGroupStatus:
        assert self.stage.group.status is not None
        return self.stage.group.status

    def annotate(self, **annotations: str) -> None:
        group = self.stage.group
        metadata = group.metadata.model_copy(update={"annotations": annotations})
        self.stage.group = group.model_copy(update={"metadata": metadata})


async def test_lag_scales_a_group_out_and_the_status_says_why() -> None:
    passes = Watching()
    await passes.to_rest()
    assert passes.status.desired_replicas == 1
    for _ in range(4):
        await passes.see(100, 100, 100, 90)
    assert passes.status.desired_replicas == 4
    assert passes.reasons().count(EventReason.SCALED_OUT) == 1
    scaling = passes.status.autoscaling
    assert scaling is not None
    assert scaling.decisions is not None
    assert (scaling.replicas, scaling.decisions[0].before, scaling.decisions[0].replicas) == (4, 1, 4)
    assert "390 messages wait" in scaling.decisions[0].message
    assert passes.status.lag is not None
    assert passes.status.lag.messages == 390
    assert sum(member.lag or 0 for member in passes.status.members or ()) in (390, 100)


async def test_figures_that_are_missing_or_old_hold_the_group_where_it_is() -> None:
    passes = Watching()
    await passes.to_rest()
    for _ in range(6):
        await passes.see(100, 100, 100, None)
    assert passes.status.desired_replicas == 1
    assert passes.status.autoscaling is not None
    assert passes.status.autoscaling.reason == "NoFigures"
    for _ in range(4):
        await passes.see(100, 100, 100, 90)
    assert passes.status.desired_replicas == 4
    passes.stage.now += 10_000
    await passes.reconciler.reconcile(passes.stage.group)
    assert passes.status.desired_replicas == 4


async def test_the_next_one_that_leads_goes_on_from_the_status() -> None:
    passes = Watching()
    await passes.to_rest()
    for _ in range(4):
        await passes.see(100, 100, 100, 90)
    passes.monitor.verdicts[KEY] = accused(LagFinding.STALLED, "orders@broker-a:0 stands still")
    await passes.see(100, 100, 100, 90)
    await passes.to_rest()
    told = len(passes.stage.events)
    await passes.reconciler.close()
    passes.reconciler = passes.another()
    passes.monitor.figures.clear()
    await passes.to_rest()
    assert passes.status.desired_replicas == 4
    await passes.see(100, 100, 100, 90)
    assert passes.stage.events[told:] == []  # neither the state nor a decision is told again
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.FALSE


async def test_a_change_of_state_is_a_condition_and_an_event_once() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    await passes.see(0, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY) == (Truth.TRUE, "Messages are consumed as they come")
    for behind in (5, 6, 7):
        passes.monitor.verdicts[KEY] = accused(LagFinding.STALLED, f"orders@broker-a:0 stands still, {behind} wait")
        await passes.see(behind, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY) == (Truth.FALSE, "orders@broker-a:0 stands still, 5 wait")
    assert passes.reasons().count(EventReason.LAG_STALLED) == 1
    passes.monitor.verdicts.clear()
    await passes.see(0, 0, 0, 0)
    assert passes.reasons().count(EventReason.LAG_RECOVERED) == 1


async def test_a_group_that_is_suspended_is_not_accused_and_not_scaled() -> None:
    passes = Watching()
    await passes.to_rest()
    group = passes.stage.group
    passes.stage.group = group.model_copy(update={"spec": group.spec.model_copy(update={"suspend": True})})
    await passes.once()
    passes.monitor.verdicts[KEY] = accused(LagFinding.STOPPED, "nobody consumes")
    for _ in range(4):
        await passes.see(100, 100, 100, 90)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.UNKNOWN
    assert EventReason.LAG_STOPPED not in passes.reasons()
    assert passes.status.desired_replicas == 0


async def test_what_came_in_during_a_rest_is_not_held_against_the_group_afterwards() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    resting = passes.stage.group.spec.model_copy(update={"suspend": True})
    working = passes.stage.group.spec
    passes.stage.group = passes.stage.group.model_copy(update={"spec": resting})
    await passes.once()
    passes.monitor.verdicts[KEY] = accused(LagFinding.GROWING, "the lag grows")
    await passes.see(10, 0, 0, 0)
    await passes.see(20, 0, 0, 0)
    assert passes.monitor.resets == []
    passes.stage.group = passes.stage.group.model_copy(update={"spec": working})
    await passes.once()
    assert len(passes.monitor.resets) == 1
    passes.monitor.verdicts.clear()  # which is what a reset does
    await passes.see(30, 0, 0, 0)
    await passes.see(0, 0, 0, 0)
    assert len(passes.monitor.resets) == 1
    assert not {EventReason.LAG_GROWING, EventReason.LAG_RECOVERED} & set(passes.reasons())
    passes.monitor.verdicts[KEY] = accused(LagFinding.GROWING, "the lag grows")
    await passes.see(40, 0, 0, 0)
    assert passes.reasons().count(EventReason.LAG_GROWING) == 1


async def test_a_recommendation_lifts_the_group_at_once() -> None:
    passes = Watching()
    await passes.to_rest()
    await passes.see(0, 0, 0, 0)
    passes.annotate(**{RECOMMENDED_REPLICAS: "3"})
    await passes.to_rest()
    assert passes.status.desired_replicas == 3
    passes.annotate(**{RECOMMENDED_REPLICAS: "many"})
    assert policy_of(passes.stage.group, 5.0).recommended is None  # type: ignore[union-attr]


async def test_offsets_that_somebody_moved_are_no_rewind() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    assert passes.monitor.resets == []
    passes.annotate(**{OFFSETS_MOVED: "2026-01-31T08:00:00Z"})
    await passes.once()
    await passes.once()
    assert len(passes.monitor.resets) == 1


async def test_the_monitor_knows_who_has_what_and_forgets_what_is_gone() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    assert set(passes.monitor.owners) == set(QUEUES)
    assert passes.monitor.targets[KEY].group == "orders"
    await passes.reconciler.forget(KEY)
    assert passes.monitor.targets == {}
    assert len(passes.watch) == 0


async def test_an_object_that_was_made_again_is_not_accused_of_what_was_before() -> None:
    passes = Watching()
    await passes.to_rest()
    passes.monitor.verdicts[KEY] = accused(LagFinding.STALLED, "it stands still")
    await passes.see(5, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.FALSE
    metadata = passes.stage.group.metadata.model_copy(update={"uid": "u2"})
    passes.stage.group = passes.stage.group.model_copy(update={"metadata": metadata, "status": None})
    await passes.reconciler.reconcile(passes.stage.group)
    assert passes.monitor.figures == {}
    assert passes.condition(ConditionType.LAG_HEALTHY) == (Truth.UNKNOWN, "The lag has not been measured yet.")
    assert len(passes.watch) == 1


async def test_a_group_is_woken_when_a_pass_has_something_to_do() -> None:
    passes = Watching()
    await passes.to_rest()
    passes.monitor.publish(KEY, figures(passes.stage.now, 0, 0, 0, 0))
    passes.woken.clear()  # the first figures are news: the group's lag is known now
    passes.monitor.publish(KEY, figures(passes.stage.now + 1, 5, 0, 0, 0))
    assert passes.woken == []
    passes.monitor.verdicts[KEY] = accused(LagFinding.STALLED, "it stands still")
    passes.monitor.publish(KEY, figures(passes.stage.now + 2, 5, 0, 0, 0))
    assert passes.woken == [KEY]


async def test_figures_that_cannot_be_judged_cost_nobody_the_sweep(caplog: pytest.LogCaptureFixture) -> None:
    passes = Watching()
    await passes.to_rest()
    passes.woken.clear()

    def fails(key: GroupKey) -> GroupVerdict:
        raise ZeroDivisionError("a bug")

    passes.monitor.verdict = fails  # type: ignore[method-assign]
    with caplog.at_level(logging.ERROR):
        passes.monitor.publish(KEY, figures(passes.stage.now, 5, 0, 0, 0))
    assert passes.woken == []
    assert "default/orders: the lag could not be judged" in caplog.text


async def test_figures_of_a_group_that_is_gone_by_then_wake_nobody() -> None:
    passes = Watching()
    await passes.to_rest()
    published = passes.monitor.published[KEY]
    await passes.reconciler.forget(KEY)
    passes.woken.clear()
    passes.monitor.figures[KEY] = figures(passes.stage.now, 0, 0, 0, 0)
    published()  # the sweep that was under way
    assert passes.woken == []


async def test_what_cannot_be_told_is_told_in_the_next_pass_and_nothing_twice() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    passes.monitor.verdicts[KEY] = accused(
        LagFinding.GROWING, "the lag grew", LagFinding.SKEWED, "queue 0 carries most"
    )
    passes.monitor.publish(KEY, figures(passes.stage.now, 50, 0, 0, 0))
    refused: list[EventReason] = []

    async def refuses_the_second(event: Event) -> None:
        if refused:
            raise BackendError("no")
        refused.append(event.reason)

    with pytest.raises(BackendError):
        await passes.watch.tell(KEY, refuses_the_second)
    await passes.reconciler.reconcile(passes.stage.group)
    told = [reason for reason in passes.reasons() if reason in (EventReason.LAG_GROWING, EventReason.LAG_SKEWED)]
    assert sorted([*refused, *told]) == sorted([EventReason.LAG_GROWING, EventReason.LAG_SKEWED])


async def test_a_group_at_rest_writes_nothing_although_its_lag_moves() -> None:
    passes = Watching()
    await passes.to_rest()
    await passes.see(3, 0, 0, 0)
    await passes.see(4, 0, 0, 0)
    written = len(passes.stage.written)
    for behind in (4, 5, 3, 4, 5):
        await passes.see(behind, 0, 0, 0, seconds=1.0)
    assert len(passes.stage.written) == written


def test_messages_are_counted_over_the_queues_that_were_read_twice() -> None:
    meter = Meter().after(figures(1.0, 5, 5).queues)
    assert (meter.produced, meter.consumed) == (0, 0)
    meter = meter.after(figures(2.0, 5, 5, 7, consumed=10).queues)
    assert (meter.produced, meter.consumed) == (20, 20)
    meter = meter.after(figures(3.0, 6, None, 7, consumed=10).queues)
    assert (meter.produced, meter.consumed) == (21, 20)
    back = figures(4.0, 20, consumed=3)  # somebody moved it back
    assert meter.after(back.queues).consumed == 20


@pytest.mark.parametrize(
    ("told", "findings", "reasons"),
    [
        ((), (), []),
        ((), (LagFinding.GROWING,), [EventReason.LAG_GROWING]),
        ((LagFinding.GROWING,), (LagFinding.GROWING, LagFinding.SKEWED), [EventReason.LAG_SKEWED]),
        ((LagFinding.GROWING,), (LagFinding.STOPPED,), [EventReason.LAG_STOPPED]),
        ((LagFinding.SKEWED,), (), [EventReason.LAG_RECOVERED]),
        ((LagFinding.GROWING, LagFinding.SKEWED), (LagFinding.SKEWED,), []),
    ],
)
def test_what_is_told_of_findings(
    told: tuple[LagFinding, ...], findings: tuple[LagFinding, ...], reasons: list[EventReason]
) -> None:
    events = lag_events(told, dict.fromkeys(findings, "a sentence"), "all is well")
    assert [event.reason for event in events] == reasons


async def test_all_findings_are_told_and_stand_in_the_condition() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    passes.monitor.verdicts[KEY] = accused(
        LagFinding.GROWING, "the lag grew", LagFinding.SKEWED, "queue 0 carries most"
    )
    await passes.see(50, 0, 0, 0)
    assert {EventReason.LAG_GROWING, EventReason.LAG_SKEWED} <= set(passes.reasons())
    assert passes.condition(ConditionType.LAG_HEALTHY)[1] == "The lag grew. Besides, queue 0 carries most"
    passes.monitor.verdicts[KEY] = GroupVerdict(LagFinding.UNKNOWN, "a broker does not answer")
    await passes.see(50, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.UNKNOWN
    passes.monitor.verdicts[KEY] = accused(
        LagFinding.GROWING, "the lag grew", LagFinding.SKEWED, "queue 0 carries most"
    )
    await passes.see(50, 0, 0, 0)
    assert passes.reasons().count(EventReason.LAG_GROWING) == 1  # nothing was heard of it in between
    assert EventReason.LAG_RECOVERED not in passes.reasons()


async def test_whoever_leads_next_does_not_say_recovered_before_it_has_looked_for_long_enough() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    passes.monitor.verdicts[KEY] = accused(LagFinding.STALLED, "queue 0 stands still")
    await passes.see(5, 0, 0, 0)
    await passes.reconciler.close()
    passes.reconciler = passes.another()
    await passes.once()
    passes.monitor.verdicts.clear()  # too early to judge
    for _ in range(DEFAULT_LIMITS.moments):
        await passes.see(5, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.FALSE
    await passes.see(0, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.TRUE
    assert passes.reasons().count(EventReason.LAG_RECOVERED) == 1


def suspended(group: ConsumerGroup, suspend: bool) -> ConsumerGroup:
    return group.model_copy(update={"spec": group.spec.model_copy(update={"suspend": suspend})})


async def test_a_group_that_goes_on_is_not_accused_by_figures_from_before() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    passes.monitor.verdicts[KEY] = accused(LagFinding.STALLED, "queue 0 stands still")
    await passes.see(10, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.FALSE
    passes.stage.group = suspended(passes.stage.group, True)
    await passes.to_rest()
    assert passes.monitor.rests() is True
    passes.monitor.verdicts[KEY] = GroupVerdict(LagFinding.UNKNOWN, "the group is suspended")
    await passes.see(20, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.UNKNOWN
    passes.stage.group = suspended(passes.stage.group, False)
    await passes.once()  # no figures have come since
    assert passes.monitor.rests() is False
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.UNKNOWN
    passes.monitor.verdicts[KEY] = GroupVerdict(LagFinding.OK, "it is too early to judge", early=True)
    await passes.see(30, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.TRUE
    assert passes.reasons().count(EventReason.LAG_STALLED) == 1
    assert EventReason.LAG_RECOVERED not in passes.reasons()


async def test_an_operator_that_starts_while_a_group_is_suspended_accuses_it_of_nothing() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    passes.monitor.verdicts[KEY] = accused(LagFinding.STOPPED, "nobody consumes")
    await passes.see(10, 0, 0, 0)
    passes.stage.group = suspended(passes.stage.group, True)
    for _ in range(2):
        await passes.reconciler.close()
        passes.reconciler = passes.another()
        passes.monitor.figures.clear()
        passes.monitor.verdicts[KEY] = GroupVerdict(LagFinding.UNKNOWN, "the group is suspended")
        await passes.to_rest()
        await passes.see(20, 0, 0, 0)
    told = passes.reasons().count(EventReason.LAG_STOPPED)
    passes.stage.group = suspended(passes.stage.group, False)
    await passes.reconciler.close()  # and it goes on while nobody leads
    passes.reconciler = passes.another()
    passes.monitor.figures.clear()
    passes.monitor.verdicts[KEY] = GroupVerdict(LagFinding.OK, "it is too early to judge", early=True)
    await passes.to_rest()
    await passes.see(30, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.TRUE
    assert passes.reasons().count(EventReason.LAG_STOPPED) == told


async def test_a_quiet_group_is_not_too_young_to_judge_for_ever() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    passes.monitor.verdicts[KEY] = GroupVerdict(LagFinding.OK, "it is too early to judge", early=True)
    await passes.see(0, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[1] == "It is too early to judge"
    passes.monitor.verdicts.clear()
    await passes.see(0, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[1] == "Messages are consumed as they come"
    written = len(passes.stage.written)
    for _ in range(5):
        await passes.see(0, 0, 0, 0)
    assert len(passes.stage.written) == written


async def test_a_sentence_with_figures_is_made_anew_now_and_then() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    for minute in range(3):
        passes.monitor.verdicts[KEY] = accused(LagFinding.STALLED, f"queue 0 has stood still for {minute} minutes")
        await passes.see(5, 0, 0, 0, seconds=60.0)
        assert passes.condition(ConditionType.LAG_HEALTHY)[1] == f"Queue 0 has stood still for {minute} minutes"
    assert passes.reasons().count(EventReason.LAG_STALLED) == 1


async def test_members_that_come_anew_have_not_recovered_yet() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    passes.monitor.verdicts[KEY] = accused(LagFinding.STALLED, "queue 0 stands still")
    await passes.see(5, 0, 0, 0)
    passes.monitor.verdicts[KEY] = GroupVerdict(LagFinding.OK, "it is too early to judge", early=True)
    await passes.see(5, 0, 0, 0)
    assert passes.condition(ConditionType.LAG_HEALTHY)[0] is Truth.FALSE
    assert EventReason.LAG_RECOVERED not in passes.reasons()
    passes.monitor.verdicts.clear()
    await passes.see(0, 0, 0, 0)
    assert passes.reasons().count(EventReason.LAG_RECOVERED) == 1


async def test_a_group_at_nothing_wakes_though_one_queue_is_not_known() -> None:
    passes = Watching(group_of(**{**SCALED, "autoscaling": {**SCALED["autoscaling"], "minReplicas": 0}}))
    await passes.to_rest()
    assert passes.status.desired_replicas == 0
    await passes.see(0, 0, 0, None)
    assert passes.status.desired_replicas == 0
    seen = figures(passes.stage.now + 5, 3, 0, 0, None)
    passes.stage.now += 5
    passes.monitor.publish(KEY, replace(seen, at_least=3))
    await passes.reconciler.reconcile(passes.stage.group)
    assert passes.status.desired_replicas == 1
    assert EventReason.SCALED_FROM_ZERO in passes.reasons()


def test_messages_that_arrive_are_counted_also_where_the_group_has_no_offset() -> None:
    def look(*ends: int | None) -> list[QueueLag]:
        return [QueueLag(queue, 0, end, None, None, None, None, 1.0) for queue, end in zip(QUEUES, ends, strict=False)]

    meter = Meter().after(look(5, 7)).after(look(6, None)).after(look(8, 10))
    assert (meter.arrived, meter.produced) == (6, 0)


async def test_a_rest_before_the_restart_is_not_told_of_a_group_that_runs() -> None:
    passes = Watching(group_of(2))
    await passes.to_rest()
    passes.monitor.verdicts[KEY] = accused(LagFinding.STOPPED, "nobody consumes")
    await passes.see(10, 0, 0, 0)
    passes.stage.group = suspended(passes.stage.group, True)
    passes.monitor.verdicts[KEY] = GroupVerdict(LagFinding.UNKNOWN, "the group is suspended")
    await passes.see(10, 0, 0, 0)
    await passes.to_rest()
    assert "suspended" in passes.condition(ConditionType.LAG_HEALTHY)[1]
    await passes.reconciler.close()
    passes.reconciler = passes.another()
    passes.monitor.figures.clear()
    passes.stage.group = suspended(passes.stage.group, False)
    await passes.to_rest()
    assert passes.condition(ConditionType.LAG_HEALTHY) == (Truth.UNKNOWN, "The lag has not been measured yet.")
