"""Waiting for processes: ready, dead, too slow, not registered. No process runs here; time is a number."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.clock import Clock

from rocketfleet.base.processes import Identity
from rocketfleet.devbroker.errors import ProbeError, StartError
from rocketfleet.devbroker.launch import Readiness, clean_environment
from rocketfleet.devbroker.probe import Probe
from rocketfleet.devbroker.setup.config import Layout
from rocketfleet.devbroker.setup.plan import ProcessPlan
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command

PORTS = {"name-server": 1, "broker-a": 10, "broker-a-slave": 20}


class Wire(Probe):
    """Answers for the servers."""

    def __init__(self, registered: dict[str, dict[int, str]] | None) -> None:
        super().__init__()
        object.__setattr__(self, "registered", registered)
        object.__setattr__(self, "calls", [])

    registered: dict[str, dict[int, str]] | None
    calls: list[tuple[str, int, bytes]]

    def registered_brokers(self, name_server: str) -> dict[str, dict[int, str]]:
        if self.registered is None:
            raise ProbeError("nobody there")
        return self.registered

    def call(self, address: str, code: int, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> Command:
        self.calls.append((address, code, body))
        return Command(0)


class Living(Identity):
    alive = True


class Dead(Identity):
    alive = False


def plan(name: str, words: str = "boot success") -> ProcessPlan:
    return ProcessPlan(name, (), words)


def readiness(directory: Path, wire: Wire, outputs: dict[str, str], *, controller: bool = False) -> Readiness:
    layout = Layout(directory)
    for process, text in outputs.items():
        layout.home(process).mkdir(parents=True)
        layout.output(process).write_text(text)
    return Readiness(layout, PORTS, wire, controller=controller)


def wait(asker: Readiness, name: str, identity: Identity, clock: Clock | None = None) -> list[str]:
    clock = clock or Clock(0.0)
    told: list[str] = []
    asker.wait([(plan(name), identity)], 10.0, told.append, clock=clock, sleep=clock.sleep)
    return told


@pytest.mark.parametrize(
    ("process", "registered", "up"),
    [
        ("name-server", None, False),
        ("name-server", {}, True),
        ("broker-a", {}, False),
        ("broker-a", {"broker-a": {0: "127.0.0.1:11"}}, False),
        ("broker-a", {"broker-a": {0: "127.0.0.1:10"}}, True),
        ("broker-a-slave", {"broker-a": {0: "127.0.0.1:10"}}, False),
        ("broker-a-slave", {"broker-a": {0: "127.0.0.1:10", 1: "127.0.0.1:20"}}, True),
    ],
)
def test_up_is_what_the_name_server_confirms(
    tmp_path: Path, process: str, registered: dict[str, dict[int, str]] | None, up: bool
) -> None:
    asker = readiness(tmp_path, Wire(registered), {process: "The broker boot success."})
    assert asker.is_up(plan(process)) is up


@pytest.mark.parametrize(
    ("registered", "up"),
    [
        ({}, False),
        ({2: "127.0.0.1:10"}, False),
        ({0: "127.0.0.1:20"}, False),
        ({0: "127.0.0.1:10"}, True),
        ({0: "127.0.0.1:20", 1: "127.0.0.1:10"}, True),
    ],
)
def test_with_a_controller_any_role_will_do_once_there_is_a_master(
    tmp_path: Path, registered: dict[int, str], up: bool
) -> None:
    asker = readiness(tmp_path, Wire({"broker-a": registered}), {"broker-a": "boot success"}, controller=True)
    assert asker.is_up(plan("broker-a")) is up


def test_one_that_has_not_said_so_is_not_up(tmp_path: Path) -> None:
    asker = readiness(tmp_path, Wire({"broker-a": {0: "127.0.0.1:10"}}), {"broker-a": "still loading"})
    assert not asker.is_up(plan("broker-a"))


def test_the_wait_ends_when_all_are_up(tmp_path: Path) -> None:
    asker = readiness(tmp_path, Wire({}), {"name-server": "boot success"})
    assert wait(asker, "name-server", Living(1, "")) == []


def test_one_that_dies_is_named_with_its_last_words(tmp_path: Path) -> None:
    asker = readiness(tmp_path, Wire({}), {"name-server": "java.net.BindException: Address already in use\n"})
    with pytest.raises(StartError, match=r"name-server died.*BindException: Address already in use.*output\.log"):
        wait(asker, "name-server", Dead(1, ""))


def test_one_that_died_after_it_was_up_does_not_count(tmp_path: Path) -> None:
    asker = readiness(tmp_path, Wire({}), {"name-server": "boot success"})
    with pytest.raises(StartError, match="died"):
        wait(asker, "name-server", Dead(1, ""))


def test_one_that_is_too_slow_is_named_when_the_time_is_out(tmp_path: Path) -> None:
    clock = Clock(0.0)
    with pytest.raises(StartError, match=r"Not ready after 10 s: broker-a"):
        wait(readiness(tmp_path, Wire({}), {"broker-a": ""}), "broker-a", Living(1, ""), clock)
    assert 10.0 < clock.now < 10.2


def test_a_broker_that_is_up_but_not_registered_is_nudged(tmp_path: Path) -> None:
    wire = Wire({})
    with pytest.raises(StartError):
        wait(readiness(tmp_path, wire, {"broker-a": "boot success"}), "broker-a", Living(1, ""))
    assert wire.calls[0] == ("127.0.0.1:10", RequestCode.UPDATE_BROKER_CONFIG, b"brokerPermission=6\n")


def test_a_replica_that_has_no_role_yet_is_let_be(tmp_path: Path) -> None:
    wire = Wire({})
    asker = readiness(tmp_path, wire, {"broker-a": "boot success"}, controller=True)
    with pytest.raises(StartError):
        wait(asker, "broker-a", Living(1, ""))
    assert wire.calls == []


def test_a_broker_that_is_still_starting_is_let_be(tmp_path: Path) -> None:
    wire = Wire({})
    with pytest.raises(StartError):
        wait(readiness(tmp_path, wire, {"broker-a": "loading"}), "broker-a", Living(1, ""))
    assert wire.calls == []


def test_another_rocketmqs_settings_do_not_leak_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROCKETMQ_HOME", "NAMESRV_ADDR", "RMQ_PROXY_HOME", "CLASSPATH"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv("KEPT", "yes")
    environment = clean_environment()
    assert "elsewhere" not in environment.values()
    assert environment["KEPT"] == "yes"
