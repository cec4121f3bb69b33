"""Documentation and examples use the public API alone: what they import is what readers copy."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import repository_pages
import rocketfleet
import rocketfleet.facade.client
import rocketfleet.facade.exceptions
import rocketfleet.spark
import rocketfleet.testing
from markdown_text import fenced_blocks

ROOT = Path(__file__).resolve().parents[3]
TRACKED = repository_pages.tracked_files(ROOT)
PAGES = [name for name in repository_pages.pages(TRACKED) if name.endswith(".md")]
EXAMPLES = [name for name in TRACKED if name.startswith("examples/") and name.endswith((".py", ".yaml"))]

# What can be imported from, and what: docs/api.md names the same.
PUBLIC = {
    "rocketfleet": set(rocketfleet.__all__),
    "rocketfleet.spark": set(rocketfleet.spark.__all__),
    "rocketfleet.testing": set(rocketfleet.testing.__all__),
    "rocketfleet.facade.client": {name for name in vars(rocketfleet.facade.client) if not name.startswith("_")},
    "rocketfleet.facade.exceptions": {name for name in vars(rocketfleet.facade.exceptions) if not name.startswith("_")},
}
# Named on a command line, never imported.
PIPELINES = {"rocketfleet.spark.analytics.streaming"}
_IMPORT = re.compile(
    r"^[ \t]*(from rocketfleet\b[\w.]* import (?:\([^)]*\)|[^\n]+)|import rocketfleet\b[^\n]*)", re.MULTILINE
)
_DOTTED = re.compile(r"(?<![\w./@-])rocketfleet(?:\.[a-z_]+)+(?![\w/-])")


def internal_names(text: str) -> Iterator[str]:
    """The names of ours that a text imports and that are not public."""
    for statement in _IMPORT.findall(text):
        (node,) = ast.parse(statement).body
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name not in PUBLIC)
        elif isinstance(node, ast.ImportFrom):
            public = PUBLIC.get(node.module or "", set())
            yield from (f"{node.module}.{name.name}" for name in node.names if name.name not in public)


@pytest.mark.parametrize(
    ("text", "internal"),
    [
        ("from rocketfleet import Consumer, Message", []),
        ("  from rocketfleet import Client  # ours", ["rocketfleet.Client"]),
        ("from rocketfleet import (\n    Consumer,\n    Holdings,\n)", ["rocketfleet.Holdings"]),
        ("from rocketfleet.wire.message import Message", ["rocketfleet.wire.message.Message"]),
        ("from rocketfleet.facade.client import Producer, Message    # after", []),
        ("import rocketfleet\nimport rocketfleet.consumer.consumer as c", ["rocketfleet.consumer.consumer"]),
        ("from rocketfleet.spark import drop_repeats", []),
        ("from rocketfleetish import x", []),
    ],
)
def test_what_is_not_public_is_found(text: str, internal: list[str]) -> None:
    assert list(internal_names(text)) == internal


def test_there_is_something_to_look_at() -> None:
    assert {"README.md", "README.zh-CN.md", "docs/consumer.md", "docs/client.md", "docs/api.md"} <= set(PAGES)
    importing = [name for name in (*PAGES, *EXAMPLES) if _IMPORT.search((ROOT / name).read_text())]
    assert {"docs/consumer.md", "docs/worker.md", "examples/python/send.py"} <= set(importing)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_imports_public_names_only(page: str) -> None:
    assert [name for block in fenced_blocks((ROOT / page).read_text()) for name in internal_names(block)] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_public_modules_only(page: str) -> None:
    public = {*PUBLIC, *PIPELINES, "rocketfleet.__version__"}
    named = _DOTTED.findall((ROOT / page).read_text())
    assert [name for name in named if name not in public] == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_imports_public_names_only(example: str) -> None:
    assert list(internal_names((ROOT / example).read_text())) == []


@pytest.mark.parametrize("page", [page for page in PAGES if "```python" in (ROOT / page).read_text()])
def test_python_in_a_page_can_be_read(page: str) -> None:
    for block in fenced_blocks((ROOT / page).read_text()):
        if block.startswith("```python"):
            ast.parse("".join(block.splitlines(keepends=True)[1:-1]))
