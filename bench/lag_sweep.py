"""One sweep over 2,000 groups and 15,000 queues of a real broker, against the same figures read one group after another.

The broker and both sides share the machine. The peer does what mqadmin's consumerProgress and rocketmq-exporter do: for
each group in turn the route of its retry topic, its consume stats, its connections. It learns less: no smallest offset,
no age of the next message. RocketMQ's own mqadmin is timed too, for it is what people run. A scrape of all figures is
measured at the end. The last line is JSON; targets: 30 s, 5 × the serial way, a scrape within 1 s, 200 MB.
"""

import argparse
import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rocketfleet.client import broker_groups, broker_members, broker_messages, broker_offsets, broker_topics
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConsumerNotOnline
from rocketfleet.client.routes import RETRY_PREFIX
from rocketfleet.devbroker.config import FleetSpec
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.lag.metrics import LagMetrics
from rocketfleet.lag.monitor import LagMonitor, Target
from rocketfleet.wire.batch import write_batch
from rocketfleet.wire.bodies import ConsumeFromWhere, SubscriptionGroupConfig, TopicConfig
from rocketfleet.wire.queue import MessageQueue

T = TypeVar("T")
BROKER = "broker-a"
QUEUES_OF_TOPIC = 8
AT_ONCE = 64
MESSAGES = 4
TIMEOUT = 30.0


def say(text: str) -> None:
    print(text, flush=True)


@contextmanager
def broker_of(given: str | None) -> Iterator[tuple[str, Fleet | None]]:
    """The name server given, or that of a broker of our own, with files that suit many small queues."""
    if given:
        yield given, None
        return
    with tempfile.TemporaryDirectory(prefix="bench-lag-") as directory:
        fleet = Fleet(directory)
        fleet.start(
            FleetSpec(
                heap="512m",
                properties=(("waitTimeMillsInSendQueue", "30000"), ("mappedFileSizeConsumeQueue", "20000")),
            )
        )
        try:
            yield fleet.name_server, fleet
        finally:
            fleet.stop(delete_data=True)


async def many(items: Iterable[T], call: Callable[[T], Awaitable[object]], what: str) -> None:
    """The call for each, a bounded number at once, telling how it goes."""
    left = list(items)
    total, started = len(left), time.monotonic()
    turn = iter(left)

    async def work() -> None:
        for item in turn:
            await call(item)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    say(f"  {total} {what} in {time.monotonic() - started:.1f} s")


class Scene:
    """The topics and groups: group i consumes topic i modulo their number."""

    def __init__(self, client: Client, address: str, groups: int, queues: int) -> None:
        self.client = client
        self.address = address
        self.topics = [f"sweep-topic-{number}" for number in range(queues // QUEUES_OF_TOPIC)]
        self.groups = [f"sweep-group-{number}" for number in range(groups)]

    def topic_of(self, number: int) -> str:
        return self.topics[number % len(self.topics)]

    async def prepare(self) -> None:
        """Topics, groups, retry topics, messages in every queue, and offsets: a third of the groups lags."""
        caller, address = self.client.remoting, self.address

        async def topics(names: list[str], queues: int) -> None:
            configs = [TopicConfig(name, read_queue_nums=queues, write_queue_nums=queues) for name in names]
            await broker_topics.create_topics(caller, address, configs, timeout=TIMEOUT)

        async def groups(names: list[str]) -> None:
            configs = [SubscriptionGroupConfig(name) for name in names]
            await broker_groups.create_groups(caller, address, configs, timeout=TIMEOUT)
            await topics([RETRY_PREFIX + name for name in names], 1)

        for start in range(0, len(self.topics), 100):
            await topics(self.topics[start : start + 100], QUEUES_OF_TOPIC)
        for start in range(0, len(self.groups), 100):
            await groups(self.groups[start : start + 100])
        say(f"  {len(self.topics)} topics, {len(self.groups)} groups and their retry topics")

        async def send(queue: MessageQueue) -> None:
            body = write_batch([(0, b"x" * 64, {})] * MESSAGES)
            command = broker_messages.send_request(
                queue, body, group="bench", born_timestamp=int(time.time() * 1000), batch=True
            )
            await broker_messages.send(caller, address, command, TIMEOUT)

        async def commit(number: int) -> None:
            for queue_id in range(QUEUES_OF_TOPIC):
                queue = MessageQueue(self.topic_of(number), BROKER, queue_id)
                offset = MESSAGES if number % 3 else 1
                await broker_offsets.update_offset(caller, address, self.groups[number], queue, offset, timeout=TIMEOUT)

        queues = [MessageQueue(topic, BROKER, number) for topic in self.topics for number in range(QUEUES_OF_TOPIC)]
        await many(queues, send, "queues filled")
        await many(range(len(self.groups)), commit, "groups with offsets")


async def serial(client: Client, address: str, groups: list[str]) -> tuple[float, int]:
    """One group after another: seconds, and the messages that they lag."""
    lag, started = 0, time.perf_counter()
    for group in groups:
        await client.name_servers.route(RETRY_PREFIX + group)
        stats = await broker_groups.consume_stats(client.remoting, address, group, timeout=TIMEOUT)
        lag += sum(row.broker_offset - row.consumer_offset for row in stats.offset_table.values())
        try:
            await broker_members.consumer_connections(client.remoting, address, group, timeout=TIMEOUT)
        except ConsumerNotOnline:
            pass
    return time.perf_counter() - started, lag
