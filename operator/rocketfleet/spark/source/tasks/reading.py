"""What a task does: pull its range and hand Arrow record batches to Spark, batch and streaming alike.

A record batch has about `BATCH_ROWS` messages or `BATCH_BYTES` of them. While Spark is being given one, the next is
pulled: two of them and the chunks ahead (`pulling.AHEAD`) are what a task keeps in memory, however long its range is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from rocketfleet.base.counting import counted
from rocketfleet.client.errors import RocketMQError
from rocketfleet.spark.source.errors import SourceError, spoken
from rocketfleet.spark.source.link import link
from rocketfleet.spark.source.tasks.pulling import RangePuller, data_loss
from rocketfleet.wire.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from rocketfleet.spark.source.options import ReadOptions
    from rocketfleet.spark.source.tasks.ranges import QueueRange

_log = logging.getLogger(__name__)
BATCH_ROWS: Final = 4096
BATCH_BYTES: Final = 8 * 1024 * 1024


def read_range(options: ReadOptions, wanted: QueueRange | None) -> Iterator[pa.RecordBatch]:
    """The messages of a range. None is what Spark makes of a read without ranges."""
    if wanted is None:
        return
    try:
        yield from _batches(options, wanted)
    except (SourceError, RocketMQError, WireError) as error:
        raise spoken(error) from None


def _batches(options: ReadOptions, wanted: QueueRange) -> Iterator[pa.RecordBatch]:
    from rocketfleet.spark.source.tasks.columns import record_batch

    made = link(options.connection)
    tags = options.subscription(wanted.queue.topic).data.tags_set
    puller = RangePuller(made.client, options, wanted)
    lost = 0
    following = made.submit(puller.take(BATCH_ROWS, BATCH_BYTES))
    try:
        while chunks := following.result():
            following = made.submit(puller.take(BATCH_ROWS, BATCH_BYTES))
            for gone in (gone for chunk in chunks for gone in chunk.lost):
                lost += gone.size
                _log.warning("%s", data_loss(gone))
            pieces = [(chunk.range, chunk.bodies) for chunk in chunks if chunk.bodies]
            if pieces:
                batch = record_batch(pieces, tags=tags, properties=options.include_properties)
                if batch.num_rows:
                    yield batch
    finally:
        following.cancel()
        made.call(puller.close())
    if lost:
        _log.warning("%s: %d of %s left out: gone", wanted, lost, counted(wanted.size))
