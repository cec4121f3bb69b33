"""The history as one DataFrame, batch or streaming, out of Parquet files or out of a topic.

Both have the columns of `lag/samples/history.py`. Lines of a topic that are no samples are passed over: somebody else
may have written there, and a report is not the place to stop for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocketfleet.lag.samples.topic_sink import TAG
from rocketfleet.spark.analytics.windows.reference import HistoryError, ParquetHistory, TopicHistory

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from rocketfleet.spark.analytics.windows.reference import History

_REST: Final = (
    "`cluster` string, `group` string, `topic` string, `broker` string, `queue` int, `min_offset` bigint, "
    "`max_offset` bigint, `consumer_offset` bigint, `lag` bigint, `seconds` double, `owner` string"
)
IN_FILES: Final = f"`time` timestamp, {_REST}, `day` date"
IN_LINES: Final = f"`time` bigint, {_REST}"
COLUMNS: Final = (
    "time", "cluster", "group", "topic", "broker", "queue", "min_offset", "max_offset", "consumer_offset", "lag",
    "seconds", "owner",
)  # fmt: skip
STREAM_GROUP: Final = "rocketfleet-lag-analytics"


def read_history(
    spark: SparkSession, history: History, since: date | None = None, until: date | None = None
) -> DataFrame:
    """The samples from the day `since` on, to the end of the day before `until`; days are those of UTC."""
    if isinstance(history, TopicHistory):
        options = _topic_options(history)
        if since is not None:
            options["startingTimestamp"] = f"{since.isoformat()}T00:00:00Z"  # stored no earlier than taken
        return _between(_from_lines(spark.read.format("rocketmq").options(**options).load()), since, until)
    return _between(_samples(_days(_files(spark, history), since, until)), since, until)


def count_samples(spark: SparkSession, history: History, since: date | None, until: date | None) -> int | None:
    """How many rows the files of these days say they have, without reading them; of a topic it is not known."""
    if isinstance(history, TopicHistory):
        return None
    return int(_days(_files(spark, history), since, until).count())


def stream_history(
    spark: SparkSession, history: History, group: str = STREAM_GROUP, most: int | None = None
) -> DataFrame:
    """The samples from the beginning on, and those to come. Of a topic, they are read as this consumer group.

    `most` is how many files, or offsets of a topic, a batch may have.
    """
    if isinstance(history, ParquetHistory):
        _files(spark, history)  # says it in a sentence if there is no such directory
        files = spark.readStream.schema(IN_FILES)
        if most is not None:
            files = files.option("maxFilesPerTrigger", str(most))
        return _samples(files.parquet(history.path))
    options = {**_topic_options(history), "group": group, "startingOffsets": "earliest"}
    if most is not None:
        options["maxOffsetsPerTrigger"] = str(most)
    return _from_lines(spark.readStream.format("rocketmq").options(**options).load())


def _files(spark: SparkSession, history: ParquetHistory) -> DataFrame:
    from pyspark.errors import AnalysisException

    try:
        return spark.read.schema(IN_FILES).parquet(history.path)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise HistoryError(
                f"there is no directory {history.path}: give the one that the operator keeps the lag's history in"
            ) from None
        raise


def _days(files: DataFrame, since: date | None, until: date | None) -> DataFrame:
    if since is not None:
        files = files.where(files["day"] >= since)
    return files if until is None else files.where(files["day"] < until)


def _topic_options(history: TopicHistory) -> dict[str, str]:
    return {
        "nameServers": history.name_servers,
        "topic": history.topic,
        "subExpression": TAG,
        "failOnDataLoss": "false",  # what retention took is simply no longer history
    }


def _from_lines(messages: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    lines = messages.select(f.explode(f.split(f.col("body").cast("string"), "\n")).alias("line"))
    parsed = lines.select(f.from_json("line", IN_LINES).alias("sample")).select("sample.*")
    return _samples(parsed.withColumn("time", f.timestamp_millis("time")))


def _samples(frame: DataFrame) -> DataFrame:
    """What is a sample of a queue, and nothing else."""
    needed = ("time", "cluster", "group", "topic", "broker", "queue", "max_offset")
    return frame.select(*COLUMNS).dropna(subset=list(needed))


def _between(samples: DataFrame, since: date | None, until: date | None) -> DataFrame:
    from pyspark.sql import functions as f

    day = f.date_from_unix_date(f.floor(f.unix_seconds("time") / 86_400).cast("int"))
    if since is not None:
        samples = samples.where(day >= f.lit(since))
    if until is not None:
        samples = samples.where(day < f.lit(until))
    return samples
