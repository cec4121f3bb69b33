"""Processes that a later run must find again, and whose exit code matters while they are ours.

As in `base/processes.py`: a process is known by its id and the moment it began, and is noted before its first
instruction runs, behind a gate. Of a process that a former run has started, the exit code cannot be had; what it left
behind has to do.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rocketfleet.base.processes import Identity, start_noted

if TYPE_CHECKING:
    import subprocess


@dataclass(slots=True)
class LocalProcess:
    """One process; `child` is None for one that another run has started."""

    identity: Identity
    child: "subprocess.Popen[bytes] | None" = None

    @property
    def running(self) -> bool:
        if self.child is not None:
            return self.child.poll() is None
        return self.identity.alive

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal; None while it runs, or where nobody can know."""
        return None if self.child is None else self.child.poll()

    def send(self, number: signal.Signals) -> bool:
        return self.running and self.identity.send(number)

    def kill(self) -> None:
        """End it and whatever it has started in its process group. The group is its own: it leads a session."""
        if self.running and self.identity.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.identity.pid, signal.SIGKILL)


def start(
    argv: Sequence[str],
    *,
    log: Path,
    directory: Path,
    environment: Mapping[str, str],
    note: Callable[[Identity], None],
) -> LocalProcess:
    """Start a program in a session of its own; a Ctrl-C at our terminal does not reach it. Its output is appended."""
    child, identity = start_noted(argv, output=log, mode="ab", directory=directory, environment=environment, note=note)
    return LocalProcess(identity, child)


def describe_exit(code: int | None) -> str:
    if code is None:
        return "it ended"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
