"""The driver as a process of its own: killed in the middle of a batch, asked to end, and failing with one sentence."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.broker.cluster import Cluster
from tests.spark.sending import numbered, rows, send
from tests.spark.test_stream_read import caught_up, offsets
from tests.support.waiting import wait_until

from rocketfleet.wire.queue import MessageQueue

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "spark"
SETTINGS = ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=512m"]


class Driver:
    """`rocketfleet spark submit` in a session of its own, so that it can be killed with all it has started."""

    def __init__(self, log: Path, *arguments: str, master: str = "local[2]", python: str | None = None) -> None:
        command = [sys.executable, "-m", "rocketfleet.cli.main", "spark", "submit", "--master", master, *SETTINGS]
        self._log = log
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment.pop("PYSPARK_PYTHON", None)
        if python is not None:
            environment["PYSPARK_PYTHON"] = python
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [*command, *arguments], stdout=out, stderr=out, start_new_session=True, env=environment
            )

    def kill(self) -> None:
        """SIGKILL for the driver, its JVM included. Python workers end when their JVM is gone."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def log(self) -> str:
        return self._log.read_text(errors="replace")


@pytest.fixture
def drivers() -> Iterator[list[Driver]]:
    started: list[Driver] = []
    yield started
    for driver in started:
        driver.kill()


def in_a_batch(checkpoint: Path, after: int) -> bool:
    """Whether a batch later than `after` is planned and not done."""
    planned = {one.name for one in (checkpoint / "offsets").glob("[0-9]*")}
    done = {one.name for one in (checkpoint / "commits").glob("[0-9]*")}
    return any(int(name) > after for name in planned - done)


def last_done(checkpoint: Path) -> int:
    return max((int(one.name) for one in (checkpoint / "commits").glob("[0-9]*")), default=-1)


def _kill_in_a_batch(driver: Driver, drivers: list[Driver], checkpoint: Path) -> None:
    """Kill a driver when one batch of its own is done and the next is under way."""
    drivers.append(driver)
    after = last_done(checkpoint) + 1
    wait_until(lambda: driver.process.poll() is not None or in_a_batch(checkpoint, after), "a batch", within=300)
    assert driver.process.poll() is None, driver.log()
    driver.kill()


@pytest.mark.timeout(900)
def test_a_driver_killed_in_the_middle_of_a_batch_leaves_no_gap_and_no_repeat(
    spark: SparkSession, broker: Cluster, topic: str, group: str, tmp_path: Path, drivers: list[Driver]
) -> None:
    sent = send(broker, numbered(topic, 3000))
    checkpoint = tmp_path / "checkpoint"
    script = str(HERE / "slow_pipeline.py")
    arguments = (script, broker.name_server, topic, group, str(tmp_path))
    for number in range(2):
        _kill_in_a_batch(Driver(tmp_path / f"driver-{number}.log", *arguments), drivers, checkpoint)
        assert last_done(checkpoint) >= number
    assert len(sent) > spark.read.parquet(str(tmp_path / "sink")).count() > 0
    last = Driver(tmp_path / "driver-last.log", *arguments)
    drivers.append(last)
    wait_until(
        lambda: last.process.poll() is not None or spark.read.parquet(str(tmp_path / "sink")).count() >= len(sent),
        "all messages in the sink",
        within=300,
    )
    assert sorted(rows(spark.read.parquet(str(tmp_path / "sink")))) == sorted(sent), last.log()
    wait_until(lambda: caught_up(broker, group, topic), "the group's offsets at the broker")


@pytest.mark.timeout(900)
def test_a_driver_that_is_asked_to_end_finishes_its_batch_and_writes_it_back(
    spark: SparkSession, broker: Cluster, topic: str, group: str, tmp_path: Path, drivers: list[Driver]
) -> None:
    sent = send(broker, numbered(topic, 4000))
    checkpoint = tmp_path / "checkpoint"
    arguments = (str(HERE / "slow_pipeline.py"), broker.name_server, topic, group, str(tmp_path))
    driver = Driver(tmp_path / "driver.log", *arguments)
    drivers.append(driver)
    wait_until(lambda: driver.process.poll() is not None or in_a_batch(checkpoint, 1), "a batch", within=300)
    driver.process.terminate()
    assert driver.process.wait(120) == 0, driver.log()
    assert not in_a_batch(checkpoint, -1), "no batch was interrupted"
    found = rows(spark.read.parquet(str(tmp_path / "sink")))
    assert 0 < len(found) < len(sent)
    assert len(set(found)) == len(found)
    stored = {queue: at for queue, (at, _) in offsets(broker, group, topic).items()}
    counted: dict[MessageQueue, int] = {}
    for one in found:
        queue = MessageQueue(one.topic, one.broker, one.queue_id)
        counted[queue] = counted.get(queue, 0) + 1
    assert {queue: at for queue, at in stored.items() if at} == counted, "the broker's offsets are those of the sink"


@pytest.mark.timeout(600)
def test_a_mistake_is_one_sentence_and_nothing_else(
    broker: Cluster, topic: str, tmp_path: Path, drivers: list[Driver]
) -> None:
    driver = Driver(tmp_path / "log", str(EXAMPLES / "count_by_tag.py"), broker.name_server, "no-such-topic")
    drivers.append(driver)
    assert driver.process.wait(300) == 1
    said = driver.log()
    assert "Error: topic no-such-topic cannot be read: the name server" in said
    assert "\tat " not in said, "a Java stack"
    assert "Traceback" not in said


@pytest.mark.timeout(600)
def test_the_examples_run(
    spark: SparkSession, broker: Cluster, make_topic: object, tmp_path: Path, drivers: list[Driver]
) -> None:
    topic = broker.create_topic(queues=2)
    sent = send(broker, numbered(topic, 90, tags=["a", "b", None]))
    counting = Driver(tmp_path / "count", str(EXAMPLES / "count_by_tag.py"), broker.name_server, topic)
    drivers.append(counting)
    assert counting.process.wait(300) == 0, counting.log()
    for tag in ("a", "b", "-"):
        assert f"{tag}\t30\t" in counting.log()
    archive = tmp_path / "archive"
    archiving = Driver(
        tmp_path / "log", str(EXAMPLES / "orders_to_parquet.py"), broker.name_server, topic, str(archive)
    )
    drivers.append(archiving)
    wait_until(
        lambda: archiving.process.poll() is not None or list((archive / "messages" / "_spark_metadata").glob("[0-9]*")),
        "the first batch",
        within=300,
    )
    archiving.process.terminate()
    assert archiving.process.wait(120) == 0, archiving.log()
    assert sorted(rows(spark.read.parquet(str(archive / "messages")))) == sorted(sent)
