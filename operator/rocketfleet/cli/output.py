"""How commands answer: a table for people, JSON for programs, and one sentence when something is wrong."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import sys
import unicodedata
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import click

from rocketfleet.cli.access.connection import DEFAULT_NAME_SERVER, local_instead

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

OutputFormat = Literal["table", "json"]

GAP = "  "
LOG_VARIABLE = "ROCKETFLEET_LOG"
TIMES = frozenset({"last_update", "consumed_up_to"})
"""Keys whose values are times: milliseconds since the epoch in JSON, readable in a table."""

output_option = click.option(
    "--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)


def width(text: str) -> int:
    """Columns on a terminal: wide East Asian characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def cell(value: object) -> str:
    """One value as a table shows it. Nothing known is a dash; control characters would break table or terminal."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(cell(item) for item in value) or "-"
    return "".join(character if character.isprintable() else "\ufffd" for character in str(value))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Aligned columns, two blanks apart; numbers to the right. Lines end where their text does."""
    texts = [[cell(value) for value in row] for row in rows]
    right = [
        bool(rows)
        and all(row[i] is None or (isinstance(row[i], int | float) and not isinstance(row[i], bool)) for row in rows)
        for i in range(len(headings))
    ]
    widths = [max(width(line[i]) for line in [list(headings), *texts]) for i in range(len(headings))]
    lines = []
    for line in [list(headings), *texts]:
        padded = []
        for i, text in enumerate(line):
            blanks = " " * (widths[i] - width(text))
            padded.append(blanks + text if right[i] else text + blanks)
        lines.append(GAP.join(padded).rstrip())
    return "\n".join(lines)


def details(pairs: Mapping[str, object]) -> str:
    """One thing's facts, a line each."""
    longest = max((width(name) for name in pairs), default=0)
    return "\n".join(f"{name}{' ' * (longest - width(name))}{GAP}{cell(value)}" for name, value in pairs.items())


def show_json(content: object) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(content, indent=2, ensure_ascii=False))


def rows_as_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows with the same keys as a table; a key reads as words in capitals, and a time as a time."""
    headings = list(rows[0])
    titles = [heading.replace("_", " ").upper() for heading in headings]
    return table(titles, [[moment(row[key]) if key in TIMES else row[key] for key in headings] for row in rows])


def show_rows(output: OutputFormat, rows: Sequence[Mapping[str, object]], empty: str) -> None:
    """A list of things; `empty` says on standard error that there is none."""
    if output == "json":
        show_json(list(rows))
    elif rows:
        click.echo(rows_as_table(rows))
    else:
        click.echo(empty, err=True)


def moment(milliseconds: object) -> str | None:
    """A time of the broker's for people, in the time zone of this machine; None if there is none."""
    if not isinstance(milliseconds, int) or milliseconds <= 0:
        return None
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().isoformat(" ", "seconds")


def say_failures(errors: Mapping[str, Exception]) -> None:
    """Name the brokers that did not answer, or did not do it."""
    for name, error in errors.items():
        click.echo(f"{name}: {error}", err=True)


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """What a user can act on becomes one line on standard error and exit code 1. Anything else is a bug and shows."""
    from rocketfleet.client.errors import ConnectError, RocketMQError
    from rocketfleet.devbroker.errors import DevBrokerError
    from rocketfleet.wire.errors import WireError

    try:
        yield
    except ConnectError as error:
        hint = local_instead((error.peer,))
        if not hint and error.peer == DEFAULT_NAME_SERVER:
            hint = "; --name-server says where another one is, `rocketfleet broker start` runs one here"
        raise click.ClickException(f"cannot connect to {error.peer}: {error.reason}{hint}") from error
    except (RocketMQError, WireError, DevBrokerError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        # A reader that went away (`| head`) is click's to handle, quietly.
        if isinstance(error, BrokenPipeError):
            raise
        raise click.ClickException(
            f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        ) from error


def _set_up_log() -> None:
    """What the libraries below log is for programs that run for long; a command says what matters itself."""
    level = os.environ.get(LOG_VARIABLE)
    if level:
        logging.basicConfig(level=level.upper(), stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    else:
        logging.getLogger("rocketfleet").addHandler(logging.NullHandler())


def asynchronous(command: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., None]:
    """Run a coroutine function as a command: what it returns is the exit code, its expected errors are sentences."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        _set_up_log()
        with errors_as_sentences():
            code = asyncio.run(command(*args, **options))
        if code:
            sys.exit(code)

    return run
