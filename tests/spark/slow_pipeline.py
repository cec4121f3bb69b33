"""A pipeline that a test can kill in the middle of a batch: every record batch takes a while."""

import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(0.3)
        yield batch


def pipeline(spark: SparkSession, name_servers: str, topic: str, group: str, directory: str) -> None:
    messages = (
        spark.readStream.format("rocketmq")
        .option("nameServers", name_servers)
        .option("topic", topic)
        .option("group", group)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "400")
        .load()
    )
    writer = messages.mapInArrow(slowly, messages.schema).writeStream.format("parquet")
    writer.option("checkpointLocation", f"{directory}/checkpoint").start(f"{directory}/sink")
