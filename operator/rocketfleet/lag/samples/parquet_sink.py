"""History in Parquet files, for Spark and its like: `day=2026-01-31/lag-….parquet` under one directory.

Samples are held until there are enough of them for a file worth reading, or the oldest has waited long enough. A file
appears whole or not at all: it is written beside its place and then renamed. When all files together are larger than
allowed, the oldest go. pyarrow is imported when the first file is written: only who keeps files needs it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.lag.samples.history import LagSample

MOST_ROWS: Final = 100_000
LONGEST_WAIT: Final = 300.0
MOST_BYTES: Final = 1024**3


class ParquetSink:
    """See the module. `most_bytes` is for all files together."""

    def __init__(
        self,
        directory: Path | str,
        *,
        most_rows: int = MOST_ROWS,
        longest_wait: float = LONGEST_WAIT,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._directory = Path(directory)
        self._most_rows = most_rows
        self._longest_wait = longest_wait
        self._most_bytes = most_bytes
        self._held: list[LagSample] = []
        self._numbers = itertools.count()

    async def write(self, samples: Sequence[LagSample]) -> None:
        """Hold the samples, and write a file if it is time."""
        self._held += samples
        if not self._held:
            return
        waited = self._held[-1].time - self._held[0].time
        if len(self._held) >= self._most_rows or waited >= self._longest_wait:
            await self._flush()

    async def close(self) -> None:
        """Write what is held."""
        if self._held:
            await self._flush()

    async def _flush(self) -> None:
        held, self._held = self._held, []  # lost if it cannot be written: it must not grow for ever
        await asyncio.to_thread(self._write_files, held)

    def _write_files(self, samples: Sequence[LagSample]) -> None:
        by_day: dict[str, list[LagSample]] = {}
        for sample in samples:
            by_day.setdefault(datetime.fromtimestamp(sample.time, UTC).strftime("%Y-%m-%d"), []).append(sample)
        for day, of_day in by_day.items():
            self._write_file(self._directory / f"day={day}", of_day)
        remove_oldest(self._directory, self._most_bytes)

    def _write_file(self, directory: Path, samples: Sequence[LagSample]) -> None:
        import pyarrow as arrow
        from pyarrow import parquet

        directory.mkdir(parents=True, exist_ok=True)
        # By time first, so that names sort by age; the rest makes it nobody else's.
        name = f"lag-{int(samples[0].time * 1000):014d}-{os.getpid()}-{next(self._numbers)}.parquet"
        beside = directory / f".{name}.part"
        try:
            parquet.write_table(_table(arrow, samples), beside, compression="zstd")
            beside.replace(directory / name)
        finally:
            beside.unlink(missing_ok=True)


def _table(arrow: Any, samples: Sequence[LagSample]) -> Any:
    schema = arrow.schema(
        [
            arrow.field("time", arrow.timestamp("us", tz="UTC"), nullable=False),
            *(arrow.field(name, arrow.string(), nullable=False) for name in ("cluster", "group", "topic", "broker")),
            arrow.field("queue", arrow.int32(), nullable=False),
            arrow.field("min_offset", arrow.int64(), nullable=False),
            arrow.field("max_offset", arrow.int64(), nullable=False),
            arrow.field("consumer_offset", arrow.int64()),
            arrow.field("lag", arrow.int64()),
            arrow.field("seconds", arrow.float64()),
            arrow.field("owner", arrow.string()),
        ]
    )
    columns = list(zip(*samples, strict=True))
    columns[0] = tuple(round(time * 1_000_000) for time in columns[0])
    arrays = [arrow.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    return arrow.Table.from_arrays(arrays, schema=schema)


def remove_oldest(directory: Path, most_bytes: int) -> list[Path]:
    """Remove the oldest files until the rest is small enough, and days that are empty then. The newest always stays."""
    files = sorted(directory.glob("day=*/lag-*.parquet"), key=lambda path: path.name)
    sizes = [path.stat().st_size for path in files]
    excess = sum(sizes) - most_bytes
    removed = []
    for path, size in zip(files[:-1], sizes, strict=False):
        if excess <= 0:
            break
        path.unlink(missing_ok=True)
        removed.append(path)
        excess -= size
    for day in {path.parent for path in removed}:
        if not any(day.iterdir()):
            day.rmdir()
    return removed
