"""Faults of members and of their handlers."""

import json
import signal
import time
from typing import Any

from tests.faults.fault import Fault
from tests.faults.members import RunningMember
from tests.faults.schedule import ALL_MEMBERS
from tests.support.waiting import TookTooLongError, until

from rocketfleet.testing.history import EventKind, FaultName, HistoryEvent

DRAIN_SECONDS = 100.0


class _OfMember(Fault):
    """A fault of one member that is there."""

    @property
    def member(self) -> RunningMember:
        return self.scene.members.running[self.timed.target]

    @property
    def targets(self) -> tuple[str, ...]:
        return self.member.client_ids


class MemberJoins(Fault):
    """One more. It says itself that it has joined, as soon as its handler is loaded."""

    async def apply(self) -> None:
        self.scene.members.start(self.timed.target, self.timed.details.get("processes"))


class MemberLeaves(_OfMember):
    """SIGTERM, as Kubernetes does; it drains beside the schedule."""

    async def apply(self) -> None:
        member = self.member
        if member.alive:
            member.told_to_end = True
            self.scene.recorder.write(
                HistoryEvent(time.monotonic(), EventKind.LEAVING, client_id) for client_id in member.client_ids
            )
            member.send(signal.SIGTERM)
            self.scene.tend(leave(self, member), f"{member.name} leaves")


async def leave(fault: Fault, member: RunningMember) -> None:
    """Wait for the end of one that was told to go."""
    scene = fault.scene
    try:
        await until(lambda: not member.alive, f"{member.name} has left", DRAIN_SECONDS, every=0.1)
    except TookTooLongError:
        scene.problems.append(f"{member.name} was told to leave and has not ended after {DRAIN_SECONDS:g} s")
        member.kill()
    scene.members.note_left(member, scene.recorder)


class MemberKilled(_OfMember):
    """SIGKILL to all of its processes. Healed, it is started again under its name, as a container in its pod."""

    name = FaultName.KILLED

    async def apply(self) -> None:
        if self.member.alive:
            self.note_fault()
            self.member.kill()

    async def heal(self) -> None:
        if self.member.alive:
            return
        self.scene.members.start(self.timed.target)
        self.note_healed()


class MemberFrozen(_OfMember):
    """SIGSTOP to all of its processes."""

    name = FaultName.FROZEN

    async def apply(self) -> None:
        self.note_fault()
        self.member.send(signal.SIGSTOP, tree=True)

    async def heal(self) -> None:
        self.member.send(signal.SIGCONT, tree=True)
        self.note_healed()


class _HandlerFault(Fault):
    """Handlers that behave otherwise than usual."""

    @property
    def told(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def targets(self) -> tuple[str, ...]:
        if self.timed.target == ALL_MEMBERS:
            return (ALL_MEMBERS,)
        return self.scene.members.running[self.timed.target].client_ids

    async def apply(self) -> None:
        self.note_fault(told=json.dumps(self.told))
        self.scene.members.behave(self.timed.target, str(id(self)), self.told)
        if self.scene.manifest is not None:
            self.scene.manifest.behaviour.add(str(id(self)), self.told)

    async def heal(self) -> None:
        self.scene.members.behave(self.timed.target, str(id(self)), None)
        if self.scene.manifest is not None:
            self.scene.manifest.behaviour.remove(str(id(self)))
        self.note_healed()


class HandlerSlow(_HandlerFault):
    name = "handler_slow"

    @property
    def told(self) -> dict[str, Any]:
        return {"seconds": self.timed.details["seconds"]}


class HandlerFailing(_HandlerFault):
    """A share of the messages fails at its first try."""

    name = "handler_failing"

    @property
    def told(self) -> dict[str, Any]:
        return {"fails": self.timed.details["share"]}


class HandlerHanging(_HandlerFault):
    name = "handler_hanging"

    @property
    def told(self) -> dict[str, Any]:
        return {"hangs": True}
