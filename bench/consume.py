"""Consuming, against Java's push consumer and the other Python clients: same broker, same messages, turn by turn.

One broker, a topic of 8 queues with 1 KiB messages, pull batches of 32, a handler that does nothing, and on our side
the full product path: broker locks, leases, flow control, commits. Every consumer is a process of its own in a fresh
group that starts at the beginning; it is measured from its first message to its last, on the clock and in processor
time. Rounds are interleaved, and medians compared. Slow peers get fewer messages: their rate does not depend on it.

`--before DIRECTORY` is another checkout of this project, with its environment set up (`make setup`): how much faster or
slower is this one?
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_offsets
from rocketfleet.devbroker.describe import describe
from rocketfleet.devbroker.distribution.jars import cache_directory, classpath_of, provide_jars
from rocketfleet.devbroker.distribution.java import MODULE_FLAGS, find_java
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.launch import clean_environment
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.producer import Producer
from rocketfleet.wire.bodies import SubscriptionGroupConfig, TopicConfig
from rocketfleet.wire.message import Message

HERE = Path(__file__).parent
BODY = b"x" * 1024
QUEUES = 8
BATCH = 32
TOPIC = "bench-consume"
TARGETS = {
    "vs_java": 1.0,
    "vs_java_per_cpu": 2.0,
    "vs_java_orderly": 0.8,
    "vs_librocketmq": 6.0,
    "vs_grpc": 80.0,
    "vs_before": 0.97,
    "vs_before_per_cpu": 0.97,
    "vs_before_orderly": 0.97,
}


class Bench:
    """The broker, and how to run each consumer on it."""

    def __init__(self, fleet: Fleet, home: Path) -> None:
        self.fleet = fleet
        self._home = home
        self._groups = 0

    def group(self, kind: str) -> str:
        self._groups += 1
        return f"bench-{kind}-{self._groups}"

    def _run(self, command: list[str], **environment: str) -> dict[str, float]:
        environment = {**clean_environment(), "HOME": str(self._home), **environment}
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment, timeout=600)
        if answer.returncode != 0 or not answer.stdout.strip():
            raise SystemExit(f"{command[-6:]} ended with {answer.returncode} and printed {answer.stdout!r}")
        lines = [line for line in answer.stdout.splitlines() if line.startswith("{")]
        result: dict[str, float] = json.loads(lines[-1])
        return result

    def ours(self, messages: int, mode: str, checkout: Path | None = None) -> dict[str, float]:
        python = sys.executable if checkout is None else str(checkout / ".venv" / "bin" / "python")
        script = (HERE if checkout is None else checkout / "bench") / "consumers" / "ours.py"
        return self._run([python, str(script), self.fleet.name_server, self.group("ours"), TOPIC, str(messages), mode])

    def java(self, messages: int, mode: str) -> dict[str, float]:
        flags = [*MODULE_FLAGS, "-Xmx1g", f"-Duser.home={self._home}", f"-Djava.io.tmpdir={self._home}"]
        program = [str(HERE / "java" / "ConsumePeer.java"), self.fleet.name_server, self.group("java"), TOPIC]
        orderly = str(mode == "Orderly").lower()
        return self._run([find_java(), *flags, "-cp", classpath_of(provide_jars()), *program, str(messages), orderly])

    def librocketmq(self, messages: int) -> dict[str, float]:
        packages = install("rocketmq==0.4.4")
        script = HERE / "consumers" / "peer_librocketmq.py"
        group = self.group("librocketmq")
        asyncio.run(self._start_at_the_beginning(group))
        return self._run(
            [sys.executable, str(script), self.fleet.name_server, group, TOPIC, str(messages)], PYTHONPATH=str(packages)
        )

    def grpc(self, messages: int) -> dict[str, float]:
        packages = install("rocketmq-python-client==5.1.2")
        script = HERE / "consumers" / "peer_grpc.py"
        group = self.group("grpc")
        asyncio.run(self._start_at_the_beginning(group))
        endpoint = describe(self.fleet)["proxy"]["grpc"]
        return self._run([sys.executable, str(script), endpoint, group, TOPIC, str(messages)], PYTHONPATH=str(packages))

    async def _start_at_the_beginning(self, group: str) -> None:
        """For clients that cannot be told where to start."""
        async with Client(ClientConfig(self.fleet.name_server)) as client:
            (await admin.create_group(client, SubscriptionGroupConfig(group_name=group))).all_or_raise()
            for queue in await client.subscribe_queues(TOPIC):
                await broker_offsets.update_offset(client.remoting, client.master(queue.broker), group, queue, 0)


def install(requirement: str) -> Path:
    """A peer's package in a directory of its own, in the cache."""
    directory = cache_directory() / "bench" / requirement.replace("==", "-")
    if not directory.exists():
        say(f"installing {requirement}, once")
        temporary = directory.with_name(f"{directory.name}.{os.getpid()}.part")
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(temporary), requirement], check=True
        )
        temporary.rename(directory)
    return directory


async def fill(name_server: str, messages: int) -> None:
    """Put the messages in, evenly over the queues."""
    async with Client(ClientConfig(name_server)) as client:
        topic = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        (await admin.create_topic(client, topic)).all_or_raise()
    started = time.monotonic()
    async with Producer(ClientConfig(name_server), group="bench-fill") as producer:
        left = iter(range(0, messages, BATCH))

        async def send() -> None:
            for _ in left:
                await producer.send_batch([Message(TOPIC, BODY) for _ in range(BATCH)])

        await asyncio.gather(*(send() for _ in range(4)))
    say(f"filled: {messages} messages in {time.monotonic() - started:.0f} s")


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def measure(rounds: int, runs: dict[str, Callable[[], dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Run each in turn, `rounds` times; the medians of messages per second and messages per processor second.

    Every other round goes backwards, so that none is always the first after a slow one.
    """
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for number in range(rounds):
        for name, run in reversed(runs.items()) if number % 2 else runs.items():
            result = run()
            rates[name].append((result["messages"] / result["seconds"], result["messages"] / max(result["cpu"], 1e-9)))
            say(
                f"round {number + 1}: {name:20} {rates[name][-1][0]:10,.0f} msg/s {rates[name][-1][1]:10,.0f} msg/CPU s"
            )
    return {
        name: {
            "rate": statistics.median(rate for rate, _ in them),
            "per_cpu": statistics.median(cpu for _, cpu in them),
        }
        for name, them in rates.items()
    }


def ratios(found: dict[str, dict[str, float]]) -> dict[str, float | None]:
    def ratio(kind: str, ours: str, theirs: str) -> float | None:
        return round(found[ours][kind] / found[theirs][kind], 3) if theirs in found and ours in found else None

    return {
        "vs_java": ratio("rate", "ours", "java"),
        "vs_java_per_cpu": ratio("per_cpu", "ours", "java"),
        "vs_java_orderly": ratio("rate", "ours orderly", "java orderly"),
        "vs_librocketmq": ratio("rate", "ours", "librocketmq"),
        "vs_grpc": ratio("rate", "ours", "grpc"),
        "vs_before": ratio("rate", "ours", "before"),
        "vs_before_per_cpu": ratio("per_cpu", "ours", "before"),
        "vs_before_orderly": ratio("rate", "ours orderly", "before orderly"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="200,000 messages, one round")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=["java", "orderly", "librocketmq", "grpc"],
        help="leave a peer out",
    )
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    options = parser.parse_args()
    messages, rounds = (200_000, 1) if options.quick else (options.messages, options.rounds)
    left_out = set(options.without)
    with tempfile.TemporaryDirectory(prefix="bench-consume-") as directory:
        fleet = Fleet(Path(directory) / "broker")
        fleet.start(FleetSpec(heap="1g", proxy="grpc" not in left_out))
        try:
            asyncio.run(fill(fleet.name_server, messages))
            bench = Bench(fleet, Path(directory))
            runs: dict[str, Callable[[], dict[str, float]]] = {"ours": lambda: bench.ours(messages, "Concurrent")}
            if "java" not in left_out:
                runs["java"] = lambda: bench.java(messages, "Concurrent")
            if "orderly" not in left_out:
                runs["ours orderly"] = lambda: bench.ours(messages, "Orderly")
                if "java" not in left_out:
                    runs["java orderly"] = lambda: bench.java(messages, "Orderly")
            if options.before is not None:
                before: Path = options.before.resolve()
                runs["before"] = lambda: bench.ours(messages, "Concurrent", before)
                if "orderly" not in left_out:
                    runs["before orderly"] = lambda: bench.ours(messages, "Orderly", before)
            if "librocketmq" not in left_out:
                runs["librocketmq"] = lambda: bench.librocketmq(min(messages, 100_000))
            if "grpc" not in left_out:
                runs["grpc"] = lambda: bench.grpc(min(messages, 5_000))
            found = measure(rounds, runs)
        finally:
            fleet.stop(delete_data=True)
    result: dict[str, Any] = ratios(found)
    for name, value in result.items():
        verdict = "left out" if value is None else f"{value:8.2f}   target {TARGETS[name]:g}"
        say(f"{name:20} {verdict}")
    result["figures"] = {name: {kind: round(value) for kind, value in them.items()} for name, them in found.items()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
