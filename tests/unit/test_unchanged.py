"""Tests that passed are not run again, unless anything at all that could matter has changed."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import unchanged


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    (root / ".gitignore").write_text("/.rocketfleet/\n/ran\n*.pyc\n")
    (root / "code.py").write_text("one\n")
    (root / "README.md").write_text("words\n")
    return root


def runs(root: Path, name: str = "unit", script: str = "true", **environment: str) -> int:
    """How often the command has run in all, after one more call; the script is what else it does."""
    unchanged.run(root, name, ["sh", "-c", f"echo x >> ran; {script}"], environment)
    ran = root / "ran"
    return len(ran.read_text().split()) if ran.exists() else 0


def test_what_passed_is_not_run_again_and_says_so(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert [runs(project) for _ in range(3)] == [1, 1, 1]
    assert capfd.readouterr().out.count("unit: passed 20") == 2


def test_what_failed_is_run_again(project: Path) -> None:
    assert [runs(project, script="false") for _ in range(3)] == [1, 2, 3]
    assert unchanged.run(project, "unit", ["sh", "-c", "exit 3"], {}) == 3


def test_a_failure_ends_an_earlier_success(project: Path) -> None:
    script = 'test "$(wc -l < ran)" -ne 2'  # the second time fails
    assert runs(project, script=script) == 1
    assert runs(project, script=script, AGAIN="1") == 2
    assert runs(project, script=script) == 3


def test_again_runs_it_again(project: Path) -> None:
    assert [runs(project), runs(project, AGAIN="1"), runs(project, AGAIN="0")] == [1, 2, 2]


def test_parts_are_apart(project: Path) -> None:
    assert [runs(project, "unit"), runs(project, "broker"), runs(project, "unit")] == [1, 2, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "code.py").write_text("two\n"),
        lambda root: (root / "README.md").write_text("other words\n"),
        lambda root: (root / "new.py").write_text(""),
        lambda root: (root / "code.py").unlink(),
        lambda root: (root / "code.py").rename(root / "moved.py"),
        lambda root: (root / "code.py").chmod(0o755),
        lambda root: (root / "link").symlink_to("code.py"),
    ],
    ids=["content", "document", "new", "gone", "moved", "executable", "link"],
)
def test_any_change_of_the_project_runs_it_again(project: Path, change: Callable[[Path], object]) -> None:
    assert runs(project) == 1
    change(project)
    assert [runs(project), runs(project)] == [2, 2]


def test_a_change_back_was_tested_before_but_is_run_again(project: Path) -> None:
    assert runs(project) == 1
    (project / "code.py").write_text("two\n")
    assert runs(project) == 2
    (project / "code.py").write_text("one\n")
    assert runs(project) == 3, "only the last success is remembered"


def test_what_git_ignores_does_not_matter(project: Path) -> None:
    assert runs(project) == 1
    (project / "code.pyc").write_text("compiled")
    assert runs(project) == 1


def test_a_file_changed_while_the_tests_run_leaves_no_mark(project: Path) -> None:
    assert [runs(project, script="echo $$ > code.py") for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("name", ["ROCKETFLEET_CACHE", "HYPOTHESIS_PROFILE", "PYTEST_ADDOPTS", "PYTHONHASHSEED"])
def test_variables_that_steer_the_tests_matter(project: Path, name: str) -> None:
    assert runs(project) == 1
    assert runs(project, **{name: "1"}) == 2


def test_packages_python_and_java_matter() -> None:
    around = unchanged.surroundings({})
    assert any(one.startswith("pytest ") for one in around)
    others = [[*around[:number], "other", *around[number + 1 :]] for number in range(4)]
    assert len({unchanged.digest(unchanged.ROOT, ["x"], one) for one in [around, *others]}) == 5


def test_other_arguments_are_another_run(project: Path) -> None:
    assert unchanged.run(project, "unit", ["true"], {}) == 0
    assert unchanged.run(project, "unit", ["false"], {}) == 1


def test_a_wrong_call_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert unchanged.main(["unit", os.devnull]) == 2
    assert "usage" in capsys.readouterr().err
