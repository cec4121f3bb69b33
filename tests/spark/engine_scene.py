"""A ConsumerGroup with engine Spark on this machine under live traffic, and what its sink has to say.

The sink are Parquet files, with Spark's own list of those that belong to a batch that is done: what is in them is what
the group has consumed.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene
from tests.spark import engine_pipelines

from rocketfleet.client.requests import broker_offsets
from rocketfleet.wire.queue import MessageQueue

PATIENCE = 400.0  # starting Spark takes what it takes, and more on a busy machine
QUIET = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


class EngineScene(GroupScene):
    """Use as `async with`."""

    def __init__(self, broker: Cluster, topic: str, directory: Path, **spark: Any) -> None:
        self.sink = directory / "sink"
        self.checkpoint = directory / "checkpoint"
        self._conf = QUIET | {engine_pipelines.SINK: str(self.sink), engine_pipelines.PAUSE: "0.05"}
        self._spark: dict[str, Any] = {
            "pipeline": "engine_pipelines:archive",
            "path": str(Path(__file__).parent),
            "master": "local[2]",
            "checkpoint": str(self.checkpoint),
            "maxOffsetsPerTrigger": 400,
            "conf": self._conf,
            **spark,
        }
        super().__init__(
            broker,
            topic,
            directory,
            engine="Spark",
            worker=None,
            replicas=None,
            spark=self._spark,
            shutdown={"drainTimeoutSeconds": 200},
        )
        self.rate = 50.0
        self.environment = {"SPARK_LOCAL_IP": "127.0.0.1"}
        self._topic_name = topic

    def change(self, **spark: Any) -> None:
        """Apply with these keys of `spark` changed for good. `conf` is added to."""
        conf = {**self._spark["conf"], **spark.pop("conf", {})}
        self._spark = {**self._spark, **spark, "conf": conf}
        self.apply(spark=self._spark)

    async def runs(self) -> float:
        """Wait until the status says that the driver is as it should be."""
        return await self.until(self.is_ready, "the driver is ready", PATIENCE)

    def is_ready(self) -> bool:
        group, status = self.group, self.status
        return (
            group is not None
            and status.observed_generation == group.metadata.generation
            and status.ready_replicas == status.replicas == 1
            and any(one.type == "Ready" and one.status == "True" for one in status.conditions or ())
        )

    def troubles(self) -> list[str]:
        """Warnings, but for those about lag: with windows of seconds, every start is a standstill."""
        return [str(event) for event in self.events if event.warning and "LAG" not in event.reason.name]

    def sentence(self) -> str:
        """What Ready says."""
        return next((one.message for one in self.status.conditions or () if one.type == "Ready"), "")

    def sunk(self) -> Counter[str]:
        """The bodies in the sink, of batches that are done."""
        return Counter(row["body"].decode() for row in self._rows())

    def sent_is_sunk(self) -> bool:
        """Whether nothing that was sent is missing in the sink."""
        return set(self.sent) <= set(self.sunk())

    def stands(self) -> dict[MessageQueue, int]:
        """For each queue, the offset after the last message in the sink."""
        found: dict[MessageQueue, int] = {}
        for row in self._rows():
            queue = MessageQueue(row["topic"], row["broker"], row["queueId"])
            found[queue] = max(found.get(queue, 0), row["queueOffset"] + 1)
        return found

    def _rows(self) -> list[dict[str, Any]]:
        columns = ["topic", "broker", "queueId", "queueOffset", "body"]
        return [row for path in self._files() for row in pq.ParquetFile(path).read(columns).to_pylist()]

    def _files(self) -> list[Path]:
        log = self.sink / "_spark_metadata"
        entries = {int(path.stem): path for path in log.glob("[0-9]*")} if log.is_dir() else {}
        compact = max((number for number, path in entries.items() if path.suffix == ".compact"), default=-1)
        lines = [
            line
            for number, path in sorted(entries.items())
            if number >= compact
            for line in path.read_text().splitlines()[1:]
        ]
        return [Path(json.loads(line)["path"].removeprefix("file:").replace("///", "/")) for line in lines]

    async def committed(self) -> dict[MessageQueue, int]:
        """The group's offsets at the broker, where they are not 0."""
        found = {}
        for queue in await self.client.subscribe_queues(self._topic_name):
            stored = await broker_offsets.query_offset(
                self.client.remoting, self.client.master(queue.broker), self.name, queue, zero_if_not_found=False
            )
            if stored:
                found[queue] = stored
        return found
