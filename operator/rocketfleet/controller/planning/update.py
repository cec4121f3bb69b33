"""How pods of an old revision are replaced: which of them go now, and what may not be created beside them.

A rolling update takes one pod at a time, and the next only when the group is whole again. A pod that is not well goes
first: waiting for it to become well would block the very update that heals it. With `update.surge` it begins with an
extra pod, whose ordinal is the one after the last; it goes when the last of the others has been replaced and is well.

Pods that *shut out* new ones all go at once, and nothing is created before the last of them is gone: those that differ
in what members of a live group have to agree on (shared_settings.py), all of an old revision with `update.type:
Recreate`, and whatever is there where a Spark driver comes or goes. A driver reads every queue by itself, so it runs
beside no other pod, whatever the manifest says. With `update.type: Rolling` members that differ are replaced one by one
all the same: that is the user's decision, and people are told.
"""

from collections.abc import Iterator

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine, UpdateType
from rocketfleet.controller.planning.actions import Action, Emit, Event, EventReason, MarkDrain
from rocketfleet.controller.planning.snapshot import Pod, Snapshot
from rocketfleet.controller.planning.wanted import balanced, surges, wanted_ordinals
from rocketfleet.controller.resources.shared_settings import differing

SETTLE_LIMIT = 60.0  # seconds an update waits for the group to be balanced, before it goes on with the next pod
ROLLING = "rolling update"


def wanted_now(group: ConsumerGroup, snapshot: Snapshot, now: float) -> frozenset[int]:
    """The ordinals that there should be at this moment of an update: the wanted ones and, maybe, the extra one."""
    ordinals = frozenset(wanted_ordinals(group, snapshot))
    if not ordinals or not surges(group, snapshot):
        return ordinals
    extra = max(ordinals) + 1
    present = [pod for pod in snapshot.pods if pod.ordinal in ordinals]
    if any(pod.revision != snapshot.revision for pod in present):
        return ordinals | {extra} if snapshot.may_roll else ordinals
    # The update is over, or there was none. An extra pod stands in until everybody is back, within limits: where it
    # is in truth the last one of a scale-in, or somebody never gets well, it goes all the same.
    spare = any(pod.ordinal == extra and not pod.leaving for pod in snapshot.pods)
    missing = ordinals - {pod.ordinal for pod in present}
    if spare and (missing or not _settled(group, snapshot, present, now)):
        return ordinals | {extra}
    return ordinals


def replace_outdated(group: ConsumerGroup, snapshot: Snapshot, wanted: frozenset[int], now: float) -> Iterator[Action]:
    """Mark the pods of an old revision that go now, and tell people what kind of an update it is."""
    mixed = mixed_aspects(snapshot)
    if mixed and group.spec.update.type is UpdateType.ROLLING:
        yield Emit(Event(EventReason.MIXED, _side_by_side(mixed), warning=True))
    recreated = [pod for pod in _outdated(snapshot) if pod.ordinal in wanted and shuts_out(group, snapshot, pod)]
    if recreated:
        if snapshot.reachable is False or not snapshot.may_roll:
            recreated = [pod for pod in recreated if pod.idle]
        else:
            yield Emit(Event(EventReason.RECREATING, f"{why_recreated(group, snapshot)}. {_ALL_FIRST}"))
        for pod in recreated:
            yield MarkDrain(pod, f"recreate: {why_recreated(group, snapshot)}")
        return
    for pod in _rolled(group, snapshot, wanted, now):
        yield MarkDrain(pod, ROLLING)


_ALL_FIRST = "All pods are drained before the first new one starts; nothing is consumed until then"


def mixed_aspects(snapshot: Snapshot) -> list[str]:
    """What pods that are there differ in from the manifest, of what all members have to agree on."""
    return sorted({aspect for pod in snapshot.pods for aspect in differing(pod.shared, snapshot.shared)})


def _side_by_side(aspects: list[str]) -> str:
    return (
        f"update.type is Rolling: until the update is over, members with different {', '.join(aspects)} are in the "
        "group side by side, and may skip or repeat messages"
    )


def why_recreated(group: ConsumerGroup, snapshot: Snapshot) -> str:
    """What all pods go for, in words."""
    aspects = mixed_aspects(snapshot)
    if aspects and group.spec.update.type is not UpdateType.ROLLING:
        return f"{', '.join(aspects)} changed"
    return "update.type is Recreate" if group.spec.update.type is UpdateType.RECREATE else "engine changed"


def shuts_out(group: ConsumerGroup, snapshot: Snapshot, pod: Pod) -> bool:
    """Whether a pod has to be gone before one of the manifest's comes."""
    engine = pod.engine or group.spec.engine
    if engine is not group.spec.engine and Engine.SPARK in (engine, group.spec.engine):
        return True
    if group.spec.update.type is UpdateType.ROLLING or pod.revision == snapshot.revision:
        return False
    if group.spec.update.type is UpdateType.RECREATE:
        return True
    return bool(differing(pod.shared, snapshot.shared))


def _outdated(snapshot: Snapshot) -> list[Pod]:
    return [pod for pod in snapshot.pods if pod.revision != snapshot.revision and not pod.leaving]


def _rolled(group: ConsumerGroup, snapshot: Snapshot, wanted: frozenset[int], now: float) -> list[Pod]:
    """Pods of an old revision that the group can do without now: those that do not run, or else one."""
    lasting = frozenset(wanted_ordinals(group, snapshot))
    # An extra pod of an old revision goes in the end anyway: it is replaced only where it cannot stand in for others.
    waiting = [
        pod for pod in _outdated(snapshot) if pod.ordinal in lasting or (pod.ordinal in wanted and not pod.ready)
    ]
    idle = [pod for pod in waiting if pod.idle]
    if idle or not waiting or snapshot.reachable is False or not snapshot.may_roll:
        return idle
    well = {pod.ordinal for pod in snapshot.pods if pod.ready and not pod.leaving}
    if not wanted - {pod.ordinal for pod in waiting} <= well:
        return []  # one that was replaced is not back yet, or the extra one has not come
    unwell = [pod for pod in waiting if not pod.ready]
    if not unwell and not _settled(group, snapshot, [pod for pod in snapshot.pods if pod.ordinal in wanted], now):
        return []
    return [max(unwell or waiting, key=lambda pod: pod.ordinal)]


def _settled(group: ConsumerGroup, snapshot: Snapshot, present: list[Pod], now: float) -> bool:
    """Whether these pods are well and the queues shared out, or have had their time to be."""
    if all(pod.ready and not pod.leaving for pod in present) and balanced(group, snapshot):
        return True
    return now >= max((pod.ready_since or pod.created for pod in present), default=now) + SETTLE_LIMIT
