"""The lag analytics over histories of growing size: rows per second and core, and whether time grows with the rows.

A history of 250 groups with 16 queues each, a sample per minute, so that a million samples are four hours and a hundred
million 17 days. Spark makes it, by expressions over a range, as Parquet files by day like the operator's; it is kept
outside the tree (`--data`) for the next time. Each size is a process of its own: the whole job, from the files to the
five tables, the recommendations and the page. Starting Spark is not measured, and no run warms it up: the compiler's
work is part of what a small job costs, and why the rate rises with the size.

`growth` is the exponent by which time grows with the rows, between the two largest sizes: 1 is linear, less is better.
The memory is the most that the driver's process had, JVM and Python together.
"""

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

GROUPS, QUEUES = 250, 16
START = 1_767_225_600  # 2026-01-01
HEAP = "6g"
TARGETS = {"growth": 1.1, "memory_gib": 24.0}
SIZES = (1_000_000, 10_000_000, 100_000_000)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def session(cores: int, heap: str) -> Any:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": heap,
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def generate(path: Path, rows: int, cores: int, heap: str) -> None:
    """Samples in the order of time: traffic by the day, each group with an hour of its own; lag that comes and goes
    with it; members that change; now and then a queue that stands still.
    """
    from pyspark.sql import functions as f

    spark = session(cores, heap)
    number, queues = f.col("id"), GROUPS * QUEUES
    turn = (number / queues).cast("bigint")
    place = (number % queues).cast("int")
    group, queue = (place / QUEUES).cast("int"), place % QUEUES
    seconds = turn * 60
    phase = seconds * (2 * math.pi / 86_400) + group
    rate = 10 + group % 50  # messages per second into a queue
    came = rate * (seconds - 0.6 * (86_400 / (2 * math.pi)) * f.cos(phase))
    waits = rate * (2 + 300 * f.greatest(f.lit(0.0), f.sin(phase - 1))) + f.pmod(f.xxhash64(number), f.lit(50))
    end = (came + 10_000_000).cast("bigint")
    still = (place % 997 == 0) & (turn % 1440 >= 600) & (turn % 1440 < 720)
    at = f.when(still, f.lit(9_000_000).cast("bigint")).otherwise(end - waits.cast("bigint"))
    member = ((queue + (turn / 360).cast("int")) % 4).cast("string")
    digits = f.lpad(group.cast("string"), 3, "0")  # format_string would parse its pattern for every row
    samples = spark.range(0, rows, 1, max(cores * 2, rows // 4_000_000)).select(
        f.timestamp_seconds(f.lit(START) + seconds + place % 2).alias("time"),
        f.lit("10.0.0.1:9876;10.0.0.2:9876").alias("cluster"),
        f.concat(f.lit("group-"), digits).alias("group"),
        f.concat(f.lit("topic-"), digits).alias("topic"),
        f.concat(f.lit("broker-"), (place % 2).cast("string")).alias("broker"),
        queue.cast("int").alias("queue"),
        f.lit(0).cast("bigint").alias("min_offset"),
        end.alias("max_offset"),
        at.alias("consumer_offset"),
        (end - at).alias("lag"),
        ((end - at) / rate).alias("seconds"),
        f.concat(f.lit("group-"), digits, f.lit("-"), member, f.lit("@10.1."), member, f.lit(".7")).alias("owner"),
    )
    by_day = samples.withColumn("day", f.to_date("time"))
    by_day.write.partitionBy("day").option("compression", "zstd").mode("overwrite").parquet(str(path))
    spark.stop()


def memory_gib() -> float:
    """The most that this process and those below it have had, in GiB."""
    total = 0
    for pid in [os.getpid(), *children_of(os.getpid())]:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                total += int(line.split()[1])
    return total / 1024**2


def children_of(parent: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children_of(int(child))]
    return found


def job(path: Path, rows: int, cores: int, heap: str) -> dict[str, float]:
    """The whole job, once."""
    from rocketfleet.spark.analytics.batch import AnalysisRequest, analyse
    from rocketfleet.spark.analytics.recommendation_file import write_recommendations
    from rocketfleet.spark.analytics.recommending import recommend
    from rocketfleet.spark.analytics.report.page import page

    spark = session(cores, heap)
    with tempfile.TemporaryDirectory(prefix="bench-lag-") as directory:
        out = Path(directory)
        steps: list[tuple[float, str]] = []
        started = time.perf_counter()
        made = analyse(
            spark,
            AnalysisRequest(str(path), str(out / "tables")),
            lambda words: steps.append((time.perf_counter(), words)),
        )
        advice = [recommend(group) for group in made.groups]
        (out / "report.html").write_text(page(made, advice, 0.0))
        write_recommendations(out / "floors.json", made, advice)
        seconds = time.perf_counter() - started
        tables = sum(one.stat().st_size for one in (out / "tables").rglob("*.parquet"))
        most = memory_gib()
    if made.samples != rows or len(made.groups) != GROUPS:
        raise SystemExit(f"the report is of {made.samples} samples of {len(made.groups)} groups, and not of {rows}")
    for (at, words), (after, _) in itertools.pairwise([*steps, (started + seconds, "")]):
        say(f"    {after - at:8.1f} s  {words.replace(directory, '')}")
    spark.stop()
    return {"seconds": seconds, "memory_gib": most, "tables_mib": tables / 1024**2}


def child(what: str, path: Path, rows: int, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", what, "--rows", str(rows), "--data", str(path)]
    command += ["--cores", str(options.cores), "--heap", options.heap]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"{what} of {rows:,} rows ended with {answer.returncode}")
    result: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return result


def growth(few: tuple[int, float], many: tuple[int, float]) -> float:
    """The exponent by which time grows with rows."""
    return math.log(many[1] / few[1]) / math.log(many[0] / few[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="ROWS")
    parser.add_argument("--quick", action="store_true", help="a million rows only")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--heap", default=HEAP, help=f"of the driver, which does all the work [default: {HEAP}]")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "rocketfleet-bench-lag")
    parser.add_argument("--child", choices=["generate", "job"], help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child == "generate":
        generate(options.data, options.rows, options.cores, options.heap)
        print("{}")
        return
    if options.child == "job":
        print(json.dumps(job(options.data, options.rows, options.cores, options.heap)))
        return
    sizes = sorted(SIZES[:1] if options.quick else options.sizes)
    taken: list[tuple[int, float]] = []
    memory = 0.0
    result: dict[str, Any] = {"cores": options.cores, "heap": options.heap}
    for rows in sizes:
        path = options.data / str(rows)
        if not (path / "_SUCCESS").exists():
            say(f"making {rows:,} samples in {path}")
            child("generate", path, rows, options)
        done = child("job", path, rows, options)
        taken.append((rows, done["seconds"]))
        memory = max(memory, done["memory_gib"])
        rate = rows / done["seconds"] / options.cores
        say(
            f"{rows:12,} rows {done['seconds']:8.1f} s {rate:10,.0f} rows/s/core "
            f"{done['memory_gib']:6.1f} GiB, tables {done['tables_mib']:,.0f} MiB"
        )
        result[f"rows_per_second_per_core_{rows}"] = round(rate)
    result["memory_gib"] = round(memory, 2)
    if len(taken) > 1:
        result["growth"] = round(growth(taken[-2], taken[-1]), 3)
        result["growth_overall"] = round(growth(taken[0], taken[-1]), 3)
    for name, target in TARGETS.items():
        if name in result:
            say(f"{name:12} {result[name]:8.2f}   target at most {target:g}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
