"""The example test passes, run as its reader would run it: apart from this repository's settings, on its own broker."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "testing" / "test_my_handler.py"


def test_the_example_test_passes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", str(EXAMPLE)],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
