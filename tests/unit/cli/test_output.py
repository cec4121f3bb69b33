"""Tables line up, whatever is in them."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from rocketfleet.cli import output
from rocketfleet.cli.output import asynchronous, cell, details, moment, show_rows, table, width
from rocketfleet.client.errors import ConnectError, NoRoute


def test_numbers_stand_to_the_right_and_text_to_the_left() -> None:
    assert table(["QUEUE", "LAG"], [["a", 5], ["bb", 1234]]) == "QUEUE   LAG\na         5\nbb     1234"


def test_unknown_is_a_dash_and_still_a_number_column() -> None:
    assert table(["N", "T"], [[None, ""], [12, "x"]]) == " N  T\n -  -\n12  x"


def test_wide_characters_take_two_columns() -> None:
    assert width("订单") == 4
    assert width("e\u0301") == 1
    assert table(["TOPIC", "X"], [["订单", "a"], ["order", "b"]]).splitlines()[1:] == ["订单   a", "order  b"]


# The last cell is not blank: a line ends with its last letter, and the blanks behind the number would go with it.
LAST = st.text(min_size=1, max_size=8).filter(lambda text: bool(cell(text).strip()))


@given(st.lists(st.tuples(st.text(max_size=8), st.integers() | st.none(), LAST)))
@example([("", 0, "x")])
def test_every_cell_of_a_column_ends_or_starts_at_the_same_place(rows: list[tuple[str, int | None, str]]) -> None:
    lines = table(["A", "B", "C"], rows).split("\n")
    assert len(lines) == len(rows) + 1
    for line, (first, number, last) in zip(lines[1:], rows, strict=True):
        assert line.startswith(cell(first).rstrip())
        assert line.endswith(cell(last).rstrip())
        assert f"{cell(number)}  " in line


@given(st.text())
def test_a_cell_cannot_break_the_table_or_the_terminal(text: str) -> None:
    assert cell(text).isprintable()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (1.5, "1.50"),
        ([], "-"),
        (["a", "b"], "a, b"),
        ("\x1b[31m", "\ufffd[31m"),
    ],
)
def test_cells(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_details_line_up() -> None:
    assert details({"topic": "a", "queues": 8}) == "topic   a\nqueues  8"


def test_rows_as_a_table_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"queue_id": 1, "lag": None}]
    show_rows("table", rows, "nothing")
    assert capsys.readouterr().out == "QUEUE ID  LAG\n       1    -\n"
    show_rows("json", rows, "nothing")
    assert json.loads(capsys.readouterr().out) == rows
    show_rows("json", [], "nothing")
    assert json.loads(capsys.readouterr().out) == []
    show_rows("table", [], "nothing")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "nothing\n")


@pytest.mark.parametrize("nothing", [None, 0, -1, "text"])
def test_no_time_is_no_moment(nothing: object) -> None:
    assert moment(nothing) is None


def test_times_are_readable_in_a_table_and_numbers_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"last_update": 1794795242657}]
    show_rows("table", rows, "nothing")
    text = capsys.readouterr().out.splitlines()[1]
    assert datetime.fromisoformat(text).timestamp() == 1794795242
    show_rows("json", rows, "nothing")
    assert json.loads(capsys.readouterr().out) == rows


def command(error: BaseException) -> click.Command:
    @click.command()
    @asynchronous
    async def fails() -> int:
        raise error

    return fails


def test_what_a_user_can_act_on_is_a_sentence() -> None:
    result = CliRunner().invoke(command(NoRoute("orders", "it does not exist")))
    assert result.exit_code == 1
    assert result.stderr == "Error: no route to topic orders: it does not exist\n"
    result = CliRunner().invoke(command(PermissionError(13, "Permission denied", "/x")))
    assert result.stderr == "Error: Permission denied: /x\n"


def test_the_default_name_server_comes_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # no broker of this directory's own
    result = CliRunner().invoke(command(ConnectError("127.0.0.1:9876", "Connection refused", 0.1)))
    assert "cannot connect to 127.0.0.1:9876: Connection refused; --name-server says" in result.stderr
    assert "`rocketfleet broker start`" in result.stderr
    result = CliRunner().invoke(command(ConnectError("10.0.0.1:9876", "Connection refused", 0.1)))
    assert result.stderr == "Error: cannot connect to 10.0.0.1:9876: Connection refused\n"
    monkeypatch.setattr(output, "local_instead", lambda _asked: "; there is one at 127.0.0.1:7001")
    result = CliRunner().invoke(command(ConnectError("127.0.0.1:9876", "Connection refused", 0.1)))
    assert result.stderr.endswith("Connection refused; there is one at 127.0.0.1:7001\n")


@pytest.mark.parametrize("code", [0, 1, 130])
def test_what_a_command_returns_is_its_exit_code(code: int) -> None:
    @click.command()
    @asynchronous
    async def returns() -> int:
        return code

    assert CliRunner().invoke(returns).exit_code == code


def test_what_the_libraries_log_stays_out_unless_it_is_asked_for() -> None:
    program = (
        "import logging, click\n"
        "from rocketfleet.cli.output import asynchronous\n"
        "@click.command()\n"
        "@asynchronous\n"
        "async def logs() -> int:\n"
        "    logging.getLogger('rocketfleet.client').warning('a heartbeat failed')\n"
        "    return 0\n"
        "logs()\n"
    )
    for variables, said in (
        ({}, ""),
        ({"ROCKETFLEET_LOG": "info"}, "WARNING rocketfleet.client: a heartbeat failed\n"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, **variables}
        )
        assert done.stderr == said


def test_a_bug_is_not_hidden() -> None:
    result = CliRunner().invoke(command(ZeroDivisionError("oops")))
    assert isinstance(result.exception, ZeroDivisionError)
