"""Pipelines of groups with engine Spark: one that archives, slowly, and some that go wrong each in its way."""

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

SINK = "spark.rocketfleet.tests.sink"
PAUSE = "spark.rocketfleet.tests.pause"


def archive(messages: DataFrame) -> Any:
    """Into Parquet files, each of which is there once its batch is done. A record batch takes a while."""
    session = messages.sparkSession
    pause = float(session.conf.get(PAUSE, "0"))

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(pause)
            yield batch

    return (
        messages.mapInArrow(slowly, messages.schema)
        .writeStream.format("parquet")
        .option("path", session.conf.get(SINK))
    )


def raises(messages: DataFrame) -> Any:
    raise ValueError(f"no table for {len(messages.columns)} columns")


def returns_nothing(messages: DataFrame) -> None:
    messages.writeStream.format("noop")


def breaks_down(messages: DataFrame) -> Any:
    """It starts well, and its first batch fails."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                raise RuntimeError(f"cannot digest {batch.num_rows} messages")
            yield batch

    return messages.mapInArrow(fail, messages.schema).writeStream.format("noop")
