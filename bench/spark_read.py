"""Spark's batch read into a count and a sum, against our plain consumer and a one-process loop that collects to pandas.

One broker, a topic of 8 queues with 1 KiB messages, Spark on local[2] with a heap of 1 GiB. Each is a process of its
own, run in turn after a first reading that does not count, and medians are compared. The consumer is measured from its
first message to its last (`consume.py`). The read is measured from asking for the count to having it, planning and
tasks included; starting Spark is not. It is made twice in a session: the first time Java compiles what it runs, so the
second is what a long job has. The ratios are those of the second; the first has its own figures beside them. The loop
pulls all queues at once, makes a row of each message and a DataFrame of all rows, and has its count and sum from that.

How much memory Spark's Python workers take is sampled while they read: it is to depend on the batch, not on the topic.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from consume import BODY, TOPIC, Bench, fill, say  # type: ignore[import-not-found]  # the script beside this one
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.setup.config import FleetSpec

HERE = Path(__file__).parent
TARGETS = {"vs_consumer": 0.5, "vs_pandas_loop": 1.0}


def run(script: str, name_server: str, messages: int) -> dict[str, float]:
    """Run a reader and take the line of JSON that it prints last."""
    command = [sys.executable, str(HERE / "consumers" / script), name_server, TOPIC, str(messages)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=1800)
    lines = [line for line in answer.stdout.splitlines() if line.startswith("{")]
    if answer.returncode != 0 or not lines:
        raise SystemExit(f"{script} ended with {answer.returncode} and printed {answer.stdout!r}")
    result: dict[str, float] = json.loads(lines[-1])
    if result["messages"] != messages or result["bytes"] != messages * len(BODY):
        raise SystemExit(f"{script} read {result}, and not {messages} messages of {len(BODY)} bytes")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="100,000 messages, one round")
    options = parser.parse_args()
    messages, rounds = (100_000, 1) if options.quick else (options.messages, options.rounds)
    messages -= messages % 32  # they are sent in batches of 32
    rates: dict[str, list[float]] = {"spark": [], "spark, first": [], "consumer": [], "pandas loop": []}
    workers: list[float] = []
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as directory:
        fleet = Fleet(Path(directory) / "broker")
        fleet.start(FleetSpec(heap="1g"))
        try:
            asyncio.run(fill(fleet.name_server, messages))
            bench = Bench(fleet, Path(directory))
            run("pandas_loop.py", fleet.name_server, messages)  # the first time costs the broker three times as much
            for number in range(rounds):
                spark = run("spark_count.py", fleet.name_server, messages)
                rates["spark"].append(messages / spark["seconds"])
                rates["spark, first"].append(messages / spark["first_seconds"])
                workers.append(spark["workers_mib"])
                consumer = bench.ours(messages, "Concurrent")
                rates["consumer"].append(consumer["messages"] / consumer["seconds"])
                loop = run("pandas_loop.py", fleet.name_server, messages)
                rates["pandas loop"].append(messages / loop["seconds"])
                for name, them in rates.items():
                    say(f"round {number + 1}: {name:12} {them[-1]:10,.0f} msg/s")
                say(f"round {number + 1}: the workers took {workers[-1]:,.0f} MiB, the bodies {messages // 1024:,} MiB")
        finally:
            fleet.stop(delete_data=True)
    found = {name: statistics.median(them) for name, them in rates.items()}
    result: dict[str, Any] = {
        "messages_per_second": round(found["spark"]),
        "vs_consumer": round(found["spark"] / found["consumer"], 3),
        "vs_pandas_loop": round(found["spark"] / found["pandas loop"], 3),
    }
    for peer in ("consumer", "pandas loop"):
        result[f"first_vs_{peer.replace(' ', '_')}"] = round(found["spark, first"] / found[peer], 3)
    for name, target in TARGETS.items():
        say(f"{name:16} {result[name]:8.2f}   target {target:g}")
    result["workers_mib"] = round(max(workers))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
