"""One pod on this machine: a process, its record on disk, and what the kubelet would do about it.

The record has what must survive us: who the pod is, its process, its drain mark, its deletion. It is written before
anything is done that rests on it. Everything else is found again by looking at the process and its files.
"""

import contextlib
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocketfleet.api.spec import Engine
from rocketfleet.base.processes import Identity
from rocketfleet.control import exit_codes, last_words
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.local.command import MemberCommand
from rocketfleet.controller.local.files import PodFiles, read_json, write_json
from rocketfleet.controller.local.process import LocalProcess, describe_exit, start
from rocketfleet.controller.planning.snapshot import DrainMark, Pod, PodPhase
from rocketfleet.controller.reconciling.backend import PodSighting
from rocketfleet.controller.resources.shared_settings import decode as decode_shared
from rocketfleet.worker.processes.restarts import Restarts

_TAIL = 4096
_LONGEST = 300


@dataclass(slots=True)
class LocalMember:
    """A pod. Times are seconds since the epoch."""

    name: str
    ordinal: int
    uid: str
    revision: str
    engine: Engine
    created: float
    grace: float
    files: PodFiles
    shared: dict[str, str] | None = None  # None: a former version of us made it
    drain: DrainMark | None = None
    deleting: float | None = None
    process: LocalProcess | None = None
    phase: PodPhase = PodPhase.PENDING
    ready: bool = False
    ready_since: float | None = None
    probed: float = 0.0
    started: float = 0.0
    outcome: DrainOutcome | None = None
    trouble: str | None = None
    failed: str | None = None  # why it last ended in trouble, until it is ready again: for people
    restarts: Restarts = field(default_factory=Restarts)
    restart_at: float | None = None
    hurried: bool = False
    signalled: float = 0.0  # when it was last sent a signal to stop

    # -- on disk ------------------------------------------------------------------------------------------------------

    def save(self, identity: Identity | None = None) -> None:
        if identity is None and self.process is not None:
            identity = self.process.identity
        record: dict[str, Any] = {
            "name": self.name,
            "ordinal": self.ordinal,
            "uid": self.uid,
            "revision": self.revision,
            "engine": self.engine.value,
            "created": self.created,
            "grace": self.grace,
            "shared": self.shared,
            "drain": None if self.drain is None else {"since": self.drain.since, "reason": self.drain.reason},
            "deleting": self.deleting,
            "failed": self.failed,
            "process": None if identity is None else {"pid": identity.pid, "began": identity.began},
        }
        write_json(self.files.record, record)

    @classmethod
    def load(cls, files: PodFiles) -> "LocalMember | None":
        """A pod that a former run has left; None if its record makes no sense."""
        record = read_json(files.record)
        if record is None:
            return None
        try:
            member = cls(
                name=str(record["name"]),
                ordinal=int(record["ordinal"]),
                uid=str(record["uid"]),
                revision=str(record["revision"]),
                engine=Engine(record["engine"]),
                created=float(record["created"]),
                grace=float(record["grace"]),
                files=files,
                shared=decode_shared(record.get("shared")),
                drain=None if record["drain"] is None else DrainMark(**record["drain"]),
                deleting=record["deleting"],
                failed=record.get("failed"),
            )
            process = record["process"]
            if process is not None:
                member.process = LocalProcess(Identity(int(process["pid"]), str(process["began"])))
                member.phase, member.started = PodPhase.RUNNING, member.created
        except (KeyError, TypeError, ValueError):
            return None
        return member

    def note_ready(self, ready: bool, now: float) -> None:
        """What its probe says has changed."""
        self.ready, self.ready_since = ready, now if ready else None
        if ready and self.failed is not None:
            self.failed = None
            self.save()

    def remove(self) -> None:
        shutil.rmtree(self.files.directory, ignore_errors=True)

    # -- its process --------------------------------------------------------------------------------------------------

    def start(self, command: MemberCommand, directory: Path, now: float) -> None:
        """Start it, or start it again."""
        for leftover in (self.files.control, self.files.last_words):
            leftover.unlink(missing_ok=True)
        self.files.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.process = start(
            command.argv,
            log=self.files.log,
            directory=directory,
            environment=command.environment,
            note=self.save,
        )
        self.phase, self.started, self.restart_at = PodPhase.RUNNING, now, None
        self.ready, self.ready_since, self.trouble, self.outcome = False, None, None, None
        self.hurried, self.signalled = False, 0.0

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.running

    def note_end(self, now: float) -> None:
        """The process has ended: what does that mean?"""
        code = None if self.process is None else self.process.exit_code
        words = self.last_words()
        self.ready, self.ready_since = False, None
        if words is not None:
            self.outcome = words
        drained = words is not None and words.confirmed if code is None else self._has_drained(code)
        if drained:
            self.phase, self.restart_at, self.trouble = PodPhase.SUCCEEDED, None, None
            return
        self.trouble = self.failed = self._trouble(code)
        self.save()
        if self.drain is not None and words is None:
            self.restart_at = None  # nothing in it is left to drain
        else:
            self.restart_at = now + self.restarts.ended(now - self.started)

    def _has_drained(self, code: int) -> bool:
        """By its exit code. Only our own runtime's codes beyond 0 are known to mean that."""
        return code == 0 or (self.engine.is_ours and exit_codes.is_confirmed(code))

    def last_words(self) -> DrainOutcome | None:
        try:
            return last_words.decode(self.files.last_words.read_bytes())
        except OSError:
            return None

    def _trouble(self, code: int | None) -> str:
        """Why it ended: by its own sentence, else by the last line of its log."""
        with contextlib.suppress(OSError):
            sentence = last_words.sentence_of(self.files.last_words.read_bytes())
            if sentence:
                return f"{describe_exit(code)}: {sentence[:_LONGEST]}"
        try:
            with self.files.log.open("rb") as log:
                log.seek(0, 2)
                log.seek(max(0, log.tell() - _TAIL))
                lines = log.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            lines = []
        return f"{describe_exit(code)}: {lines[-1].strip()[:_LONGEST]}" if lines else describe_exit(code)

    def terminate(self) -> None:
        """SIGTERM: a worker drains. Only the second one that it gets hurries it."""
        if self.process is not None:
            self.process.send(signal.SIGTERM)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    # -- how it looks -------------------------------------------------------------------------------------------------

    @property
    def control(self) -> str | None:
        """Its control port, once it is open."""
        if not self.engine.is_ours or self.phase is not PodPhase.RUNNING or self.trouble is not None:
            return None
        try:
            return self.files.control.read_text().strip() or None
        except OSError:
            return None

    def seen(self) -> PodSighting:
        pod = Pod(
            name=self.name,
            ordinal=self.ordinal,
            uid=self.uid,
            revision=self.revision,
            created=self.created,
            phase=self.phase,
            ready=self.ready,
            ready_since=self.ready_since,
            deleting=self.deleting,
            deleting_since=None if self.deleting is None else self.deleting - self.grace,
            drain=self.drain,
            outcome=self.outcome,
            trouble=self.trouble,
            engine=self.engine,
            shared=self.shared,
        )
        return PodSighting(pod, self.control)
