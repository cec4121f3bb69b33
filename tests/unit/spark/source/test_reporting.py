"""Reports of a source: what is left is found, by group, and nobody is bothered who does not ask for it."""

from pathlib import Path

import pytest

from rocketfleet.spark.source import reporting
from rocketfleet.wire.queue import MessageQueue

DONE = {MessageQueue("orders", "broker-a", number): 10 * number for number in range(3)}


def test_the_last_report_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(reporting.REPORTS, str(tmp_path))
    assert reporting.read(tmp_path, "a%/b|") is None
    reporting.leave("a%/b|", {}, 0)
    reporting.leave("a%/b|", DONE, 4)
    reporting.leave("another", {}, 0)
    assert reporting.read(tmp_path, "a%/b|") == reporting.Report(DONE, 4)
    assert len(list(tmp_path.iterdir())) == 2, "no drafts are left"


def test_without_a_directory_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(reporting.REPORTS, raising=False)
    monkeypatch.chdir(tmp_path)
    reporting.leave("orders", DONE, 0)
    assert not list(tmp_path.iterdir())
