"""`rocketfleet run` as people use it: a file that is edited, a run that is killed, Ctrl-C."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.support.waiting import wait_until

from rocketfleet.base.processes import began
from rocketfleet.controller.local.files import read_json

PATIENCE = 40.0
MANIFEST = """\
apiVersion: rocketfleet.io/v1alpha1
kind: ConsumerGroup
metadata: {name: %(name)s}
spec:
  cluster: {nameServers: ["%(name_server)s"]}
  subscriptions: [{topic: %(topic)s}]
  replicas: %(replicas)s
  consumeFromWhere: %(begin)s
  worker: {handler: "mine:handle", path: handlers}
"""


class Run:
    """A `rocketfleet run` in a directory of its own."""

    def __init__(self, directory: Path, broker: Cluster, topic: str) -> None:
        self.directory = directory
        self.name, self.name_server, self._topic = topic, broker.name_server, topic
        self.process: subprocess.Popen[bytes] | None = None
        (directory / "handlers").mkdir()
        (directory / "handlers" / "mine.py").write_text("def handle(message):\n    pass\n")

    def write(self, replicas: object, begin: str = "LastOffset") -> None:
        draft = self.directory / "draft"
        facts = {"name": self.name, "name_server": self.name_server, "topic": self._topic}
        draft.write_text(MANIFEST % {**facts, "replicas": replicas, "begin": begin})
        draft.replace(self.directory / "group.yaml")

    def start(self) -> None:
        with (self.directory / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rocketfleet.cli.main", "run", "-f", "group.yaml", "-v"],
                cwd=self.directory,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rocketfleet.cli.main", *arguments],
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )

    @property
    def output(self) -> str:
        return (self.directory / "output").read_text()

    def pids(self) -> set[int]:
        records = (read_json(path) for path in self.directory.rglob("pod.json"))
        return {record["process"]["pid"] for record in records if record is not None and record["process"]}

    def until(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what, PATIENCE, report=lambda: self.output)

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture
def run(broker: Cluster, topic: str, tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path, broker, topic)
    yield made
    pids = made.pids()
    if made.process is not None and made.process.poll() is None:
        made.end(signal.SIGKILL)
    for pid in pids:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_edits_are_followed_a_killed_run_is_continued_and_ctrl_c_drains(run: Run) -> None:
    run.write(1)
    run.start()
    run.until(lambda: "1/1 ready  queues 8/8" in run.output, "one member owns everything")
    run.write("a few")
    run.until(lambda: "the manifests are wrong" in run.output, "the broken edit is said")
    assert len(run.pids()) == 1
    run.write(2)
    run.until(lambda: "2/2 ready  queues 8/8" in run.output, "the edit is followed")
    pids = run.pids()

    run.end(signal.SIGKILL)
    said = len(run.output)
    run.start()
    run.until(lambda: "2/2 ready  queues 8/8" in run.output[said:], "the next run has found the members")
    assert run.pids() == pids

    assert run.end(signal.SIGINT) == 0, run.output
    assert "all members are drained" in run.output
    assert run.pids() == set()
    assert [pid for pid in pids if began(pid) is not None] == []


def test_a_wrong_manifest_ends_at_once_with_sentences(run: Run) -> None:
    run.write(-1)
    run.start()
    assert run.process is not None
    assert run.process.wait(PATIENCE) == 2
    assert "spec.replicas" in run.output


def test_a_handler_that_cannot_be_loaded_is_said_and_status_tells_it_too(run: Run) -> None:
    (run.directory / "handlers" / "mine.py").write_text("import os\nURL = os.environ['NO_SUCH_URL']\n")
    run.write(1)
    run.start()
    run.until(lambda: "module 'mine' raised KeyError: 'NO_SUCH_URL'" in run.output, "the reason is said")
    logs = run.directory / ".rocketfleet/run/groups/default"
    run.until(lambda: f"see 0.log in {logs}" in run.output, "and where the log is")
    assert f"logs of {run.name}: {logs / run.name / 'logs'}" in run.output
    assert f"{run.name}-0 Failed" in run.output
    told = run.command("status", "-f", "group.yaml")
    assert "as rocketfleet run last wrote it to .rocketfleet/run:" in told.stdout
    assert "NO_SUCH_URL" in told.stdout
    assert run.end(signal.SIGINT) == 0, run.output


def test_a_second_ctrl_c_says_how_many_messages_come_again(run: Run) -> None:
    began = run.directory / "began"
    (run.directory / "handlers" / "mine.py").write_text(
        f"import time\ndef handle(message):\n    open({str(began)!r}, 'a').write('x')\n    time.sleep(600)\n"
    )
    run.write(1, "FirstOffset")
    run.command("send", run.name, "--name-server", run.name_server, "--body", "x", "--count", "3")
    run.start()
    run.until(lambda: began.exists() and len(began.read_text()) == 3, "all three are being handled")
    assert run.process is not None
    run.process.send_signal(signal.SIGINT)
    run.until(lambda: "press Ctrl-C again to stop waiting for handlers" in run.output, "it drains")
    assert run.end(signal.SIGINT) == 5, run.output
    assert "all members are drained; 3 messages did not finish and will be delivered again" in run.output


def test_a_group_that_another_manifest_left_is_named(run: Run) -> None:
    run.write(1)
    run.start()
    run.until(lambda: "1/1 ready  queues 8/8" in run.output, "it runs")
    run.end(signal.SIGKILL)
    former, run.name = run.name, f"{run.name}-b"
    run.write(0)
    run.start()
    run.until(lambda: f"{former} ran here before and is in no manifest now" in run.output, "it is said")
    run.until(lambda: run.pids() == set(), "and its member goes")
    assert run.end(signal.SIGINT) == 0, run.output
