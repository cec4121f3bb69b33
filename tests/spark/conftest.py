"""A real broker and one Spark session for all tests of the data source. Starting Spark costs more than any test."""

import os
import sys
from collections.abc import Iterator

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


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on local[2] with a small heap, with the source registered."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "768m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()
