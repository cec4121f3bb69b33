"""One sweep over 2,000 groups and 15,000 queues of a real broker, against reading one group after another.

The broker and both sides share the machine. The peer does what mqadmin's consumerProgress and rocketmq-exporter do: for
each group in turn the route of its retry topic, its consume stats, its connections. It learns less: no smallest offset,
no age of the next message. RocketMQ's own mqadmin is timed too, for it is what people run. A scrape of all figures is
measured at the end. The last line is JSON; targets: 30 s, 5 × the serial way, a scrape within 1 s, 200 MB.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConsumerNotOnline
from rocketfleet.client.requests import broker_groups, broker_members, broker_messages, broker_offsets, broker_topics
from rocketfleet.client.requests.calls import ask
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.lag.collecting.monitor import LagMonitor, Target
from rocketfleet.lag.metrics import LagMetrics
from rocketfleet.wire.bodies import Body, SubscriptionGroupConfig, SubscriptionGroupList, TopicConfig, TopicConfigList
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message.batch import write_batch
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX

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
                heap="1g",
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

        async def create(code: RequestCode, configs: Body) -> None:
            await ask(caller, address, request(code, body=configs.encode()), TIMEOUT)

        async def topics(names: list[str], queues: int) -> None:
            configs = [TopicConfig(name, read_queue_nums=queues, write_queue_nums=queues) for name in names]
            await create(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, TopicConfigList(tuple(configs)))

        async def groups(names: list[str]) -> None:
            configs = [SubscriptionGroupConfig(name) for name in names]
            await create(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, SubscriptionGroupList(tuple(configs)))
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
        await client.name_servers.route(RETRY_PREFIX + group)
        with suppress(ConsumerNotOnline):
            await broker_members.consumer_connections(client.remoting, address, group, timeout=TIMEOUT)
    return time.perf_counter() - started, lag


async def exporter(client: Client, address: str, scene: Scene, numbers: range) -> float:
    """The same as rocketmq-exporter does it, latency and all, for some of the groups: seconds."""
    servers, caller = client.name_servers, client.remoting
    started = time.perf_counter()
    for number in numbers:
        topic, group = scene.topic_of(number), scene.groups[number]
        for one in (topic, RETRY_PREFIX + group):
            await servers.route(one)
            await broker_topics.topic_stats(caller, address, one, timeout=TIMEOUT)
        await servers.route(topic)
        await broker_topics.groups_of_topic(caller, address, topic, timeout=TIMEOUT)
        await servers.route(RETRY_PREFIX + group)
        with suppress(ConsumerNotOnline):
            await broker_members.consumer_connections(caller, address, group, timeout=TIMEOUT)
        await servers.route(RETRY_PREFIX + group)
        stats = await broker_groups.consume_stats(caller, address, group, topic=topic, timeout=TIMEOUT)
        for queue, row in stats.offset_table.items():
            await broker_messages.store_time(caller, address, queue, row.consumer_offset, timeout=TIMEOUT)
    return time.perf_counter() - started


async def move(scene: Scene, number: int) -> None:
    """Let the groups that lag consume a message in one queue each, so that ages must be asked for again."""
    queue = MessageQueue(scene.topic_of(number), BROKER, 0)
    group = scene.groups[number]
    caller, address = scene.client.remoting, scene.address
    before = await broker_offsets.query_offset(caller, address, group, queue, timeout=TIMEOUT)
    after = 1 if before == 2 else 2
    await broker_offsets.update_offset(caller, address, group, queue, after, timeout=TIMEOUT)


def resident_megabytes() -> float:
    """What this process has in memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def measure(name_server: str, fleet: Fleet | None, options: argparse.Namespace) -> dict[str, float]:
    async with Client(ClientConfig(name_server)) as client:
        address = (await admin.masters(client))[BROKER]
        scene = Scene(client, address, options.groups, options.queues)
        if not options.prepared:
            say("preparing")
            await scene.prepare()
        before = resident_megabytes()
        monitor = LagMonitor(patience=120.0, timeout=TIMEOUT)
        metrics = LagMetrics(monitor)
        for number, group in enumerate(scene.groups):
            monitor.follow(
                number,
                Target(
                    client, group, (scene.topic_of(number),), ConsumeFromWhere.LAST_OFFSET,
                    cluster="bench", namespace="bench", name=group,
                ),
            )  # fmt: skip
        started = time.perf_counter()
        await monitor.sweep()
        first = time.perf_counter() - started
        say(f"first sweep, routes unknown: {first:.2f} s")
        lagging = range(0, len(scene.groups), 3)
        ours, theirs, scrapes, lag = [], [], [], 0
        for repetition in range(options.repetitions):
            await many(lagging, lambda number: move(scene, number), "offsets moved")
            started, cpu = time.perf_counter(), time.process_time()
            await monitor.sweep()
            ours.append(time.perf_counter() - started)
            cpu = time.process_time() - cpu
            seconds, lag = await serial(client, address, scene.groups)
            theirs.append(seconds)
            started = time.perf_counter()
            text = metrics.render()
            scrapes.append(time.perf_counter() - started)
            say(
                f"{repetition + 1}: sweep {ours[-1]:.2f} s ({cpu:.2f} s of our processor), one after another "
                f"{seconds:.2f} s, scrape {scrapes[-1]:.2f} s"
            )
        moments = [monitor.latest(number) for number in range(len(scene.groups))]
        seen = sum(moment.messages or 0 for moment in moments if moment is not None)
        rows = sum(len(moment.queues) for moment in moments if moment is not None)
        unknown = sum(moment.unknown for moment in moments if moment is not None)
        aged = all(moment is not None and moment.seconds is not None for moment in moments)
        if unknown or not aged or seen != lag:
            raise SystemExit(f"the figures are wrong: {seen} messages against {lag}, {unknown} queues unknown")
        sample = range(0, len(scene.groups), max(1, len(scene.groups) // options.exporter_groups))
        way = await exporter(client, address, scene, sample) * len(scene.groups) / len(sample)
        say(f"as rocketmq-exporter does it: {way:.1f} s (from {len(sample)} groups)")
        memory = resident_megabytes()
        tool = await asyncio.to_thread(mqadmin_seconds, fleet)
        say(f"mqadmin consumerProgress of all groups: {tool:.1f} s" if tool else "mqadmin was not timed")
        seconds = statistics.median(ours)
        return {
            "seconds": round(seconds, 3),
            "queues": len(scene.topics) * QUEUES_OF_TOPIC,
            "vs_serial": round(statistics.median(theirs) / seconds, 2),
            "scrape_seconds": round(statistics.median(scrapes), 3),
            "rss_mb": round(memory, 1),
            "groups": len(scene.groups),
            "group_queues": rows,
            "samples": text.count(b"\n"),
            "first_seconds": round(first, 3),
            "serial_seconds": round(statistics.median(theirs), 3),
            "vs_exporter": round(way / seconds, 1),
            "exporter_sampled_groups": len(sample),
            "vs_mqadmin": round(tool / seconds, 1),
            "rss_before_mb": round(before, 1),
        }


def mqadmin_seconds(fleet: Fleet | None) -> float:
    """RocketMQ's own tool over all groups, with the start of its JVM; 0 if there is no broker of ours."""
    if fleet is None:
        return 0.0
    started = time.perf_counter()
    fleet.admin("consumerProgress", timeout=600.0)
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--queues", type=int, default=15_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument(
        "--exporter-groups", type=int, default=100, help="how many groups to time the exporter's way on"
    )
    parser.add_argument("--name-server", help="measure on this broker instead of one of our own")
    parser.add_argument("--prepared", action="store_true", help="it was filled by an earlier run")
    options = parser.parse_args()
    with broker_of(options.name_server) as (name_server, fleet):
        figures = asyncio.run(measure(name_server, fleet, options))
    targets = (
        figures["seconds"] < 30, figures["vs_serial"] >= 5, figures["scrape_seconds"] < 1, figures["rss_mb"] < 200
    )  # fmt: skip
    print(json.dumps(figures))
    return 0 if all(targets) else 1


if __name__ == "__main__":
    sys.exit(main())
