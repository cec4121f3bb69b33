"""restart, suspend and resume against an API of our own: what is written, and what is waited for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.day2_api import GROUPS, FakeApi, Object, serving

from rocketfleet.cli.commands import rollout
from rocketfleet.cli.commands.rollout import RESTARTED_AT, progress
from rocketfleet.cli.main import main


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    made = FakeApi()
    monkeypatch.setattr(rollout, "LOOK_EVERY", 0.01)
    with serving(made, tmp_path) as path:
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield made


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, result.output
    return result


def status(generation: int, ready: str, message: str) -> Object:
    condition = {"type": "Ready", "status": ready, "message": message}
    return {"observedGeneration": generation, "conditions": [condition]}


def test_a_restart_is_an_annotation_of_the_template(api: FakeApi) -> None:
    group = api.add_group("orders")
    assert "orders is restarted, pod by pod" in run("restart", "orders").stdout
    moment = group["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT]
    assert moment.endswith("Z")
    group["spec"]["suspend"] = True
    assert "orders is suspended: there are no pods to restart" in run("restart", "orders", code=1).stderr


def test_suspend_and_resume_change_what_is_not_so_already(api: FakeApi) -> None:
    group = api.add_group("orders")
    assert "orders is suspended; the operator does the rest" in run("suspend", "orders").stdout
    assert group["spec"]["suspend"] is True
    assert "orders is suspended already" in run("suspend", "orders").stdout
    assert "orders is resumed" in run("resume", "orders").stdout
    assert "orders is not suspended already" in run("resume", "orders").stdout
    assert [body["spec"] for _, _, body in api.patches] == [{"suspend": True}, {"suspend": False}]


def test_waiting_ends_when_the_operator_says_that_all_is_done(api: FakeApi) -> None:
    group = api.add_group("orders", status=status(1, "True", "All 2 pods are ready."))
    later = iter([status(2, "False", "1 pod is still being drained."), status(2, "True", "The group is suspended.")])
    looks = 0

    def on_get(path: str) -> None:
        nonlocal looks
        looks += path == f"{GROUPS}/orders"
        if looks > 2 and (following := next(later, None)) is not None:
            group["status"] = following

    api.on_get = on_get
    said = run("suspend", "orders", "--wait").stdout
    assert [line.split("s  ", 1)[-1] for line in said.splitlines()] == [
        "orders is suspended; the operator does the rest",
        "the operator has not seen the change yet",
        "1 pod is still being drained.",
        "The group is suspended.",
    ]


def test_waiting_has_an_end(api: FakeApi) -> None:
    api.add_group("orders", status=status(1, "True", "All 2 pods are ready."))
    said = run("restart", "orders", "--wait", "--timeout", "0.05", code=1).stderr
    assert "It goes on; why it takes so long is in the events" in said


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, (False, "the operator has not seen the change yet")),
        (status(3, "Unknown", ""), (False, "nothing is known yet")),
        (status(4, "True", "fine"), (True, "fine")),
    ],
)
def test_how_far_it_is(found: Any, expected: tuple[bool, str]) -> None:
    assert progress({"metadata": {"generation": 3}, "status": found}) == expected
