"""Processes that outlive the command that started them, and that a later command must find again with certainty.

A process id alone is not enough: ids are used again. So a process is remembered as its id *and* the moment it began,
which the kernel knows (`/proc/PID/stat`, in ticks since boot, with the boot's own id beside it; `ps` where there is no
/proc). Nothing is ever sent to an id whose beginning differs.

No process may run that nobody has noted. Between starting one and writing down its id lies a moment in which the
starter can be killed. So the child first waits at a gate (a shell that reads one line, then becomes the program,
keeping its id): the starter notes the id, then opens the gate. If the starter dies before that, the child reads
end-of-file and ends.
"""

import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_GATE = 'read -r go && exec "$@" </dev/null'
_POLL_SECONDS = 0.02

# Popen objects of children of this very process: without a wait they would stay as zombies.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Identity:
    """One process, for all time."""

    pid: int
    began: str

    @property
    def alive(self) -> bool:
        """Whether it still runs (a zombie does not)."""
        _reap(self.pid)
        return began(self.pid) == self.began

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to this process and no other; False if it is gone."""
        if not hasattr(os, "pidfd_open"):
            if not self.alive:
                return False
            os.kill(self.pid, number)
            return True
        try:
            # Once the descriptor is open, the id may be given to another process but the descriptor cannot.
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        except OSError as problem:
            # The id is that of another process's thread now. Newer kernels say ENOENT in place of EINVAL.
            if problem.errno in (errno.EINVAL, errno.ENOENT):
                return False
            raise
        try:
            if not self.alive:
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True


def began(pid: int, proc: Path = Path("/proc")) -> str | None:
    """When the process with this id began, in a form that no other process ever has; None if there is none."""
    if not (proc / "self").exists():
        return _began_by_ps(pid)
    try:
        stat = (proc / str(pid) / "stat").read_text()
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The program's name, in parentheses, may itself contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{boot}/{ticks}"


def _began_by_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    state, _, start = answer.stdout.strip().partition(" ")
    return None if answer.returncode != 0 or state.startswith("Z") else start.strip() or None


def spawn(
    argv: Sequence[str],
    *,
    output: Path,
    directory: Path,
    environment: Mapping[str, str],
    note: Callable[[Identity], None],
) -> Identity:
    """Start a program whose output replaces the file's. It is ours to wait for until this process ends."""
    child, identity = start_noted(
        argv, output=output, mode="wb", directory=directory, environment=environment, note=note
    )
    _children[child.pid] = child
    return identity


def start_noted(
    argv: Sequence[str],
    *,
    output: Path,
    mode: Literal["wb", "ab"],
    directory: Path,
    environment: Mapping[str, str],
    note: Callable[[Identity], None],
) -> "tuple[subprocess.Popen[bytes], Identity]":
    """Start a program in a session of its own. `note` is called with its identity before its first instruction runs."""
    with output.open(mode) as log:
        child = subprocess.Popen(
            ["/bin/sh", "-c", _GATE, "sh", *argv],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=dict(environment),
            start_new_session=True,
        )
    assert child.stdin is not None
    with child.stdin as gate:
        start = began(child.pid)
        if start is None:
            raise ProcessLookupError(f"{argv[0]} ended before it began")
        identity = Identity(child.pid, start)
        note(identity)
        with suppress(BrokenPipeError):
            gate.write(b"go\n")
    return child, identity


def end_all(
    identities: Iterable[Identity],
    grace_seconds: float,
    progress: Callable[[Sequence[Identity]], None] = lambda left: None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> list[Identity]:
    """End processes by SIGTERM, so that a broker flushes. Those still there after the grace are killed and returned."""
    waiting = [identity for identity in identities if grace_seconds <= 0 or identity.send(signal.SIGTERM)]
    for identity in waiting:
        identity.send(signal.SIGCONT)  # one that is paused would not see the SIGTERM
    deadline = clock() + grace_seconds
    while (waiting := [identity for identity in waiting if identity.alive]) and clock() < deadline:
        progress(waiting)
        time.sleep(_POLL_SECONDS)
    kill_all(waiting)
    return waiting


def kill_all(identities: Iterable[Identity]) -> None:
    """End processes at once, and wait until they are gone."""
    killed = [identity for identity in identities if identity.send(signal.SIGKILL)]
    while any(identity.alive for identity in killed):
        time.sleep(_POLL_SECONDS)


def _reap(pid: int) -> None:
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]
