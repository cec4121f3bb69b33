"""`rocketfleet broker` as a user runs it: in a process of its own, on a real RocketMQ."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import wait_until

from rocketfleet.base.processes import began
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.setup.ports import claims, is_free

# Up to five JVMs start in a test: seconds on a quiet machine, minutes on one that others use as well.
pytestmark = pytest.mark.timeout(900)

COMMAND = (sys.executable, "-c", "from rocketfleet.cli.main import main; main()", "broker")


class Shell:
    """Runs `rocketfleet broker …` on one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, *arguments: str, expect: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        answer = subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
            env={**os.environ, **environment},
        )
        assert answer.returncode == expect, answer.stdout + answer.stderr
        return answer

    def command(self, *arguments: str) -> list[str]:
        return [*COMMAND, *arguments, "--dir", str(self.directory)]

    def json(self, *arguments: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self(*arguments, "--json").stdout)
        return document


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    yield Shell(tmp_path / "fleet")
    Fleet(tmp_path / "fleet").stop(delete_data=True)


def listed(shell: Shell) -> list[list[str]]:
    """mqadmin's table of brokers. It waits three seconds for an answer, however busy the machine is: then once more."""
    try:
        answer = shell("admin", "clusterList")
    except AssertionError as error:
        if "RemotingTimeoutException" not in str(error):
            raise
        answer = shell("admin", "clusterList")
    return [line.split() for line in answer.stdout.splitlines()[1:] if line.strip()]


def one_line(answer: subprocess.CompletedProcess[str]) -> str:
    """What a failed command said: one line, no traceback, nothing on stdout."""
    assert answer.stdout == ""
    lines = [line for line in answer.stderr.splitlines() if not line.startswith(("starting", "stopping"))]
    assert len(lines) == 1, answer.stderr
    return lines[0]


def test_two_masters_with_slaves_start_and_stop(shell: Shell) -> None:
    document = shell.json("start", "--brokers", "2", "--slave")
    assert document["running"]
    brokers = {(broker["name"], broker["id"]): broker for broker in document["brokers"]}
    assert sorted(brokers) == [("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1)]

    assert {(row[1], int(row[2])): row[3] for row in listed(shell)} == {key: b["address"] for key, b in brokers.items()}

    again = shell("start", "--json")
    assert json.loads(again.stdout) == document
    assert "already runs" in again.stderr
    assert "another value of brokers" in one_line(shell("start", "--brokers", "1", expect=1))

    ports = Fleet(shell.directory).known().ports
    pids = [process["pid"] for process in (*document["brokers"], *document["name_server_processes"])]
    shell("stop")
    assert [began(pid) for pid in pids] == [None] * 5
    # Tests beside this one try ports, too, and hold each for a moment.
    wait_until(
        lambda: all(is_free(port) for process, first in ports.items() for port in claims(process, first)), within=10.0
    )
    assert not json.loads(shell("status", "--json", expect=3).stdout)["running"]
    shell("stop", "--delete-data")
    assert not shell.directory.exists()


def roles(document: dict[str, Any]) -> dict[str, str | None]:
    return {broker["process"]: broker["role"] for broker in document["brokers"]}


def test_a_controller_replaces_a_master_that_dies(shell: Shell) -> None:
    first = shell.json("start", "--controller")
    fleet = Fleet(shell.directory)
    old = fleet.master_of("broker-a")
    (new,) = {"broker-a", "broker-a-slave"} - {old}
    assert roles(first) == {old: "master", new: "slave"}
    assert f"a controller on {first['controller']}" in shell("status").stdout

    def in_step() -> bool:
        said = fleet.admin("getSyncStateSet", "-a", first["controller"], "-b", "broker-a")
        return said.count("InSyncReplica:") - said.count("NotInSyncReplica:") == 2

    wait_until(in_step)
    fleet.kill(old)
    wait_until(lambda: roles(json.loads(shell("status", "--json", expect=3).stdout)) == {old: None, new: "master"})
    assert fleet.masters == {"broker-a": fleet.address_of(new)}
    fleet.restart(old)
    assert roles(shell.json("status")) == {old: "slave", new: "master"}

    # Stopped and started again, the two agree once more on one of them.
    shell("stop")
    again = shell.json("start", "--controller")
    assert sorted(map(str, roles(again).values())) == ["master", "slave"]
    assert again["controller"] == first["controller"]


def test_after_a_crash_it_continues_on_the_same_data_and_ports(shell: Shell) -> None:
    first = shell.json("start", "--no-auto-create-topics")
    shell("topic", "create", "survivor", "--queues", "3")
    fleet = Fleet(shell.directory)
    fleet.kill("name-server")
    fleet.kill("broker-a")
    shown = shell("status", expect=3).stdout
    assert shown.count("not running") == 2
    second = shell.json("start", "--no-auto-create-topics")
    assert second["name_servers"] == first["name_servers"]
    assert second["brokers"][0]["address"] == first["brokers"][0]["address"]
    assert second["brokers"][0]["pid"] != first["brokers"][0]["pid"]
    assert fleet.probe().has_route(fleet.name_server, "survivor", 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_told_to_end_takes_everything_with_it(shell: Shell, number: signal.Signals) -> None:
    fleet = Fleet(shell.directory)
    process = subprocess.Popen(shell.command("start"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: "broker-a" in _started(fleet))
    identities = fleet.known().processes
    process.send_signal(number)
    assert process.wait(60) != 0
    assert not any(identity.alive for identity in identities.values())
    assert fleet.known().processes == {}


def test_what_a_killed_start_left_is_stopped(shell: Shell) -> None:
    fleet = Fleet(shell.directory)
    process = subprocess.Popen(shell.command("start"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: "name-server" in _started(fleet))
    process.kill()
    process.wait(60)
    left = fleet.known().processes["name-server"]
    assert left.alive
    assert "name-server" in shell("stop").stdout
    assert not left.alive


def _started(fleet: Fleet) -> dict[str, Any]:
    state = fleet.state()
    return state.processes if state is not None else {}


def test_a_broker_that_dies_is_named_with_its_last_words(shell: Shell) -> None:
    contradiction = ("--set", "enableControllerMode=true", "--set", "enableDLegerCommitLog=true")
    line = one_line(shell("start", *contradiction, expect=1))
    assert line.startswith("Error: broker-a died while it was starting. Its last words: ")
    assert "cannot both be true" in line
    assert _started(Fleet(shell.directory)) == {}


def test_a_port_that_is_taken_is_named(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = one_line(shell("start", "--broker-port", str(port + 2), expect=1))
    assert f"Port {port} is taken" in line


def test_no_java(shell: Shell, tmp_path: Path) -> None:
    line = one_line(shell("start", expect=1, PATH=str(tmp_path), JAVA_HOME=""))
    assert line.startswith("Error: No Java found: install a Java runtime 17 or newer")


def test_no_network(shell: Shell, tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        answer = shell(
            "start",
            expect=1,
            ROCKETFLEET_CACHE=str(tmp_path / "cache"),
            ROCKETFLEET_MAVEN_REPOSITORY=f"http://127.0.0.1:{nobody.getsockname()[1]}",
        )
    *progress, last = answer.stderr.splitlines()
    assert len(progress) < 5
    assert last.startswith("Error: Could not fetch ")
    assert "no connection (Connection refused)" in last
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_mqadmin_failures_have_an_exit_code(shell: Shell, tmp_path: Path) -> None:
    assert "No RocketMQ was started" in one_line(shell("admin", "clusterList", expect=1))
    assert not shell.directory.exists()


def test_status_of_nothing(shell: Shell) -> None:
    assert json.loads(shell("status", "--json", expect=3).stdout)["running"] is False
