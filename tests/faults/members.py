"""Members of a run: real worker processes, started as a user starts them, and ended whatever happens to us.

A member has its name as its client id. Restarted, it is started anew under the same name, as a container in its pod is.
The kernel kills it when the harness is gone (PDEATHSIG), and so does `close`, by process id.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults import clocks
from tests.faults import handler_variables as variables
from tests.faults.modes import FaultMode
from tests.faults.schedule import ALL_MEMBERS, Stage

from rocketfleet.control import last_words
from rocketfleet.testing.history import EventKind, HistoryEvent, Recorder

ROOT = Path(__file__).resolve().parents[2]
_COMMAND = (sys.executable, "-c", "from rocketfleet.cli.main import main; main()", "worker")
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """To be called in a child before it becomes the program."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass
class Behaviour:
    """How the handlers of one member behave: written to its file whenever it changes."""

    path: Path
    usual_seconds: float
    _more: dict[str, dict[str, Any]] = field(default_factory=dict)

    def write(self) -> None:
        told: dict[str, Any] = {"seconds": self.usual_seconds}
        for one in self._more.values():
            told |= one
        scratch = self.path.with_suffix(".new")
        scratch.write_text(json.dumps(told))
        scratch.replace(self.path)

    def add(self, reason: str, told: Mapping[str, Any]) -> None:
        self._more[reason] = dict(told)
        self.write()

    def remove(self, reason: str) -> None:
        self._more.pop(reason, None)
        self.write()


class RunningMember:
    """One worker process, of the several that a member of this name may have been."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]", processes: int) -> None:
        self.name = name
        self.processes = processes
        self.told_to_end = False  # by us, in whatever way
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    @property
    def client_ids(self) -> tuple[str, ...]:
        """By which brokers know it."""
        return (self.name,) if self.processes == 1 else tuple(f"{self.name}#{n}" for n in range(self.processes))

    def pids(self) -> tuple[int, ...]:
        """The process, its children and theirs."""
        return (self.pid, *_descendants(self.pid))

    def send(self, number: signal.Signals, *, tree: bool = False) -> None:
        """Send a signal to it, or to it and all that it has started."""
        for pid in self.pids() if tree else (self.pid,):
            if pid != self.pid or self.alive:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue

    def kill(self) -> None:
        """SIGKILL, to all of its processes at once."""
        self.told_to_end = True
        self.send(signal.SIGKILL, tree=True)
        self._process.wait()


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *_descendants(child)]
    return found


@dataclass
class Members:
    """All members of a run, by name."""

    directory: Path
    name_server: str
    group: str
    topic: str
    mode: FaultMode
    stage: Stage
    package: Path | None = None
    prefix: Callable[[str], Sequence[str]] = lambda name: ()  # put before the command line of a member
    environment: Callable[[str], Mapping[str, str]] = lambda name: {}
    preparation: Callable[[str], Callable[[], None] | None] = lambda name: None  # called in the child
    running: dict[str, RunningMember] = field(default_factory=dict)
    last_start: float = 0.0
    _behaviours: dict[str, Behaviour] = field(default_factory=dict)
    _for_all: dict[str, dict[str, Any]] = field(default_factory=dict)
    _processes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.records = self.directory / "records"
        self.logs = self.directory / "logs"
        for place in (self.records, self.logs):
            place.mkdir(parents=True, exist_ok=True)

    def start(self, name: str, processes: int | None = None) -> RunningMember:
        """Start a member, or start it again with as many processes as before."""
        before = self.running.get(name)
        assert before is None or not before.alive, f"{name} runs already"
        processes = self._processes.setdefault(name, processes or 1)
        if name not in self._behaviours:
            path = self.directory / f"{name}.behaviour.json"
            self._behaviours[name] = Behaviour(path, self.stage.handler_seconds, dict(self._for_all))
            self._behaviours[name].write()
        prepare = self.preparation(name)

        def before_exec() -> None:
            die_with_parent()
            if prepare is not None:
                prepare()

        with (self.logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self.prefix(name), *_COMMAND, *self._arguments(name, processes)],
                env=self._environment(name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # not to be ended by the Ctrl-C that ends us: we end it
                preexec_fn=before_exec,  # noqa: PLW1509 - it makes system calls only
            )
        self.running[name] = RunningMember(name, process, processes)
        self.last_start = time.monotonic()
        return self.running[name]

    def _arguments(self, name: str, processes: int) -> list[str]:
        arguments = {
            "handler": "tests.faults.handler:handle",
            "group": self.group,
            "topic": self.topic,
            "name-server": self.name_server,
            "consume-mode": self.mode.consume_mode.value,
            "handover": self.mode.handover.value,
            "allocation": self.mode.strategy.value,
            "consume-from-where": "LastOffset" if self.stage.from_last_offset else "FirstOffset",
            "lock-interval": f"{self.stage.lock_seconds / 3:g}",
            "heartbeat-interval": f"{min(30.0, self.stage.lock_seconds):g}",
            "suspend": "0.5",
            "drain-timeout": "60",
            "processes": f"{processes}",
            "last-words": str(self._words(name)),
        }
        return [part for name, value in arguments.items() for part in (f"--{name}", value)]

    def _environment(self, name: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("ROCKETFLEET_")}
        places = [str(self.package or ROOT / "operator"), str(ROOT), str(clocks.PLACE)]
        return {
            **inherited,
            "PYTHONPATH": os.pathsep.join(places),
            "ROCKETFLEET_CLIENT_ID": name,
            # Not as an option: an older package, which does not know it, has to start all the same.
            "ROCKETFLEET_LOCK_MAX_LIVE_TIME": f"{self.stage.lock_seconds:g}",
            variables.RECORDS: str(self.records),
            variables.BEHAVIOUR: str(self._behaviours[name].path),
            **self.environment(name),
        }

    def behave(self, target: str, reason: str, told: Mapping[str, Any] | None) -> None:
        """Let the handlers of a member, or of all, also of those that come later, behave like this; None: no more."""
        if target == ALL_MEMBERS:
            if told is None:
                self._for_all.pop(reason, None)
            else:
                self._for_all[reason] = dict(told)
        for name, behaviour in self._behaviours.items():
            if target in (ALL_MEMBERS, name):
                if told is None:
                    behaviour.remove(reason)
                else:
                    behaviour.add(reason, told)

    def note_left(self, member: RunningMember, recorder: Recorder) -> None:
        """Note that one has ended that was told to leave, with its last words."""
        words = None
        try:
            words = last_words.decode(self._words(member.name).read_bytes())
        except OSError:
            self._words(member.name).unlink(missing_ok=True)
        details: dict[str, Any] = {"exit_code": member.exit_code}
        if words is not None:
            details["confirmed"] = words.confirmed
            if member.processes == 1 and words.offsets is not None:
                details["offsets"] = {str(queue): offset for queue, offset in words.offsets.items()}
        recorder.write(
            HistoryEvent(time.monotonic(), EventKind.LEFT, client_id, details=details)
            for client_id in member.client_ids
        )

    def _words(self, name: str) -> Path:
        return self.directory / f"{name}.words.json"

    @property
    def alive(self) -> list[RunningMember]:
        return [member for member in self.running.values() if member.alive]

    def ended_by_itself(self) -> list[RunningMember]:
        """Those that nobody has told to."""
        return [member for member in self.running.values() if not member.alive and not member.told_to_end]

    def close(self) -> None:
        """End whatever is left."""
        for member in self.running.values():
            if member.alive:
                member.kill()


def wait_for_end(members: Sequence[RunningMember], within: float) -> list[RunningMember]:
    """Wait until these have ended; returns those that have not."""
    deadline = time.monotonic() + within
    while (left := [member for member in members if member.alive]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
