"""The plugin in runs of pytest of its own, as users have them; those here get no broker to start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
def test_with_a_broker(rocketmq): ...
def test_without(): ...
"""


def run_pytest(directory: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", *arguments],
        cwd=directory,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )


def test_the_fixtures_are_there_wherever_rocketfleet_is_installed(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "--fixtures")
    assert "rocketmq [session scope]" in done.stdout
    assert "worker_group -- " in done.stdout


@pytest.mark.parametrize(
    ("conftest", "sentence"),
    [
        (
            "import sys\nfor name in ('cryptography', 'maven_artifact', 'requests'): sys.modules[name] = None\n",
            "Fetching RocketMQ needs the packages of the `broker` extra",
        ),
        ("import os\nos.environ['JAVA_HOME'] = '/nowhere'\n", "JAVA_HOME is /nowhere, but"),
    ],
    ids=["no packages", "no Java"],
)
def test_what_is_missing_is_said_in_one_sentence(tmp_path: Path, conftest: str, sentence: str) -> None:
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_mine.py").write_text(TESTS)
    done = run_pytest(tmp_path, ROCKETFLEET_CACHE=str(tmp_path / "cache"), ROCKETFLEET_MAVEN_REPOSITORY="")
    assert "1 passed, 1 error" in done.stdout
    assert sentence in done.stdout
    assert "Traceback" not in done.stdout
    assert "During handling" not in done.stdout
