"""Windows of queues, members and groups against what the plainest Python works out from the same samples."""

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from tests.spark.lag_samples import START, WIDTH, QueueWindow, adventures, expected, sample, write_file

from rocketfleet.lag.samples.history import LagSample
from rocketfleet.spark.analytics.batch import AnalysisRequest, analyse
from rocketfleet.spark.analytics.output import check_owner, read_table, write_table
from rocketfleet.spark.analytics.windows.group_windows import group_windows
from rocketfleet.spark.analytics.windows.member_windows import member_windows
from rocketfleet.spark.analytics.windows.queue_windows import QUEUE, queue_windows
from rocketfleet.spark.analytics.windows.reading import read_history
from rocketfleet.spark.analytics.windows.reference import HistoryError, ParquetHistory


@pytest.fixture
def of(spark: SparkSession, tmp_path: Path) -> Any:
    """of(samples) is their queue windows, read from files as the operator writes them."""

    def made(samples: Sequence[LagSample]) -> DataFrame:
        write_file(tmp_path / "history", samples)
        return queue_windows(read_history(spark, ParquetHistory(str(tmp_path / "history"))), WIDTH)

    return made


def only(frame: DataFrame) -> Row:
    (row,) = frame.collect()
    return row


def test_rates_trend_and_time_to_drain(of: Any) -> None:
    lags = [1000, 940, 880, 820, 760]
    samples = [
        sample(60.0 * n, max_offset=5000 + 120 * n, consumer_offset=5000 + 120 * n - lag, seconds=lag / 10)
        for n, lag in enumerate(lags)
    ]
    row = only(of(samples))
    assert (row.samples, row.produced, row.consumed) == (5, 480, 720)
    assert (row.produce_rate, row.consume_rate, row.trend) == (2.0, 3.0, -1.0)
    assert row.drain_seconds == 760.0
    assert (row.lag_first, row.lag_last, row.lag_min, row.lag_max, row.lag_mean) == (1000, 760, 760, 1000, 880.0)
    assert (row.seconds_last, row.seconds_max) == (76.0, 100.0)
    assert not row.stuck
    assert str(row.day) == "2026-03-01"


def test_a_lag_that_does_not_shrink_lasts_for_ever_and_none_is_done_at_once(of: Any) -> None:
    grows = [sample(60.0 * n, 0, max_offset=100 * n + 50, consumer_offset=10 * n) for n in range(3)]
    done = [sample(60.0 * n, 1, max_offset=100 * n, consumer_offset=100 * n) for n in range(3)]
    by_queue = {row.queue: row.drain_seconds for row in of(grows + done).collect()}
    assert by_queue == {0: math.inf, 1: 0.0}


def test_what_is_not_known_is_null_and_not_0(of: Any) -> None:
    row = only(of([sample(60.0 * n, max_offset=10 * n, consumer_offset=None, seconds=None) for n in range(4)]))
    assert row.produce_rate == pytest.approx(1 / 6)
    for name in ("consumed", "consume_rate", "lag_last", "lag_mean", "trend", "drain_seconds", "seconds_max"):
        assert row[name] is None, name
    assert row.stuck is False
    assert row.rewound is False


def test_a_reset_of_offsets_is_no_rate(of: Any) -> None:
    back = [sample(60.0 * n, 0, max_offset=900, consumer_offset=offset) for n, offset in enumerate([500, 100, 700])]
    anew = [sample(60.0 * n, 1, max_offset=end, consumer_offset=0) for n, end in enumerate([900, 10, 20])]
    rows = {row.queue: row for row in of(back + anew).collect()}
    assert (rows[0].consume_rate, rows[0].rewound, rows[0].produce_rate) == (None, True, 0.0)
    assert (rows[1].produce_rate, rows[1].rewound) == (None, False)


@pytest.mark.parametrize("seed", [1, 2])
def test_queue_windows_are_what_python_makes_of_them(of: Any, seed: int) -> None:
    samples = adventures(seed)
    wanted = expected(samples)
    rows = of(samples).collect()
    found = {}
    for row in rows:
        key = (row.window_start.timestamp(), *(row[name] for name in QUEUE), row.owner)
        found[key] = QueueWindow(*(row[name] for name in QueueWindow._fields))
    assert len(found) == len(rows), "one row a window"
    assert found.keys() == wanted.keys()
    for key, window in wanted.items():
        assert found[key] == pytest.approx(window), key
    assert any(window.stuck for window in wanted.values())
    assert any(window.rewound for window in wanted.values())


def test_members_and_groups_are_sums_of_their_queues(of: Any) -> None:
    def queue(number: int, owner: str, rate: int, lag: int) -> list[LagSample]:
        return [
            sample(60.0 * n, number, owner=owner, max_offset=9000 + rate * n, consumer_offset=9000 + rate * n - lag)
            for n in range(5)
        ]

    queues = of([*queue(0, "m-0", 600, 6000), *queue(1, "m-0", 1200, 0), *queue(2, "m-1", 60, 30)])
    members = member_windows(queues)
    by_owner = {row.owner: row for row in members.collect()}
    assert (by_owner["m-0"].queues, by_owner["m-0"].lag_last, by_owner["m-0"].consume_rate) == (2, 6000, 30.0)
    assert by_owner["m-0"].busy, "6000 waited all the time, and it does 30 a second"
    assert not by_owner["m-1"].busy or by_owner["m-1"].lag_min >= 6
    group = only(group_windows(queues, members))
    assert (group.queues, group.members, group.lag, group.stuck_queues, group.shared_queues) == (3, 2, 6030, 0, 0)
    assert (group.produce_rate, group.consume_rate, group.trend) == (31.0, 31.0, 0.0)
    assert group.lag_skew == pytest.approx(6000 * 3 / 6030)
    assert group.produce_skew == pytest.approx(20 * 3 / 31)
    assert group.drain_seconds == math.inf


def test_a_queue_that_changes_hands_counts_once_in_its_group(of: Any) -> None:
    moved = [
        sample(60.0 * n, owner="m-0" if n < 3 else "m-1", max_offset=1000 + 60 * n, consumer_offset=960 + 60 * n)
        for n in range(5)
    ]
    queues = of(moved)
    members = member_windows(queues)
    assert {row.owner: row.consume_rate for row in members.collect()} == {"m-0": 1.0, "m-1": 1.0}
    group = only(group_windows(queues, members))
    assert (group.queues, group.members, group.lag, group.produce_rate) == (1, 2, 40, 1.0)
    assert group.shared_queues == 0


def test_a_broadcasting_group_is_as_far_behind_as_its_last_member(of: Any) -> None:
    samples = [
        sample(60.0 * n, owner=f"m-{member}", max_offset=1000 + 60 * n, consumer_offset=1000 + 60 * n - 10 * member)
        for n in range(5)
        for member in range(3)
    ]
    queues = of(samples)
    group = only(group_windows(queues, member_windows(queues)))
    assert (group.queues, group.members, group.lag, group.produce_rate) == (1, 3, 20, 1.0)
    assert group.shared_queues == 1


@pytest.mark.parametrize("seed", [3])
def test_group_windows_of_groups_with_adventures(of: Any, seed: int) -> None:
    samples = adventures(seed)
    last: dict[tuple[float, str, int], tuple[float, int]] = {}
    members: dict[tuple[float, str], set[str]] = defaultdict(set)
    for one in samples:
        start = one.time // WIDTH * WIDTH
        if one.owner is not None:
            members[start, one.group].add(one.owner)
        if one.lag is not None:
            key = start, one.group, one.queue
            last[key] = max(last.get(key, (0.0, 0)), (one.time, one.lag))
    lag: dict[tuple[float, str], int] = defaultdict(int)
    for (start, group, _), (_, value) in last.items():
        lag[start, group] += value
    queues = of(samples)
    rows = group_windows(queues, member_windows(queues)).collect()
    assert len(rows) == 3 * 12
    for row in rows:
        at = row.window_start.timestamp(), row.group
        assert row.lag == lag[at]
        assert row.members == len(members[at])
        assert (row.shared_queues > 0) == (row.group == "news")


# -- tables and figures -----------------------------------------------------------------------------------------------


def test_a_batch_that_is_run_again_replaces_what_it_wrote(of: Any, spark: SparkSession, tmp_path: Path) -> None:
    windows = of(adventures(4))
    directory = str(tmp_path / "tables")
    for _ in range(2):
        write_table(windows, directory, "queues")
    assert read_table(spark, directory, "queues").count() == windows.count()
    days = {path.name for path in (tmp_path / "tables" / "queues").glob("day=*")}
    assert days == {"day=2026-03-01"}


def test_a_directory_belongs_to_a_batch_or_to_a_stream(of: Any, spark: SparkSession, tmp_path: Path) -> None:
    windows = of([sample(0.0), sample(60.0)])
    batch, stream = str(tmp_path / "batch"), str(tmp_path / "stream")
    write_table(windows, batch, "queues")
    write_table(windows, stream, "queues", "stream-000000000")
    check_owner(spark, batch, streaming=False)
    check_owner(spark, stream, streaming=True)
    check_owner(spark, str(tmp_path / "new"), streaming=True)
    with pytest.raises(HistoryError, match="are a report's: give this stream"):
        check_owner(spark, batch, streaming=True)
    with pytest.raises(HistoryError, match="are a stream's: give this report"):
        check_owner(spark, stream, streaming=False)


def test_a_history_that_is_not_there_or_empty_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    def said(history: str | None, aggregates: str | None = None) -> str:
        with pytest.raises(HistoryError) as caught:
            analyse(spark, AnalysisRequest(history, aggregates), lambda _: None)
        return str(caught.value)

    assert "there is no directory" in said(str(tmp_path / "no"))
    assert "there are no samples of lag" in said(str(tmp_path / "empty"))
    assert "there are no aggregates in" in said(None, str(tmp_path / "no"))


def test_figures_of_a_period(spark: SparkSession, tmp_path: Path) -> None:
    day = 86_400.0
    samples = []
    for minute in range(0, 36 * 60, 5):
        at = 60.0 * minute
        came = 50 * minute
        for extra in (0.0, 60.0, 120.0):
            samples.append(sample(at + extra, 0, max_offset=came + int(extra), consumer_offset=came + int(extra)))
            stuck = at >= day
            place = 50 * 24 * 60 if stuck else came + int(extra)
            samples.append(sample(at + extra, 1, max_offset=came + int(extra) + 9, consumer_offset=place, owner="m-1"))
    write_file(tmp_path / "history", samples)
    said: list[str] = []
    made = analyse(spark, AnalysisRequest(str(tmp_path / "history"), str(tmp_path / "tables")), said.append)
    assert made.samples == len(samples)
    assert (made.since, made.until) == (START, START + 36 * 3600)
    (group,) = made.groups
    assert (group.queues, group.members) == (2, 2)
    assert group.lag == 50 * (36 * 60 - 5) + 120 + 9 - 50 * 24 * 60
    assert group.drain_seconds == math.inf
    assert all(hour is not None and hour.produce_peak == pytest.approx(2.0) for hour in group.hours)
    (stuck_queue,) = made.stuck
    assert (stuck_queue.queue, stuck_queue.owner, stuck_queue.still) == (1, "m-1", True)
    assert (stuck_queue.since, stuck_queue.until) == (START + day, START + 36 * 3600)
    detail = made.details[group.key]
    assert len(detail.points) == 216
    assert [one.queue for one in detail.queues] == [0, 1]
    assert sorted(str(one) for one in detail.hourly) == ["2026-03-01", "2026-03-02", "2026-03-03"]
    tables = {path.name for path in (tmp_path / "tables").iterdir()}
    assert tables == {"queues", "members", "groups", "days", "hours"}
    (again,) = analyse(spark, AnalysisRequest(None, str(tmp_path / "tables")), said.append).groups
    assert again == group, "from the tables as from the history"
    assert any("reading" in line for line in said)
    (first,) = analyse(spark, AnalysisRequest(str(tmp_path / "history"), until=made_day(2)), said.append).groups
    assert first.last_seen == START + 2 * 3600 - WIDTH


def made_day(number: int) -> Any:
    from datetime import date

    return date(2026, 3, number)
