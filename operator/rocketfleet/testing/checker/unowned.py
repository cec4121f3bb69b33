"""Queues that stood still: nobody owned them for longer than is promised.

How long nobody may own a queue depends on what happened. So a stretch without an owner has a deadline: some seconds
after it began, and put off by every cause that set in before the deadline was over, to as long after this cause as is
promised. What went on until after the deadline is a finding.

There are two witnesses: what members say of themselves (`owns`; exact, but only of those that live), and what an
observer is told through the broker (`owners`; only at each look, so a stretch counts from the first look to the last).
"""

import math
from collections import defaultdict
from collections.abc import Iterator

from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.run_record import RunRecord, broker_of
from rocketfleet.testing.history import ChangeName, EventKind, FaultName

_Stretch = tuple[float, float]
_Cause = tuple[float, float]
"""When it set in, and until when a queue may be without an owner because of it."""

_BROKER_AWAY = (
    FaultName.BROKER_KILLED,
    FaultName.BROKER_LOST,
    FaultName.BROKER_STOPPED,
    FaultName.BROKER_FROZEN,
    FaultName.BROKER_CUT,
)


def unowned_queues(record: RunRecord, promises: Promises) -> Iterator[HistoryFinding]:
    """One finding for each stretch that was too long."""
    said, seen = _said(record), _seen(record)
    general = list(_general_causes(record, promises))
    for queue in sorted({*said, *seen}):
        causes = sorted([*general, *_causes(record, promises, queue)])
        found: list[_Stretch] = []
        for stretches, witness in ((said, "its members say"), (seen, "the broker says")):
            for begin, end in stretches.get(queue, ()):
                if end - begin <= promises.owned_after_handover:
                    continue  # as nearly all
                deadline = _deadline(record, promises, queue, begin, causes)
                if end <= deadline or any(begin <= other[1] and other[0] <= end for other in found):
                    continue
                found.append((begin, end))
                yield HistoryFinding(
                    FindingFamily.UNOWNED,
                    f"{queue} had no owner for {end - begin:.1f} s, {end - deadline:.1f} s longer than promised, "
                    f"as {witness}",
                    begin,
                    end,
                    queue,
                )


def _said(record: RunRecord) -> dict[str, list[_Stretch]]:
    """Stretches without an owner, by what members say."""
    steps: list[tuple[float, str, frozenset[str]]] = [
        (event.at, event.by, frozenset(event.details["queues"])) for event in record.history.kind(EventKind.OWNS)
    ]
    steps += [
        (gone, member, frozenset()) for member, lives in record.lives.items() for _, gone in lives if gone < math.inf
    ]
    owned: dict[str, frozenset[str]] = {}
    owners: dict[str, int] = defaultdict(int)
    since: dict[str, float] = {}
    stretches: dict[str, list[_Stretch]] = defaultdict(list)
    for at, member, queues in sorted(steps, key=lambda step: step[0]):
        before = owned.get(member, frozenset())
        owned[member] = queues
        for queue in before - queues:
            owners[queue] -= 1
            if not owners[queue]:
                since[queue] = at
        for queue in queues - before:
            owners[queue] += 1
            if queue in since:
                stretches[queue].append((since.pop(queue), at))
    for queue, at in since.items():
        if at < record.end:
            stretches[queue].append((at, record.end))
    return stretches


def _seen(record: RunRecord) -> dict[str, list[_Stretch]]:
    """Stretches without an owner, by what an observer was told."""
    since: dict[str, _Stretch] = {}
    stretches: dict[str, list[_Stretch]] = defaultdict(list)
    for event in record.history.kind(EventKind.OWNERS):
        if event.at > record.end:
            break
        for queue, owners in event.details["owners"].items():
            if not owners:
                since[queue] = since.get(queue, (event.at, event.at))[0], event.at
            elif queue in since:
                stretches[queue].append(since.pop(queue))
    for queue, stretch in since.items():
        stretches[queue].append(stretch)
    return stretches


def _deadline(record: RunRecord, promises: Promises, queue: str, begin: float, causes: list[_Cause]) -> float:
    deadline = begin + promises.owned_after_handover
    for handling in record.by_queue.get(queue, ()):
        if handling.begin > begin:
            break
        # Whoever had it finishes what it has begun first.
        deadline = max(deadline, min(handling.end, begin + promises.handover_timeout) + promises.owned_after_handover)
    for since, until in causes:
        if since <= deadline:
            deadline = max(deadline, until)
    return deadline


def _general_causes(record: RunRecord, promises: Promises) -> Iterator[_Cause]:
    """What concerns all queues: members that come and go, or that are in trouble."""
    for event in record.history.kind(EventKind.JOINED, EventKind.LEAVING, EventKind.LEFT):
        yield event.at, event.at + promises.owned_after_handover
    for begin, end in _without_members(record):
        yield begin, end + promises.owned_after_broker
    for fault in record.faults:
        if fault.name == FaultName.KILLED:
            yield fault.start, fault.start + promises.owned_after_kill
        elif fault.name == FaultName.FROZEN:
            yield fault.start, min(fault.end, fault.start + promises.lock_seconds) + promises.owned_after_kill
            yield fault.end, fault.end + promises.owned_after_handover
        elif fault.name == FaultName.NAME_SERVER_KILLED:
            # Who is connected goes on; a newcomer finds no broker before it is back.
            if any(fault.overlaps(event.at, event.at) for event in record.history.kind(EventKind.JOINED)):
                yield fault.start, fault.end + promises.owned_after_broker
        elif fault.name == FaultName.CLOCK_JUMPED:
            yield fault.start, fault.start + promises.lock_seconds + promises.owned_after_kill


def _causes(record: RunRecord, promises: Promises, queue: str) -> Iterator[_Cause]:
    """What concerns the queue's broker or topic."""
    broker = broker_of(queue)
    for fault in record.faults_of(broker, *_BROKER_AWAY):
        yield fault.start, fault.end + promises.owned_after_broker
    for fault in record.faults:
        if fault.name in (FaultName.CUT, FaultName.LOSSY) and fault.concerns(broker):
            yield fault.start, min(fault.end, fault.start + promises.silent_seconds) + promises.owned_after_broker
            yield fault.end, fault.end + promises.owned_after_broker
    for change in record.topic_changes(queue, ChangeName.TOPIC_CREATED, ChangeName.TOPIC_GREW):
        if change.details.get("broker", broker) != broker:
            continue  # it grew elsewhere
        yield change.at, change.at + promises.owned_after_growth
    if any(record.topic_changes(queue, ChangeName.TOPIC_DELETED)):
        yield min(change.at for change in record.topic_changes(queue, ChangeName.TOPIC_DELETED)), math.inf


def _without_members(record: RunRecord) -> Iterator[_Stretch]:
    """When nobody was there."""
    lives = sorted(life for lives in record.lives.values() for life in lives)
    until = -math.inf
    for begin, end in lives:
        if begin > until:
            yield until, begin
        until = max(until, end)
    yield until, math.inf
