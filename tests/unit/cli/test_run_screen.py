"""What `rocketfleet run` shows: a table on a terminal, lines elsewhere."""

import pytest
from rich.console import Console

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.cli.run_screen import Screen, line_of, table_of, wants_table

SPEC: dict[str, object] = {
    "cluster": {"nameServers": ["127.0.0.1:9876"]},
    "subscriptions": [{"topic": "orders"}],
    "worker": {"handler": "a:b"},
}
MEMBERS = [
    {"pod": "orders-0", "clientId": "orders-0@1", "queues": 5, "state": "Ready"},
    {"pod": "orders-1", "state": "Draining"},
    {"clientId": "guest", "queues": 3, "state": "Guest"},
]
STATUS: dict[str, object] = {
    "readySummary": "1/2",
    "queues": {"total": 8, "owned": 8, "unowned": 0, "shared": 0},
    "members": MEMBERS,
}


def group(status: dict[str, object] | None) -> ConsumerGroup:
    return ConsumerGroup.model_validate({"metadata": {"name": "orders"}, "spec": SPEC, "status": status})


def test_a_group_in_a_line() -> None:
    assert line_of(group(STATUS)) == "orders: 1/2 ready  queues 8/8  orders-0 5, orders-1 ?, guest 3"
    assert line_of(group(None)) == "orders: starting"


def test_a_group_in_a_table() -> None:
    console = Console(width=100, force_terminal=False, record=True)
    with console.capture() as shown:
        console.print(table_of([group(STATUS)], {("default", "orders"): 42}))
    rows = [line.split() for line in shown.get().splitlines()]
    assert rows == [
        ["group", "ready", "queues", "lag", "member", "share", "state"],
        ["orders", "1/2", "8/8", "42", "orders-0", "5", "Ready"],
        ["orders-1", "?", "Draining"],
        ["guest", "3", "Guest"],
    ]
    with console.capture() as shown:
        console.print(table_of([group(None)], {}))
    assert "starting" in shown.get()


def test_without_a_table_only_changes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    with Screen(table=False) as screen:
        for _ in range(3):
            screen.show([group(STATUS)], {})
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    ("terminal", "plain", "environment", "table"),
    [
        (True, False, {}, True),
        (True, True, {}, False),
        (False, False, {}, False),
        (True, False, {"CI": "1"}, False),
        (True, False, {"NO_TTY": "1"}, False),
    ],
)
def test_a_table_is_for_people_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, plain: bool, environment: dict[str, str], table: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    assert wants_table(plain=plain, environment=environment) is table
