"""Queue windows → one row for each window and group.

Queues are made whole first, for one that changed hands within the window, or is a broadcasting group's, has several
rows. Rates are then the messages of all rows over the time of all rows, and the lag is that of the last sample; where
several members have a lag of their own, the largest.

| column | what it is |
|---|---|
| `queues`, `unknown_queues`, `stuck_queues` | how many |
| `shared_queues` | how many were several members' at the same time |
| `members` | how many owned a queue |
| `lag`, `lag_first`, `trend` | at the end of the window, at its beginning, the change in messages per second |
| `lag_skew`, `produce_skew` | how much more the queue with the most has than an even share: 1 is even |
| `lag_worst` | the lag of the queue with the most |

Text and structures are kept out of the aggregates here too: see `queue_windows.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rocketfleet.spark.analytics.windows.queue_windows import (
    GROUP,
    QUEUE,
    day_of,
    drain_seconds,
    exact_sum,
    rate,
    span_us,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LAG_BITS: Final = 34  # a lag of 17 thousand million; with the milliseconds of a window of days still within 63 bits


def group_windows(queues: DataFrame, members: DataFrame) -> DataFrame:
    """The windows of every group, from all queue windows and member windows of these times."""
    from pyspark.sql import functions as f

    counted = members.groupBy(*GROUP).agg(f.count("*").alias("members"))
    summed = _summed(_whole(queues)).join(counted, list(GROUP), "left")
    return summed.withColumns(
        {
            "day": day_of("window_start"),
            "members": f.coalesce("members", f.lit(0)),
            "lag_skew": _skew("lag_worst", "lag"),
            "produce_skew": _skew("produce_most", "produce_rate"),
            "drain_seconds": drain_seconds("lag"),
        }
    ).drop("produce_most")


def _whole(queues: DataFrame) -> DataFrame:
    """One row per window and queue."""
    from pyspark.sql import functions as f

    # The earliest lag and the latest, and of the same time the larger: members of a broadcasting group are all seen at
    # once. One number says both, so that it does not matter which row comes first.
    most = f.lit((1 << _LAG_BITS) - 1)
    earliness = _milliseconds("lag_first_time") + (most - f.least("lag_first", most))
    recency = _milliseconds("lag_last_time") + f.least("lag_last", most)
    whole = queues.groupBy("window_start", *QUEUE).agg(
        f.sum("samples").alias("samples"),
        f.sum("produced").alias("_produced"),
        f.sum("produce_us").alias("_produce_us"),
        f.sum("consumed").alias("_consumed"),
        f.sum("consume_us").alias("_consume_us"),
        f.min_by("lag_first", f.when(f.col("lag_first").isNotNull(), earliness)).alias("lag_first"),
        f.max_by("lag_last", f.when(f.col("lag_last").isNotNull(), recency)).alias("lag_last"),
        f.max("seconds_last").alias("seconds_last"),
        f.max("seconds_max").alias("seconds_max"),
        # A queue is stuck if it was so under every owner.
        f.min(f.col("stuck").cast("int")).alias("stuck"),
        f.max(f.col("rewound").cast("int")).alias("rewound"),
        # Members of a broadcasting group are seen at the same looks; owners that take turns never are.
        ((f.min("last_time") == f.max("last_time")) | (f.min("first_time") == f.max("first_time"))).alias("_at_once"),
        (f.unix_micros(f.max("lag_last_time")) - f.unix_micros(f.min("lag_first_time"))).alias("_us"),
        f.count("*").alias("_rows"),
    )
    return whole.withColumns(
        {
            "produce_rate": rate("_produced", "_produce_us"),
            "consume_rate": rate("_consumed", "_consume_us"),
            "trend": f.when(f.col("_us") > 0, (f.col("lag_last") - f.col("lag_first")) * 1e6 / f.col("_us")),
            "shared": f.col("_at_once") & (f.col("_rows") > 1),
        }
    )


def _summed(whole: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return whole.groupBy(*GROUP).agg(
        f.count("*").alias("queues"),
        f.sum("samples").alias("samples"),
        f.sum(f.col("lag_last").isNull().cast("int")).alias("unknown_queues"),
        f.sum("stuck").alias("stuck_queues"),
        f.sum(f.col("shared").cast("int")).alias("shared_queues"),
        f.sum("rewound").alias("rewound_queues"),
        exact_sum(f.col("produce_rate")).alias("produce_rate"),
        exact_sum(f.col("consume_rate")).alias("consume_rate"),
        f.max("produce_rate").alias("produce_most"),
        f.sum("lag_first").alias("lag_first"),
        f.sum("lag_last").alias("lag"),
        f.max("lag_last").alias("lag_worst"),
        exact_sum(f.col("trend")).alias("trend"),
        f.max("seconds_last").alias("seconds_last"),
        f.max("seconds_max").alias("seconds_max"),
    )


def _milliseconds(moment: str) -> Any:
    """Milliseconds into the window, above the bits of a lag."""
    from pyspark.sql import functions as f

    return f.shiftleft(f.floor(span_us("window_start", moment) / 1000).cast("bigint"), _LAG_BITS)


def _skew(most: str, total: str) -> Any:
    from pyspark.sql import functions as f

    return f.when(f.col(total) > 0, f.col(most) * f.col("queues") / f.col(total))
