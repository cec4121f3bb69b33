"""Pods and snapshots for tests of the planner's rules: a group that is well, with what a test wants different."""

from dataclasses import replace
from typing import Any

from tests.unit.controller.model_parts import QUEUES

from rocketfleet.controller.planning.actions import Action, Emit, EventReason, MarkDrain
from rocketfleet.controller.planning.snapshot import Ownership, Pod, PodPhase, Snapshot
from rocketfleet.wire.queue import MessageQueue

NOW = 10_000.0
QUEUE = MessageQueue("orders", "broker-a", 0)


def pod(ordinal: int, **changes: Any) -> Pod:
    made = Pod(
        name=f"orders-{ordinal}",
        ordinal=ordinal,
        uid=f"u{ordinal}",
        revision="new",
        created=NOW - 500,
        phase=PodPhase.RUNNING,
        ready=True,
        ready_since=NOW - 400,
        client_ids=(f"orders-{ordinal}@u{ordinal}",),
    )
    return replace(made, **changes)


def snapshot(*pods: Pod, **changes: Any) -> Snapshot:
    able = sorted(p.client_ids[0] for p in pods if p.ready and not p.leaving)
    owners = {q: frozenset({able[i % len(able)]}) if able else frozenset() for i, q in enumerate(sorted(QUEUES))}
    made = Snapshot(
        pods=pods,
        revision="new",
        finalizer=True,
        prepared=True,
        objects=True,
        reachable=True,
        queues=QUEUES,
        members=frozenset(able),
        ownership=Ownership(owners),
        told=frozenset(p.uid for p in pods if not p.leaving and not p.idle),
        last_desired=len(pods),
    )
    return replace(made, **changes)


def quiet(actions: list[Action]) -> list[Action]:
    return [action for action in actions if not isinstance(action, Emit)]


def reasons(actions: list[Action]) -> list[EventReason]:
    return [action.event.reason for action in actions if isinstance(action, Emit)]


def marks(actions: list[Action]) -> list[int]:
    return [action.pod.ordinal for action in actions if isinstance(action, MarkDrain)]
