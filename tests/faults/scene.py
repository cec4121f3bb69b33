"""What a fault may touch: the brokers, members and clients of one run, and the record in which it is noted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.brokers import FaultFleet
from tests.faults.clocks import MemberClocks
from tests.faults.manifest import ManifestRun
from tests.faults.members import Members
from tests.faults.network import MemberNetworks
from tests.faults.schedule import FaultSchedule

from rocketfleet.client.client import Client
from rocketfleet.testing.history import Recorder

Say = Callable[[str], None]


@dataclass
class TopicLayout:
    """Where the topic is now, and with how many queues at each broker."""

    brokers: tuple[str, ...]
    queues: int


@dataclass
class RunScene:
    """One run. `problems` are findings of the harness itself, in sentences."""

    schedule: FaultSchedule
    directory: Path
    fleet: FaultFleet
    topic: str
    group: str
    layout: TopicLayout
    members: Members
    client: Client
    recorder: Recorder
    networks: MemberNetworks | None
    clocks: MemberClocks
    manifest: ManifestRun | None
    say: Say
    problems: list[str] = field(default_factory=list)
    tending: set["asyncio.Task[None]"] = field(default_factory=set)

    def tend(self, work: Awaitable[None], what: str) -> None:
        """Let something go on beside the schedule; the run waits for it at the end."""

        async def working() -> None:
            await work

        task = asyncio.create_task(working(), name=what)
        self.tending.add(task)
