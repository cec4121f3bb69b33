"""What `rocketfleet run` shows: events as lines, and on a terminal a table below them that follows the members."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.live import Live
    from rich.table import Table

    from rocketfleet.api.consumer_group import ConsumerGroup
    from rocketfleet.controller.actions import Event


def wants_table(*, plain: bool, environment: Mapping[str, str] | None = None) -> bool:
    """Whether a live table makes sense: on a terminal, unless told otherwise."""
    environment = os.environ if environment is None else environment
    return sys.stdout.isatty() and not plain and not environment.get("NO_TTY") and not environment.get("CI")


class Screen:
    """Use as `with`. Without a table, lines are all there is."""

    def __init__(self, *, table: bool) -> None:
        self._table = table
        self._started = time.monotonic()
        self._live: Live | None = None
        self._shown = ""

    def __enter__(self) -> Self:
        if self._table:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, words: str) -> None:
        line = f"{time.monotonic() - self._started:6.1f} s  {words}"
        if self._live is not None:
            self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(line)

    def event(self, group: ConsumerGroup, event: Event) -> None:
        sign = "!" if event.warning else " "
        self.say(f"{sign} {group.metadata.name}: {event.message} [{event.reason.value}]")

    def show(self, groups: Iterable[ConsumerGroup], lags: Mapping[tuple[str, str], int | None]) -> None:
        """The state of all groups; without a table, a line whenever it has changed."""
        groups = sorted(groups, key=lambda group: group.key)
        if self._live is not None:
            self._live.update(table_of(groups, lags), refresh=True)
            return
        text = "\n".join(line_of(group) for group in groups)
        if text != self._shown:
            self._shown = text
            for line in text.splitlines():
                self.say(f"= {line}")


def line_of(group: ConsumerGroup) -> str:
    """A group in one line."""
    status = group.status
    if status is None:
        return f"{group.metadata.name}: starting"
    parts = [f"{group.metadata.name}: {status.ready_summary} ready"]
    if status.queues is not None:
        parts.append(f"queues {status.queues.owned}/{status.queues.total}")
    members = [f"{member.pod or member.client_id} {_share(member.queues)}" for member in status.members or ()]
    if members:
        parts.append(", ".join(members))
    return "  ".join(parts)


def table_of(groups: Iterable[ConsumerGroup], lags: Mapping[tuple[str, str], int | None]) -> Table:
    """All groups, a row a member."""
    from rich.table import Table
    from rich.text import Text

    table = Table("group", "ready", "queues", "lag", "member", "share", "state", box=None, pad_edge=False)
    colours = {"Ready": "green", "Draining": "yellow", "Ending": "yellow", "Failed": "red", "NotRunning": "red"}
    for group in groups:
        status = group.status
        lag = lags.get(group.key)
        first = [
            group.metadata.name,
            "" if status is None else status.ready_summary or "",
            "" if status is None or status.queues is None else f"{status.queues.owned}/{status.queues.total}",
            "?" if lag is None else str(lag),
        ]
        members = [] if status is None else status.members or []
        if not members:
            table.add_row(*first, "", "", "starting" if status is None else "no members")
        for number, member in enumerate(members):
            head = first if number == 0 else ["", "", "", ""]
            state = Text(member.state, style=colours.get(member.state, ""))
            table.add_row(*head, member.pod or member.client_id or "", _share(member.queues), state)
    return table


def _share(queues: int | None) -> str:
    return "?" if queues is None else str(queues)
