"""Samples → one row for each window of time, queue and owner: the step that all others are made of.

A queue that changes hands within a window has a row for each owner, of the stretch that was theirs; so has a queue of a
broadcasting group, whose members all have offsets of their own. Figures are made from the first and last sample of the
stretch. An offset that went backwards in between (offsets were reset, a topic was made anew) leaves what it spoils
unknown, which is null and never 0.

| column | what it is |
|---|---|
| `produced`, `produce_us` | messages that came, and in how many microseconds |
| `consumed`, `consume_us` | messages that the group went forward, and in how many microseconds |
| `produce_rate`, `consume_rate` | the same as messages per second |
| `lag_first`, `lag_last`, `lag_min`, `lag_max`, `lag_mean` | messages that waited |
| `lag_first_time`, `lag_last_time` | when it was first and last known |
| `trend` | how the lag changed, messages per second |
| `seconds_last`, `seconds_max` | how long the oldest message had waited |
| `drain_seconds` | how long the lag would last at these rates; infinite if it does not shrink |
| `stuck` | messages waited all the time, and none was consumed |
| `rewound` | the group's offset went backwards |

Everything that is aggregated is a number of fixed width: with text among it Spark would sort the samples, not hash
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WIDTH: Final = 300
"""Seconds: five samples of a queue, at the operator's one per minute."""
DELAY: Final = 900
"""Seconds that a stream waits for samples that are late."""
QUEUE: Final = ("cluster", "group", "topic", "broker", "queue")
GROUP: Final = ("window_start", "cluster", "group")


def queue_windows(
    samples: DataFrame, width: int = WIDTH, delay: int = DELAY, partitions: int | None = None
) -> DataFrame:
    """The windows of every queue. `width` in seconds; `delay` is for streams, and says nothing in a batch.

    With `partitions`, a batch has so many, and what is of one group and window is in the same one: members' windows and
    groups' windows are then made where the queues' are, without another shuffle.
    """
    from pyspark.sql import functions as f

    if samples.isStreaming:
        late = samples.withWatermark("time", f"{delay} seconds")
        seen = _seen(late, f.window("time", f"{width} seconds").alias("window"))
        seen = seen.withColumn("window_start", f.col("window.start"))
    else:
        placed = samples.withColumn("window_start", _start_of("time", width))
        if partitions is not None:
            placed = placed.repartition(partitions, *GROUP)
        seen = _seen(placed, f.col("window_start"))
    return _figures(seen).withColumn("window_seconds", f.lit(width))


def _start_of(moment: str, width: int) -> Any:
    """The start of its window, where `window()` has it too. That gives a structure, whose parts Spark does not know to
    be the keys by which rows were shuffled.
    """
    from pyspark.sql import functions as f

    at = f.unix_micros(f.col(moment))
    return f.timestamp_micros(at - f.pmod(at, f.lit(width * 1_000_000)))


def _seen(samples: DataFrame, window: Any) -> DataFrame:
    from pyspark.sql import functions as f

    time, offset, lag, seconds = f.col("time"), f.col("consumer_offset"), f.col("lag"), f.col("seconds")
    end = f.col("max_offset")
    offset_time, lag_time = f.when(offset.isNotNull(), time), f.when(lag.isNotNull(), time)
    return samples.groupBy(window, *QUEUE, "owner").agg(
        f.count("*").alias("samples"),
        f.min(time).alias("first_time"),
        f.max(time).alias("last_time"),
        f.min_by(end, time).alias("_end_first"),
        f.max_by(end, time).alias("_end_last"),
        f.min(end).alias("_end_min"),
        f.max(end).alias("_end_max"),
        f.min(offset_time).alias("_offset_from"),
        f.max(offset_time).alias("_offset_to"),
        f.min_by(offset, offset_time).alias("_offset_first"),
        f.max_by(offset, offset_time).alias("_offset_last"),
        f.min(offset).alias("_offset_min"),
        f.max(offset).alias("_offset_max"),
        f.min(lag_time).alias("lag_first_time"),
        f.max(lag_time).alias("lag_last_time"),
        f.min_by(lag, lag_time).alias("lag_first"),
        f.max_by(lag, lag_time).alias("lag_last"),
        f.min(lag).alias("lag_min"),
        f.max(lag).alias("lag_max"),
        f.sum(lag).alias("_lag_sum"),
        f.count(lag).alias("_lag_count"),
        f.max_by(seconds, f.when(seconds.isNotNull(), time)).alias("seconds_last"),
        f.max(seconds).alias("seconds_max"),
    )


def _figures(seen: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    rose = (f.col("_end_min") == f.col("_end_first")) & (f.col("_end_max") == f.col("_end_last"))
    rewound = (f.col("_offset_min") != f.col("_offset_first")) | (f.col("_offset_max") != f.col("_offset_last"))
    end_us, offset_us = span_us("first_time", "last_time"), span_us("_offset_from", "_offset_to")
    lag_us = span_us("lag_first_time", "lag_last_time")
    counted = seen.select(
        "window_start",
        *QUEUE,
        "owner",
        "samples",
        "first_time",
        "last_time",
        f.when(rose & (end_us > 0), f.col("_end_last") - f.col("_end_first")).alias("produced"),
        f.when(rose & (end_us > 0), end_us).alias("produce_us"),
        f.when(~rewound & (offset_us > 0), f.col("_offset_last") - f.col("_offset_first")).alias("consumed"),
        f.when(~rewound & (offset_us > 0), offset_us).alias("consume_us"),
        "lag_first",
        "lag_first_time",
        "lag_last",
        "lag_last_time",
        "lag_min",
        "lag_max",
        (f.col("_lag_sum") / f.col("_lag_count")).alias("lag_mean"),
        f.when(lag_us > 0, (f.col("lag_last") - f.col("lag_first")) * 1e6 / lag_us).alias("trend"),
        "seconds_last",
        "seconds_max",
        f.coalesce(rewound, f.lit(False)).alias("rewound"),
    )
    rated = counted.withColumns(
        {
            "day": day_of("window_start"),
            "produce_rate": rate("produced", "produce_us"),
            "consume_rate": rate("consumed", "consume_us"),
        }
    )
    stuck = (f.col("lag_min") > 0) & (f.col("consumed") == 0)
    return rated.withColumns({"drain_seconds": drain_seconds("lag_last"), "stuck": f.coalesce(stuck, f.lit(False))})


# -- what windows of every kind are made with -------------------------------------------------------------------------


def day_of(moment: str) -> Any:
    """The day in UTC, whatever time zone the session has."""
    from pyspark.sql import functions as f

    return f.date_from_unix_date(f.floor(f.unix_seconds(f.col(moment)) / 86_400).cast("int"))


def hour_of(moment: str) -> Any:
    """The hour of the day in UTC, whatever time zone the session has."""
    from pyspark.sql import functions as f

    return (f.floor(f.unix_seconds(f.col(moment)) / 3600) % 24).cast("int")


def span_us(since: str, until: str) -> Any:
    """Microseconds from one time to another."""
    from pyspark.sql import functions as f

    return f.unix_micros(f.col(until)) - f.unix_micros(f.col(since))


def rate(count: str, microseconds: str) -> Any:
    """A count over a time, per second; null if there was no time."""
    from pyspark.sql import functions as f

    return f.when(f.col(microseconds) > 0, f.col(count) * 1e6 / f.col(microseconds))


def exact_sum(number: Any) -> Any:
    """The sum of a floating-point column to six places, whatever the order in which it is added up."""
    from pyspark.sql import functions as f

    return f.sum(f.round(number * 1e6).cast("bigint")) / 1e6


def drain_seconds(lag: str) -> Any:
    """How long a lag lasts at the row's rates."""
    from pyspark.sql import functions as f

    gain = f.col("consume_rate") - f.col("produce_rate")
    return (
        f.when(f.col(lag) == 0, f.lit(0.0))
        .when(gain > 0, f.col(lag) / gain)
        .when(f.col(lag).isNotNull() & gain.isNotNull(), f.lit(float("inf")))
    )
