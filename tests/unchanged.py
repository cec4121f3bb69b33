"""Run a part of the tests unless it passed before with exactly what is here now, as `go test` does.

    python -m tests.unchanged NAME -- COMMAND...

A quarter of an hour on a broker proves nothing new when not one byte has changed. So a command that succeeds leaves a
mark in .rocketfleet/passed/: a digest of everything its result may depend on. That is every file of the project that
git does not ignore (some tests read the documents, so none is left out), the Python and the packages beside it, Java,
the kernel, the variables that steer the tests, and the command itself. Any difference runs it again; so does AGAIN=1.
What failed or was interrupted leaves no mark, and a fresh checkout has none: CI always runs everything.
"""

import hashlib
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_STEERING = ("ROCKETFLEET_", "HYPOTHESIS_", "PYTEST_", "PYTHON", "JAVA_", "JDK_")


def files(root: Path) -> Iterator[Path]:
    """Every file that is part of the project or about to be."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    for name in sorted(set(listing.stdout.split(b"\0"))):
        path = root / os.fsdecode(name)
        if name and (path.is_file() or path.is_symlink()):
            yield path


def surroundings(environment: Mapping[str, str]) -> list[str]:
    """What tests depend on that is not in the project."""
    packages = sorted(f"{one.metadata['Name']} {one.version}" for one in metadata.distributions())
    steering = sorted(f"{name}={value}" for name, value in environment.items() if name.startswith(_STEERING))
    try:
        java = subprocess.run(["java", "-version"], check=False, capture_output=True, text=True).stderr
    except OSError:
        java = "none"
    return [sys.version, platform.platform(), java, *packages, *steering]


def digest(root: Path, command: Sequence[str], around: Sequence[str]) -> str:
    """One name for all that decides the result."""
    found = hashlib.sha256()
    for part in (*around, *command):
        found.update(hashlib.sha256(part.encode()).digest())
    for path in files(root):
        executable = os.access(path, os.X_OK)
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        for piece in (os.fsencode(path.relative_to(root)), bytes([executable]), content):
            found.update(hashlib.sha256(piece).digest())
    return found.hexdigest()


def run(root: Path, name: str, command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The command's exit status; 0, and a line that says so, where it need not run."""
    mark = root / ".rocketfleet" / "passed" / name
    now = digest(root, command, surroundings(environment))
    again = environment.get("AGAIN", "") not in ("", "0")
    if not again and mark.is_file() and mark.read_text() == now:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(mark.stat().st_mtime))
        print(f"{name}: passed {when} and nothing has changed since; not run again (AGAIN=1 runs it)", flush=True)
        return 0
    mark.unlink(missing_ok=True)
    status = subprocess.run(command, check=False, cwd=root).returncode
    # A file changed while the tests ran may have been read before or after: that run speaks for neither.
    if status == 0 and digest(root, command, surroundings(environment)) == now:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(now)
    return status


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    if len(arguments) < 3 or arguments[1] != "--":
        print("usage: python -m tests.unchanged NAME -- COMMAND...", file=sys.stderr)
        return 2
    try:
        return run(ROOT, arguments[0], arguments[2:], os.environ)
    except KeyboardInterrupt:
        return 130  # what was interrupted has said so itself


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
