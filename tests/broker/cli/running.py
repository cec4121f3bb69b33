"""Running `rocketfleet` as a user does: as a process, with pipes."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
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
