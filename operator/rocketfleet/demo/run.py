"""The demo's script: broker, traffic, a ConsumerGroup with 2 → 4 → 1 members, verdict.

Nothing here is a fake: the broker is a RocketMQ 5.5.0, the group is a manifest in the hands of the operator's own
planner and drain, on the backend that runs pods as processes. Who owns what is asked of the broker, not of the
operator. What was sent and what was handled is compared at the end, message by message.
"""

import asyncio
import itertools
import time
from collections.abc import Callable
from pathlib import Path

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.base.counting import counted
from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError, SystemBusy
from rocketfleet.controller.local.manifests import DesiredObjects, ManifestFiles
from rocketfleet.controller.local.run import LocalRun
from rocketfleet.controller.planning.actions import Event
from rocketfleet.demo import manifest
from rocketfleet.demo.group_view import GroupView, look
from rocketfleet.demo.manifest import GROUP, TOPIC
from rocketfleet.demo.verdict import DemoVerdict, judge, read_records
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.guard import Guard
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.producer import Producer, ProducerOptions
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.message import Message

QUEUES, KEYS, RATE = 8, 32, 200
STEPS = (2, 4, 1)
PATIENCE = 60.0
KEY = GroupKey("default", GROUP)
_HOLD_SECONDS = 3.0  # traffic on each step, once it has settled
_SHOW_SECONDS = 0.25

Say = Callable[[str], None]


class DemoFailedError(Exception):
    """Something did not happen in time, or a process died."""


PATIENT = ProducerOptions(send_timeout=30.0)
"""For traffic that is to flow on a machine that has too much to do: a JVM may well not answer for some seconds."""


async def send_patiently(producer: Producer, message: Message, key: str) -> None:
    """Send again what a busy broker says it has not stored. Anything else is an error."""
    while True:
        try:
            await producer.send(message, sharding_key=key)
        except SystemBusy:
            await asyncio.sleep(0.1)
        else:
            return


class Demo:
    """One run. `say` gets what a person wants to read; `show` the state of the group, several times per second."""

    def __init__(self, directory: Path, say: Say, show: Callable[["Demo", GroupView], None]) -> None:
        self._directory = directory
        self._record = directory / "record"
        self._manifest = directory / "demo.yaml"
        self._say = say
        self._show = show
        self._local: LocalRun
        self._enough = asyncio.Event()
        self.sent: list[str] = []

    @property
    def group(self) -> ConsumerGroup | None:
        """The object as the operator sees it; None once it is gone."""
        held = self._local.backend.objects.get(KEY)
        return None if held is None else held.group

    async def run(self) -> DemoVerdict:
        self._record.mkdir()
        fleet = Fleet(self._directory / "broker")
        guard = Guard(fleet.directory)  # should this process be killed, no broker is left behind
        self._say("starting a RocketMQ 5.5.0 on loopback")
        await asyncio.to_thread(fleet.start, FleetSpec())
        try:
            async with Client(ClientConfig(fleet.name_server)) as client:
                topic = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
                (await admin.create_topic(client, topic)).all_or_raise()
                return await self._play(client, fleet.name_server)
        finally:
            await asyncio.to_thread(fleet.stop, delete_data=True)
            guard.dismiss()

    async def _play(self, client: Client, name_server: str) -> DemoVerdict:
        async with LocalRun(self._directory / "state", self._told) as self._local:
            traffic = asyncio.create_task(self._traffic(name_server))
            try:
                for step in STEPS:
                    await self._scale(client, name_server, step)
                    await self._hold(client, traffic)
                self._enough.set()
                await traffic
                self._say(f"traffic stopped after {counted(len(self.sent))}; waiting until all are consumed")
                await self._until(client, lambda _: not self._judged().lost, "all are consumed")
                self._say("the manifest is removed: the last member drains, and the group goes")
                self._local.apply(DesiredObjects())
                await self._until(client, lambda _: self.group is None, "the group is gone")
                return self._judged()
            finally:
                traffic.cancel()
                await asyncio.gather(traffic, return_exceptions=True)
                for member in self._local.backend.members:
                    member.kill()

    def _judged(self) -> DemoVerdict:
        return judge(self.sent, read_records(self._record))

    def _told(self, _group: ConsumerGroup, event: Event) -> None:
        self._say(f"{'!' if event.warning else ' '} {event.message}")

    async def _traffic(self, name_server: str) -> None:
        numbers = [0] * KEYS
        async with Producer(ClientConfig(name_server), "demo-traffic", PATIENT) as producer:
            for key in itertools.cycle(range(KEYS)):
                if self._enough.is_set():
                    return
                one = f"k{key}:{numbers[key]}"
                numbers[key] += 1
                await send_patiently(producer, Message(TOPIC, one.encode()), f"k{key}")
                self.sent.append(one)
                await asyncio.sleep(1 / RATE)

    async def _scale(self, client: Client, name_server: str, replicas: int) -> None:
        self._say(f"the manifest says replicas: {replicas}")
        manifest.write(self._manifest, name_server=name_server, record=self._record, replicas=replicas)
        started = time.monotonic()
        self._local.apply(ManifestFiles([self._manifest]).read())
        view = await self._until(
            client, lambda view: self._settled(view, replicas), f"{counted(replicas, 'member owns', 'members own')} all"
        )
        shares = ", ".join(f"{pod} {view.share_of(client_id)}" for pod, client_id in self.members())
        self._say(f"= each queue has one owner, {time.monotonic() - started:.1f} s after the edit: {shares}")

    def members(self) -> list[tuple[str, str]]:
        """The group's pods with their client ids, as its status has them."""
        status = self.group.status if self.group is not None else None
        found = (status.members if status is not None else None) or []
        return [(member.pod, member.client_id) for member in found if member.pod and member.client_id]

    def _settled(self, view: GroupView, replicas: int) -> bool:
        """The operator says it is done, and the broker says the same."""
        group = self.group
        if group is None or group.status is None or group.status.observed_generation != group.metadata.generation:
            return False
        ready = any(
            condition.type == ConditionType.READY and condition.status is Truth.TRUE
            for condition in group.status.conditions or ()
        )
        client_ids = {client_id for _, client_id in self.members()}
        return ready and len(client_ids) == replicas and view.settled_on(client_ids)

    async def _hold(self, client: Client, traffic: "asyncio.Task[None]") -> None:
        """Let traffic flow for a while."""
        until = time.monotonic() + _HOLD_SECONDS
        await self._until(client, lambda _: time.monotonic() > until, "time passes")
        if traffic.done():
            traffic.result()

    async def _until(self, client: Client, condition: Callable[[GroupView], bool], what: str) -> GroupView:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                view = await look(client, TOPIC, GROUP)
            except RocketMQError as error:
                self._say(f"the broker does not answer: {error}")
                view = GroupView({}, None)
            self._show(self, view)
            if condition(view):
                return view
            if time.monotonic() > deadline:
                trouble = "; ".join(member.trouble for member in self._local.backend.members if member.trouble)
                raise DemoFailedError(f"after {PATIENCE:g} s still not so: {what}. {trouble}")
            await asyncio.sleep(_SHOW_SECONDS)
