"""A ConsumerGroup on this machine under live traffic: a manifest, the local backend, a real broker, a record of all.

The handler is the demonstration's: it writes down each message when it begins and when it has finished it.
"""

import asyncio
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.broker.cluster import Cluster, unique
from tests.support.waiting import until

from rocketfleet.api.checking import read_object
from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.names import API_VERSION, KIND
from rocketfleet.api.status import ConditionType, ConsumerGroupStatus, Truth
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_locks, broker_members, broker_offsets
from rocketfleet.controller.local.manifests import DesiredObjects
from rocketfleet.controller.local.member import LocalMember
from rocketfleet.controller.local.run import LocalRun
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.demo.run import PATIENT, send_patiently
from rocketfleet.demo.verdict import DemoVerdict, judge, read_records
from rocketfleet.lag.collecting.monitor import LagMonitor
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

KEYS, RATE = 32, 150
PATIENCE = 40.0


class GroupScene:
    """Use as `async with`. Traffic flows until `verdict` is asked for."""

    def __init__(self, broker: Cluster, topic: str, directory: Path, **spec: Any) -> None:
        self.broker = broker
        self.name = unique("cg")
        self.key = GroupKey("default", self.name)
        self._topic = topic
        self._directory = directory
        self.record = directory / "record"
        self._spec: dict[str, Any] = {
            "cluster": {"nameServers": [broker.name_server]},
            "subscriptions": [{"topic": topic}],
            "consumeFromWhere": "FirstOffset",
            "shutdown": {"drainTimeoutSeconds": 10},
            "worker": {"handler": "rocketfleet.demo.handler:handle"},
            "replicas": 2,
            **spec,
        }
        self.environment = {"ROCKETFLEET_DEMO_RECORD": str(self.record)}
        self.container: dict[str, Any] = {"name": "consumer"}
        self.config_maps: dict[tuple[str, str], dict[str, str]] = {}
        self.client = Client(ClientConfig(broker.name_server))
        self.events: list[Event] = []
        self.sent: list[str] = []
        self.rate = float(RATE)  # messages per second; 0: none for now
        self.tag: str | None = None  # of the traffic
        self.hot = 0.0  # the share of the traffic that has one key
        self.lag_seconds = 1.0  # between two looks at the lag
        self.run: LocalRun
        self.monitor: LagMonitor
        self._flowing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.record.mkdir()
        self.client.start()
        await self.start_controller()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end_traffic()
        for member in self.run.backend.members:
            member.kill()
        await self.stop_controller()
        await self.client.close()

    # -- the controller -----------------------------------------------------------------------------------------------

    async def start_controller(self) -> None:
        # Windows of seconds in place of minutes, so that a test does not take as long as a night shift.
        self.monitor = LagMonitor(interval=self.lag_seconds, timeout=1.5, patience=2.0, moments=8)
        self.run = await LocalRun(
            self._directory / "state",
            lambda _, event: self.events.append(event),
            monitor=self.monitor,
            lag_seconds=self.lag_seconds,
        ).__aenter__()

    async def stop_controller(self) -> None:
        """As if it were killed: members go on, and nobody looks after them."""
        await self.run.__aexit__()

    def apply(self, **changes: Any) -> None:
        """The manifest, with these keys of its spec changed for good."""
        self._spec |= changes
        variables = [{"name": name, "value": value} for name, value in self.environment.items()]
        container = {**self.container, "env": variables}
        spec = {**self._spec, "template": {"spec": {"containers": [container]}}}
        metadata = {"name": self.name}
        group = read_object({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec})
        self.run.apply(DesiredObjects({self.key: (group, self._directory)}, config_maps=dict(self.config_maps)))

    def delete(self) -> None:
        self.run.apply(DesiredObjects())

    @property
    def group(self) -> ConsumerGroup | None:
        held = self.run.backend.objects.get(self.key)
        return None if held is None else held.group

    @property
    def status(self) -> ConsumerGroupStatus:
        group = self.group
        return ConsumerGroupStatus() if group is None or group.status is None else group.status

    def condition(self, kind: ConditionType) -> Truth | None:
        return next((one.status for one in self.status.conditions or () if one.type is kind), None)

    @property
    def members(self) -> list[LocalMember]:
        return list(self.run.backend.members)

    def reasons(self) -> list[EventReason]:
        return [event.reason for event in self.events]

    async def until(self, condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> float:
        """Wait for a condition; returns how long it took."""

        def holds() -> bool:
            if condition():
                return True
            if self._flowing is not None and self._flowing.done() and not self._flowing.cancelled():
                self._flowing.result()  # traffic that has failed says why
            return False

        started = time.monotonic()
        await until(holds, what, patience, every=0.02, report=self.describe)
        return time.monotonic() - started

    async def ready(self, replicas: int) -> float:
        """Wait until the status says that this generation is as it should be."""

        def is_so() -> bool:
            group = self.group
            return (
                group is not None
                and self.status.observed_generation == group.metadata.generation
                and self.status.ready_replicas == self.status.replicas == replicas
                and self.condition(ConditionType.READY) is Truth.TRUE
            )

        return await self.until(is_so, f"ready with {replicas}")

    def describe(self) -> str:
        logs = "\n".join(
            f"--- {path.name}\n{path.read_text()[-2000:]}" for path in sorted(self._directory.rglob("logs/*.log"))
        )
        events = "\n".join(f"{event.reason.value}: {event.message}" for event in self.events)
        return f"{self.status.model_dump_json(indent=1, exclude_none=True)}\n{events}\n{logs}"

    # -- traffic ------------------------------------------------------------------------------------------------------

    def begin_traffic(self) -> None:
        self._flowing = asyncio.create_task(self._traffic())

    async def _traffic(self) -> None:
        numbers = [0] * KEYS
        async with Producer(ClientConfig(self.broker.name_server), f"{self.name}-traffic", PATIENT) as producer:
            due = time.monotonic()
            for turn in itertools.count():
                while self.rate <= 0:
                    await asyncio.sleep(0.05)
                    due = time.monotonic()
                pause = 1 / self.rate  # which may be 0 again when the message is sent
                key = 0 if turn % 100 < 100 * self.hot else turn % KEYS
                one = f"k{key}:{numbers[key]}"
                numbers[key] += 1
                await send_patiently(producer, Message(self._topic, one.encode(), tags=self.tag), f"k{key}")
                self.sent.append(one)
                due = max(due + pause, time.monotonic() - 1.0)  # what was missed for long is not made up for
                await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def some_traffic(self, messages: int = 100) -> None:
        assert self._flowing is not None
        target = len(self.sent) + messages
        flowing = self._flowing
        await self.until(lambda: len(self.sent) >= target or flowing.done(), f"{messages} more messages are sent")
        if flowing.done():
            flowing.result()

    async def end_traffic(self) -> None:
        if self._flowing is not None:
            self._flowing.cancel()
            await asyncio.gather(self._flowing, return_exceptions=True)

    def judged(self) -> DemoVerdict:
        return judge(self.sent, read_records(self.record))

    async def verdict(self) -> DemoVerdict:
        """End the traffic, wait until everything sent was handled, and judge."""
        await self.end_traffic()
        await self.until(lambda: not self.judged().lost, "everything sent is consumed")
        return self.judged()

    # -- the broker's word --------------------------------------------------------------------------------------------

    async def at_the_end(self) -> bool:
        """Whether the group's offset is the end of every queue, and nobody is in the group any more."""
        for queue in await self.client.subscribe_queues(self._topic):
            address = self.client.master(queue.broker)
            end = await broker_offsets.max_offset(self.client.remoting, address, queue)
            stored = await broker_offsets.query_offset(
                self.client.remoting, address, self.name, queue, zero_if_not_found=False
            )
            if stored != end:
                return False
        return await self.member_ids() == ()

    async def member_ids(self) -> tuple[str, ...]:
        """Who is in the group."""
        queue = (await self.client.subscribe_queues(self._topic))[0]
        return await broker_members.consumer_ids(self.client.remoting, self.client.master(queue.broker), self.name)

    async def locked(self) -> list[MessageQueue]:
        """The queues whose lock a stranger does not get. What it gets, it gives back."""
        locked = []
        for queue in await self.client.subscribe_queues(self._topic):
            address = self.client.master(queue.broker)
            got = await broker_locks.lock(self.client.remoting, address, self.name, "a-stranger", [queue])
            if queue in got:
                await broker_locks.unlock(self.client.remoting, address, self.name, "a-stranger", [queue])
            else:
                locked.append(queue)
        return locked
