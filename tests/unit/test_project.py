"""The project's own rules: what no linter knows, but every newcomer would trip over."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tracked_files() -> list[str]:
    """What git tracks or would track: a file that is not ignored is about to be committed."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in listing.stdout.splitlines() if (ROOT / name).exists()]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_source_root_is_no_package() -> None:
    # An operator/__init__.py would hide the standard library's `operator` from everything started in the root.
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_the_standard_operator_module_is_found_from_the_root() -> None:
    found = subprocess.run(
        ["python3", "-c", "import operator; print(operator.itemgetter(0)('x'))"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout == "x\n"


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "DESIGN.md", "docs/README.md", "bench/README.md"])
def test_every_make_command_in_the_documents_is_a_target(document: str) -> None:
    named = set(re.findall(r"\bmake ([a-z0-9][a-z0-9-]*)\b", code_of((ROOT / document).read_text())))
    assert named <= make_targets(), f"{document} names targets that the Makefile does not have"


def test_readme_names_the_two_commands_and_the_targets_a_user_needs() -> None:
    code = code_of((ROOT / "README.md").read_text())
    for target in ("demo", "test", "e2e", "bench", "help"):
        assert f"make {target}" in code, f"README does not show `make {target}`"
    assert {"help", "demo", "test", "e2e", "bench", "check", "fmt", "clean"} <= make_targets()


def test_every_rocketfleet_command_in_readme_exists() -> None:
    from rocketfleet.cli.main import COMMANDS

    code = code_of((ROOT / "README.md").read_text())
    named = set(re.findall(r"^(?:\$ )?(?:\.venv/bin/)?rocketfleet ([a-z]+)", code, re.MULTILINE))
    assert named <= set(COMMANDS), "README shows commands that `rocketfleet --help` does not list"


def test_every_relative_link_leads_somewhere() -> None:
    for document in [name for name in tracked_files() if name.endswith(".md")]:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", (ROOT / document).read_text()):
            assert (ROOT / document).parent.joinpath(target).exists(), f"{document} links to {target}"


def test_nothing_generated_is_tracked() -> None:
    generated = re.compile(
        r"\.(jar|class|whl|egg|pyc|pyo|so|tar|tgz|gz|zip|log|parquet)$|(^|/)(\.venv|__pycache__|node_modules|dist|build|store)/"
    )
    assert [name for name in tracked_files() if generated.search(name)] == []


def code_of(markdown: str) -> str:
    """The code in a document: fenced blocks and inline code, one a line."""
    blocks = re.findall(r"```[^\n]*\n(.*?)```", markdown, re.DOTALL)
    rest = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", rest)])
