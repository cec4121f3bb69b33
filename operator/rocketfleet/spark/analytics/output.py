"""The tables as Parquet files: `TABLE/day=2026-01-31/run=…/…parquet` under one directory.

`run` says who wrote it: `batch`, or a streaming query's batch. A run that is repeated replaces what it wrote before,
day by day, and so leaves each row once: a batch that is run again over the same days, or a stream's batch that is done
again after a crash. A directory belongs to one of the two, for both would write the same windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocketfleet.spark.analytics.windows.reference import HistoryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUEUES: Final = "queues"
MEMBERS: Final = "members"
GROUPS: Final = "groups"
DAYS: Final = "days"
HOURS: Final = "hours"
BATCH: Final = "batch"


def write_table(frame: DataFrame, directory: str, table: str, run: str = BATCH) -> None:
    """Write the rows by their day, and replace what this run wrote of those days before."""
    from pyspark.sql import functions as f

    (
        frame.withColumn("run", f.lit(run))
        .hint("rebalance", "day")  # a file or a few for each day, not one for each task and day
        .write.mode("overwrite")
        .option("partitionOverwriteMode", "dynamic")
        .option("compression", "zstd")
        .partitionBy("day", "run")
        .parquet(f"{directory}/{table}")
    )


def read_table(spark: SparkSession, directory: str, table: str) -> DataFrame:
    """A table that was written before."""
    found = _open(spark, directory, table)
    if found is None:
        raise HistoryError(
            f"there are no aggregates in {directory}: give --history, to make them, or the directory that a stream "
            "writes them to"
        )
    return found.drop("run")


def check_owner(spark: SparkSession, directory: str, *, streaming: bool) -> None:
    """Refuse a directory that the other kind has written to."""
    from pyspark.sql import functions as f

    found = _open(spark, directory, QUEUES)
    if found is None:
        return
    other = f.col("run") == BATCH if streaming else f.col("run") != BATCH
    if not found.where(other).select("run").limit(1).isEmpty():
        of, give = ("a report's", "stream") if streaming else ("a stream's", "report")
        raise HistoryError(f"the aggregates in {directory} are {of}: give this {give} a directory of its own")


def _open(spark: SparkSession, directory: str, table: str) -> DataFrame | None:
    from pyspark.errors import AnalysisException

    try:
        return spark.read.parquet(f"{directory}/{table}")
    except AnalysisException as error:
        if error.getCondition() in {"PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"}:
            return None
        raise
