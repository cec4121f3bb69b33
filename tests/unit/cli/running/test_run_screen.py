"""What `rocketfleet run` shows: a table on a terminal, lines elsewhere."""

from pathlib import Path

import pytest
from rich.console import Console

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.cli.commands.run import ending
from rocketfleet.cli.running.run_screen import RunScreen, line_of, table_of, wants_table

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


def group(status: dict[str, object] | None, name: str = "orders") -> ConsumerGroup:
    return ConsumerGroup.model_validate({"metadata": {"name": name}, "spec": SPEC, "status": status})


def test_a_group_in_a_line() -> None:
    assert line_of(group(STATUS)) == "orders: 1/2 ready  queues 8/8  orders-0 5, orders-1 ?, guest 3"
    assert line_of(group(None)) == "orders: starting"


def test_a_group_in_a_table() -> None:
    console = Console(width=100, force_terminal=False, record=True)
    with console.capture() as shown:
        console.print(table_of([group(STATUS)], {GroupKey("default", "orders"): 42}))
    rows = [line.split() for line in shown.get().splitlines()]
    assert rows == [
        ["group", "ready", "queues", "lag", "failing", "member", "share", "state"],
        ["orders", "1/2", "8/8", "42", "orders-0", "5", "Ready"],
        ["orders-1", "?", "Draining"],
        ["guest", "3", "Guest"],
    ]
    failing = group({**STATUS, "lag": {"triedPerMinute": 40, "failedPerMinute": 12, "state": "FAILING"}})
    with console.capture() as shown:
        console.print(table_of([failing], {GroupKey("default", "orders"): 42}))
    assert shown.get().splitlines()[1].split() == ["orders", "1/2", "8/8", "42", "12/min", "orders-0", "5", "Ready"]
    with console.capture() as shown:
        console.print(table_of([group(None)], {}))
    assert "starting" in shown.get()


def test_without_a_table_only_changes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    with RunScreen(table=False) as screen:
        for _ in range(3):
            screen.show([group(STATUS)], {})
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_change_of_one_group_does_not_repeat_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    other = group(None, "billing")
    with RunScreen(table=False) as screen:
        screen.show([group(None), other], {})
        screen.show([group(STATUS), other], {})
        screen.show([other], {})  # the group is gone: no line, and the next one of that name begins anew
        screen.show([group(STATUS), other], {})
    lines = [line.split("s  = ", 1)[1].partition(" ")[0] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["billing:", "orders:", "orders:", "orders:"]


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


def unready(message: str, reason: str = "PodTrouble", status: str = "False") -> dict[str, object]:
    ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
    ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    members = [{"pod": "orders-0", "state": "Joining", "queues": 0}, {"pod": "orders-1", "state": "Ready", "queues": 8}]
    return {"readySummary": "1/2", "conditions": [ready], "members": members}


def test_a_member_that_cannot_start_is_said_once_with_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    boom = "orders-0: exit code 2: module 'boom' raised KeyError: 'DATABASE_URL' while it was imported: see the log"
    with RunScreen(table=False) as screen:
        screen.logs = lambda key: Path("state") / key[1] / "logs"
        screen.show([group(unready(boom))], {})
        screen.show([group(unready("1 of 2 pods are ready.", "PodsNotReady"))], {})  # it is tried again
        screen.show([group(unready(boom))], {})
        screen.show([group(unready("", "AllReady", "True"))], {})
        screen.show([group(unready(boom))], {})
    lines = [line.split("s  ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        f"! orders: {boom}",
        "!   see 0.log in state/orders/logs",
        "= orders: 1/2 ready  orders-0 Failed, orders-1 8",
        "= orders: 1/2 ready  orders-0 0, orders-1 8",
        f"! orders: {boom}",
        "!   see 0.log in state/orders/logs",
        "= orders: 1/2 ready  orders-0 Failed, orders-1 8",
    ]


def test_members_that_fail_in_turn_are_said_once_each(capsys: pytest.CaptureFixture[str]) -> None:
    with RunScreen(table=False) as screen:
        for said in ("orders-0: code 2", "orders-0: code 2; orders-1: code 2", "orders-1: code 2", "orders-0: code 3"):
            screen.show([group(unready(said))], {})
            screen.show([group(unready("1 of 2 pods are ready.", "PodsNotReady"))], {})
    lines = [line.split("s  ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.startswith("!")] == [
        "! orders: orders-0: code 2",
        "! orders: orders-0: code 2; orders-1: code 2",
        "! orders: orders-0: code 3",
    ]


def test_a_member_that_cannot_start_is_failed_in_the_table() -> None:
    console = Console(width=100, force_terminal=False, record=True)
    with console.capture() as shown:
        console.print(table_of([group(unready("x"))], {}, {GroupKey("default", "orders"): "orders-0: exit code 2"}))
    assert [line.split()[-1] for line in shown.get().splitlines()] == ["state", "Failed", "Ready"]


def test_what_is_said_at_the_end_and_by_which_code() -> None:
    assert ending(safe=True, abandoned=0) == (0, "all members are drained")
    assert ending(safe=True, abandoned=4) == (
        5, "all members are drained; 4 messages did not finish and will be delivered again"
    )  # fmt: skip
    code, words = ending(safe=False, abandoned=1)
    assert code == 1
    assert words == "not all members' offsets are safe; 1 message did not finish and will be delivered again"
