"""The demo's workers: `rocketfleet worker` processes, started and stopped by number."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rocketfleet.demo.handler import RECORD
from rocketfleet.demo.verdict import read_record


@dataclass(frozen=True)
class Worker:
    """One process of the group."""

    name: str
    process: "subprocess.Popen[bytes]"
    record: Path
    log: Path

    @property
    def running(self) -> bool:
        return self.process.poll() is None


class Workers:
    """The group's processes. The youngest goes first when the group shrinks."""

    def __init__(self, name_server: str, topic: str, group: str, directory: Path, *, mode: str) -> None:
        self._arguments = ["--group", group, "--topic", topic, "--name-server", name_server, "--consume-mode", mode]
        self._group = group
        self._directory = directory
        self.all: list[Worker] = []

    @property
    def running(self) -> list[Worker]:
        return [worker for worker in self.all if worker.running]

    def start(self) -> Worker:
        name = f"{self._group}-{len(self.all)}"
        record, log = self._directory / f"{name}.jsonl", self._directory / f"{name}.log"
        command = [
            sys.executable,
            "-m",
            "rocketfleet.cli.main",
            "worker",
            "--handler",
            "rocketfleet.demo.handler:handle",
        ]
        start = ["--consume-from-where", "FirstOffset", "--client-id", name]
        output: IO[bytes]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *self._arguments, *start],
                stdout=output,
                stderr=output,
                env={**os.environ, RECORD: str(record)},
            )
        worker = Worker(name, process, record, log)
        self.all.append(worker)
        return worker

    def stop(self, worker: Worker) -> None:
        """Ask it to drain, as Kubernetes would."""
        worker.process.send_signal(signal.SIGTERM)

    def failed(self) -> Worker | None:
        """A worker that ended with an error."""
        return next((worker for worker in self.all if worker.process.poll() not in (None, 0)), None)

    def events(self) -> list[dict[str, Any]]:
        """What all handlers have written down so far."""
        return [event for worker in self.all for event in read_record(worker.record)]

    def kill_all(self) -> None:
        """For the way out after an error."""
        for worker in self.running:
            worker.process.kill()
            worker.process.wait()
