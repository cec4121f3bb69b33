"""Spark: the data source `rocketmq`, pipelines on it, and how they are started.

`from rocketfleet.spark import register; register(spark)`, and then `spark.read.format("rocketmq")`. Nothing of pyspark
is imported before that: the package must be importable where Spark is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Without it Spark refuses a Python reader that takes filters."""


def register(spark: SparkSession) -> None:
    """Make the format `rocketmq` known to a session, and let Spark hand filters to it."""
    from rocketfleet.spark.source.data_source import RocketMQDataSource

    spark.conf.set(FILTER_PUSHDOWN, "true")
    spark.dataSource.register(RocketMQDataSource)
