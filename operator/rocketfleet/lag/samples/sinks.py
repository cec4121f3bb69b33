"""Where the operator keeps samples of lag: a RocketMQ topic, Parquet files, both, or nowhere.

Only the operator that leads keeps any, so each sample is kept once. Connections are opened at the first sample: an
operator that stands by, or has no groups, has none.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from rocketfleet.client.config import ClientConfig
from rocketfleet.lag.figures import GroupLag
from rocketfleet.lag.samples.history import EVERY, SampleKeeper, Sink
from rocketfleet.lag.samples.parquet_sink import ParquetSink
from rocketfleet.lag.samples.topic_sink import TopicSink
from rocketfleet.lag.target import Target
from rocketfleet.producer.producer import Producer

PRODUCER_GROUP = "rocketfleet-lag-history"
MIB = 1024**2


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What to keep, and where. Without a topic and a directory, nothing is kept."""

    every: float = EVERY  # seconds
    topic: str | None = None
    cluster: ClientConfig | None = None  # of the topic
    directory: Path | None = None
    directory_mib: int = 512

    @property
    def wanted(self) -> bool:
        return self.topic is not None or self.directory is not None

    def hindrance(self) -> str | None:
        """Why it cannot be done, as a sentence; None: it can."""
        if self.topic is not None and self.cluster is None:
            return "the lag's history goes to a topic, so say at which name servers: --lag-history-name-server"
        if self.directory is not None and importlib.util.find_spec("pyarrow") is None:
            return (
                "the lag's history goes to Parquet files, which needs pyarrow: in a checkout, pip install '.[history]'"
            )
        return None


class LagHistory:
    """The monitor's keeper."""

    def __init__(self, options: HistoryOptions) -> None:
        self._options = options
        self._history: SampleKeeper | None = None
        self._producer: Producer | None = None

    async def keep(self, seen: list[tuple[Target, GroupLag]]) -> None:
        if self._history is None:
            self._history = await self._open()
        await self._history.keep(seen)

    async def close(self) -> None:
        """Write what is still held, and let go."""
        if self._history is not None:
            await self._history.close()
        if self._producer is not None:
            await self._producer.close()

    async def _open(self) -> SampleKeeper:
        options, sinks = self._options, list[Sink]()
        if options.directory is not None:
            sinks.append(ParquetSink(options.directory, most_bytes=options.directory_mib * MIB))
        if options.topic is not None and options.cluster is not None:
            producer = Producer(options.cluster, PRODUCER_GROUP)
            await producer.start()
            self._producer = producer
            sinks.append(TopicSink(producer, options.topic))
        return SampleKeeper(*sinks, every=options.every)
