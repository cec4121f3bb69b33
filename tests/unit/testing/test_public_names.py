"""`rocketfleet.testing` is what docs/testing.md says, and costs nothing until something of it is asked for."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import rocketfleet.testing as public

ROOT = Path(__file__).resolve().parents[3]


def test_every_name_is_there_and_at_home() -> None:
    homes = vars(public)["_HOMES"]
    assert sorted(homes) == sorted(public.__all__)
    for name, home in homes.items():
        assert getattr(public, name) is getattr(import_module(f"rocketfleet.testing.{home}"), name)
    assert set(public.__all__) <= set(dir(public))


def test_no_module_has_the_name_of_something_public() -> None:
    # Importing it would put it in the place of what it is to give.
    assert {path.stem for path in Path(public.__file__).parent.iterdir()} & set(public.__all__) == set()


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(public.__file__).read_text())
    seen = {
        f"{node.module}:{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    } - {"importlib:import_module", "typing:TYPE_CHECKING"}
    assert seen == {f"rocketfleet.testing.{home}:{name}" for name, home in vars(public)["_HOMES"].items()}


def test_every_name_is_documented() -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    assert [name for name in public.__all__ if f"`{name}`" not in page] == []


def test_the_plugin_imports_nothing_of_the_package() -> None:
    program = """
import sys
import pytest
before = set(sys.modules)
import rocketfleet.testing.pytest_plugin
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["rocketfleet", "rocketfleet.testing", "rocketfleet.testing.pytest_plugin"]
