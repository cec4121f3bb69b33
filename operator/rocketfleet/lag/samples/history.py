"""Keeping what was seen, for whoever asks later: a sample per queue and look, to a RocketMQ topic or to Parquet files.

| field | in JSON lines | in Parquet |
|---|---|---|
| time | milliseconds since the epoch | timestamp, microseconds, UTC |
| cluster, group, topic, broker | string | string |
| queue | number | int32 |
| min_offset, max_offset | number | int64 |
| consumer_offset, lag | number or null | int64 |
| seconds | number or null | double |
| owner | string or null | string |

A queue that was not read at a look has no sample of it. Of a broadcasting group there is one for each member, by owner.
Samples are kept every so often and not at every look, and a sink that fails loses them: history must never hold up
what looks. Nothing is queued without a bound.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocketfleet.lag.figures import GroupLag
    from rocketfleet.lag.target import Target

_log = logging.getLogger(__name__)
EVERY: Final = 60.0
LARGEST_BODY: Final = 512 * 1024
"""A message's body; brokers take 4 MiB."""


class LagSample(NamedTuple):
    """A group in a queue at a moment; `time` in seconds since the epoch."""

    time: float
    cluster: str
    group: str
    topic: str
    broker: str
    queue: int
    min_offset: int
    max_offset: int
    consumer_offset: int | None
    lag: int | None
    seconds: float | None
    owner: str | None


class Sink(Protocol):
    """Where samples go."""

    async def write(self, samples: Sequence[LagSample]) -> None: ...
    async def close(self) -> None: ...


class SampleKeeper:
    """The monitor's keeper. Each sink has a fate of its own."""

    def __init__(self, *sinks: Sink, every: float = EVERY) -> None:
        self._sinks = sinks
        self._every = every
        self._last = float("-inf")
        self._failing: set[Sink] = set()

    async def keep(self, seen: list[tuple[Target, GroupLag]]) -> None:
        """Keep a look at all groups, if the last one that was kept is old enough."""
        at = max((moment.observed_at for _, moment in seen), default=None)
        if at is None or at - self._last < self._every * 0.9:
            return
        self._last = at
        samples = list(samples_of(seen))
        for sink in self._sinks:
            await self._write(sink, samples)

    async def _write(self, sink: Sink, samples: list[LagSample]) -> None:
        try:
            await sink.write(samples)
        except Exception as error:
            if sink not in self._failing:
                self._failing.add(sink)
                _log.warning("the history of lag is not kept for now: %s", error)
        else:
            self._failing.discard(sink)

    async def close(self) -> None:
        """Write what is still held."""
        for sink in self._sinks:
            try:
                await sink.close()
            except Exception as error:
                _log.warning("the last of the history of lag is lost: %s", error)


def samples_of(seen: Iterable[tuple[Target, GroupLag]]) -> Iterator[LagSample]:
    """The samples of a look, without the queues that were not read at it."""
    for target, moment in seen:
        for row in moment.queues:
            if row.observed_at >= moment.observed_at and row.min_offset is not None and row.max_offset is not None:
                yield LagSample(
                    row.observed_at, target.cluster, target.group, *row.queue, row.min_offset, row.max_offset,
                    row.consumer_offset, row.lag, row.seconds, row.owner,
                )  # fmt: skip


def json_line(sample: LagSample) -> bytes:
    """One sample as a line of JSON."""
    fields = sample._asdict() | {"time": round(sample.time * 1000)}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def bodies(samples: Iterable[LagSample], largest: int = LARGEST_BODY) -> Iterator[bytes]:
    """The samples as lines, many to a body, none larger than that unless one line is."""
    held: list[bytes] = []
    size = 0
    for sample in samples:
        line = json_line(sample)
        if held and size + len(line) > largest:
            yield b"".join(held)
            held, size = [], 0
        held.append(line)
        size += len(line)
    if held:
        yield b"".join(held)
