"""Each row of a write once, for readers that want it so.

The sink sends at least once: a task that Spark runs again repeats its messages under new ids. It stamps each message
with the batch it belongs to, so a message with the keys and the batch of an earlier one is a repeat. Messages without
keys, and those of other producers, are never taken for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROW = "_rocketfleet_row"


def drop_repeats(messages: DataFrame, within: str = "1 hour") -> DataFrame:
    """Of messages that were read with includeProperties, the first of each key and batch.

    A streaming query remembers them for as long as `within` of store time.
    """
    from pyspark.sql import functions as f

    from rocketfleet.spark.source.sink import BATCH_PROPERTY

    batch = f.col("properties").getItem(BATCH_PROPERTY)
    place = f.concat_ws("/", "broker", "queueId", "queueOffset")
    stamped = batch.isNotNull() & f.col("keys").isNotNull()
    row = f.when(stamped, f.concat_ws("\x01", f.lit("row"), batch, "keys")).otherwise(
        f.concat_ws("\x01", f.lit("at"), place)
    )
    named = messages.withColumn(_ROW, f.concat_ws("\x01", "topic", row))
    if not messages.isStreaming:
        return named.dropDuplicates([_ROW]).drop(_ROW)
    return named.withWatermark("storeTime", within).dropDuplicatesWithinWatermark([_ROW]).drop(_ROW)
