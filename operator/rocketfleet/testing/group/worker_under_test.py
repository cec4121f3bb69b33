"""One worker process of a group under test. What is done to it is written down beside what it handles."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocketfleet.control import last_words
from rocketfleet.control.http_call import CallFailed, call
from rocketfleet.testing.history import EventKind, FaultName, HistoryEvent, Recorder

_COMMAND = (sys.executable, "-c", "from rocketfleet.cli.main import main; main()", "worker")
_PR_SET_PDEATHSIG = 1
_ASK_SECONDS = 1.0
_LOG_LINES = 25
_STOPS_SECONDS = 0.02  # for all threads of a process, where nobody says so
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class WorkerEndedError(AssertionError):
    """A worker ended that nobody has told to; the message has the end of its log."""


class WorkerUnderTest:
    """Made by `WorkerGroup.start`."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        recorder: Recorder,
    ) -> None:
        self.name = name
        self._recorder = recorder
        self._log = directory / f"{name}.log"
        self._port_file = directory / f"{name}.port"
        self._words = directory / f"{name}.words.json"
        self._told_to_end = False
        self._frozen = False
        own = ["--client-id", name, "--port-file", str(self._port_file), "--last-words", str(self._words)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*_COMMAND, *arguments, *own],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is the test's, which ends us
                preexec_fn=_die_with_the_test,  # noqa: PLW1509 - it makes one system call
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def answers(self) -> bool:
        """Whether it is worth asking it."""
        return self.alive and not self._frozen

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    # -- what may befall it -------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL: it says nothing more to anybody."""
        self._told_to_end = True
        self._recorder.note(EventKind.FAULT, name=FaultName.KILLED.value, target=self.name)
        self._process.kill()
        self._process.wait()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """For a moment that nobody notices, to look at what it wrote."""
        self._process.send_signal(signal.SIGSTOP)
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        else:
            time.sleep(_STOPS_SECONDS)
        try:
            yield
        finally:
            if self.alive:
                self._process.send_signal(signal.SIGCONT)

    def freeze(self) -> None:
        """SIGSTOP: as if its machine were paused."""
        self._frozen = True
        self._recorder.note(EventKind.FAULT, name=FaultName.FROZEN.value, target=self.name)
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: it goes on where it was, and does not know how late it is."""
        self._process.send_signal(signal.SIGCONT)
        self._recorder.note(EventKind.HEALED, name=FaultName.FROZEN.value, target=self.name)
        self._frozen = False

    def leave(self, timeout: float = 60.0) -> None:
        """SIGTERM: it drains, and ends when the broker has confirmed its offsets. Waits for that."""
        self._told_to_end = True
        self._note(EventKind.LEAVING)
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not drained after {timeout:g} s:\n{self._log_end()}") from None
        words = last_words.decode(self._words.read_bytes()) if self._words.exists() else None
        if words is None:
            self._note(EventKind.LEFT, exit_code=self._process.returncode)
        else:
            offsets = {str(queue): offset for queue, offset in (words.offsets or {}).items()}
            self._note(EventKind.LEFT, confirmed=words.confirmed, offsets=offsets, exit_code=self._process.returncode)

    def end(self) -> None:
        """However it is; not written down, for the run is over."""
        self._told_to_end = True
        if self.alive:
            self._process.kill()
        self._process.wait()

    # -- what it says -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise WorkerEndedError if it ended by itself."""
        if not self._told_to_end and not self.alive:
            raise WorkerEndedError(f"{self.name} ended by itself with {self.exit_code}:\n{self._log_end()}")

    async def is_ready(self) -> bool:
        """Whether it says that it has joined and settled."""
        self.check()
        return await self._ask("/readyz") is not None

    async def owned(self) -> frozenset[str] | None:
        """The queues that it says it owns; None if it does not answer."""
        answer = await self._ask("/assignment") if self.answers else None
        if answer is None:
            return None
        return frozenset(
            f"{queue['topic']}@{queue['broker']}/{queue['queueId']}"
            for queue in json.loads(answer)["queues"]
            if queue["state"] in ("Owned", "Standby")
        )

    def joined(self) -> None:
        """Write down that it is there."""
        self._note(EventKind.JOINED)

    def owns(self, queues: frozenset[str]) -> None:
        """Write down what it owns."""
        self._note(EventKind.OWNS, queues=sorted(queues))

    async def _ask(self, path: str) -> bytes | None:
        try:
            address = self._port_file.read_text().strip()
            answer = await call(address, "GET", path, None, _ASK_SECONDS)
        except (OSError, CallFailed):
            return None
        return answer.body if answer.status == 200 else None

    def _note(self, kind: EventKind, **details: object) -> None:
        # Said by us, about it: as if by itself.
        self._recorder.write((HistoryEvent(time.monotonic(), kind, self.name, details=details),))

    def _log_end(self) -> str:
        return "\n".join(self.log.splitlines()[-_LOG_LINES:])


def _die_with_the_test() -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
