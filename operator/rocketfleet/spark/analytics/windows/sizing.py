"""How many partitions the work gets, where the user did not say.

Spark makes 200 of every shuffle, and a frame that is persisted keeps them, however small: on two cores every step of a
report of some hours began with 200 tasks of a few thousand samples. What is needed is that the windows made of one
partition's samples fit into a task's memory several times over, and that every core has as many partitions as the
others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS: Final = "spark.sql.shuffle.partitions"
ROWS: Final = 1_000_000
"""Rows of a partition: its windows are 200 thousand at five samples each, of an estimated 500 bytes."""
UNKNOWN: Final = 16_000_000
"""Rows that are reckoned with where counting them would be reading them."""


def partitions_for(rows: int | None, cores: int) -> int:
    """The same number for each core, and at least two: the last one to be done keeps all others waiting."""
    wanted = (UNKNOWN if rows is None else rows) / ROWS
    return cores * max(2, math.ceil(wanted / cores))


def size_shuffles(spark: SparkSession, partitions: int) -> int:
    """Make shuffles that many partitions from here on, or leave it at the user's number, which is then the answer."""
    if not spark.sparkContext.getConf().contains(PARTITIONS):
        spark.conf.set(PARTITIONS, str(partitions))
    return int(str(spark.conf.get(PARTITIONS)))
