"""The demo's script: broker, traffic, 2 → 4 → 1 workers, verdict.

Nothing here is a fake: the broker is a RocketMQ 5.5.0, the workers are `rocketfleet worker` processes, a worker that
leaves is told by SIGTERM and drains. What was sent and what was handled is compared at the end, message by message.
"""

import asyncio
import itertools
import time
from collections.abc import Callable
from pathlib import Path

from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError, SystemBusy
from rocketfleet.demo.group_view import GroupView, look
from rocketfleet.demo.members import Workers
from rocketfleet.demo.verdict import Verdict, judge
from rocketfleet.devbroker.config import FleetSpec
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.producer import Producer
from rocketfleet.wire.bodies import SubscriptionGroupConfig, TopicConfig
from rocketfleet.wire.message import Message

TOPIC, GROUP = "demo-orders", "demo"
QUEUES, KEYS, RATE = 8, 32, 200
STEPS = (2, 4, 1)
PATIENCE = 60.0
_HOLD_SECONDS = 3.0  # traffic on each step, once it has settled

Say = Callable[[str], None]


class DemoFailedError(Exception):
    """Something did not happen in time, or a process died."""


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
    """One run. `say` gets what a person wants to read; `show` the state of the group, several times a second."""

    def __init__(self, directory: Path, say: Say, show: Callable[["Demo", GroupView], None]) -> None:
        self._directory = directory
        self._say = say
        self._show = show
        self.sent: list[str] = []
        self.workers: Workers
        self.draining: set[str] = set()

    async def run(self) -> Verdict:
        fleet = Fleet(self._directory / "broker")
        self._say("starting a RocketMQ 5.5.0 on loopback")
        await asyncio.to_thread(fleet.start, FleetSpec())
        try:
            async with Client(ClientConfig(fleet.name_server)) as client:
                await self._prepare(client)
                return await self._play(client, fleet.name_server)
        finally:
            await asyncio.to_thread(fleet.stop, delete_data=True)

    async def _prepare(self, client: Client) -> None:
        topic = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        (await admin.create_topic(client, topic)).all_or_raise()
        (await admin.create_group(client, SubscriptionGroupConfig(group_name=GROUP))).all_or_raise()

    async def _play(self, client: Client, name_server: str) -> Verdict:
        self.workers = Workers(name_server, TOPIC, GROUP, self._directory, mode="Orderly")
        traffic = asyncio.create_task(self._traffic(name_server))
        try:
            for step in STEPS:
                await self._scale(client, step)
                await self._hold(client, traffic)
            traffic.cancel()
            await asyncio.gather(traffic, return_exceptions=True)
            self._say(f"traffic stopped after {len(self.sent)} messages; waiting until all are consumed")
            await self._until(client, lambda _: not judge(self.sent, self.workers.events()).lost, "all are consumed")
            await self._scale(client, 0)
            return judge(self.sent, self.workers.events())
        finally:
            traffic.cancel()
            await asyncio.gather(traffic, return_exceptions=True)
            self.workers.kill_all()

    async def _traffic(self, name_server: str) -> None:
        numbers = [0] * KEYS
        async with Producer(ClientConfig(name_server), group="demo-traffic") as producer:
            for key in itertools.cycle(range(KEYS)):
                one = f"k{key}:{numbers[key]}"
                numbers[key] += 1
                await send_patiently(producer, Message(TOPIC, one.encode()), f"k{key}")
                self.sent.append(one)
                await asyncio.sleep(1 / RATE)

    async def _scale(self, client: Client, target: int) -> None:
        running = self.workers.running
        started = time.monotonic()
        for _ in range(target - len(running)):
            self._say(f"+ {self.workers.start().name} starts")
        leaving = running[target:]
        for worker in leaving:
            self._say(f"- {worker.name} drains")
            self.draining.add(worker.name)
            self.workers.stop(worker)
        await self._until(client, lambda _: not any(worker.running for worker in leaving), "the drained workers end")
        for worker in leaving:
            self.draining.discard(worker.name)
        if target:
            names = {worker.name for worker in self.workers.running}
            view = await self._until(client, lambda view: view.settled_on(names), "each queue has one owner")
            shares = ", ".join(f"{name} {view.share_of(name)}" for name in sorted(names))
            self._say(f"= {target} workers, each queue owned once, after {time.monotonic() - started:.1f} s: {shares}")

    async def _hold(self, client: Client, traffic: "asyncio.Task[None]") -> None:
        """Let traffic flow for a while."""
        until = time.monotonic() + _HOLD_SECONDS
        await self._until(client, lambda _: time.monotonic() > until, "time passes")
        if traffic.done():
            traffic.result()

    async def _until(self, client: Client, condition: Callable[[GroupView], bool], what: str) -> GroupView:
        deadline = time.monotonic() + PATIENCE
        while True:
            failed = self.workers.failed()
            if failed is not None:
                raise DemoFailedError(
                    f"{failed.name} ended with an error; its log ends:\n{failed.log.read_text()[-2000:]}"
                )
            try:
                view = await look(client, TOPIC, GROUP)
            except RocketMQError as error:
                self._say(f"the broker does not answer: {error}")
                view = GroupView({}, None)
            self._show(self, view)
            if condition(view):
                return view
            if time.monotonic() > deadline:
                raise DemoFailedError(f"after {PATIENCE:g} s still not so: {what}")
            await asyncio.sleep(0.2)
