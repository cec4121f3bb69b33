"""A worker whose handler takes its time to be imported: it can be asked, told to drain, and stopped."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.waiting import wait_until

from rocketfleet.control.endpoints import Unavailable
from rocketfleet.worker.starting import DrainedExit, Starting

TOKEN = "the-control-token"
# Imports for as long as a file is there.
HANDLER = """
import os, time
from pathlib import Path
Path(os.environ["BEGUN"]).touch()
while Path(os.environ["HOLD"]).exists():
    time.sleep(0.01)
def handle(message): ...
"""


class Worker:
    """A worker process that imports its handler until `let_go`."""

    def __init__(self, directory: Path, *arguments: str, handler: str = HANDLER) -> None:
        directory.mkdir(exist_ok=True)
        (directory / "slow_handler.py").write_text(handler)
        self.words = directory / "words"
        self._hold, self._begun, self._port = directory / "hold", directory / "begun", directory / "port"
        self._hold.touch()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ROCKETFLEET_")}
        environment |= {"HOLD": str(self._hold), "BEGUN": str(self._begun), "ROCKETFLEET_CONTROL_TOKEN": TOKEN}
        environment |= {"HERE": str(directory)}
        command = [sys.executable, "-c", "from rocketfleet.cli.main import main; main()", "worker"]
        options = {
            "--group": "g",
            "--topic": "t",
            "--handler": "slow_handler:handle",
            "--path": str(directory),
            "--name-server": "127.0.0.1:9",
            "--client-id": "me",
            "--port-file": str(self._port),
            "--last-words": str(self.words),
        }
        given = [part for pair in options.items() for part in pair]
        self.process = subprocess.Popen([*command, *given, *arguments], env=environment)
        self.until(lambda: self._begun.exists() and self._port.exists())

    def until(self, condition: Callable[[], bool]) -> None:
        def holds() -> bool:
            if condition():
                return True
            assert self.process.poll() is None, "it has ended"
            return False

        wait_until(holds, inspect.getsource(condition).strip())

    def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        request = urllib.request.Request(
            f"http://{self._port.read_text().strip()}{path}",
            method=method,
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def let_go(self) -> None:
        self._hold.unlink()


@pytest.fixture
def worker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Worker]:
    made = Worker(tmp_path, *getattr(request, "param", ()))
    yield made
    made.process.kill()
    made.process.wait()


def test_it_is_alive_and_not_ready_while_the_handler_is_imported(worker: Worker) -> None:
    assert worker.ask("/healthz") == (200, "ok\n")
    status, why = worker.ask("/readyz")
    assert (status, "being imported" in why) == (503, True)
    assert worker.ask("/assignment")[0] == 503
    assert worker.ask("/metrics")[0] == 200
    assert worker.ask("/rebalance", "POST")[0] == 409
    worker.let_go()
    worker.until(lambda: "the group is not joined yet" in worker.ask("/readyz")[1])


def test_it_drains_at_once_and_never_joins(worker: Worker) -> None:
    status, body = worker.ask("/drain", "POST")
    answer = json.loads(body)
    assert (status, answer["confirmed"], answer["exitCode"], answer["queues"]) == (200, True, 0, [])
    worker.let_go()
    assert worker.process.wait(60) == 0
    assert json.loads(worker.words.read_text()) == {"confirmed": True, "unfinished": 0, "queues": []}


@pytest.mark.parametrize("worker", [(), ("--processes", "2")], indirect=True)
def test_a_signal_ends_it_without_waiting_for_the_import(worker: Worker) -> None:
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(60) == 0
    assert json.loads(worker.words.read_text())["confirmed"] is True


@pytest.mark.parametrize("worker", [("--processes", "2")], indirect=True)
def test_children_that_import_are_alive_and_not_ready(worker: Worker) -> None:
    worker.until(lambda: worker.ask("/readyz")[1].count("being imported") == 2)
    assert worker.ask("/healthz")[0] == 200
    answer = json.loads(worker.ask("/drain", "POST")[1])
    assert (answer["confirmed"], answer["exitCode"]) == (True, 0)
    worker.let_go()
    assert worker.process.wait(60) == 0


async def test_it_is_not_well_any_more_when_its_time_is_over() -> None:
    now = 100.0
    starting = Starting("g", "me", 30.0, clock=lambda: now)
    now = 130.0
    assert await starting.health() == []
    now = 130.5
    (problem,) = await starting.health()
    assert "still being imported after 30 s (limit 30 s)" in problem


async def test_a_drain_counts_only_before_the_handler_is_there() -> None:
    early = Starting("g", "me", 30.0)
    await early.drain()
    assert not early.end()
    late = Starting("g", "me", 30.0)
    assert late.end()
    with pytest.raises(Unavailable, match="ask again"):
        await late.drain()


# -- what an import may do --------------------------------------------------------------------------------------------

STARTED_IN = """
import hashlib, os, signal, threading, time
from pathlib import Path
here = Path(os.environ["HERE"])
def begun():
    Path(os.environ["BEGUN"]).touch()
def hold():
    while Path(os.environ["HOLD"]).exists():
        time.sleep(0.01)
def fork_and_stop():
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(9)
    time.sleep(0.2)
    os.kill(child, signal.SIGTERM)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    (here / "code.new").write_text(str(code))
    (here / "code.new").rename(here / "code")
def handle(message): ...
"""


@pytest.fixture
def importing(tmp_path: Path) -> Iterator[Callable[[str], Worker]]:
    made: list[Worker] = []

    def make(lines: str) -> Worker:
        made.append(Worker(tmp_path / str(len(made)), handler=STARTED_IN + lines))
        return made[-1]

    yield make
    for worker in made:
        worker.process.kill()
        worker.process.wait()


def test_a_signal_is_not_kept_waiting_by_code_that_is_not_pythons(importing: Callable[[str], Worker]) -> None:
    worker = importing("begun(); hashlib.pbkdf2_hmac('sha256', b'', b'', 2_000_000_000)")  # many minutes
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(30) == 0


def test_a_signal_is_not_lost_to_a_handler_that_the_import_installs(importing: Callable[[str], Worker]) -> None:
    worker = importing("signal.signal(signal.SIGTERM, lambda *_: None); begun(); hold()")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(30) == 0


def test_a_forked_childs_signal_is_its_own(importing: Callable[[str], Worker], tmp_path: Path) -> None:
    """Neither while the handler is imported, nor when the event loop has the signals."""
    worker = importing("begun(); fork_and_stop(); hold()")
    worker.until((tmp_path / "0" / "code").exists)
    assert (tmp_path / "0" / "code").read_text() == str(-signal.SIGTERM)
    assert not worker.words.exists(), "nothing has drained"
    later = importing("begun(); hold()\ndef later():\n    while not (here / 'go').exists(): time.sleep(0.01)\n"
                      "    fork_and_stop()\nthreading.Thread(target=later, daemon=True).start()")  # fmt: skip
    later.let_go()
    later.until(lambda: "not joined yet" in later.ask("/readyz")[1])
    (tmp_path / "1" / "go").touch()
    later.until((tmp_path / "1" / "code").exists)
    assert (tmp_path / "1" / "code").read_text() == str(-signal.SIGTERM)
    for one in (worker, later):
        time.sleep(0.2)  # what the signal would have begun
        assert one.process.poll() is None
        assert "drain" not in one.ask("/readyz")[1]


@pytest.mark.parametrize("ending", ["drain", "error"])
def test_a_thread_of_the_imports_does_not_keep_it_alive(importing: Callable[[str], Worker], ending: str) -> None:
    thread = "threading.Thread(target=time.sleep, args=(1000,)).start(); begun(); hold()"
    worker = importing(thread + ("; raise RuntimeError('bad')" if ending == "error" else ""))
    if ending == "drain":
        assert worker.ask("/drain", "POST")[0] == 200
    worker.let_go()
    assert worker.process.wait(60) == (0 if ending == "drain" else 2)


@pytest.mark.parametrize("moment", range(6))
def test_whenever_a_signal_comes_it_ends_drained(importing: Callable[[str], Worker], moment: int) -> None:
    """From the last line of the import to the member's own loop: each moment belongs to one of them."""
    worker = importing("begun(); hold()")
    worker.let_go()
    time.sleep(0.02 * moment)
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(60) == 0
    assert json.loads(worker.words.read_text())["confirmed"] is True


def test_only_the_first_of_two_who_end_it_leaves_the_last_words(tmp_path: Path) -> None:
    """A second one would empty the file, and the first may end the process before it is filled again."""
    words, codes = tmp_path / "words", list[int]()
    end = DrainedExit(words, end=codes.append)
    end()
    words.write_text("left")
    end()
    assert (words.read_text(), codes) == ("left", [0])


def test_it_can_be_stopped_before_it_has_imported_itself(tmp_path: Path) -> None:
    program = (
        "import sys, time; from rocketfleet.cli import main as cli; sys.argv[1:] = ['worker'];"
        "cli.importlib.import_module = lambda name: (print('importing', flush=True), time.sleep(60));"
        "cli.main()"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as said:
        assert said.readline() == "importing\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
