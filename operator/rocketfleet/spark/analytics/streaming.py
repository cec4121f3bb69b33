"""The history as it grows, into tables of windows. `pipeline` is what `rocketfleet spark submit` runs.

One query: it keeps the open windows of every queue as its state and lets go of a window when no sample of it is waited
for any longer. All queues of a window are let go in the same batch, for that is decided by time alone; so the windows
of members and groups can be made there and then by the functions that a batch uses, and are the same to the last bit.

Samples that come later than `delay` are left out; a batch over the same history has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocketfleet.spark.analytics.output import GROUPS, MEMBERS, QUEUES, check_owner, write_table
from rocketfleet.spark.analytics.windows.group_windows import group_windows
from rocketfleet.spark.analytics.windows.member_windows import member_windows
from rocketfleet.spark.analytics.windows.queue_windows import DELAY, WIDTH, queue_windows
from rocketfleet.spark.analytics.windows.reading import STREAM_GROUP, stream_history
from rocketfleet.spark.analytics.windows.reference import HistoryError, parse_history
from rocketfleet.spark.analytics.windows.sizing import size_shuffles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


def pipeline(spark: SparkSession, history: str = "", directory: str = "", *settings: str) -> None:
    """HISTORY DIRECTORY [window=SECONDS] [delay=SECONDS] [group=NAME]: for `rocketfleet spark submit`."""
    if not history or not directory:
        raise HistoryError("say where from and where to: HISTORY DIRECTORY [window=300] [delay=900] [group=NAME]")
    given = dict(setting.partition("=")[::2] for setting in settings)
    group = given.pop("group", STREAM_GROUP)
    width, delay = (_seconds(given.pop(name, ""), name, usual) for name, usual in (("window", WIDTH), ("delay", DELAY)))
    if given:
        raise HistoryError(f"there is no setting {next(iter(given))!r}: window, delay and group can be set")
    start(spark, history, directory, width=width, delay=delay, group=group)


def start(
    spark: SparkSession,
    history: str,
    directory: str,
    *,
    width: int = WIDTH,
    delay: int = DELAY,
    group: str = STREAM_GROUP,
    most: int | None = None,
    trigger: dict[str, Any] | None = None,
) -> StreamingQuery:
    """Start the query; its checkpoint lies beside the tables."""
    check_owner(spark, directory, streaming=True)
    # Each partition is a state store of its own that is written at every batch: 200 are for clusters.
    size_shuffles(spark, max(2, spark.sparkContext.defaultParallelism))
    samples = stream_history(spark, parse_history(history), group, most)
    writer = queue_windows(samples, width, delay).writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", f"{directory}/_checkpoint").queryName("lag-analytics")

    def write(closed: DataFrame, number: int) -> None:
        write_windows(closed, directory, f"stream-{number:09d}")

    return writer.foreachBatch(write).trigger(**(trigger or {"processingTime": "1 minute"})).start()


def write_windows(closed: DataFrame, directory: str, run: str) -> None:
    """Windows that are closed, in all three tables. They are held meanwhile: asking a state twice is not allowed."""
    closed.persist()
    try:
        if not closed.isEmpty():
            members = member_windows(closed)
            write_table(closed, directory, QUEUES, run)
            write_table(members, directory, MEMBERS, run)
            write_table(group_windows(closed, members), directory, GROUPS, run)
    finally:
        closed.unpersist()


def _seconds(text: str, name: str, usual: int) -> int:
    if not text:
        return usual
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 86_400:
        raise HistoryError(f"{name} is {text!r}: give a whole number of seconds, up to a day")
    return int(text)
