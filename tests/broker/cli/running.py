"""Running `rocketfleet` as a user does: as a process, with pipes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-c", "from rocketfleet.cli.main import main; main()"]
SECONDS = 120


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, without what would lead a command elsewhere, and with patience for a busy machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROCKETFLEET_")}
    return {**kept, "ROCKETFLEET_TIMEOUT": "30", **(variables or {})}


def rocketfleet(
    *arguments: str, stdin: bytes = b"", directory: Path | None = None, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        check=False,
        cwd=directory,
        env=environment(variables),
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def answer(*arguments: str, **options: Any) -> Any:
    """What a command that must succeed answers with `-o json`."""
    done = rocketfleet(*arguments, "-o", "json", **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Poll until there is something, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)
    return found
