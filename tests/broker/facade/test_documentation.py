"""Every program in docs/client.md and in examples/python runs, on a real broker."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.facade.reading import messages_of, wait_for_messages

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "client.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHELL = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))

# What each example leaves in its topic.
LEFT = {
    "accumulate.py": 4000,
    "moved_over.py": 1,
    "send.py": 1 + 100 + 10 + 3 + 2 + 1,
    "send_from_threads.py": 250,
    "send_in_transaction.py": 2,
}


def run(command: list[str], broker: Cluster, directory: Path) -> str:
    done = subprocess.run(
        command,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "ROCKETFLEET_NAME_SERVERS": broker.name_server,
            "ROCKETFLEET_TIMEOUT": "30",
        },
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_is_something_to_run() -> None:
    assert len(PYTHON) == 6
    assert len(SHELL) == 1
    assert {example.name for example in EXAMPLES} == set(LEFT)


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_program_of_the_page_runs_and_sends(number: int, broker: Cluster, topic: str, tmp_path: Path) -> None:
    program = PYTHON[number].replace("127.0.0.1:9876", broker.name_server).replace('"orders"', f'"{topic}"')
    assert broker.name_server in program
    assert topic in program
    assert run([sys.executable, "-c", program], broker, tmp_path).strip()
    wait_for_messages(broker.name_server, topic, lambda found: len(found) >= 1)


def test_the_commands_of_the_page_run(broker: Cluster, make_topic: Callable[..., str], tmp_path: Path) -> None:
    name = make_topic()
    script = re.sub(r"\borders\b", f"{name}-orders", re.sub(r"\bbilling\b", f"{name}-billing", SHELL[0]))
    said = run(["bash", "-euo", "pipefail", "-c", script], broker, tmp_path)
    assert "sent 1,000 messages" in said
    assert f"topic {name}-orders deleted" in said


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs_and_sends_what_it_says(example: Path, broker: Cluster, topic: str, tmp_path: Path) -> None:
    assert run([sys.executable, str(example), topic], broker, tmp_path).strip()
    wait_for_messages(broker.name_server, topic, lambda found: len(found) >= LEFT[example.name])
    assert len(messages_of(broker.name_server, topic)) == LEFT[example.name]


def test_every_option_that_the_page_names_exists() -> None:
    from click.testing import CliRunner

    from rocketfleet.cli.main import main
    from rocketfleet.cli.output import LOG_VARIABLE

    section = PAGE.partition("## From the command line")[2].partition("\n## ")[0]
    helped = "".join(
        CliRunner().invoke(main, [*path, "--help"]).output
        for path in (["send"], ["topic", "create"], ["group", "create"])
    )
    helped += "".join(
        CliRunner().invoke(main, [*path, "--help"]).output
        for path in (["topic", "delete"], ["group", "delete"], ["cluster"])
    )
    helped += LOG_VARIABLE  # for when something is odd; not worth a line in every help
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", section)) | set(re.findall(r"ROCKETFLEET_[A-Z_]+", section))
    assert named
    assert [name for name in sorted(named) if name not in helped] == []
