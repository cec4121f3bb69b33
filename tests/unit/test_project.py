"""The project's own rules: what no linter knows, but every newcomer would trip over."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import markdown_text as markdown
import repository_pages

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "operator" / "rocketfleet"
TRACKED = repository_pages.tracked_files(ROOT)


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


@pytest.mark.parametrize("document", [name for name in TRACKED if name.endswith(".md")])
def test_every_relative_link_leads_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    for link in markdown.links(text):
        if link.external:
            continue
        target = (ROOT / document).parent.joinpath(link.path) if link.path else ROOT / document
        assert target.exists(), f"{document} links to {link.path}"
        assert target.resolve().is_relative_to(ROOT), f"{document} links to {link.path}, outside of the repository"
        if link.fragment:
            assert target.suffix == ".md", f"{document} links to an anchor of {link.path}, which has none"
            anchors = markdown.anchors(target.read_text())
            assert link.fragment in anchors, f"{document} links to {link.target}, and there is no such heading"


def test_every_page_is_in_the_navigation_of_the_site_once() -> None:
    in_navigation = list(navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(in_navigation) == sorted(repository_pages.pages(TRACKED).values())


def test_every_runbook_and_decision_is_in_the_index_of_its_folder() -> None:
    for folder in ("docs/runbooks", "docs/adr"):
        listed = {link.path for link in markdown.links((ROOT / folder / "README.md").read_text())}
        pages = {path.name for path in (ROOT / folder).glob("*.md")} - {"README.md"}
        assert pages <= listed, f"{folder}/README.md does not list {pages - listed}"


@pytest.mark.parametrize(
    "document", [name for name in TRACKED if name.startswith("docs/adr/") or name == "docs/glossary.md"]
)
def test_every_file_that_decisions_and_glossary_name_is_there(document: str) -> None:
    prose = re.sub(r"```.*?```", "", (ROOT / document).read_text(), flags=re.DOTALL)
    named = re.findall(r"`([\w./-]+/|[\w./-]+\.(?:py|md|toml|lock|yml))`", prose)
    assert [name for name in named if not any((base / name).exists() for base in (ROOT, PACKAGE))] == []


def test_the_readme_in_chinese_says_what_the_readme_says() -> None:
    # The text is for a reader to compare; code, tables, headings and links are not to drift apart.
    english, chinese = ((ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md"))
    assert markdown.fenced_blocks(chinese) == markdown.fenced_blocks(english)
    assert shape_of(chinese) == shape_of(english)
    there = {"README.md", "README.zh-CN.md"}
    assert {link.target for link in markdown.links(chinese)} - there == {
        link.target for link in markdown.links(english)
    } - there
    assert "README.zh-CN.md" in {link.target for link in markdown.links(english)}
    assert "README.md" in {link.target for link in markdown.links(chinese)}


def test_nobody_is_sent_into_the_operators_pod() -> None:
    # Whoever may exec there may all that the operator may. One sentence says so; commands run in a pod of their own.
    places = [name for name in TRACKED if name.endswith((".md", ".yaml", ".txt", ".tpl", ".py"))]
    found = {
        name: text.count("kubectl exec")
        for name in places
        if not name.startswith("tests/") and "kubectl exec" in (text := (ROOT / name).read_text())
    }
    assert found == {"docs/operations.md": 1}
    assert "Do not run them in the operator's own pod (`kubectl exec" in (ROOT / "docs" / "operations.md").read_text()


# Rooms with one file per thing of a kind: their docstring says which kind.
OF_ONE_KIND = {"allocation", "api/rules", "cli/commands", "lag/judging/rules", "wire/bodies"}


@pytest.mark.parametrize(
    "room", sorted(str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.glob("*/**/__init__.py"))
)
def test_a_room_says_in_which_order_to_read_its_files(room: str) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""
    if room in OF_ONE_KIND:
        assert " per file" in text or "file per " in text
        return
    inside = {path.stem for path in (PACKAGE / room).glob("*.py")} - {"__init__"}
    inside |= {path.parent.name for path in (PACKAGE / room).glob("*/__init__.py")}
    assert {name for name in inside if not re.search(rf"\b{name}(\.py\b|/|`)", text)} == set()


def test_the_file_map_has_every_package() -> None:
    rows = re.findall(r"^\| `(\w+)/` \|", (ROOT / "DESIGN.md").read_text(), re.MULTILINE)
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= set(rows)


def test_the_rule_above_a_section_has_one_form() -> None:
    lines = {
        (name, line) for name in TRACKED if name.endswith(".py") for line in (ROOT / name).read_text().splitlines()
    }
    rules = {(name, line) for name, line in lines if line.lstrip().startswith("# --")}
    form = re.compile(r" *# -- \S.* -+")
    assert {(name, line) for name, line in rules if len(line) != 119 or not form.fullmatch(line)} == set()


def test_no_two_classes_have_the_same_name() -> None:
    """Whoever searches for a class finds one. The facade has the names of the library that it stands in for."""
    found: dict[str, list[str]] = {}
    for path in (ROOT / "operator" / "rocketfleet").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and path.parent.name != "facade":
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_nothing_generated_is_tracked() -> None:
    generated = re.compile(
        r"\.(jar|class|whl|egg|pyc|pyo|so|tar|tgz|gz|zip|log|parquet)$|(^|/)(\.venv|__pycache__|node_modules|dist|build|store)/"
    )
    assert [name for name in TRACKED if generated.search(name)] == []


def code_of(markdown: str) -> str:
    """The code in a document: fenced blocks and inline code, one per line."""
    blocks = re.findall(r"```[^\n]*\n(.*?)```", markdown, re.DOTALL)
    rest = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", rest)])


def shape_of(text: str) -> list[str]:
    """What a document is made of, in order: levels of headings, rows of tables, items of lists."""
    prose = markdown.masked(text)
    return [found.rstrip() for found in re.findall(r"^(?:#+ |\||- )", prose, re.MULTILINE)]


def navigation(entries: list[Any]) -> Iterator[str]:
    """The pages of a navigation of MkDocs, in order."""
    for entry in entries:
        below = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from navigation(below) if isinstance(below, list) else [below]
