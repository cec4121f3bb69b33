"""Every condition, reason and event that the operator can write is explained in docs/kubernetes.md, and no other is.

Reasons of conditions are read from the source: whatever is given to a ConditionVerdict as its reason.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rocketfleet.api.status import ConditionType
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.controller.planning.broker_trouble import BrokerTrouble
from rocketfleet.controller.reporting import conditions, lag_health

ROOT = Path(__file__).resolve().parents[2]
CONTROLLER = ROOT / "operator" / "rocketfleet" / "controller"
WORD = re.compile(r"[A-Z][A-Za-z]+")


def cells(heading: str) -> Iterator[list[str]]:
    """The lines of the tables of docs/kubernetes.md whose first heading is this."""
    inside = False
    for line in (ROOT / "docs" / "kubernetes.md").read_text().splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        inside = bool(row) and (inside or row[0] == heading)
        if inside and row[0] != heading and not row[0].startswith("---"):
            yield row


def names(cell: str) -> set[str]:
    return {word.strip() for word in cell.split(",") if word.strip()}


def strings(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, ast.Name) and isinstance(value := getattr(conditions, part.id, None), str):
            yield value


def reasons_in_code() -> set[str]:
    found = {*(one.value for one in BrokerTrouble), *(word for word, _ in lag_health._WORDS.values())}
    for file in CONTROLLER.rglob("*.py"):
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ConditionVerdict":
                found.update(strings(node.args[1]))
            elif (
                file.name == "conditions.py"
                and isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id == "reason"
            ):  # chosen first and given later, as in `reason = "NotBalanced" if …`
                found.update(strings(node.value))
    return {word for word in found if WORD.fullmatch(word)}


def documented_reasons() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    condition = ""
    for row in cells("condition"):
        if len(row) < 3:
            continue
        condition = row[0] or condition
        found.setdefault(condition, set()).update(names(row[1]))
    return found


def test_every_condition_is_explained() -> None:
    explained = {row[0] for row in cells("condition") if len(row) == 2}
    assert explained == {one.value for one in ConditionType}
    assert set(documented_reasons()) == explained


def test_every_reason_of_a_condition_is_explained_and_no_other() -> None:
    assert set().union(*documented_reasons().values()) == reasons_in_code()


def test_every_event_is_explained_once_and_no_other() -> None:
    explained = [name for row in cells("event") for name in names(row[0])]
    assert sorted(explained) == sorted(one.value for one in EventReason)


def test_the_runbook_of_a_group_that_is_not_ready_names_reasons_that_there_are() -> None:
    text = (ROOT / "docs" / "runbooks" / "group-not-ready.md").read_text()
    named = {name for row in re.findall(r"^\| ([A-Z][A-Za-z, ]+) \|", text, re.MULTILINE) for name in names(row)}
    assert named <= reasons_in_code()
    assert named >= conditions._FOR_OTHERS, "what waiting does not mend needs a line there"
