"""The same history as a batch and as a stream, out of files and out of a topic: the same numbers, to the last bit."""

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.broker.cluster import Cluster
from tests.spark.lag_samples import START, adventures, write_file

from rocketfleet.client.config import ClientConfig
from rocketfleet.lag.samples.history import LagSample
from rocketfleet.lag.samples.topic_sink import TopicSink
from rocketfleet.producer import Producer, ProducerOptions
from rocketfleet.spark.analytics.batch import AnalysisRequest, analyse
from rocketfleet.spark.analytics.output import read_table
from rocketfleet.spark.analytics.streaming import pipeline, start, write_windows
from rocketfleet.spark.analytics.windows.reading import read_history
from rocketfleet.spark.analytics.windows.reference import HistoryError, TopicHistory

TABLES = ("queues", "members", "groups")
DELAY = 600
WIDTH = 240  # other than the default, which nothing here may go by
NOW = {"availableNow": True}


def tables(spark: SparkSession, directory: Path, before: float | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, in an order of their own; only of windows that end before a time."""
    found = {}
    for name in TABLES:
        frame = read_table(spark, str(directory), name)
        columns = sorted(frame.columns)
        rows = [row for row in frame.select(*columns).collect() if before is None or ends(row) <= before]
        found[name] = sorted((tuple(row) for row in rows), key=repr)
    return found


def ends(row: Any) -> float:
    return float(row.window_start.timestamp()) + WIDTH


def late_ish(samples: Sequence[LagSample], seed: int) -> list[LagSample]:
    """As they might arrive: each up to some minutes late, but never as late as the stream waits."""
    chance = random.Random(seed)
    return sorted(samples, key=lambda one: one.time + chance.random() * 0.8 * DELAY)


def in_files(directory: Path, samples: Sequence[LagSample], files: int, first: int = 0) -> None:
    """In so many files, which Spark takes in the order of their times of modification."""
    size = -(-len(samples) // files)
    for number in range(files):
        before = set(directory.rglob("*.parquet"))
        write_file(directory, samples[number * size : (number + 1) * size])
        for path in set(directory.rglob("*.parquet")) - before:
            os.utime(path, (1_700_000_000 + first + number,) * 2)


def closed_before(samples: Sequence[LagSample]) -> float:
    """Windows that end no later are closed: the stream has seen a sample that is so much later."""
    return max(one.time for one in samples) - DELAY


def test_batch_and_stream_give_the_same_numbers(spark: SparkSession, tmp_path: Path) -> None:
    samples = adventures(11, minutes=90)
    arriving = late_ish(samples, 12)
    history, batch, stream = tmp_path / "history", tmp_path / "batch", tmp_path / "stream"
    middle = len(arriving) // 2
    in_files(history, arriving[:middle], 4)
    # In two goes, as if it had been stopped in between.
    first = start(spark, str(history), str(stream), width=WIDTH, delay=DELAY, most=2, trigger=NOW)
    first.awaitTermination()
    in_files(history, arriving[middle:], 4, first=4)
    second = start(spark, str(history), str(stream), width=WIDTH, delay=DELAY, most=2, trigger=NOW)
    second.awaitTermination()
    assert len(list((stream / "groups").glob("day=*/run=*"))) > 2, "windows were closed in several batches"
    analyse(spark, AnalysisRequest(str(history), str(batch), width=WIDTH), lambda _: None)
    wanted = tables(spark, batch, closed_before(arriving))
    assert tables(spark, stream) == wanted
    assert len(wanted["groups"]) == 3 * 19, "all windows but those of the last minutes"
    report = analyse(spark, AnalysisRequest(None, str(stream)), lambda _: None)
    assert [group.key.group for group in report.groups] == ["clicks", "news", "orders"]
    assert report.window == WIDTH


def test_a_batch_of_a_stream_that_is_done_again_leaves_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    history, batch = tmp_path / "history", tmp_path / "batch"
    write_file(history, adventures(13, minutes=20))
    analyse(spark, AnalysisRequest(str(history), str(batch), width=WIDTH), lambda _: None)
    closed = read_table(spark, str(batch), "queues")
    for _ in range(2):
        write_windows(closed, str(tmp_path / "stream"), "stream-000000007")
    assert tables(spark, tmp_path / "stream") == tables(spark, batch)


def test_a_topic_says_what_the_files_say(
    spark: SparkSession, broker: Cluster, make_topic: Callable[..., str], make_group: Callable[..., str], tmp_path: Path
) -> None:
    samples = [one._replace(time=round(one.time, 3)) for one in adventures(17, minutes=60)]
    topic, group = make_topic(queues=3), make_group()

    async def send() -> None:
        config, patient = ClientConfig(broker.name_server, timeout=10.0), ProducerOptions(send_timeout=30.0)
        async with Producer(config, "tests", patient) as producer:
            sink = TopicSink(producer, topic)
            for at in range(0, len(samples), 100):
                await sink.write(samples[at : at + 100])

    samples.sort(key=lambda one: one.time)
    asyncio.run(send())
    write_file(tmp_path / "history", samples)
    where = f"rocketmq://{broker.name_server}/{topic}"
    assert read_history(spark, TopicHistory(broker.name_server, topic)).count() == len(samples)
    analyse(spark, AnalysisRequest(str(tmp_path / "history"), str(tmp_path / "files"), width=WIDTH), lambda _: None)
    analyse(spark, AnalysisRequest(where, str(tmp_path / "lines"), width=WIDTH), lambda _: None)
    wanted = tables(spark, tmp_path / "files")
    assert tables(spark, tmp_path / "lines") == wanted
    stream = tmp_path / "stream"
    query = start(spark, where, str(stream), width=WIDTH, delay=DELAY, group=group, trigger=NOW)
    query.awaitTermination()
    until = closed_before(samples)
    assert tables(spark, stream) == tables(spark, tmp_path / "files", until)
    assert until >= START + 40 * 60, "most windows are closed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say where from and where to"),
        (("/data", "/out", "windows=60"), "there is no setting 'windows'"),
        (("/data", "/out", "window=soon"), "window is 'soon': give a whole number of seconds"),
        (("/no/such/history", "/no/such/out"), "there is no directory /no/such/history"),
    ],
)
def test_a_mistake_is_one_sentence(spark: SparkSession, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(HistoryError, match=said):
        pipeline(spark, *arguments)
