"""`rocketfleet spark report` as a user runs it: on a history that was made by the example."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from examples.spark.make_lag_history import write
from tests.spark.test_standalone import Standalone, standalone  # noqa: F401 - a fixture


def run(*arguments: str, master: str = "local[2]") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_PYTHON", None)
    settings = [
        "--master",
        master,
        "--conf",
        "spark.driver.memory=768m",
        "--conf",
        "spark.sql.shuffle.partitions=2",
    ]
    command = [sys.executable, "-m", "rocketfleet.cli.main", "spark", "report", *settings, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment)


@pytest.mark.timeout(900)
def test_a_report_of_two_days(tmp_path: Path) -> None:
    write(tmp_path / "history", days=2.0)
    page, floors, tables = tmp_path / "report.html", tmp_path / "floors.json", tmp_path / "tables"
    done = run(
        *("--history", str(tmp_path / "history"), "--out", str(page)),
        *("--recommend", str(floors), "--aggregates", str(tables)),
    )
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    for name in ("orders", "payments", "clicks", "audit", "nightly", "mailer"):
        assert f">{name}</h2>" in text
    assert "Queue payments@broker-b/2 has stood still for 9 h 30 min" in text
    assert "One queue has" in text
    assert "most of all audit@broker-a/1" in text
    groups = {one["group"]: one for one in json.loads(floors.read_text())["groups"]}
    assert groups["clicks"]["queuesToAdd"] > 0
    # It gets 700 per second from two to three at night and members do 160: 6 would do, and there are 4 queues.
    assert groups["nightly"]["membersByHour"][2] == 4
    assert set(groups["nightly"]["membersByHour"][3:]) == {1}
    assert groups["nightly"]["memberRate"] == pytest.approx(160, rel=0.1)
    assert "6 groups" in done.stderr
    assert sorted(one.name for one in tables.iterdir()) == ["days", "groups", "hours", "members", "queues"]


@pytest.mark.timeout(600)
def test_a_missing_history_is_one_sentence(tmp_path: Path) -> None:
    done = run("--history", str(tmp_path / "no"), "--out", str(tmp_path / "report.html"))
    assert done.returncode == 1
    assert "Error: there is no directory" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "report.html").exists()


@pytest.mark.timeout(900)
def test_on_a_cluster_it_says_the_same(tmp_path: Path, standalone: Standalone) -> None:  # noqa: F811 - the fixture
    write(tmp_path / "history", days=0.5)
    told: list[str] = []
    for master in ("local[2]", standalone.master):
        floors = tmp_path / f"floors-{len(told)}.json"
        settings = ("--conf", "spark.executor.memory=512m")
        done = run("--history", str(tmp_path / "history"), "--recommend", str(floors), *settings, master=master)
        assert done.returncode == 0, done.stderr
        told.append(floors.read_text())
    assert told[0] == told[1]
