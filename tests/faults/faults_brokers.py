"""Faults of brokers and of the name server. Processes are those of `rocketfleet.devbroker`.

Starting one takes seconds, so it is done in a thread. With a controller, whoever is the master of the broker at that
moment is the one that is hit.
"""

import asyncio
import time

from tests.faults.fault import Fault
from tests.faults.observer import RETRY_PREFIX
from tests.support.broker_settings import update_broker_config

from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.setup.config import NAME_SERVER, broker_name_of
from rocketfleet.testing.history import ChangeName, EventKind, FaultName


class _OfProcess(Fault):
    """A fault of one server."""

    process = ""
    since = 0.0

    async def chosen(self) -> str:
        """The process that is hit; the same one is healed."""
        if not self.process:
            self.process = self.timed.target
            if self.scene.schedule.stage.controller and self.timed.target != NAME_SERVER:
                try:
                    self.process = await asyncio.to_thread(self.scene.fleet.master_of, self.timed.target)
                except DevBrokerError:
                    self.scene.say(f"{self.timed.target} has no master at this moment: the first replica is hit")
        return self.process

    async def start_again(self) -> None:
        await asyncio.to_thread(self.scene.fleet.start_again, await self.chosen())
        self.note_healed()
        if self.scene.manifest is not None or self.scene.members.last_start > self.since:
            # To a member that has joined meanwhile it is a broker that is added: seen at its next look at the routes.
            for topic in (self.scene.topic, RETRY_PREFIX + self.scene.group):
                self.scene.recorder.note(
                    EventKind.CHANGE, what=ChangeName.TOPIC_GREW, topic=topic, broker=broker_name_of(self.process)
                )


class BrokerPaused(_OfProcess):
    name = FaultName.BROKER_FROZEN

    async def apply(self) -> None:
        process = await self.chosen()
        self.note_fault(process=process)
        self.scene.fleet.pause(process)

    async def heal(self) -> None:
        self.scene.fleet.resume(await self.chosen())
        self.note_healed()


class BrokerKilled(_OfProcess):
    name = FaultName.BROKER_KILLED

    async def apply(self) -> None:
        process = await self.chosen()
        self.since = time.monotonic()
        self.note_fault(process=process)
        await asyncio.to_thread(self.scene.fleet.kill, process)

    async def heal(self) -> None:
        await self.start_again()


class BrokerRestarted(_OfProcess):
    """In good order: it says good-bye, saves everything, ends, and is started again."""

    name = FaultName.BROKER_STOPPED

    async def apply(self) -> None:
        process = await self.chosen()
        self.since = time.monotonic()
        self.note_fault(process=process)
        await asyncio.to_thread(self.scene.fleet.end, process)

    async def heal(self) -> None:
        await self.start_again()


class NameServerKilled(_OfProcess):
    name = FaultName.NAME_SERVER_KILLED

    async def apply(self) -> None:
        self.note_fault()
        await asyncio.to_thread(self.scene.fleet.kill, NAME_SERVER)

    async def heal(self) -> None:
        await asyncio.to_thread(self.scene.fleet.start_again, NAME_SERVER)
        # Brokers register every ten seconds; whoever is connected to them goes on meanwhile.
        self.note_healed()


class BrokerRefusesWrites(_OfProcess):
    """A broker that may be read only (`brokerPermission` 4): the next best thing to a full disk."""

    name = "broker_refuses_writes"

    async def _permit(self, permission: int) -> None:
        address = self.scene.fleet.address_of(await self.chosen())
        settings = {"brokerPermission": f"{permission}"}
        await update_broker_config(self.scene.client.remoting, address, settings)

    async def apply(self) -> None:
        self.note_fault()
        await self._permit(4)

    async def heal(self) -> None:
        await self._permit(6)
        self.note_healed()
