"""The administrator's secret: given, made, kept, never shown."""

import json
import stat
from pathlib import Path

import pytest

from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.setup.credentials import VARIABLE, given_admin, load_admin, provide_admin


@pytest.fixture(autouse=True)
def no_administrator_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_a_secret_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"
    admin = provide_admin(path)
    assert admin.access_key == "admin"
    assert len(admin.secret_key) >= 16
    assert provide_admin(path) == admin == load_admin(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_directories_have_two_secrets(tmp_path: Path) -> None:
    assert provide_admin(tmp_path / "a").secret_key != provide_admin(tmp_path / "b").secret_key


def test_the_environments_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "root:with:colon")
    admin = provide_admin(tmp_path / "c")
    assert (admin.access_key, admin.secret_key) == ("root", "with:colon")
    assert json.loads((tmp_path / "c").read_text()) == {"access_key": "root", "secret_key": "with:colon"}


def test_data_that_has_another_administrator_already_is_not_locked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide_admin(tmp_path / "c")
    monkeypatch.setenv(VARIABLE, "root:other-secret")
    with pytest.raises(DevBrokerError, match="--delete-data") as caught:
        provide_admin(tmp_path / "c")
    assert "other-secret" not in str(caught.value)


def test_secrets_are_not_in_reprs(tmp_path: Path) -> None:
    admin = provide_admin(tmp_path / "c")
    assert admin.secret_key not in repr(admin)


@pytest.mark.parametrize("text", ["root", "root:", ":secret-word", "root:short", "root:has space", "röot:secret-word"])
def test_what_is_not_user_and_secret_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(DevBrokerError) as caught:
        given_admin(text)
    assert text not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", '{"access_key": "a"}'])
def test_a_spoilt_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "c").write_text(text)
    with pytest.raises(DevBrokerError, match="access_key and secret_key"):
        load_admin(tmp_path / "c")
