"""How many partitions the work gets, where the user did not say.

Spark makes 200 of every shuffle, whatever there is to do: on two cores a report of a day is thousands of tasks that
take longer to begin than to end. What is needed is that the windows made of one partition's samples fit into a task's
memory several times over, and that every core has as many partitions as the others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS: Final = "spark.sql.shuffle.partitions"
ROWS: Final = 1_000_000
"""Rows of a partition: the windows of so many samples are 100 MB or so while they are made."""
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
