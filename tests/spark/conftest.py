"""A real broker and one Spark session for all tests of the data source. Starting Spark costs more than any test."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.broker.conftest import (  # noqa: F401 - fixtures
    _mend_broker,
    broker,
    group,
    make_cluster,
    make_group,
    make_topic,
    topic,
)

from rocketfleet.spark import register


@contextmanager
def _standard_error_to(path: Path) -> Iterator[None]:
    """Processes started meanwhile write their errors to this file, as long as they live."""
    before = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


@pytest.fixture(scope="session")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Spark and its Python workers write for a person to see. They outlive a test, and so its captured output."""
    return tmp_path_factory.mktemp("spark-log") / "stderr"


@pytest.fixture
def said_by_spark(spark_log: Path) -> Callable[[], str]:
    """said_by_spark() is what they have written since the test began."""
    begin = spark_log.stat().st_size if spark_log.exists() else 0
    return lambda: spark_log.read_bytes()[begin:].decode(errors="replace")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_log: Path) -> Iterator[SparkSession]:
    """Spark on local[2] with a small heap, with the source registered."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    warehouse = tmp_path_factory.mktemp("warehouse")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "768m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(warehouse))
    )
    with _standard_error_to(spark_log):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()
