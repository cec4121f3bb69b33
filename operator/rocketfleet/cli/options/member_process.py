"""Options of a process that is a member of a group, whatever it consumes with: its name, its control port, what it
leaves behind and how it logs. A worker and a Spark driver are told them in the same variables and files.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX = "ROCKETFLEET"
TOKEN_VARIABLE = "ROCKETFLEET_CONTROL_TOKEN"  # noqa: S105 - the variable's name
# Not ROCKETFLEET_PORT: Kubernetes sets that, to an URL, in every pod next to a Service named rocketfleet.
PORT_VARIABLE = "ROCKETFLEET_BIND_PORT"

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PLACE = click.Path(path_type=Path)  # a file or directory that need not be there yet

_OPTIONS = (
    click.option("--client-id", metavar="ID", help="The member's name. [default: POD_NAME@POD_UID, or a unique one]"),
    click.option("--bind", default="127.0.0.1", show_default=True, metavar="ADDRESS",
                 help="Control port: its address. 0.0.0.0 or :: is every address, IPv6 and IPv4."),
    click.option("--port", type=click.IntRange(0, 65535), default=0, envvar=PORT_VARIABLE, allow_from_autoenv=False,
                 help=f"Control port: its number. [a free one] [env: {PORT_VARIABLE}]"),
    click.option("--port-file", type=PLACE, metavar="FILE", help="Write the control port's address here."),
    click.option("--token-file", type=FILE, metavar="FILE",
                 help=f"Control port: its token. [env, instead: {TOKEN_VARIABLE}]"),
    click.option("--last-words", type=PLACE, metavar="FILE", help="Write here, at the end, where each queue stood."),
    click.option("--join-timeout", type=click.FloatRange(min=0), default=60.0, show_default=True, metavar="SECONDS",
                 help="How long to try to join the group before giving up."),
    click.option("--log-format", type=click.Choice(["json", "text"]), default="text", show_default=True),
    click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
                 default="info", show_default=True),
)  # fmt: skip


def member_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all of them."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)
