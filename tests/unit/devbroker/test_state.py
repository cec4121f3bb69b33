"""What a directory remembers."""

import stat
from pathlib import Path

import pytest

from rocketfleet.base.processes import Identity
from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.devbroker.state import FleetState, load, save, write_private


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    spec = FleetSpec(brokers=2, slave=True, acl=True, properties=(("a", "b"), ("c", "d")), broker_port=10911)
    state = FleetState(
        spec, {"name-server": 1}, "/bin/java", "/jars", {"name-server": Identity(7, "boot/12")}, ready=True
    )
    save(tmp_path / "state.json", state)
    assert load(tmp_path / "state.json") == state
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_nothing_is_remembered_of_nothing(tmp_path: Path) -> None:
    assert load(tmp_path / "state.json") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 99}', '{"format": 1, "spec": {"x": 1}}'])
def test_a_file_that_is_not_ours_is_not_guessed_at(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(DevBrokerError, match=r"state\.json is not a state file"):
        load(tmp_path / "state.json")


def test_only_the_owner_reads_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "new"


def test_the_living_are_those_that_live() -> None:
    state = FleetState(FleetSpec(), {}, "", "", {"broker-a": Identity(1, "never")})
    assert state.living == {}
