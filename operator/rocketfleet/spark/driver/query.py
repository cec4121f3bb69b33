"""The pipeline's one query: made by the user's function out of the group's messages, started and watched here.

A group has one reader and one checkpoint, so it has one query: the function gets the messages as a streaming DataFrame
and returns a DataStreamWriter that is *not* started. Where its checkpoint is and how often it is triggered are the
manifest's to say, and starting it is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocketfleet.spark.driver.progress import BatchProgress, progress_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from rocketfleet.spark.driver.settings import DriverSettings


class NotAWriter(ValueError):
    """The function returned something else; the message says what to return."""


class Query:
    """A running query."""

    def __init__(self, spark: SparkSession, query: Any, settings: DriverSettings) -> None:
        self._spark = spark
        self._query = query
        self._settings = settings

    @property
    def is_active(self) -> bool:
        return bool(self._query.isActive)

    @property
    def in_a_batch(self) -> bool:
        """Whether a trigger is under way. Between two there is nothing to interrupt."""
        return bool(self._query.status["isTriggerActive"])

    @property
    def error(self) -> Exception | None:
        """What it ended with."""
        found: Exception | None = self._query.exception()
        return found

    def progress(self) -> BatchProgress | None:
        """How the last trigger ended."""
        report = self._query.lastProgress
        return None if report is None else progress_of(report.json, self._settings.topics)

    def executors(self) -> int | None:
        """How many there are; None where the driver does the work itself."""
        if self._settings.spark.is_local:
            return None
        known = self._spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()  # noqa: SLF001 - not in Python
        return max(0, int(known) - 1)  # the driver is counted too

    def stop(self) -> None:
        self._query.stop()


def start(
    spark: SparkSession,
    pipeline: Callable[..., Any],
    settings: DriverSettings,
    options: Mapping[str, str],
) -> Query:
    """Have the pipeline make its query, and start it."""
    from pyspark.sql.streaming import DataStreamWriter

    messages = spark.readStream.format("rocketmq").options(**options).load()
    made = pipeline(messages)
    if not isinstance(made, DataStreamWriter):
        raise NotAWriter(_wrong(settings.spark.pipeline, made))
    writer = made.option("checkpointLocation", settings.spark.checkpoint)
    if settings.spark.trigger is not None:
        writer = writer.trigger(processingTime=settings.spark.trigger)
    return Query(spark, writer.start(), settings)


def _wrong(name: str, made: object) -> str:
    what = "nothing" if made is None else f"a {type(made).__name__}"
    return f"{name} returned {what}: return messages.….writeStream, with its sink and not started"
