"""Three minutes of `make faults`: seeds that are fixed, so that a failure is the product's, or comes again by its seed.

Each is a run of the harness as its users start it, with brokers of its own. What differs is what the seed draws:
members that join, leave, die and freeze, brokers that die, networks that are cut; see the schedule in the output.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 25  # of faults; setting up and settling take as long again

pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize(
    ("seed", "mode", "families"),
    [
        (9, "Concurrent", ("members", "brokers")),
        (5, "Orderly", ("members", "handlers", "topology")),
        (2, "Orderly", ("members", "brokers", "network")),
    ],
    ids=["concurrent", "orderly", "network"],
)
def test_a_seed(seed: int, mode: str, families: tuple[str, ...]) -> None:
    only = [f"--only={family}" for family in families]
    command = ["-m", "tests.faults", f"--seed={seed}", f"--mode={mode}", f"--duration={SECONDS}", *only]
    ended = subprocess.run(
        [sys.executable, *command, "--settle=90"],  # the history of a bad run stays, in a directory that it names
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert "VERDICT good" in ended.stdout
