"""Sending, against Java's DefaultMQProducer: same broker, bodies, batch size and concurrency, turn by turn in one run.

Single sends have 16 requests in flight (16 threads in Java, 16 coroutines here), batches have 32 messages and 4 in
flight. Both sides are warmed up, then measured alternately, and the medians are compared: what else happens on the
machine hits both. The last line is JSON; targets are 1.0 for single sends and 0.8 for batches.
"""

import argparse
import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rocketfleet.client.config import ClientConfig
from rocketfleet.devbroker.distribution.jars import classpath_of, provide_jars
from rocketfleet.devbroker.distribution.java import MODULE_FLAGS, find_java
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.launch import clean_environment
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.producer import Producer, ProducerOptions, SendStatus
from rocketfleet.wire.message import Message

PEER = Path(__file__).parent / "java" / "ProducePeer.java"
BODY = b"x" * 1024
SEND_TIMEOUT = 30.0  # on both sides: a busy machine must not turn a measurement into an error


class Load(NamedTuple):
    """One kind of sending."""

    name: str
    in_flight: int
    batch: int
    messages: int
    target: float


class JavaPeer:
    """The Java program, kept alive between repetitions."""

    def __init__(self, name_server: str, topic: str, home: Path) -> None:
        flags = [*MODULE_FLAGS, "-Xmx512m", f"-Duser.home={home}", f"-Djava.io.tmpdir={home}"]
        arguments = [name_server, topic, str(len(BODY))]
        self.process = subprocess.Popen(
            [find_java(), *flags, "-cp", classpath_of(provide_jars()), str(PEER), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=clean_environment(),
        )
        self._expect("ready")

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the Java producer ended with {self.process.wait()}; see its words above")
        return line.strip()

    def _expect(self, word: str) -> None:
        while self._line() != word:
            pass

    def run(self, load: Load, messages: int) -> float:
        """Seconds for so many messages."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{load.in_flight} {load.batch} {messages}\n")
        return float(self._line())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)
        if self.process.stdout is not None:
            self.process.stdout.close()


async def send_singles(producer: Producer, topic: str, sends: int) -> None:
    for _ in range(sends):
        result = await producer.send(Message(topic, BODY))
        assert result.status is SendStatus.SEND_OK


async def send_batches(producer: Producer, topic: str, sends: int, size: int) -> None:
    for _ in range(sends):
        result = await producer.send_batch([Message(topic, BODY) for _ in range(size)])
        assert result.status is SendStatus.SEND_OK


async def run_ours(producer: Producer, topic: str, load: Load, messages: int) -> tuple[float, float]:
    """Seconds for so many messages, on the clock and of the processor."""
    sends = messages // load.batch // load.in_flight
    work: Callable[[], Awaitable[None]] = (
        (lambda: send_singles(producer, topic, sends))
        if load.batch == 1
        else (lambda: send_batches(producer, topic, sends, load.batch))
    )
    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(load.in_flight)))
    return time.perf_counter() - start, time.process_time() - cpu


@contextmanager
def name_server_of(given: str | None) -> Iterator[str]:
    """The one given, or that of a broker of our own."""
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="bench-produce-") as directory:
        fleet = Fleet(directory)
        # A busy machine makes brokers refuse what has queued for 200 ms; that is not what is measured here.
        fleet.start(FleetSpec(heap="1g", properties=(("waitTimeMillsInSendQueue", "30000"),)))
        try:
            yield fleet.name_server
        finally:
            fleet.stop(delete_data=True)


async def measure(name_server: str, repetitions: int, loads: list[Load], topic: str) -> dict[str, dict[str, float]]:
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-java-") as home:
        options = ProducerOptions(send_timeout=SEND_TIMEOUT)
        async with Producer(ClientConfig(name_server), "bench-python", options) as producer:
            peer = await asyncio.to_thread(JavaPeer, name_server, topic, Path(home))
            try:
                for load in loads:
                    for _ in range(2):  # compilers, page cache and connections
                        await run_ours(producer, topic, load, load.messages // 2)
                        await asyncio.to_thread(peer.run, load, load.messages // 2)
                    ours, theirs, cpu = [], [], []
                    for _ in range(repetitions):
                        seconds, busy = await run_ours(producer, topic, load, load.messages)
                        ours.append(load.messages / seconds)
                        cpu.append(busy / load.messages * 1e6)
                        theirs.append(load.messages / await asyncio.to_thread(peer.run, load, load.messages))
                    pairs = [mine / other for mine, other in zip(ours, theirs, strict=True)]
                    figures[load.name] = {
                        "ours": statistics.median(ours),
                        "java": statistics.median(theirs),
                        "ratio": statistics.median(ours) / statistics.median(theirs),
                        "low": min(pairs),
                        "high": max(pairs),
                        "cpu": statistics.median(cpu),
                        "target": load.target,
                    }
            finally:
                await asyncio.to_thread(peer.close)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name-server", help="use this RocketMQ instead of starting one")
    parser.add_argument("--quick", action="store_true", help="fewer messages and repetitions: a look, not a figure")
    parser.add_argument("--repetitions", type=int, help="measurements of each side (default 7, quick 3)")
    parser.add_argument("--topic", default="bench-produce", help="created on demand (default %(default)s)")
    options = parser.parse_args()
    scale = 4 if options.quick else 1
    repetitions = options.repetitions or (3 if options.quick else 7)
    loads = [
        Load("single", in_flight=16, batch=1, messages=32_000 // scale, target=1.0),
        Load("batch", in_flight=4, batch=32, messages=128_000 // scale, target=0.8),
    ]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # so that the broker is ended, too
    with name_server_of(options.name_server) as name_server:
        figures = asyncio.run(measure(name_server, repetitions, loads, options.topic))
    columns = (
        ("ours msg/s", 12),
        ("java msg/s", 12),
        ("ratio", 8),
        ("lowest", 8),
        ("highest", 9),
        ("our CPU µs/msg", 16),
    )
    print(" " * 8 + "".join(f"{name:>{width}}" for name, width in (*columns, ("target", 8))))
    for name, figure in figures.items():
        print(
            f"{name:8}{figure['ours']:12,.0f}{figure['java']:12,.0f}{figure['ratio']:8.2f}{figure['low']:8.2f}"
            f"{figure['high']:9.2f}{figure['cpu']:16.1f}{figure['target']:8.1f}"
        )
    print(
        json.dumps(
            {
                "batch_vs_java": round(figures["batch"]["ratio"], 3),
                "single_vs_java": round(figures["single"]["ratio"], 3),
                "batch_msg_s": round(figures["batch"]["ours"]),
                "batch_java_msg_s": round(figures["batch"]["java"]),
                "single_msg_s": round(figures["single"]["ours"]),
                "single_java_msg_s": round(figures["single"]["java"]),
            }
        )
    )


if __name__ == "__main__":
    main()
