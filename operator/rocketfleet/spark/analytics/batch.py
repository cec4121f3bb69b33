"""A history, or the windows that a stream made of it, into tables and figures: what `rocketfleet spark report` runs.

Windows are made once and kept on the executors' disks: everything else is made from them, and they are a fraction of
the samples.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketfleet.spark.analytics.collecting import collect
from rocketfleet.spark.analytics.output import (
    DAYS,
    GROUPS,
    HOURS,
    MEMBERS,
    QUEUES,
    check_owner,
    read_table,
    write_table,
)
from rocketfleet.spark.analytics.windows.group_windows import group_windows
from rocketfleet.spark.analytics.windows.member_windows import member_windows
from rocketfleet.spark.analytics.windows.patterns import days, hours
from rocketfleet.spark.analytics.windows.queue_windows import GROUP, WIDTH, queue_windows
from rocketfleet.spark.analytics.windows.reading import count_samples, read_history
from rocketfleet.spark.analytics.windows.reference import HistoryError, parse_history
from rocketfleet.spark.analytics.windows.sizing import partitions_for, size_shuffles

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from rocketfleet.spark.analytics.figures import Analysis


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """What to analyse. Without a history, the windows in `aggregates` are taken; with one, they are written there."""

    history: str | None
    aggregates: str | None = None
    since: date | None = None  # a day in UTC; the first
    until: date | None = None  # a day in UTC; the first that is left out
    width: int = WIDTH  # seconds; windows that were made before have their own
    details: int = 12  # groups that get charts of their own

    @property
    def source(self) -> str:
        return str(parse_history(self.history)) if self.history is not None else f"aggregates in {self.aggregates}"


def analyse(spark: SparkSession, request: AnalysisRequest, say: Callable[[str], None]) -> Analysis:
    """Run it all."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # days and hours are those of UTC, in what is written too
    say(f"reading {request.source}")
    with ExitStack() as kept:
        queues = _keep(_queue_windows(spark, request), kept)
        if queues.isEmpty():
            raise HistoryError(f"there are no samples of lag in {request.source}{_period(request)}")
        members = _keep(member_windows(queues), kept)
        groups = _keep(group_windows(queues, members), kept)
        if request.history is not None and request.aggregates is not None:
            say(f"writing aggregates to {request.aggregates}")
            _write(request.aggregates, queues, members, groups)
        say("working out patterns and figures")
        width = request.width if request.history is not None else queues.select("window_seconds").first()[0]
        return collect(queues, members, groups, request.source, width, request.details)


def _keep(frame: DataFrame, kept: ExitStack) -> DataFrame:
    """Make it now and keep it on disk, before what is made of it is planned: that then takes its partitions as they
    are.
    """
    from pyspark import StorageLevel

    frame.persist(StorageLevel.DISK_ONLY)
    kept.callback(frame.unpersist)
    frame.count()
    return frame


def _queue_windows(spark: SparkSession, request: AnalysisRequest) -> DataFrame:
    cores = spark.sparkContext.defaultParallelism
    if request.history is not None:
        if request.aggregates is not None:
            check_owner(spark, request.aggregates, streaming=False)
        history = parse_history(request.history)
        rows = count_samples(spark, history, request.since, request.until)
        partitions = size_shuffles(spark, partitions_for(rows, cores))
        samples = read_history(spark, history, request.since, request.until)
        return queue_windows(samples, request.width, partitions=partitions)
    if request.aggregates is None:
        raise HistoryError("say where the history is: --history, or --aggregates with windows made before")
    found = read_table(spark, request.aggregates, QUEUES)
    if request.since is not None:
        found = found.where(found["day"] >= request.since)
    if request.until is not None:
        found = found.where(found["day"] < request.until)
    return found.repartition(size_shuffles(spark, partitions_for(found.count(), cores)), *GROUP)


def _write(directory: str, queues: DataFrame, members: DataFrame, groups: DataFrame) -> None:
    write_table(queues, directory, QUEUES)
    write_table(members, directory, MEMBERS)
    write_table(groups, directory, GROUPS)
    write_table(days(groups), directory, DAYS)
    write_table(hours(groups), directory, HOURS)


def _period(request: AnalysisRequest) -> str:
    since = f" from {request.since} on" if request.since is not None else ""
    return since + (f" before {request.until}" if request.until is not None else "")
