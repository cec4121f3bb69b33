"""`rocketfleet spark recommend` towards the Kubernetes API: the hour's floor at each object that can go by it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.day2_api import GROUPS, FakeApi, serving

from rocketfleet.cli.main import main

SERVERS = "127.0.0.1:1"
ANNOTATION = "rocketfleet.io/recommended-replicas"


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    made = FakeApi()
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with serving(made, tmp_path) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield made


def floors(path: Path, **groups: int | None) -> Path:
    """The same number in every hour."""
    entries = [{"cluster": SERVERS, "group": name, "membersByHour": [many] * 24} for name, many in groups.items()]
    path.write_text(json.dumps({"version": 1, "groups": entries}))
    return path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["spark", "recommend", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_without_apply_it_is_shown(tmp_path: Path) -> None:
    text = run(str(floors(tmp_path / "floors.json", orders=4, clicks=None))).stdout
    assert [line.split() for line in text.splitlines()] == [
        ["GROUP", "CLUSTER", "MEMBERS"],
        ["orders", SERVERS, "4"],
        ["clicks", SERVERS, "-"],
    ]


def test_apply_writes_sets_and_takes_away(api: FakeApi, tmp_path: Path) -> None:
    scaled = {"autoscaling": {"maxReplicas": 8}}
    api.add_group("orders", spec=scaled)
    api.add_group("fixed", spec={"replicas": 3})
    clicks = api.add_group("clicks", spec=scaled)
    clicks["metadata"]["annotations"] = {ANNOTATION: "7"}
    path = floors(tmp_path / "floors.json", orders=4, fixed=2, clicks=None)
    said = run(str(path), "--apply")
    assert "orders: at least 4 replicas in this hour" in said.stdout
    assert "fixed: left alone: it has no autoscaling" in said.stdout
    assert "clicks: its floor is taken away" in said.stdout
    assert "1 of 3 ConsumerGroups in namespace shop have a floor" in said.stderr
    written = {place: body["metadata"]["annotations"] for place, _, body in api.patches}
    assert written == {f"{GROUPS}/orders": {ANNOTATION: "4"}, f"{GROUPS}/clicks": {ANNOTATION: None}}


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    said = run(str(tmp_path / "no.json"), code=1)
    assert "there is no file" in said.stderr
