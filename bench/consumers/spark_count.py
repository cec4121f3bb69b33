"""A batch read of a topic on local[2], into a count and a sum, twice in one session. Prints one line of JSON.

Arguments: name server, topic, how many messages it has.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from rocketfleet.spark import register


def children_of(parent: int) -> list[int]:
    """The processes below this one."""
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children_of(int(child))]
    return found


def python_mib() -> float:
    """What the Python processes below this one hold now, in MiB; what several share is counted once."""
    total = 0
    for pid in children_of(os.getpid()):
        try:
            if "python" in Path(Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]).name:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1024


def main() -> None:
    name_server, topic, _ = sys.argv[1:4]
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    source = spark.read.format("rocketmq").option("nameServers", name_server).option("topic", topic)
    few = source.option("filterPushdown", "true").load().where("queueOffset < 100")
    few.agg(f.count("*"), f.sum(f.length("body"))).collect()  # starts the workers
    messages = source.option("filterPushdown", "false").load()
    most = [0.0]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(0.5):
            most[0] = max(most[0], python_mib())

    sampling = threading.Thread(target=sample)
    sampling.start()
    seconds = []
    for _ in range(2):  # the first time, Spark compiles the plan and Java its code
        started = time.perf_counter()
        row = messages.agg(f.count("*").alias("messages"), f.sum(f.length("body")).alias("bytes")).collect()[0]
        seconds.append(time.perf_counter() - started)
    done.set()
    sampling.join()
    times = {"first_seconds": seconds[0], "seconds": seconds[1]}
    print(json.dumps({**row.asDict(), **times, "workers_mib": most[0]}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
