"""The streaming read: what a query has processed is in its checkpoint; the broker is told afterwards.

Spark's calls, and what they mean here:

- `initialOffset`: only for a query without a checkpoint. The group is created and its start is written to the broker,
  so that lag is right from the first moment on.
- `latestOffset(start, limit)`: `start` is the end of the last batch that is done: its sink has it and Spark has noted
  so. Spark's own `commit` comes only with the *next* batch, which in an idle topic is never; so the group's offsets are
  written back here. The answer is how far the next batch may go.
- `partitions(start, end)`: the ranges of a batch, also of one that is repeated after a crash: it depends on nothing
  else.

The checkpoint always wins. At the first call after a restart it is compared with the broker, and a difference is said:
the broker may be behind by the batch during which the driver died, or somebody has moved the group.

A queue that appears while the query runs is entered with its beginning first, as part of an offset, and read from the
next batch on: so where it began is in the checkpoint too, and a repeated batch has the same messages.

What retention deleted under a query that goes on without it (failOnDataLoss=false) is counted in the offset as `lost`,
so that it is in the query's progress for good.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from rocketfleet.base.counting import counted
from rocketfleet.client.errors import RocketMQError
from rocketfleet.spark.source import reporting
from rocketfleet.spark.source.cluster import SourceCluster
from rocketfleet.spark.source.drain import is_draining
from rocketfleet.spark.source.errors import SourceError, in_one_sentence, one_line
from rocketfleet.spark.source.link import close_links, link
from rocketfleet.spark.source.offsets import Offsets, flat, nested
from rocketfleet.spark.source.tasks.pulling import data_loss
from rocketfleet.spark.source.tasks.ranges import QueueRange, admit, between, split
from rocketfleet.spark.source.tasks.reading import read_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from rocketfleet.spark.source.link import Link
    from rocketfleet.spark.source.options import ReadOptions
    from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
LOOK_AGAIN: Final = 0.2  # seconds: an idle query asks a hundred times per second, and the broker need not hear of it
ROUTES_AGAIN: Final = 5.0  # seconds after which new queues are looked for
TRY_AGAIN: Final = 1.0  # seconds for which a cluster in trouble is left alone
COMMIT_AGAIN: Final = 5.0  # seconds after which a failed write-back is tried again


@dataclass(frozen=True)
class QueryOffset:
    """An offset of the query: where it is in each queue, and how many messages were gone before it came there."""

    offsets: Offsets
    lost: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"offsets": nested(self.offsets), "lost": self.lost}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> QueryOffset:
        try:
            return cls(flat(stored["offsets"]), int(stored.get("lost", 0)))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise SourceError(
                f"the checkpoint holds {one_line(str(stored))[:200]}, which is no offset of rocketmq: "
                "it belongs to another source; use another checkpointLocation"
            ) from None


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives on the driver as long as the query; a copy without any connection goes to each task."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._target: Offsets | None = None
        self._state: _DriverState | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_state": None}

    @in_one_sentence
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._driver().begin().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @in_one_sentence
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return self._driver().following(QueryOffset.from_json(start), most, self._target).to_json()

    @in_one_sentence
    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """For the query's progress: how far it could be."""
        known = self._driver().latest_known
        return None if known is None else {"offsets": nested(known)}

    @in_one_sentence
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._target = self._driver().end_now()

    @in_one_sentence
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        first, last = QueryOffset.from_json(start), QueryOffset.from_json(end)
        ranges = self._driver().ranges(first, last)
        return [InputPartition(one) for one in split(ranges, self._options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_range(self._options, partition.value)

    @in_one_sentence
    def commit(self, end: dict[str, Any]) -> None:
        """Spark is done with everything before `end`."""
        self._driver().write_back(QueryOffset.from_json(end).offsets)

    def stop(self) -> None:
        close_links()

    def _driver(self) -> _DriverState:
        if self._state is None:
            self._state = _DriverState(self._options)
        return self._state


class RefusedStream(DataSourceStreamReader):
    """In the place of a reader that cannot be made: it says why when it is first asked for anything.

    An error in the making would not be seen. PySpark 4.3 then stops the reader that it has not got, and says only that.
    """

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    @in_one_sentence
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        raise SourceError(self._sentence)

    @in_one_sentence
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        raise SourceError(self._sentence)

    @in_one_sentence
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        raise SourceError(self._sentence)

    @in_one_sentence
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise SourceError(self._sentence)


class _DriverState:
    """What the driver knows and remembers between Spark's calls."""

    def __init__(self, options: ReadOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._link: Link = link(options.connection)
        self._cluster = SourceCluster(self._link.client, options.group)
        self._queues: tuple[MessageQueue, ...] = ()
        self._routes_at = self._looked_at = float("-inf")
        self._retry_at = float("-inf")
        self._written: Offsets = {}
        self._trouble_until = float("-inf")
        self._answered = False
        self._away: set[str] = set()
        self._compared = False
        self._shrunk: set[MessageQueue] = set()
        self._reported: QueryOffset | None = None
        self.latest_known: Offsets | None = None

    def begin(self) -> QueryOffset:
        """Where a query without a checkpoint starts."""
        queues = self._look_for_queues()
        self._prepare_group(queues)
        start = self._link.call(self._cluster.resolve(self._options.starting, queues))
        begin = self._link.call(self._cluster.earliest(queues))
        lost = 0
        for queue in queues:
            gone = QueueRange(queue, start[queue], begin[queue])
            if gone.size > 0:
                lost += self._lose(gone)
                start[queue] = gone.end
        self._compared = True
        self.write_back(start)
        self._report(QueryOffset(start, lost))
        return QueryOffset(start, lost)

    def end_now(self) -> Offsets:
        """Where the queues end at this moment."""
        return self._link.call(self._cluster.latest(self._look_for_queues()))

    def following(self, start: QueryOffset, most: int | None, target: Offsets | None) -> QueryOffset:
        """How far the batch after `start` may go: nowhere, while the cluster is in trouble."""
        self._report(start)
        if self._clock() < self._trouble_until:
            return start
        try:
            end = self._following(start, most, target)
        except RocketMQError as error:
            if not self._answered:
                raise
            self._trouble_until = self._clock() + TRY_AGAIN
            self._routes_at = self._looked_at = float("-inf")
            _log.warning("nothing can be read at the moment, next try in %g s: %s", TRY_AGAIN, error)
            return start
        self._answered = True
        return end

    def _following(self, start: QueryOffset, most: int | None, target: Offsets | None) -> QueryOffset:
        self._compare(start.offsets)
        self.write_back(start.offsets)
        if is_draining():
            return start
        latest = target if target is not None else self._latest()
        new = [queue for queue in latest if queue not in start.offsets]
        if new:
            latest = {**latest, **self._beginnings(new)}
        self._check_shrunk(start.offsets, latest)
        offsets, lost = dict(start.offsets), start.lost
        for gone in self._gone(start.offsets, latest):
            lost += self._lose(gone)
            offsets[gone.queue] = gone.end
        # What is gone takes nothing of the limit, but it is part of the batch: its start stays where it was.
        return QueryOffset(admit(offsets, latest, most), lost)

    def ranges(self, start: QueryOffset, end: QueryOffset) -> list[QueueRange]:
        """What a batch reads."""
        self._report(start)
        self._compare(start.offsets)
        wanted = between(start.offsets, end.offsets)
        if end.lost > start.lost:  # it was counted when the batch was made: not for the tasks to find
            begin = self._link.call(self._cluster.earliest([one.queue for one in wanted]))
            wanted = [one._replace(start=min(max(one.start, begin[one.queue]), one.end)) for one in wanted]
        return wanted

    def write_back(self, offsets: Offsets) -> None:
        """Tell the broker where the group is. That it cannot be told now is said, and does not stop the query."""
        if not self._options.commit_offsets:
            return
        changed = {queue: offset for queue, offset in offsets.items() if self._written.get(queue) != offset}
        if not changed or self._clock() < self._retry_at:
            return
        first = frozenset(changed.keys() - self._written.keys())
        failed = self._link.call(self._cluster.commit(changed, first))
        self._written.update({queue: offset for queue, offset in changed.items() if queue not in failed})
        if failed:
            self._retry_at = self._clock() + COMMIT_AGAIN
            queue, error = next(iter(failed.items()))
            _log.warning(
                "the offsets of group %s in %s could not be written to the broker, its lag is out of date until "
                "they are (the query itself goes on by its checkpoint); %s: %s",
                self._options.group,
                counted(len(failed), "queue"),
                queue,
                error,
            )

    def _report(self, done: QueryOffset) -> None:
        """Say what is done: everything before a batch that Spark plans."""
        if done != self._reported:
            reporting.leave(self._options.group, done.offsets, done.lost)
            self._reported = done

    def _compare(self, checkpoint: Offsets) -> None:
        """After a restart, say where the broker disagrees with the checkpoint."""
        if self._compared:
            return
        here = [queue for queue in self._look_for_queues() if queue in checkpoint]
        self._prepare_group(here)
        self._compared = True
        if not self._options.commit_offsets:
            return
        stored = self._link.call(self._cluster.committed(here))
        for queue in here:
            if stored[queue] is not None and stored[queue] != checkpoint[queue]:
                _log.warning(
                    "%s: group %s is at offset %s at the broker and at %d in the checkpoint; the checkpoint wins",
                    queue,
                    self._options.group,
                    stored[queue],
                    checkpoint[queue],
                    extra={"offset": stored[queue]},
                )

    def _latest(self) -> Offsets:
        """Where the queues end whose broker answers. The others have nothing new until it does."""
        now = self._clock()
        if self.latest_known is None or now >= self._looked_at + LOOK_AGAIN:
            queues = self._look_for_queues()
            found, errors = self._link.call(self._cluster.latest_if_there(queues))
            if errors and not found:
                raise next(iter(errors.values()))
            away = {queue.broker: error for queue, error in errors.items()}
            for broker in away.keys() - self._away:
                _log.warning("%s does not answer, its queues wait: %s", broker, away[broker])
            if away:
                self._routes_at = min(self._routes_at, now - ROUTES_AGAIN + TRY_AGAIN)  # it may come back elsewhere
            self._away = set(away)
            self.latest_known, self._looked_at = found, self._clock()
        return self.latest_known

    def _look_for_queues(self) -> tuple[MessageQueue, ...]:
        now = self._clock()
        if now >= self._routes_at + ROUTES_AGAIN:
            try:
                found = self._link.call(self._cluster.queues(self._options.topics, fresh=True))
            except (RocketMQError, SourceError) as error:
                if not self._queues:
                    raise
                found = self._queues  # nobody may be registered for a moment: what was there will be there again
                _log.warning("the topics' queues could not be looked up, next try soon: %s", error)
            new = [queue for queue in found if queue not in self._queues]
            if self._queues and new:
                _log.warning("new queues are read from now on: %s", ", ".join(map(str, new)))
                self._prepare_group(new)
            self._queues, self._routes_at = found, now
        return self._queues

    def _prepare_group(self, queues: Sequence[MessageQueue]) -> None:
        self._link.call(self._cluster.ensure_group(queues))
        if self._options.commit_offsets:
            self._link.call(self._cluster.announce(queues))

    def _beginnings(self, queues: list[MessageQueue]) -> Offsets:
        """Where queues that the query has not met yet are begun: where the group stands in them, or at their start."""
        stored = self._link.call(self._cluster.committed(queues))
        begin = self._link.call(self._cluster.earliest(queues))
        return {queue: max(begin[queue], stored[queue] or 0) for queue in queues}

    def _check_shrunk(self, start: Offsets, latest: Offsets) -> None:
        """A queue that ends before where the query is: made anew, or on a slave that is behind its lost master."""
        for queue, end in latest.items():
            if start.get(queue, 0) <= end or queue in self._shrunk:
                continue
            sentence = (
                f"{queue} ends at offset {end}, but the checkpoint is at {start[queue]}: the topic was deleted and "
                "created again, or its broker lost messages; begin with a new checkpointLocation, or set "
                "failOnDataLoss to false to wait for that offset"
            )
            if self._options.fail_on_data_loss and self._cluster.has_master(queue):
                raise SourceError(sentence)
            self._shrunk.add(queue)
            _log.warning("%s", sentence)

    def _gone(self, start: Offsets, latest: Offsets) -> list[QueueRange]:
        """What the next batch would begin with and is there no longer."""
        behind = [queue for queue, end in latest.items() if start.get(queue, end) < end]
        if not behind:
            return []
        begin = self._link.call(self._cluster.earliest(behind))
        gone = [QueueRange(queue, start[queue], min(begin[queue], latest[queue])) for queue in behind]
        return [one for one in gone if one.size > 0]

    def _lose(self, gone: QueueRange) -> int:
        if self._options.fail_on_data_loss:
            raise SourceError(data_loss(gone))
        _log.warning("%s", data_loss(gone))
        return gone.size
