"""A group under live traffic: members are processes, messages carry a key and a number, all is written down."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.support.waiting import until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_members, broker_offsets
from rocketfleet.demo.run import PATIENT, send_patiently
from rocketfleet.demo.verdict import DemoVerdict, judge, read_record
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

HANDLER_SECONDS = 0.045
KEYS = 32
PATIENCE = 60.0
JAVA_TERMINATED = 128 + signal.SIGTERM  # how a JVM ends that was shut down by the signal
ROOT = Path(__file__).resolve().parents[3]


class Member:
    """One process of the group."""

    def __init__(self, process: "subprocess.Popen[bytes]", client_id: str, record: Path, log: Path) -> None:
        self.process = process
        self.client_id = client_id
        self.record = record
        self.log = log

    @property
    def events(self) -> list[dict[str, Any]]:
        return read_record(self.record)

    def begun_since(self, moment: float) -> frozenset[str]:
        """The messages that it began after a moment."""
        return frozenset(event["id"] for event in self.events if event["event"] == "begin" and event["time"] > moment)

    @property
    def owned(self) -> frozenset[str]:
        """The queues it says it owns; none once it was killed."""
        if self.process.poll() is not None:
            return frozenset()
        owns = [event["queues"] for event in self.events if event["event"] == "owns"]
        return frozenset(owns[-1]) if owns else frozenset()

    def send(self, number: signal.Signals) -> float:
        """Send a signal; returns when."""
        self.process.send_signal(number)
        return time.time()


class Scene:
    """Use as `async with Scene(...)`: traffic flows until `verdict` is asked for."""

    def __init__(
        self,
        name_server: str,
        topic: str,
        group: str,
        directory: Path,
        *,
        mode: str = "Concurrent",
        handover: str = "Exclusive",
        strategy: str = "AVG",
        lock_lives: float = 60.0,
        rate: float = 200.0,
        where: ConsumeFromWhere = ConsumeFromWhere.FIRST_OFFSET,
    ) -> None:
        self._name_server = name_server
        self._topic = topic
        self.group = group
        self._directory = directory
        self._settings = {"mode": mode, "handover": handover, "strategy": strategy, "lock_lives": lock_lives}
        self._settings["where"] = where.value
        self._rate = rate
        self._names = itertools.count(1)
        self._numbers = [0] * KEYS
        self.members: list[Member] = []
        self.sent: list[str] = []
        self._flowing: asyncio.Task[None] | None = None
        self.client = Client(ClientConfig(name_server))

    async def __aenter__(self) -> Self:
        self.client.start()
        self.resume_traffic()
        return self

    def resume_traffic(self) -> None:
        """Send again."""
        self._flowing = asyncio.create_task(self._traffic())

    async def __aexit__(self, *_: object) -> None:
        assert self._flowing is not None
        self._flowing.cancel()
        await asyncio.gather(self._flowing, return_exceptions=True)
        await self.client.close()
        for member in self.members:
            if member.process.poll() is None:
                member.process.kill()
            member.process.wait()

    # -- traffic ------------------------------------------------------------------------------------------------------

    async def _traffic(self) -> None:
        numbers = self._numbers
        async with Producer(ClientConfig(self._name_server), f"{self.group}-traffic", PATIENT) as producer:
            for key in itertools.cycle(range(KEYS)):
                one = f"k{key}:{numbers[key]}"
                numbers[key] += 1
                # A send is awaited before the next of its key, so the order of a key is the order of its offsets.
                await send_patiently(producer, Message(self._topic, one.encode()), f"k{key}")
                self.sent.append(one)
                await asyncio.sleep(1 / self._rate)

    # -- members ------------------------------------------------------------------------------------------------------

    def start(self) -> Member:
        """Start one more member."""
        client_id = f"{self.group}-m{next(self._names)}"
        record, log = self._directory / f"{client_id}.jsonl", self._directory / f"{client_id}.log"
        settings = self._directory / f"{client_id}.json"
        settings.write_text(
            json.dumps(
                {
                    **self._settings,
                    "name_server": self._name_server,
                    "topic": self._topic,
                    "group": self.group,
                    "client_id": client_id,
                    "record": str(record),
                    "handler_seconds": HANDLER_SECONDS,
                }
            )
        )
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.broker.handover.member", str(settings)],
                cwd=ROOT,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        member = Member(process, client_id, record, log)
        self.members.append(member)
        return member

    def start_java(self, command: list[str], client_id: str) -> Member:
        """Start a Java member by its command line, made by `java_member`."""
        record, log = self._directory / f"{client_id}.jsonl", self._directory / f"{client_id}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(command, stdout=errors, stderr=errors)
        member = Member(process, client_id, record, log)
        self.members.append(member)
        return member

    async def until(self, condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> float:
        """Wait for a condition; returns when it was seen to hold."""

        def holds() -> bool:
            if condition():
                return True
            for member in self.members:
                code = member.process.poll()
                assert code in (None, 0, -signal.SIGKILL, JAVA_TERMINATED), (
                    f"{member.client_id} died:\n{member.log.read_text()}"
                )
            return False

        await until(holds, what, patience, every=0.02, report=self.describe)
        return time.time()

    def describe(self) -> str:
        owned = "\n".join(f"{m.client_id}: {sorted(m.owned)}" for m in self.members)
        logs = "\n".join(f"--- {m.client_id}\n{m.log.read_text()[-3000:]}" for m in self.members)
        return f"{owned}\n{logs}"

    @property
    def queues(self) -> frozenset[str]:
        """All queues of the topic, by the route at hand."""
        route = self.client.routes.cached(self._topic)
        assert route is not None
        return frozenset(
            str(MessageQueue(self._topic, data.broker_name, n))
            for data in route.queue_datas
            for n in range(data.read_queue_nums)
        )

    def shared_out(self, *members: Member) -> Callable[[], bool]:
        """Whether every queue has exactly one owner, and each of these members owns some."""

        def holds() -> bool:
            shares = [{q for q in m.owned if not q.startswith("%RETRY%")} for m in members]
            everything = [queue for share in shares for queue in share]
            return all(shares) and len(everything) == len(set(everything)) and set(everything) == self.queues

        return holds

    async def settled(self, *members: Member, patience: float = PATIENCE) -> float:
        await self.client.route(self._topic)
        return await self.until(
            self.shared_out(*members), f"{[m.client_id for m in members]} own each queue once", patience
        )

    async def some_traffic(self, messages: int = 200) -> None:
        """Let so many more messages be sent."""
        assert self._flowing is not None
        target, flowing = len(self.sent) + messages, self._flowing
        await self.until(lambda: len(self.sent) >= target or flowing.done(), f"{messages} more messages are sent")
        if flowing.done():
            flowing.result()

    async def stop_traffic(self) -> None:
        """Send nothing more."""
        assert self._flowing is not None
        self._flowing.cancel()
        results = await asyncio.gather(self._flowing, return_exceptions=True)
        assert not isinstance(results[0], Exception), results[0]

    # -- the end ------------------------------------------------------------------------------------------------------

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for member in self.members for event in member.events]

    async def verdict(self) -> DemoVerdict:
        """End the traffic, wait until everything sent was handled, and judge."""
        await self.stop_traffic()
        await self.until(lambda: not judge(self.sent, self.events).lost, "everything sent is consumed")
        return judge(self.sent, self.events)

    async def stop_all(self) -> None:
        """Stop every member gracefully; all must report confirmed offsets."""
        running = [member for member in self.members if member.process.poll() is None]
        for member in running:
            member.send(signal.SIGTERM)
        for member in running:
            await self.until(lambda member=member: member.process.poll() is not None, f"{member.client_id} stops")  # type: ignore[misc]
            stopped = [event for event in member.events if event["event"] == "stopped"]
            assert stopped, member.log.read_text()
            assert stopped[0]["confirmed"], member.log.read_text()

    async def owners_by_broker(self) -> dict[str, list[str]]:
        """Each queue of the topic with the members that say, through the broker, that they hold it."""
        queues = await self.client.subscribe_queues(self._topic)
        owners: dict[str, list[str]] = {str(queue): [] for queue in queues}
        address = self.client.master(queues[0].broker)
        for member in await broker_members.consumer_ids(self.client.remoting, address, self.group):
            info = await broker_members.running_info(self.client.remoting, address, self.group, member)
            for queue in info.mq_table:
                if str(queue) in owners:
                    owners[str(queue)].append(member)
        return owners

    async def each_queue_has_one_owner(self, members: int, patience: float = PATIENCE) -> dict[str, list[str]]:
        """Wait until every queue has one owner and so many members own some; returns the owners."""
        deadline = time.monotonic() + patience
        while True:
            try:
                owners = await self.owners_by_broker()
                if (
                    all(len(them) == 1 for them in owners.values())
                    and len({them[0] for them in owners.values()}) == members
                ):
                    return owners
            except RocketMQError as error:
                owners = {"error": [str(error)]}
            assert time.monotonic() < deadline, f"no single owner for each queue: {owners}\n{self.describe()}"
            await asyncio.sleep(0.1)

    async def committed(self) -> dict[str, int]:
        """The group's offset in each queue, as the broker has it."""
        queues = await self.client.subscribe_queues(self._topic)
        offsets = {}
        for queue in queues:
            stored = await broker_offsets.query_offset(
                self.client.remoting, self.client.master(queue.broker), self.group, queue, zero_if_not_found=False
            )
            offsets[str(queue)] = stored or 0
        return offsets

    async def ends(self) -> dict[str, int]:
        """The end of each queue."""
        queues = await self.client.subscribe_queues(self._topic)
        return {
            str(queue): await broker_offsets.max_offset(self.client.remoting, self.client.master(queue.broker), queue)
            for queue in queues
        }
