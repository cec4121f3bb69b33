"""Spark: the data source `rocketmq`, pipelines on it, and how they are started.

`from rocketfleet.spark import register; register(spark)`, and then `spark.read.format("rocketmq")`. Nothing of pyspark
is imported before that: the package must be importable where Spark is not.

The rooms: `source/` (the data source), `submitting/` (a pipeline on any master), `driver/` (engine Spark),
`analytics/` (what the history of lag says). `repeats.py` keeps each row of a write once.

`register` and `drop_repeats` are public. Executors import this package and need neither, so the latter is imported when
it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rocketfleet.spark.repeats import drop_repeats

__all__ = ["drop_repeats", "register"]

FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Without it Spark refuses a Python reader that takes filters."""


def register(spark: SparkSession) -> None:
    """Make the format `rocketmq` known to a session, and let Spark hand filters to it."""
    from rocketfleet.spark.source.data_source import RocketMQDataSource

    spark.conf.set(FILTER_PUSHDOWN, "true")
    spark.dataSource.register(RocketMQDataSource)


if not TYPE_CHECKING:  # a type checker that saw __getattr__ would believe in every name

    def __getattr__(name: str) -> object:
        if name != "drop_repeats":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from rocketfleet.spark.repeats import drop_repeats

        return drop_repeats

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
