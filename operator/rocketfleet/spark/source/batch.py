"""The batch read: the range is fixed on the driver once, cut into tasks, and pulled by them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rocketfleet.base.counting import counted
from rocketfleet.spark.source.cluster import SourceCluster
from rocketfleet.spark.source.errors import SourceError, in_one_sentence
from rocketfleet.spark.source.link import link
from rocketfleet.spark.source.tasks.filters import Bounds, bounds_of
from rocketfleet.spark.source.tasks.pulling import data_loss
from rocketfleet.spark.source.tasks.ranges import QueueRange, split
from rocketfleet.spark.source.tasks.reading import read_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from rocketfleet.client.client import Client
    from rocketfleet.spark.source.options import ReadOptions

_log = logging.getLogger(__name__)


class BatchReader(DataSourceReader):
    """Made on the driver and sent to the tasks: it holds nothing but options and bounds."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._bounds = Bounds()

    @in_one_sentence
    def partitions(self) -> list[InputPartition]:
        """One task a queue, or more where queues are cut. None at all is one empty task to Spark."""
        made = link(self._options.connection)
        ranges = made.call(plan(made.client, self._options, self._bounds))
        return [InputPartition(one) for one in split(ranges, self._options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_range(self._options, partition.value)


class FilteringBatchReader(BatchReader):
    """The same, with filters. A class of its own: Spark refuses it unless it was told to hand filters on."""

    @in_one_sentence
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Note what need not be read; Spark applies every filter again."""
        self._bounds = bounds_of(filters)
        return filters


async def plan(client: Client, options: ReadOptions, bounds: Bounds) -> list[QueueRange]:
    """The ranges that the options and filters leave, at this moment."""
    cluster = SourceCluster(client, options.group)
    queues = await cluster.queues(options.topics)
    await cluster.ensure_group(queues)
    start = await cluster.resolve(options.starting, queues)
    end = await cluster.resolve(options.ending, queues)
    begin = await cluster.earliest(queues)
    lost = 0
    for queue in queues:
        if start[queue] > end[queue]:
            if options.starting.offsets.get(queue, -1) >= 0 or options.ending.offsets.get(queue, -1) >= 0:
                raise SourceError(
                    f"the range of {queue} is empty: it begins at offset {start[queue]} ({options.starting.option}) "
                    f"and ends at {end[queue]} ({options.ending.option})"
                )
            end[queue] = start[queue]
        gone = QueueRange(queue, start[queue], min(begin[queue], end[queue]))
        if gone.size > 0:
            if options.fail_on_data_loss:
                raise SourceError(data_loss(gone))
            lost += gone.size
            _log.warning("%s", data_loss(gone))
            start[queue] = gone.end
    if lost:
        _log.warning("%s gone and left out, as failOnDataLoss is false", counted(lost, "message is", "messages are"))
    wanted = [queue for queue in queues if bounds.admits(queue)]
    if bounds.from_time is not None:
        since = await cluster.since(wanted, bounds.from_time)
        start.update({queue: max(start[queue], since[queue]) for queue in wanted})
    if bounds.to_time is not None:
        until = await cluster.since(wanted, bounds.to_time + 1)
        end.update({queue: min(end[queue], until[queue]) for queue in wanted})
    return [
        QueueRange(
            queue,
            max(start[queue], bounds.from_offset or 0),
            end[queue] if bounds.to_offset is None else min(end[queue], bounds.to_offset),
        )
        for queue in wanted
    ]
