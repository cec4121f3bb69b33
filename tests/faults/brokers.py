"""The brokers of a run: a fleet of `rocketfleet.devbroker` in the shape that the schedule's stage asks for.

A fleet is kept from one run to the next if the next wants the same shape, for starting one takes ten seconds and more.
It is stopped, and its data deleted, when we are gone, however that came about (`Guard`).
"""

import time
from pathlib import Path

from tests.faults.schedule import Stage

from rocketfleet.devbroker.errors import DevBrokerError, StartError
from rocketfleet.devbroker.fleet import START_SECONDS, Fleet
from rocketfleet.devbroker.guard import Guard
from rocketfleet.devbroker.setup.config import FleetSpec

LOCK_PROPERTY = "rocketmq.broker.rebalance.lockMaxLiveTime"


def spec_of(stage: Stage) -> FleetSpec:
    """What to start for a stage."""
    properties = [(LOCK_PROPERTY, f"{stage.lock_seconds * 1000:.0f}")]
    if stage.controller:
        # Acknowledged is what every replica in step has: an election loses none of it.
        properties.append(("allAckInSyncStateSet", "true"))
    return FleetSpec(
        brokers=stage.brokers, slave=stage.slaves, controller=stage.controller, properties=tuple(properties)
    )


class FaultFleet(Fleet):
    """Several of its processes may be away at the same time."""

    def start_again(self, process: str, timeout: float = START_SECONDS) -> None:
        """Start a process that has ended and wait until it says that it is up.

        Unlike `restart` this keeps nobody from starting another one meanwhile, and does not ask the name server, which
        may be away itself.
        """
        with self._turn():
            found = self.known()
            plan = self._plan(found)
            self._launch(plan, found, process)
            identity = found.processes[process]
        output, words = self.layout.output(process), plan.processes[process].ready_words
        deadline = time.monotonic() + timeout
        while words not in output.read_text("utf-8", errors="replace"):
            if not identity.alive or time.monotonic() > deadline:
                raise StartError(f"{process} did not come back: its output is in {output}")
            time.sleep(0.05)


class Brokers:
    """The fleet that is there now, if any."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0
        self._fleet: FaultFleet | None = None
        self._guard: Guard | None = None
        self._spec: FleetSpec | None = None

    def fleet_for(self, stage: Stage) -> FaultFleet:
        """A fleet that is whole and has the stage's shape."""
        spec = spec_of(stage)
        if self._fleet is not None and self._spec == spec:
            try:
                self._fleet.mend()
            except DevBrokerError:
                self.close()
            else:
                return self._fleet
        self.close()
        self._number += 1
        fleet = FaultFleet(self._directory / f"fleet-{self._number}")
        self._guard = Guard(fleet.directory)
        self._fleet, self._spec = fleet, spec
        fleet.start(spec)
        return fleet

    def close(self) -> None:
        fleet, guard, self._fleet, self._guard = self._fleet, self._guard, None, None
        if fleet is not None:
            fleet.stop(delete_data=True)
        if guard is not None:
            guard.dismiss()


def masters_of(fleet: Fleet) -> dict[str, str]:
    """Broker → the address of its master; those that have none at this moment are left out."""
    found = {}
    for name in fleet.known().spec.broker_names:
        try:
            found[name] = fleet.address_of(fleet.master_of(name))
        except DevBrokerError:
            continue
    return found
