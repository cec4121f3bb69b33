"""A member's wall clock jumps, and after a while back again."""

from tests.faults.fault import Fault

from rocketfleet.testing.history import FaultName


class ClockJumps(Fault):
    name = FaultName.CLOCK_JUMPED

    @property
    def targets(self) -> tuple[str, ...]:
        return self.scene.members.running[self.timed.target].client_ids

    async def apply(self) -> None:
        self.note_fault(**self.timed.details)
        self.scene.clocks.set(self.timed.target, self.timed.details["seconds"])

    async def heal(self) -> None:
        self.scene.clocks.set(self.timed.target, 0)
        self.note_healed()
