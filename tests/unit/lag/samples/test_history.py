"""What is kept, and how much of it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lag.making import moment

from rocketfleet.lag.samples.history import LagSample, SampleKeeper, bodies, json_line, samples_of
from rocketfleet.lag.samples.parquet_sink import ParquetSink, remove_oldest
from rocketfleet.lag.target import Target
from rocketfleet.wire.enums import ConsumeFromWhere

TARGET = Target(None, "g", ("orders",), ConsumeFromWhere.LAST_OFFSET, cluster="main")  # type: ignore[arg-type]
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()


def sample(time: float = NOON, queue: int = 0, lag: int | None = 3, owner: str | None = "a") -> LagSample:
    offset = None if lag is None else 7
    return LagSample(
        time, "main", "g", "orders", "broker-a", queue, 0, 10, offset, lag, None if lag is None else 1.5, owner
    )


def files(directory: Path, pattern: str = "day=*/*.parquet") -> list[Path]:
    return sorted(directory.glob(pattern))


class Kept:
    """A sink that remembers, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.written: list[LagSample] = []
        self.closed = False

    async def write(self, samples: Sequence[LagSample]) -> None:
        if self.error is not None:
            raise self.error
        self.written += samples

    async def close(self) -> None:
        self.closed = True


def test_samples_are_those_that_were_read() -> None:
    seen = moment([(2, 9), (None, 4), (1, 5)], NOON, owners=["a", None, None], unread=[2])
    assert list(samples_of([(TARGET, seen)])) == [
        LagSample(NOON, "main", "g", "orders", "broker-a", 0, 0, 9, 2, 7, None, "a"),
        LagSample(NOON, "main", "g", "orders", "broker-a", 1, 0, 4, None, None, None, None),
    ]


def test_a_line_has_every_field_and_the_time_in_milliseconds() -> None:
    assert json.loads(json_line(sample(time=NOON + 0.25))) == {
        "time": int(NOON * 1000) + 250, "cluster": "main", "group": "g", "topic": "orders", "broker": "broker-a",
        "queue": 0, "min_offset": 0, "max_offset": 10, "consumer_offset": 7, "lag": 3, "seconds": 1.5, "owner": "a",
    }  # fmt: skip
    unknown = json.loads(json_line(sample(lag=None, owner=None)))
    assert [unknown[name] for name in ("consumer_offset", "lag", "seconds", "owner")] == [None] * 4


@given(st.lists(st.integers(0, 99), max_size=50), st.integers(1, 2000))
def test_bodies_are_bounded_and_lose_nothing(queues: list[int], largest: int) -> None:
    samples = [sample(queue=number) for number in queues]
    made = list(bodies(samples, largest))
    lines = [line for body in made for line in body.splitlines()]
    assert [json.loads(line)["queue"] for line in lines] == queues
    assert all(len(body) <= largest or body.count(b"\n") == 1 for body in made)


async def test_moments_are_kept_every_so_often() -> None:
    kept = Kept()
    history = SampleKeeper(kept, every=60.0)
    for number in range(9):
        await history.keep([(TARGET, moment([(2, 9)], NOON + 15 * number))])
    assert [one.time - NOON for one in kept.written] == [0, 60, 120]


async def test_a_sink_that_fails_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bad, good = Kept(OSError("no space left")), Kept()
    history = SampleKeeper(bad, good, every=0.0)
    for number in range(3):
        await history.keep([(TARGET, moment([(2, 9)], NOON + number))])
    await history.close()
    assert len(good.written) == 3
    assert (bad.closed, good.closed) == (True, True)
    assert [record.getMessage() for record in caplog.records] == [
        "the history of lag is not kept for now: no space left"
    ], "said once"


async def test_parquet_files_by_day(tmp_path: Path) -> None:
    from pyarrow import parquet

    midnight = datetime(2026, 2, 1, tzinfo=UTC).timestamp()
    sink = ParquetSink(tmp_path, most_rows=4)
    await sink.write([sample(midnight - 1, 0), sample(midnight - 1, 1, lag=None, owner=None)])
    assert files(tmp_path) == [], "held until it is worth a file"
    await sink.write([sample(midnight + 1, 0), sample(midnight + 1, 1)])
    written = files(tmp_path)
    assert [path.parent.name for path in written] == ["day=2026-01-31", "day=2026-02-01"]
    assert files(tmp_path, "*/.*") == [], "nothing half written is left"
    table = parquet.ParquetFile(written[0]).read()
    assert {field.name: str(field.type) for field in table.schema} == {
        "time": "timestamp[us, tz=UTC]", "cluster": "string", "group": "string", "topic": "string", "broker": "string",
        "queue": "int32", "min_offset": "int64", "max_offset": "int64", "consumer_offset": "int64", "lag": "int64",
        "seconds": "double", "owner": "string",
    }  # fmt: skip
    assert table.column("lag").to_pylist() == [3, None]
    assert table.column("time").to_pylist() == [datetime.fromtimestamp(midnight - 1, UTC)] * 2


async def test_what_is_held_is_written_after_a_while_and_at_the_end(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, longest_wait=60.0)
    await sink.write([sample(NOON)])
    await sink.write([sample(NOON + 60)])
    assert len(files(tmp_path)) == 1
    await sink.write([sample(NOON + 61)])
    await sink.close()
    assert len(files(tmp_path)) == 2


async def test_all_files_together_are_bounded(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, most_rows=1)
    for day in range(5):
        await sink.write([sample(NOON + day * 86_400)])
    written = files(tmp_path)
    removed = remove_oldest(tmp_path, sum(path.stat().st_size for path in written[3:]))
    assert removed == written[:3], "the oldest go first"
    assert files(tmp_path, "*") == [path.parent for path in written[3:]]
    assert remove_oldest(tmp_path, 0) == written[3:4], "the newest stays, however large"
