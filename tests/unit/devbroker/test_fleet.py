"""A fleet without RocketMQ: what is refused, what is left alone, what is cleaned up.

Where a process is needed, a shell script stands in for Java; that RocketMQ itself starts is tested in tests/broker.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.waiting import wait_until

from rocketfleet.base.processes import Identity, began
from rocketfleet.devbroker import fleet as fleets
from rocketfleet.devbroker import state
from rocketfleet.devbroker.describe import describe, render
from rocketfleet.devbroker.errors import DevBrokerError, JavaError, PortError, ProbeError, StartError
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.guard import Guard
from rocketfleet.devbroker.probe import Probe
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.devbroker.state import FleetState


@pytest.fixture
def bystander() -> Iterator[Identity]:
    """A process that is not ours."""
    process = subprocess.Popen(["sleep", "60"])
    start = began(process.pid)
    assert start is not None
    yield Identity(process.pid, start)
    process.kill()
    process.wait()


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """fake_java(script) puts a Java that runs the script in place of the real one, and jars that are there already."""

    def make(script: str) -> None:
        java = tmp_path / "jdk" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'version "17.0.1"\' >&2; exit; fi\n{script}\n')
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
        monkeypatch.setattr(fleets, "provide_jars", lambda *_: tmp_path / "jars")

    return make


def remembered(
    directory: Path, processes: dict[str, Identity], *, ready: bool = True, spec: FleetSpec | None = None
) -> Fleet:
    fleet = Fleet(directory)
    directory.mkdir()
    fleet.layout.lock.touch()
    spec = spec or FleetSpec()
    ports = {name: 20000 + 10 * place for place, name in enumerate(spec.listeners)}
    state.save(fleet.layout.state, FleetState(spec, ports, "/bin/java", "/jars", processes, ready=ready))
    return fleet


def test_nothing_was_started(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "fleet")
    assert fleet.state() is None
    assert not fleet.running
    assert fleet.stop() == []
    assert not (tmp_path / "fleet").exists()
    with pytest.raises(DevBrokerError, match="`rocketfleet broker start` does"):
        fleet.known()


def test_a_directory_with_other_things_in_it_is_neither_used_nor_deleted(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").write_text("mine")
    fleet = Fleet(tmp_path)
    with pytest.raises(DevBrokerError, match="a directory of its own"):
        fleet.start(FleetSpec())
    assert fleet.stop(delete_data=True) == []
    assert (tmp_path / "data" / "precious").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_process_that_only_has_the_id_is_not_stopped(tmp_path: Path, bystander: Identity) -> None:
    fleet = remembered(tmp_path / "fleet", {"broker-a": Identity(bystander.pid, "another/1")})
    assert not fleet.running
    assert fleet.stop() == []
    assert bystander.alive
    with pytest.raises(DevBrokerError, match="broker-a is not running"):
        fleet.pause()


def test_stop_ends_what_was_started(tmp_path: Path, bystander: Identity) -> None:
    fleet = remembered(tmp_path / "fleet", {"broker-a": bystander})
    assert fleet.stop() == ["broker-a"]
    assert not bystander.alive
    assert fleet.known().processes == {}
    assert fleet.stop(delete_data=True) == []
    assert not (tmp_path / "fleet").exists()


def test_stop_finds_what_a_killed_start_left(tmp_path: Path, bystander: Identity) -> None:
    fleet = remembered(tmp_path / "fleet", {"name-server": bystander}, ready=False)
    assert fleet.stop() == ["name-server"]
    assert not bystander.alive


def test_a_fleet_with_a_dead_process_is_not_running(tmp_path: Path, bystander: Identity) -> None:
    fleet = remembered(tmp_path / "fleet", {"name-server": bystander, "broker-a": Identity(bystander.pid, "x")})
    assert not fleet.running
    document = describe(fleet)
    assert not document["running"]
    assert document["name_server_processes"][0]["alive"]
    assert not document["name_server_processes"][0]["answers"]
    assert not document["brokers"][0]["alive"]
    shown = render(document)
    assert "does not answer" in shown
    assert "not running" in shown


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(JavaError, match="No Java found"):
        Fleet(tmp_path / "fleet").start(FleetSpec())


def test_a_process_that_dies_leaves_nothing_running(tmp_path: Path, fake_java: Callable[[str], None]) -> None:
    fake_java("echo 'Error: Could not find or load main class'; exit 1")
    fleet = Fleet(tmp_path / "fleet")
    with pytest.raises(StartError, match=r"name-server died.*Could not find or load main class"):
        fleet.start(FleetSpec())
    assert fleet.known().processes == {}


def test_one_that_never_gets_ready_is_ended(tmp_path: Path, fake_java: Callable[[str], None]) -> None:
    fake_java("echo $$ > pid; exec sleep 60")
    fleet = Fleet(tmp_path / "fleet")
    with pytest.raises(StartError, match=r"Not ready after 0\.5 s: name-server"):
        fleet.start(FleetSpec(), timeout=0.5)
    assert began(int((fleet.layout.home("name-server") / "pid").read_text())) is None


def test_an_interrupted_start_leaves_nothing_running(tmp_path: Path, fake_java: Callable[[str], None]) -> None:
    fake_java("echo $$ > pid; exec sleep 60")

    class Interrupting:
        def say(self, line: str) -> None:
            pass

        def progress(self, line: str) -> None:
            if (fleet.layout.home("name-server") / "pid").exists():
                raise KeyboardInterrupt

    fleet = Fleet(tmp_path / "fleet", Interrupting())
    with pytest.raises(KeyboardInterrupt):
        fleet.start(FleetSpec(), timeout=30)
    assert fleet.known().processes == {}
    assert began(int((fleet.layout.home("name-server") / "pid").read_text())) is None


def test_a_full_disk_is_one_sentence(
    tmp_path: Path, fake_java: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java("exec sleep 60")

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(state, "write_private", full)
    with pytest.raises(DevBrokerError, match="disk is full"):
        Fleet(tmp_path / "fleet").start(FleetSpec())


def test_a_given_port_that_is_taken(tmp_path: Path, fake_java: Callable[[str], None]) -> None:
    fake_java("exec sleep 60")
    fleet = Fleet(tmp_path / "fleet")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortError, match=f"Port {port} is taken"):
            fleet.start(FleetSpec(name_server_port=port))
    assert fleet.state() is None


def test_a_port_that_was_ours_and_is_taken_is_replaced_and_said(
    tmp_path: Path, fake_java: Callable[[str], None]
) -> None:
    fake_java("exit 1")
    said: list[str] = []

    class Notes:
        def say(self, line: str) -> None:
            said.append(line)

        def progress(self, line: str) -> None:
            pass

    fleet = Fleet(remembered(tmp_path / "fleet", {}).directory, Notes())
    known = fleet.known()
    with socket.create_server(("127.0.0.1", 0)) as other:
        known.ports["name-server"] = port = other.getsockname()[1]
        state.save(fleet.layout.state, known)
        with pytest.raises(StartError):
            fleet.start(FleetSpec())
    assert [line for line in said if "name-server" in line] == [
        f"name-server listens on port {fleet.known().ports['name-server']} now: {port}, as before, is taken"
    ]


def test_commands_in_one_directory_take_turns(tmp_path: Path) -> None:
    waited = threading.Event()

    class Waits:
        def say(self, line: str) -> None:
            if "waiting" in line:
                waited.set()

        def progress(self, line: str) -> None:
            pass

    fleet = remembered(tmp_path / "fleet", {})
    other = Fleet(tmp_path / "fleet", Waits())
    with fleet._turn():
        thread = threading.Thread(target=lambda: other.stop(delete_data=True))
        thread.start()
        assert waited.wait(20)
        assert fleet.state() is not None
    thread.join(20)
    assert not (tmp_path / "fleet").exists()


def test_there_is_no_such_process(tmp_path: Path) -> None:
    fleet = remembered(tmp_path / "fleet", {})
    with pytest.raises(DevBrokerError, match="no broker-z; it has name-server, broker-a"):
        fleet.kill("broker-z")


def registering(monkeypatch: pytest.MonkeyPatch, brokers: dict[str, dict[int, str]]) -> None:
    monkeypatch.setattr(Probe, "registered_brokers", lambda *_: brokers)


def test_the_names_tell_the_masters(tmp_path: Path) -> None:
    fleet = remembered(tmp_path / "fleet", {}, spec=FleetSpec(brokers=2, slave=True))
    assert fleet.master_of("broker-b") == "broker-b"
    assert fleet.masters == {"broker-a": "127.0.0.1:20010", "broker-b": "127.0.0.1:20030"}
    with pytest.raises(DevBrokerError, match="no broker-b-slave; it has broker-a, broker-b"):
        fleet.master_of("broker-b-slave")


def test_with_a_controller_the_name_server_tells_the_masters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = remembered(tmp_path / "fleet", {}, spec=FleetSpec(slave=True, controller=True))
    registering(monkeypatch, {"broker-a": {0: "127.0.0.1:20020", 1: "127.0.0.1:20010"}})
    assert fleet.master_of("broker-a") == "broker-a-slave"
    assert fleet.masters == {"broker-a": "127.0.0.1:20020"}
    assert fleet.broker_address == "127.0.0.1:20020"
    document = describe(fleet)
    assert [(broker["process"], broker["id"], broker["role"]) for broker in document["brokers"]] == [
        ("broker-a", 1, "slave"),
        ("broker-a-slave", 0, "master"),
    ]
    assert "a controller on 127.0.0.1:20030" in render(document)


@pytest.mark.parametrize("registered", [{}, {"broker-a": {2: "127.0.0.1:20020"}}])
def test_between_two_masters_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: dict[str, dict[int, str]]
) -> None:
    fleet = remembered(tmp_path / "fleet", {}, spec=FleetSpec(slave=True, controller=True))
    registering(monkeypatch, registered)
    with pytest.raises(DevBrokerError, match="broker-a has no master now"):
        fleet.master_of("broker-a")
    assert "master" not in {broker["role"] for broker in describe(fleet)["brokers"]}


def test_nobody_is_said_to_be_master_when_the_name_server_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise ProbeError("nobody there")

    monkeypatch.setattr(Probe, "registered_brokers", away)
    fleet = remembered(tmp_path / "fleet", {}, spec=FleetSpec(slave=True, controller=True))
    document = describe(fleet)
    assert [broker["role"] for broker in document["brokers"]] == [None, None]
    assert render(document).count("not running") == 3


def test_pause_and_resume_are_signals(tmp_path: Path, bystander: Identity) -> None:
    fleet = remembered(tmp_path / "fleet", {"broker-a": bystander})
    fleet.pause()
    assert os.waitpid(bystander.pid, os.WUNTRACED)[1] >> 8 == signal.SIGSTOP
    fleet.resume()
    assert os.WIFCONTINUED(os.waitpid(bystander.pid, os.WCONTINUED)[1])
    fleet.kill()
    assert not bystander.alive


def test_a_guard_stops_the_fleet_of_a_program_that_is_killed(tmp_path: Path, bystander: Identity) -> None:
    fleet = remembered(tmp_path / "fleet", {"broker-a": bystander})
    program = (
        "import os, signal, sys; from pathlib import Path; from rocketfleet.devbroker.guard import Guard;"
        "guard = Guard(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(fleet.directory)], check=False).returncode == -9
    wait_until(lambda: not bystander.alive)
    wait_until(lambda: not fleet.directory.exists())


def test_a_guard_that_is_dismissed_does_nothing(tmp_path: Path, bystander: Identity) -> None:
    fleet = remembered(tmp_path / "fleet", {"broker-a": bystander})
    guard = Guard(fleet.directory)
    guard.dismiss()
    assert bystander.alive
    assert fleet.directory.exists()
