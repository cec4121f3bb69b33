"""Every command explains itself, and none imports what only another one needs."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from rocketfleet.cli.main import COMMANDS, main

MINE = ["send", "cluster", "topic", "group"]


def commands(name: str) -> list[list[str]]:
    context = click.Context(main)
    command = main.get_command(context, name)
    if isinstance(command, click.Group):
        return [[name, child] for child in command.list_commands(context)]
    return [[name]]


@pytest.mark.parametrize("path", [path for name in MINE for path in commands(name)], ids=" ".join)
def test_help_shows_what_it_does_an_example_and_where_it_connects(path: list[str]) -> None:
    result = CliRunner().invoke(main, [*path, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"rocketfleet {' '.join(path)}" in result.output.partition("Example")[2]
    assert "--name-server" in result.output
    assert "ROCKETFLEET_NAME_SERVERS" in result.output


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("tpoic", "topic"), ("topics", "topic"), ("reset-offset", "reset-offsets"), ("staus", "status")],
)
def test_a_mistyped_command_is_guessed(typed: str, meant: str) -> None:
    result = CliRunner().invoke(main, [typed, "list"])
    assert result.exit_code == 2
    assert f"No such command '{typed}'. Did you mean '{meant}'?" in result.stderr


def test_a_command_that_is_like_no_other_is_not_guessed() -> None:
    result = CliRunner().invoke(main, ["frobnicate"])
    assert result.exit_code == 2
    assert result.stderr.endswith("Error: No such command 'frobnicate'.\n")


def test_kubectl_lists_only_what_is_about_a_cluster() -> None:
    def listed(program: str) -> set[str]:
        output = CliRunner().invoke(main, ["--help"], prog_name=program).output
        return {line.split()[0] for line in output.partition("Commands:\n")[2].splitlines() if line[:3].strip()}

    assert set(COMMANDS) <= listed("rocketfleet")
    told = listed("kubectl rocketfleet")
    assert {"status", "lag", "drain", "restart", "reset-offsets"} <= told
    assert not told & {"broker", "worker", "demo", "run", "send", "topic", "allocate", "operator"}
    # Who knows the command may type it all the same.
    assert CliRunner().invoke(main, ["topic", "--help"], prog_name="kubectl rocketfleet").exit_code == 0


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom rocketfleet.cli.main import main\n"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0\n"
        "print([m for m in sys.modules if m.startswith('rocketfleet.') and not m.startswith('rocketfleet.cli')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


@pytest.mark.parametrize("name", [*MINE, "spark"])  # Spark's image has the base package and Spark, nothing else
def test_a_command_needs_the_base_package_only(name: str) -> None:
    code = (
        "import importlib, sys\n"
        "for absent in ('rich', 'requests', 'cryptography', 'maven_artifact', 'kopf', 'kubernetes', 'pydantic'):\n"
        "    sys.modules[absent] = None\n"
        "from rocketfleet.cli.access.connection import local_broker\n"
        "from pathlib import Path\n"
        "local_broker(Path('/nonexistent'))\n"
        f"importlib.import_module({COMMANDS[name][0].partition(':')[0]!r})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--body", "x", "--file", "/dev/null"], "give one"),
        (["--body", "x", "--batch", "2", "--delay-level", "1"], "leave --batch out"),
        (["--body", "x", "--property", "novalue"], "is not NAME=VALUE"),
        (["--body", "x", "--property", "KEYS=1"], "used by RocketMQ itself"),
        (["--body", "x", "--property", "a=\x01"], "separates properties"),
        (["--body", "x", "--rate", "0"], "--rate"),
        (["--body", "x", "--count", "0"], "--count"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_sent(arguments: list[str], reason: str) -> None:
    result = CliRunner().invoke(main, ["send", "orders", *arguments])
    assert result.exit_code in (1, 2)
    assert reason in result.stderr
    assert "Traceback" not in result.stderr


def test_a_closed_standard_input_is_one_sentence() -> None:
    program = f'"{sys.executable}" -c "from rocketfleet.cli.main import main; main()"'
    command = f"{program} send orders --name-server 127.0.0.1:1 <&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "standard input is closed: give --body or --file" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_body_is_refused() -> None:
    result = CliRunner().invoke(main, ["send", "orders", "--body", ""])
    assert result.exit_code == 1
    assert "empty" in result.stderr


@pytest.mark.parametrize("path", [["send", "t", "--body", "x"], ["topic", "list"], ["group", "list"], ["cluster"]])
def test_no_name_server_is_one_sentence(path: list[str]) -> None:
    result = CliRunner().invoke(main, [*path, "--name-server", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: cannot connect to 127.0.0.1:1")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_name_that_no_topic_can_have_is_one_sentence() -> None:
    result = CliRunner().invoke(main, ["topic", "create", "no such name!", "--name-server", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert "may contain only" in result.stderr
