"""A group that is run by its manifest: `rocketfleet run` as users run it, and a file that is edited.

The processes are the pods of its state directory. They outlive it, so they are ended by what is noted there; and if we
are killed, by a process that waits for our end (`reaper.py`).
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults import handler_variables as variables
from tests.faults.members import ROOT, Behaviour, die_with_parent
from tests.faults.modes import FaultMode
from tests.faults.reaper import end_pods, noted_pods
from tests.faults.schedule import Stage
from tests.support.waiting import wait_until

from rocketfleet.base.processes import Identity

DRAIN_SECONDS = 100.0


@dataclass
class ManifestRun:
    """One `rocketfleet run` after the other on the same directory."""

    directory: Path
    name_server: str
    group: str
    topic: str
    mode: FaultMode
    stage: Stage
    spec: dict[str, Any] = field(init=False)
    behaviour: Behaviour = field(init=False)
    present: bool = True  # whether the object is in the file
    _process: "subprocess.Popen[bytes] | None" = None
    _reaper: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        self.state = self.directory / "state"
        self.records = self.directory / "records"
        self.records.mkdir(parents=True, exist_ok=True)
        self.behaviour = Behaviour(self.directory / "behaviour.json", self.stage.handler_seconds)
        self.behaviour.write()
        self.spec = {
            "cluster": {"nameServers": [self.name_server]},
            "subscriptions": [{"topic": self.topic}],
            "consumeMode": self.mode.consume_mode.value,
            "consumeFromWhere": "LastOffset" if self.stage.from_last_offset else "FirstOffset",
            "allocation": {"strategy": self.mode.strategy.value},
            "rebalance": {"handover": self.mode.handover.value, "lockMaxLiveSeconds": self.stage.lock_seconds},
            "consume": {"suspendSeconds": 0.5},
            "replicas": self.stage.members,
            "deletionPolicy": "Retain",
            "worker": {"handler": "tests.faults.handler:handle"},
            "template": {"spec": {"containers": [{"name": "consumer", "env": [{"name": "EDITION", "value": "1"}]}]}},
        }

    @property
    def output(self) -> Path:
        return self.directory / "run.log"

    def edit(self, **changes: Any) -> None:
        """Change keys of the spec; None takes a key away."""
        self.spec = {key: value for key, value in (self.spec | changes).items() if value is not None}
        self.write()

    def write(self) -> None:
        """Write the file anew, as a whole, or remove it."""
        head = {"apiVersion": "rocketfleet.io/v1alpha1", "kind": "ConsumerGroup", "metadata": {"name": self.group}}
        folder, draft = self.directory / "manifests", self.directory / "draft"
        folder.mkdir(exist_ok=True)
        if not self.present:
            (folder / "group.yaml").unlink(missing_ok=True)
            return
        draft.write_text(json.dumps({**head, "spec": self.spec}, indent=2) + "\n")  # JSON is YAML
        draft.replace(folder / "group.yaml")

    def start(self) -> None:
        """Start `rocketfleet run`; pods that are there go on."""
        self.write()
        if self._reaper is None:
            self._reaper = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.reaper", str(self.state)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("ROCKETFLEET_")}
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rocketfleet.cli.main", "run", "-f", "manifests", "--plain", "-v",
                 "--state-dir", str(self.state)],
                cwd=self.directory,
                env={
                    **inherited,
                    "PYTHONPATH": os.pathsep.join((str(ROOT / "operator"), str(ROOT))),
                    variables.RECORDS: str(self.records),
                    variables.BEHAVIOUR: str(self.behaviour.path),
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - it makes a system call only
            )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL to `rocketfleet run` alone."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        process.wait()

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def ended_by_itself(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def pods(self) -> list[tuple[str, Identity]]:
        """Client id and process of each pod that lives."""
        return [(client_id, identity) for client_id, identity in noted_pods(self.state) if identity.alive]

    def stop(self) -> int:
        """As with Ctrl-C: all drain. The exit code."""
        assert self._process is not None
        process = self._process
        process.send_signal(signal.SIGINT)
        wait_until(lambda: process.poll() is not None, "rocketfleet run ends", DRAIN_SECONDS, every=0.1)
        return process.returncode

    def close(self) -> None:
        """End whatever is left."""
        if self.alive:
            self.kill()
        end_pods(self.state)
        if self._reaper is not None:
            self._reaper.kill()
            self._reaper.wait()
            if self._reaper.stdin is not None:
                self._reaper.stdin.close()
            self._reaper = None
