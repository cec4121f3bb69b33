"""What all faults have in common: they are applied, healed, and noted in the history before and after."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tests.faults.scene import RunScene
from tests.faults.schedule import TimedFault

from rocketfleet.testing.history import EventKind


class Fault(ABC):
    """One fault of a schedule. `name` is what the history calls it: see `rocketfleet.testing.history.FaultName`."""

    name: ClassVar[str] = ""

    def __init__(self, timed: TimedFault, scene: RunScene) -> None:
        self.timed = timed
        self.scene = scene

    @abstractmethod
    async def apply(self) -> None:
        """Break it."""

    async def heal(self) -> None:
        """Make it whole again, where it lasts."""
        return

    @property
    def targets(self) -> tuple[str, ...]:
        """Whom the history calls the target, or targets."""
        return (self.timed.target,)

    def note_fault(self, **details: Any) -> None:
        self._note(EventKind.FAULT, details)

    def note_healed(self, **details: Any) -> None:
        self._note(EventKind.HEALED, details)

    def _note(self, kind: EventKind, details: dict[str, Any]) -> None:
        for target in self.targets:
            self.scene.recorder.note(kind, name=self.name, target=target, **details)
