"""Edits of a manifest that `rocketfleet run` follows, and what befalls the run and its pods."""

import itertools
import signal
from typing import Any

from tests.faults.fault import Fault
from tests.faults.manifest import ManifestRun

from rocketfleet.base.processes import Identity
from rocketfleet.testing.history import ChangeName, EventKind, FaultName

_editions = itertools.count(2)


class _Edit(Fault):
    """A change of the file."""

    @property
    def run(self) -> ManifestRun:
        assert self.scene.manifest is not None, "a group with such faults is run by its manifest"
        return self.scene.manifest

    def edit(self, **changes: Any) -> None:
        self.run.edit(**changes)
        self.note_edit(**changes)

    def note_edit(self, **details: Any) -> None:
        what = ChangeName.SCALED if details.get("replicas") else ChangeName.EDITED
        self.scene.recorder.note(EventKind.CHANGE, what=what, edit=self.timed.kind.value, **details)


class ReplicasEdited(_Edit):
    async def apply(self) -> None:
        self.edit(replicas=self.timed.details["replicas"])


class StrategyEdited(_Edit):
    async def apply(self) -> None:
        self.edit(allocation={"strategy": self.timed.details["strategy"]})


class CodeEdited(_Edit):
    """Another revision of what runs: every pod is replaced, one after the other."""

    async def apply(self) -> None:
        container = {"name": "consumer", "env": [{"name": "EDITION", "value": f"{next(_editions)}"}]}
        self.edit(template={"spec": {"containers": [container]}})


class SubscriptionEdited(_Edit):
    """One more topic, in which there is nothing; later it is taken away again."""

    async def apply(self) -> None:
        topics = [{"topic": self.scene.topic}, {"topic": f"{self.scene.topic}-more"}]
        self.edit(subscriptions=topics)

    async def heal(self) -> None:
        self.edit(subscriptions=[{"topic": self.scene.topic}])


class GroupSuspended(_Edit):
    async def apply(self) -> None:
        self.edit(suspend=True)

    async def heal(self) -> None:
        self.edit(suspend=None)


class GroupDeleted(_Edit):
    """The object vanishes from the file, and is put back."""

    async def apply(self) -> None:
        self.run.present = False
        self.run.write()
        self.note_edit()

    async def heal(self) -> None:
        self.run.present = True
        self.run.write()
        self.note_edit()


class Autoscaled(_Edit):
    """Autoscaling decides for a while instead of a fixed number."""

    async def apply(self) -> None:
        self.edit(replicas=None, autoscaling={"minReplicas": 1, "maxReplicas": 4})

    async def heal(self) -> None:
        self.edit(replicas=self.timed.details["replicas"], autoscaling=None)


class RunKilled(_Edit):
    """SIGKILL to `rocketfleet run`; its pods go on, and the next run finds them."""

    name = "run_killed"

    async def apply(self) -> None:
        self.note_fault()
        self.run.kill()

    async def heal(self) -> None:
        self.run.start()
        self.note_healed()


class _OfPod(_Edit):
    """A fault of one of the pods that are there: which, the schedule says by a number between 0 and 1."""

    chosen: tuple[str, Identity] | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        return () if self.chosen is None else (self.chosen[0],)

    def choose(self) -> Identity | None:
        pods = self.run.pods()
        if pods:
            self.chosen = pods[int(self.timed.details["which"] * len(pods))]
        return None if self.chosen is None else self.chosen[1]


class PodKilled(_OfPod):
    name = FaultName.KILLED

    async def apply(self) -> None:
        identity = self.choose()
        if identity is not None:
            self.note_fault()
            identity.send(signal.SIGKILL)


class PodFrozen(_OfPod):
    name = FaultName.FROZEN

    async def apply(self) -> None:
        identity = self.choose()
        if identity is not None:
            self.note_fault()
            identity.send(signal.SIGSTOP)

    async def heal(self) -> None:
        if self.chosen is not None:
            self.chosen[1].send(signal.SIGCONT)
            self.note_healed()
