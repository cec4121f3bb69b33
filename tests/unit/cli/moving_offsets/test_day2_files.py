"""`--to`, and the file of `snapshot-offsets`: what is meant is understood, what is not is refused with a sentence."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.cli.main import main
from rocketfleet.cli.moving_offsets import offset_files
from rocketfleet.cli.moving_offsets.offset_files import LARGEST_OFFSET, OffsetSnapshot, SnapshotError, decode, encode
from rocketfleet.cli.moving_offsets.offset_target import (
    AtTime,
    Earliest,
    FromFile,
    Latest,
    TargetError,
    parse_target,
    time_text,
)
from rocketfleet.wire.queue import MessageQueue

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC).timestamp()


def test_words_and_files() -> None:
    assert parse_target("latest", NOW) == Latest()
    assert parse_target("earliest", NOW) == Earliest()
    assert parse_target("./latest", NOW) == FromFile(Path("./latest"))
    assert parse_target("orders.json", NOW) == FromFile(Path("orders.json"))


@pytest.mark.parametrize(
    ("text", "meant"),
    [("2h", "-2h"), ("+90m", "-90m"), ("1d12h", "-1d12h"), ("-2H", "-2h"), ("now", "latest"), ("start", "earliest"),
     ("Earliest", "earliest"), ("latets", "latest")],
)  # fmt: skip
def test_what_was_probably_meant(text: str, meant: str) -> None:
    result = CliRunner().invoke(main, ["reset-offsets", "orders", "--to", text, "--name-server", "127.0.0.1:1"])
    assert result.exit_code == 2
    assert f"Did you mean --to {meant}?" in result.stderr


def test_what_is_like_nothing_is_not_guessed() -> None:
    result = CliRunner().invoke(main, ["reset-offsets", "orders", "--to", "-2x", "--name-server", "127.0.0.1:1"])
    assert result.exit_code == 2
    assert "Did you mean" not in result.stderr
    assert "A time ago is written as -2h" in result.stderr


@pytest.mark.parametrize(
    ("text", "ago"),
    [("-30s", 30), ("-90m", 5400), ("-2h", 7200), ("-1d12h", 129_600), ("-1w", 604_800), ("-0s", 0)],
)
def test_a_time_ago(text: str, ago: int) -> None:
    assert parse_target(text, NOW) == AtTime(int((NOW - ago) * 1000))


@pytest.mark.parametrize("text", ["2026-03-01T11:00:00Z", "2026-03-01T13:00:00+02:00", "2026-03-01 11:00:00.000+00:00"])
def test_a_time_as_rfc_3339(text: str) -> None:
    assert parse_target(text, NOW) == AtTime(int((NOW - 3600) * 1000))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-03-01T12:00:01Z", "is in the future"),
        ("2026-03-01T11:00:00", "has no time zone: write 2026-03-01T11:00:00Z"),
        ("2026-02-30T11:00:00Z", "begins like a time, but"),
        ("-99999999d", "is before 1970"),
    ],
)
def test_a_time_that_cannot_be_meant(text: str, reason: str) -> None:
    with pytest.raises(TargetError, match=reason):
        parse_target(text, NOW)


@given(st.integers(0, int(NOW)))
def test_a_time_that_was_written_is_read(moment: int) -> None:
    assert parse_target(time_text(moment), NOW) == AtTime(moment * 1000)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
snapshots = st.builds(
    OffsetSnapshot,
    group=names,
    clusters=st.lists(names, max_size=3).map(tuple),
    time=names,
    offsets=st.dictionaries(
        st.builds(MessageQueue, names, names, st.integers(0, 1000)), st.none() | st.integers(0, LARGEST_OFFSET)
    ),
)


@given(snapshots)
def test_a_snapshot_comes_back_as_it_was(snapshot: OffsetSnapshot) -> None:
    assert decode(encode(snapshot), "file") == snapshot


GOOD = OffsetSnapshot("orders", ("c",), "2026-01-01T00:00:00Z", {MessageQueue("t", "b", 0): 5})


def changed(**changes: object) -> str:
    return json.dumps({**json.loads(encode(GOOD)), **changes})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is no snapshot"),
        ("{}", "is no snapshot"),
        (changed(version=2), "of version 2"),
        (changed(group=None), "must have group"),
        (changed(cluster=[1]), "must have group"),
        (changed(offsets=[5]), "entry 1 of offsets must have topic"),
        (changed(offsets=[{"topic": "t", "broker": "b", "queueId": True, "offset": 1}]), "entry 1"),
        (changed(offsets=[{"topic": "t", "broker": "b", "queueId": 0, "offset": -1}]), "0 or more"),
        (changed(offsets=[{"topic": "t", "broker": "b", "queueId": 0, "offset": 2**63}]), "entry 1"),
        (changed(offsets=[{"topic": "t", "broker": "b", "queueId": 0, "offset": 1}] * 2), "twice"),
    ],
    ids=range(12),
)
def test_what_is_no_snapshot_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SnapshotError, match=reason):
        decode(text, "file")


def test_a_file_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "orders.json"
    offset_files.write(path, GOOD)
    other = OffsetSnapshot("orders", ("c",), "later", {})
    with pytest.raises(SnapshotError, match="add --force"):
        offset_files.write(path, other)
    assert offset_files.read(path) == GOOD
    offset_files.write(path, other, replace=True)
    assert offset_files.read(path) == other
    assert [file.name for file in tmp_path.iterdir()] == ["orders.json"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "orders.json"
    offset_files.write(path, GOOD)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SnapshotError, match="No space left"):
        offset_files.write(path, OffsetSnapshot("orders", ("c",), "later", {}), replace=True)
    assert offset_files.read(path) == GOOD
    assert [file.name for file in tmp_path.iterdir()] == ["orders.json"]


def test_no_directory_and_no_file_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="cannot write to"):
        offset_files.write(tmp_path / "none" / "file", GOOD)
    with pytest.raises(SnapshotError, match="No such file"):
        offset_files.read(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(SnapshotError, match="not UTF-8"):
        offset_files.read(tmp_path / "bytes")
