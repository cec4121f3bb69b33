"""What `rocketfleet run` shows: events as lines, and on a terminal a table below them that follows the members.

Most of what goes wrong is an event. A member that cannot start is not: it is what the condition Ready says, so that is
said too when it turns false, with the member's log beside it. Between two attempts the member looks as if it joined;
it is shown as Failed until it has.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from rich.live import Live
    from rich.table import Table

    from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
    from rocketfleet.api.status import MemberStatus
    from rocketfleet.controller.planning.actions import Event

    Troubles = Mapping[GroupKey, str]

# Conditions that need somebody, and of which no event tells.
_SAID = frozenset({("Ready", "PodTrouble"), ("Ready", "ReconcileFailed"), ("Balanced", "NoQueues"),
                   ("Balanced", "OtherMembers")})  # fmt: skip
_NOT_UP = frozenset({"NotRunning", "Joining", "Pending"})


def wants_table(*, plain: bool, environment: Mapping[str, str] | None = None) -> bool:
    """Whether a live table makes sense: on a terminal, unless told otherwise."""
    environment = os.environ if environment is None else environment
    return sys.stdout.isatty() and not plain and not environment.get("NO_TTY") and not environment.get("CI")


class RunScreen:
    """Use as `with`. Without a table, lines are all there is."""

    def __init__(self, *, table: bool) -> None:
        self._table = table
        self._started = time.monotonic()
        self._live: Live | None = None
        self._shown: dict[GroupKey, str] = {}  # the last line of each group
        self._troubles: dict[GroupKey, str] = {}  # what keeps a group from being ready, as last seen
        self._told: dict[GroupKey, set[str]] = {}  # the clauses of it that were said since it was ready
        self.logs: Callable[[GroupKey], Path] | None = None  # where a group's logs are

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

    def show(self, groups: Iterable[ConsumerGroup], lags: Mapping[GroupKey, int | None]) -> None:
        """The state of all groups; without a table, a line for each that has changed."""
        groups = sorted(groups, key=lambda group: group.key)
        for group in groups:
            self._say_trouble(group)
        if self._live is not None:
            self._live.update(table_of(groups, lags, self._troubles), refresh=True)
            return
        lines = {group.key: line_of(group, self._troubles) for group in groups}
        for key, line in lines.items():
            if line != self._shown.get(key):
                self.say(f"= {line}")
        self._shown = lines

    def _say_trouble(self, group: ConsumerGroup) -> None:
        if is_ready(group):
            self._troubles.pop(group.key, None)
            self._told.pop(group.key, None)
        said = trouble_of(group)
        if said is None:
            return
        self._troubles[group.key] = said
        clauses, told = set(said.split("; ")), self._told.setdefault(group.key, set())
        if clauses <= told:  # members that are tried again fail in turn, now one and now two of them
            return
        told |= clauses
        self.say(f"! {group.metadata.name}: {said}")
        failed = [member.pod for member in _members(group) if has_failed(member, said)]
        if self.logs is not None and failed:
            names = ", ".join(f"{(pod or '').rpartition('-')[2]}.log" for pod in failed)
            self.say(f"!   see {names} in {self.logs(group.key)}")


def is_ready(group: ConsumerGroup) -> bool:
    conditions = (group.status.conditions if group.status is not None else None) or []
    return any((one.type, one.status) == ("Ready", "True") for one in conditions)


def trouble_of(group: ConsumerGroup) -> str | None:
    """What somebody has to do something about, and no event tells."""
    conditions = (group.status.conditions if group.status is not None else None) or []
    said = [one.message for one in conditions if one.status == "False" and (one.type, one.reason) in _SAID]
    return "; ".join(dict.fromkeys(text for text in said if text)) or None


def has_failed(member: MemberStatus, trouble: str) -> bool:
    """Whether a member that is not up is one that the trouble is about."""
    return member.state in _NOT_UP and member.pod is not None and f"{member.pod}: " in trouble


def _members(group: ConsumerGroup) -> list[MemberStatus]:
    return [] if group.status is None else group.status.members or []


def line_of(group: ConsumerGroup, troubles: Troubles | None = None) -> str:
    """A group in one line."""
    status = group.status
    if status is None:
        return f"{group.metadata.name}: starting"
    parts = [f"{group.metadata.name}: {status.ready_summary} ready"]
    if status.queues is not None:
        parts.append(f"queues {status.queues.owned}/{status.queues.total}")
    trouble = (troubles or {}).get(group.key, "")
    members = [
        f"{member.pod or member.client_id} {'Failed' if has_failed(member, trouble) else _share(member.queues)}"
        for member in status.members or ()
    ]
    if members:
        parts.append(", ".join(members))
    return "  ".join(parts)


def table_of(
    groups: Iterable[ConsumerGroup], lags: Mapping[GroupKey, int | None], troubles: Troubles | None = None
) -> Table:
    """All groups, a row per member."""
    from rich.table import Table
    from rich.text import Text

    table = Table("group", "ready", "queues", "lag", "failing", "member", "share", "state", box=None, pad_edge=False)
    colours = {"Ready": "green", "Draining": "yellow", "Ending": "yellow", "Failed": "red", "NotRunning": "red"}
    for group in groups:
        status = group.status
        lag = lags.get(group.key)
        first = [
            group.metadata.name,
            "" if status is None else status.ready_summary or "",
            "" if status is None or status.queues is None else f"{status.queues.owned}/{status.queues.total}",
            "?" if lag is None else str(lag),
            failing_of(group),
        ]
        members = [] if status is None else status.members or []
        if not members:
            table.add_row(*first, "", "", "starting" if status is None else "no members")
        for number, member in enumerate(members):
            head = first if number == 0 else [""] * len(first)
            word = "Failed" if has_failed(member, (troubles or {}).get(group.key, "")) else member.state
            state = Text(word, style=colours.get(word, ""))
            table.add_row(*head, member.pod or member.client_id or "", _share(member.queues), state)
    return table


def failing_of(group: ConsumerGroup) -> str:
    """Handlers that fail, if any do: `3/min`."""
    lag = None if group.status is None else group.status.lag
    return f"{lag.failed_per_minute}/min" if lag is not None and lag.failed_per_minute else ""


def _share(queues: int | None) -> str:
    return "?" if queues is None else str(queues)
