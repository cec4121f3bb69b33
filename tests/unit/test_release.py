"""What a release is made of agrees with itself: versions, changelog, lock files, the chart's page, workflows."""

import re
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from release import build, chart_readme, lock

import repository_pages

ROOT = Path(__file__).resolve().parents[2]
CHART: dict[str, Any] = yaml.safe_load((ROOT / "helm" / "rocketfleet" / "Chart.yaml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HASHES = r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+"
PINNED = re.compile(rf"^([A-Za-z0-9._-]+)==([^\s;]+)(?: ; .*?)?{HASHES}$", re.MULTILINE)


def version() -> str:
    """The version as the build backend sees it, wherever it is written; an installed package may be an older one."""
    asked = [sys.executable, "-m", "hatchling", "version"]
    return subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def pins(name: str) -> dict[str, str]:
    """The packages of a lock file, with their versions."""
    text = (lock.DIRECTORY / f"{name}.txt").read_text()
    return {canonicalize_name(package): pinned for package, pinned in PINNED.findall(text)}


def test_the_version_is_the_same_everywhere() -> None:
    assert CHART["version"] == CHART["appVersion"] == version()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\S+)", changelog, re.MULTILINE)[:2] == ["Unreleased", version()]
    named = {
        (document, found)
        for document in repository_pages.tracked_files(ROOT)
        if document.endswith((".md", ".yaml", ".yml"))
        for found in re.findall(r"registry\.example/rocketfleet/\w+:([\w.]+)", (ROOT / document).read_text())
    }
    assert named
    assert {found for _, found in named} == {version()}, named


@pytest.mark.parametrize("name", [lock.BUILD, *lock.EXTRAS])
def test_a_lock_has_all_that_is_required(name: str) -> None:
    locked = pins(name)
    for text in lock.requirements(name):
        wanted = Requirement(text)
        found = locked.get(canonicalize_name(wanted.name))
        assert found is not None, f"{name}.txt lacks {text}: run `make lock`"
        assert wanted.specifier.contains(found), f"{name}.txt has {wanted.name} {found}, not {text}: run `make lock`"


@pytest.mark.parametrize("name", [lock.BUILD, *lock.EXTRAS])
def test_a_lock_is_exact_and_names_no_index(name: str) -> None:
    text = (lock.DIRECTORY / f"{name}.txt").read_text()
    rest = PINNED.sub("", text)
    assert [line for line in rest.splitlines() if line and not line.startswith("#")] == []
    assert "://" not in text


def test_every_lock_is_of_something() -> None:
    assert {path.stem for path in lock.DIRECTORY.iterdir()} == {lock.BUILD, *lock.EXTRAS}


def test_images_share_versions() -> None:
    # What two locks both have, they have alike: a fault that one image shows is in the other, too.
    seen: dict[str, set[str]] = {}
    for name in lock.EXTRAS:
        for package, pinned in pins(name).items():
            seen.setdefault(package, set()).add(pinned)
    assert {package: found for package, found in seen.items() if len(found) > 1} == {}


def test_the_charts_page_is_fresh() -> None:
    assert (chart_readme.CHART / "README.md").read_text() == chart_readme.readme(), "run `make chart-readme`"


def test_the_charts_page_has_every_value_with_its_comment() -> None:
    text = "# About a.\n# More.\na: 1\n\n# A group.\nb:\n  c: []\n  # About d.\n  d: {}\n\ne:\n  f: x\n"
    assert list(chart_readme.values(text)) == [
        chart_readme.Value("a", "1", "About a. More."),
        chart_readme.Value("b", None, "A group."),
        chart_readme.Value("b.c", "[]", ""),
        chart_readme.Value("b.d", "{}", "About d."),
        chart_readme.Value("e.f", '"x"', ""),
    ]


def test_the_chart_says_which_resources_it_installs() -> None:
    (definition,) = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    (told,) = yaml.safe_load(CHART["annotations"]["artifacthub.io/crds"])
    assert told["kind"] == definition["spec"]["names"]["kind"]
    assert told["name"] == definition["metadata"]["name"]
    assert told["version"] in {one["name"] for one in definition["spec"]["versions"]}


def test_the_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    changelog = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 - 2026-12-01\n\n- second\n\n## 0.1.0\n\n- first\n"
    assert build.section(changelog, "0.2.0") == "- second\n"
    assert build.section(changelog, "0.1.0") == "- first\n"
    assert build.section((ROOT / "CHANGELOG.md").read_text(), version())


def test_an_archive_tells_nothing_of_when_it_was_made() -> None:
    def archive(names: list[str], mtime: int, owner: str) -> bytes:
        packed = BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as files:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.uname = len(name), mtime, owner
                files.addfile(member, BytesIO(name.encode()))
        return packed.getvalue()

    one = build.normalised(archive(["b", "a"], 1_800_000_000, "me"), 1_700_000_000)
    other = build.normalised(archive(["a", "b"], 1_900_000_000, "you"), 1_700_000_000)
    assert one == other
    with tarfile.open(fileobj=BytesIO(one)) as files:
        assert [(member.name, member.mtime) for member in files] == [("a", 1_700_000_000), ("b", 1_700_000_000)]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_targets_that_exist_with_actions_of_a_full_version(workflow: Path) -> None:
    text = workflow.read_text()
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = re.findall(r"run: .*?\bmake ([a-z0-9-]+)", text)
    assert commands
    assert set(commands) <= targets
    actions = re.findall(r"uses: (\S+)", text)
    assert [action for action in actions if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", action)] == []
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}


def test_nothing_is_published_unless_it_is_switched_on() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    assert jobs["publish"]["if"] == "vars.PUBLISH == 'true'"
    pushing = re.compile(r"\bpush\b|publish|gh release")
    assert not pushing.search(str(jobs["build"]["steps"]))


def test_every_supported_python_is_tested() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    told = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert jobs["unit"]["strategy"]["matrix"]["python"] == told
    assert told[0] == lock.lowest_python()
