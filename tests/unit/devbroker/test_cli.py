"""`rocketfleet broker` before anything is started: what it refuses, and what it needs to be imported."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rocketfleet.cli.commands.broker import broker


def run(*arguments: str) -> Result:
    return CliRunner().invoke(broker, arguments)


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--set", "nonsense"], 2, "'nonsense' is not KEY=VALUE."),
        (["--set", "listenPort=1"], 1, "Error: The broker property listenPort is decided by the other options"),
        (["--heap", "lots"], 1, "Error: A broker's heap is given as in 256m or 1g"),
        (["--brokers", "0"], 2, "--brokers"),
        (["--broker-port", "65536"], 2, "--broker-port"),
    ],
)
def test_what_cannot_be_started(tmp_path: Path, options: list[str], code: int, sentence: str) -> None:
    answer = run("start", "--dir", str(tmp_path / "fleet"), *options)
    assert answer.exit_code == code
    assert sentence in answer.output
    assert not (tmp_path / "fleet").exists()


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run("start", "--dir", str(tmp_path / "file")).exit_code == 2
    answer = run("start", "--dir", str(tmp_path / "file" / "below"))
    assert answer.exit_code == 1
    assert answer.output.startswith("Error: ")
    assert "Traceback" not in answer.output


def test_stopping_nothing_is_no_error(tmp_path: Path) -> None:
    answer = run("stop", "--dir", str(tmp_path / "fleet"))
    assert (answer.exit_code, answer.output) == (0, "Nothing was running.\n")


def test_deleting_what_is_not_a_fleets_deletes_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    answer = run("stop", "--delete-data", "--dir", str(tmp_path))
    assert answer.exit_code == 0
    assert "Deleted" not in answer.output
    assert (tmp_path / "data").exists()


def test_a_spoilt_state_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{")
    answer = run("status", "--dir", str(tmp_path))
    assert answer.exit_code == 1
    assert "is not a state file" in answer.output


def test_help_needs_no_extra_packages() -> None:
    program = (
        "import sys; sys.modules.update(dict.fromkeys(['requests', 'cryptography', 'maven_artifact']));"
        "from rocketfleet.cli.main import main; main(['broker', 'start', '--help'])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "replication" in answer.stdout
