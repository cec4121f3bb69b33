"""Processes remembered by id and beginning: found again, never mistaken for another, never lost."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.waiting import wait_until

from rocketfleet.base.processes import Identity, _began_by_ps, began, end_all, kill_all, spawn

Start = Callable[..., Identity]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Identity] = []

    def make(*argv: str) -> Identity:
        identity = spawn(
            argv, output=tmp_path / "output", directory=tmp_path, environment=dict(os.environ), note=started.append
        )
        assert started[-1] == identity
        return identity

    yield make
    kill_all(started)


def test_a_process_lives_until_it_ends(start: Start) -> None:
    identity = start("sleep", "60")
    assert identity.alive
    assert end_all([identity], 20.0) == []
    assert not identity.alive


def test_the_program_has_the_id_that_was_noted(start: Start, tmp_path: Path) -> None:
    identity = start("sh", "-c", "echo $$; exec sleep 60")
    wait_until(lambda: (tmp_path / "output").read_text() == f"{identity.pid}\n")
    assert identity.alive


def test_it_runs_in_a_session_of_its_own_without_our_input(start: Start, tmp_path: Path) -> None:
    identity = start("sh", "-c", "cat; echo done; exec sleep 60")
    wait_until(lambda: (tmp_path / "output").read_text() == "done\n")
    assert os.getsid(identity.pid) == identity.pid


def test_an_id_that_a_thread_has_now_is_left_alone() -> None:
    ready, done = threading.Event(), threading.Event()

    def wait() -> None:
        ready.set()
        done.wait(60)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        assert ready.wait(20)
        assert thread.native_id is not None
        gone = Identity(thread.native_id, "another boot/1")
        assert not gone.send(signal.SIGTERM)
        assert end_all([gone], 1.0) == []
        kill_all([gone])
        assert thread.is_alive()
    finally:
        done.set()
        thread.join()


def test_an_id_that_another_process_has_now_is_left_alone(start: Start) -> None:
    other = start("sleep", "60")
    earlier = Identity(other.pid, "long ago")
    assert not earlier.alive
    assert not earlier.send(signal.SIGKILL)
    assert end_all([earlier], 0.0) == []
    kill_all([earlier])
    assert other.alive


def test_an_id_that_no_process_has_is_dead(start: Start) -> None:
    identity = start("true")
    wait_until(lambda: not identity.alive)
    assert began(identity.pid) is None
    assert not identity.send(signal.SIGTERM)


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen(["sleep", "60"])
    start = began(child.pid)
    assert start is not None
    identity = Identity(child.pid, start)
    child.kill()
    wait_until(lambda: not identity.alive)  # though nobody has waited for it
    child.wait()


def test_one_that_ignores_the_signal_is_killed_after_the_grace(start: Start, tmp_path: Path) -> None:
    identity = start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    wait_until(lambda: "ready" in (tmp_path / "output").read_text())
    assert end_all([identity], 0.2) == [identity]
    assert not identity.alive


def test_one_that_is_paused_still_ends_in_good_order(start: Start, tmp_path: Path) -> None:
    identity = start("sh", "-c", "trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.05; done")
    wait_until(lambda: "ready" in (tmp_path / "output").read_text())
    identity.send(signal.SIGSTOP)
    assert end_all([identity], 20.0) == []
    assert (tmp_path / "output").read_text() == "ready\nbye\n"


def test_names_with_spaces_and_parentheses_do_not_confuse(start: Start, tmp_path: Path) -> None:
    program = tmp_path / "a) R (b"
    program.write_text("#!/bin/sh\nsleep 60\n")
    program.chmod(0o755)
    identity = start(str(program))
    wait_until(lambda: "a) R (b" in Path(f"/proc/{identity.pid}/comm").read_text())
    assert identity.alive


def test_ps_serves_where_there_is_no_proc(start: Start) -> None:
    identity = start("sleep", "60")
    beginning = _began_by_ps(identity.pid)
    assert beginning
    assert _began_by_ps(identity.pid) == beginning
    kill_all([identity])
    assert _began_by_ps(identity.pid) is None


def test_if_the_starter_is_killed_before_it_has_noted_the_process_nothing_runs(tmp_path: Path) -> None:
    starter = tmp_path / "starter.py"
    starter.write_text(
        "import os, pathlib, signal\n"
        "from rocketfleet.base.processes import spawn\n"
        "def note(identity):\n"
        "    pathlib.Path('pid').write_text(str(identity.pid))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "here = pathlib.Path('.')\n"
        "spawn(['touch', 'ran'], output=here / 'out', directory=here, environment=os.environ, note=note)\n"
    )
    done = subprocess.run([sys.executable, str(starter)], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: began(pid) is None)
    assert not (tmp_path / "ran").exists()
