"""What a `rocketfleet run` on this machine wrote down of a group, for commands with `-f`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocketfleet.cli.rows.status_rows import Object

STATE = Path(".rocketfleet/run")
F = TypeVar("F", bound="Callable[..., Any]")


def state_dir_option(purpose: str) -> Callable[[F], F]:
    """`--state-dir`, as `rocketfleet run` has it."""
    return click.option(
        "--state-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=STATE,
        show_default=True,
        help=f"{purpose}: where rocketfleet run keeps its state.",
    )


def written_object(state_dir: Path, namespace: str, name: str) -> Object | None:
    """The object with its status, as the last run left it; None if no run has had it."""
    from rocketfleet.api.consumer_group import GroupKey
    from rocketfleet.controller.local.files import StateDirectory, read_json

    content = read_json(StateDirectory(state_dir).group(GroupKey(namespace, name)).object)
    return None if content is None else {**content["object"], "status": content.get("status") or {}}


def run_is_live(state_dir: Path) -> bool:
    """Whether a `rocketfleet run` works with the directory: else what it wrote is of the past."""
    from rocketfleet.controller.local.files import StateDirectory

    return StateDirectory(state_dir).claimed


def written_failures(state_dir: Path, namespace: str, name: str) -> list[str]:
    """Why members do not run, as far as they have not been ready since, each with its log."""
    from rocketfleet.api.consumer_group import GroupKey
    from rocketfleet.controller.local.files import StateDirectory, read_json

    found = []
    for pod in StateDirectory(state_dir).group(GroupKey(namespace, name)).pods():
        record = read_json(pod.record) or {}
        if record.get("failed"):
            found.append(f"{record.get('name')}: {record['failed']} (log: {pod.log})")
    return found
