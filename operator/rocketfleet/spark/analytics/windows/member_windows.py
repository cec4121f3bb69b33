"""Queue windows → one row for each window and member: what it had, what it did, and whether it had plenty to do.

A member's rate is what it consumed in all its queues over the time in which it was seen to have any: a queue that it
got in the middle of a window counts from there. It is unknown if it is so of one of its queues.

`busy` says that the member had work all through the window: more lay there than it consumes between two commits, and no
queue of its was stuck. Only then does its rate say what a member is able to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.autoscale.demand import PLENTY
from rocketfleet.spark.analytics.windows.queue_windows import day_of, drain_seconds, exact_sum, rate, span_us

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def member_windows(queues: DataFrame) -> DataFrame:
    """The windows of every member, from all queue windows of these times."""
    from pyspark.sql import functions as f

    complete = f.count("consumed") == f.count("*")
    seen = queues.where(f.col("owner").isNotNull()).groupBy("window_start", "cluster", "group", "owner")
    summed = seen.agg(
        f.count("*").alias("queues"),
        f.min("first_time").alias("first_time"),
        f.max("last_time").alias("last_time"),
        f.when(complete, f.sum("consumed")).alias("consumed"),
        exact_sum(f.col("produce_rate")).alias("produce_rate"),
        f.sum("lag_first").alias("lag_first"),
        f.sum("lag_last").alias("lag_last"),
        f.sum("lag_min").alias("lag_min"),
        f.sum("lag_max").alias("lag_max"),
        exact_sum(f.col("trend")).alias("trend"),
        f.max("seconds_last").alias("seconds_last"),
        f.max("seconds_max").alias("seconds_max"),
        f.sum(f.col("stuck").cast("int")).alias("stuck_queues"),
    )
    timed = summed.withColumn("consume_us", span_us("first_time", "last_time"))
    rated = timed.withColumns({"day": day_of("window_start"), "consume_rate": rate("consumed", "consume_us")})
    plenty = f.col("lag_min") >= f.greatest(f.lit(1.0), PLENTY * f.col("consume_rate"))
    busy = plenty & (f.col("stuck_queues") == 0) & (f.col("consumed") > 0)
    return rated.withColumns({"drain_seconds": drain_seconds("lag_last"), "busy": f.coalesce(busy, f.lit(False))})
