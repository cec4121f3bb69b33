"""What windows come to over hours, days and the whole period: percentiles, the daily pattern, what a member is able to
do, which queues stood still. Made from closed windows, in batch: a day is known when it is over.

Percentiles are exact, and over the windows of the time: the p95 of a day's seconds is what was not exceeded in 19 of 20
windows of that day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rocketfleet.spark.analytics.windows.queue_windows import QUEUE, hour_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
PEAK: Final = 0.95
"""What counts as the most of an hour: not the one window in which somebody replayed a day."""
OWNED: Final = ("cluster", "group")


def _percentiles(column: str) -> list[Any]:
    from pyspark.sql import functions as f

    return [f.percentile(column, f.lit(share)).alias(f"{column}_{name}") for name, share in PERCENTILES.items()]


def days(groups: DataFrame) -> DataFrame:
    """A row for each group and day."""
    from pyspark.sql import functions as f

    return groups.groupBy("day", *OWNED).agg(
        f.count("*").alias("windows"),
        f.sum("samples").alias("samples"),
        *_percentiles("lag"),
        f.max("lag").alias("lag_max"),
        *_percentiles("seconds_max"),
        f.max("seconds_max").alias("seconds_max"),
        f.percentile("produce_rate", f.lit(0.5)).alias("produce_rate_p50"),
        f.percentile("produce_rate", f.lit(PEAK)).alias("produce_rate_peak"),
        f.percentile("consume_rate", f.lit(0.5)).alias("consume_rate_p50"),
        f.percentile("consume_rate", f.lit(PEAK)).alias("consume_rate_peak"),
        f.percentile("lag_skew", f.lit(0.5)).alias("lag_skew_p50"),
        f.sum(f.when(f.col("stuck_queues") > 0, 1).otherwise(0)).alias("stuck_windows"),
        f.max("members").alias("members_max"),
        f.max("queues").alias("queues"),
    )


def hours(groups: DataFrame) -> DataFrame:
    """A row for each group, day and hour: the daily pattern."""
    from pyspark.sql import functions as f

    return groups.groupBy("day", *OWNED, hour_of("window_start").alias("hour")).agg(
        f.count("*").alias("windows"),
        f.percentile("produce_rate", f.lit(0.5)).alias("produce_rate_p50"),
        f.percentile("produce_rate", f.lit(PEAK)).alias("produce_rate_peak"),
        f.percentile("consume_rate", f.lit(0.5)).alias("consume_rate_p50"),
        f.percentile("lag", f.lit(0.5)).alias("lag_p50"),
        f.max("lag").alias("lag_max"),
        f.max("seconds_max").alias("seconds_max"),
        f.max("members").alias("members_max"),
    )


def hours_of_day(groups: DataFrame) -> DataFrame:
    """A row for each group and hour of the day, over all days."""
    from pyspark.sql import functions as f

    return groups.groupBy(*OWNED, hour_of("window_start").alias("hour")).agg(
        f.percentile("produce_rate", f.lit(0.5)).alias("produce_rate_p50"),
        f.percentile("produce_rate", f.lit(PEAK)).alias("produce_rate_peak"),
        f.percentile("lag", f.lit(0.5)).alias("lag_p50"),
        f.percentile("members", f.lit(PEAK)).alias("members"),
    )


def member_rates(members: DataFrame) -> DataFrame:
    """What one member of each group does: while it was busy, and whenever it was seen."""
    from pyspark.sql import functions as f

    return members.groupBy(*OWNED).agg(
        f.percentile(f.when(f.col("busy"), f.col("consume_rate")), f.lit(0.5)).alias("busy_rate"),
        f.count(f.when(f.col("busy"), 1)).alias("busy_windows"),
        f.percentile("consume_rate", f.lit(PEAK)).alias("shown_rate"),
    )


def queue_totals(queues: DataFrame) -> DataFrame:
    """A row for each queue over the whole period."""
    from pyspark.sql import functions as f

    return queues.groupBy(*QUEUE).agg(
        f.count("*").alias("windows"),
        f.min("window_start").alias("first_window"),
        f.max("window_start").alias("last_window"),
        f.avg("lag_mean").alias("lag_mean"),
        f.max("lag_max").alias("lag_max"),
        f.max_by("lag_last", "last_time").alias("lag_last"),
        f.avg("produce_rate").alias("produce_rate"),
        f.max("produce_rate").alias("produce_most"),
        f.avg("consume_rate").alias("consume_rate"),
        f.sum(f.col("stuck").cast("int")).alias("stuck_windows"),
        f.max(f.when(f.col("stuck"), f.col("window_start"))).alias("stuck_last"),
        f.max(f.when(~f.col("stuck"), f.col("window_start"))).alias("free_last"),
    )


def stuck_owners(queues: DataFrame) -> DataFrame:
    """Who had the queues that stood still, and with how much: the last of each."""
    from pyspark.sql import functions as f

    last = f.max(f.struct("last_time", "owner", f.col("lag_last").alias("stuck_lag"))).alias("last")
    return queues.where("stuck").groupBy(*QUEUE).agg(last).select(*QUEUE, "last.owner", "last.stuck_lag")
