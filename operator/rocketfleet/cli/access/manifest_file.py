"""A ConsumerGroup out of a manifest file (`-f`), with the Secrets beside it, for commands run without a cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from rocketfleet.cli.access.kube_access import MISSING_EXTRA

if TYPE_CHECKING:
    from pathlib import Path

    from rocketfleet.api.consumer_group import ConsumerGroup

Secrets = dict[str, dict[str, bytes]]


def read_group(content: Any, where: str) -> ConsumerGroup:
    """An object of a cluster as a model. Its status is left out, and rules that it breaks do not matter here; neither
    do fields that this version does not know.
    """
    try:
        from pydantic import ValidationError

        from rocketfleet.api.consumer_group import ConsumerGroup
        from rocketfleet.api.other_versions import known_part
    except ModuleNotFoundError as error:
        raise click.ClickException(MISSING_EXTRA) from error
    try:
        return ConsumerGroup.model_validate(known_part({**content, "status": None})[0])
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5])
        raise click.ClickException(f"{where} is not as this version of Rocketfleet has it: {problems}") from error


def read_file(path: Path, name: str | None) -> tuple[ConsumerGroup, Secrets]:
    """The ConsumerGroup of this name in a file, and the Secrets of its namespace. Without a name, the only one there
    is. - is standard input.
    """
    try:
        from rocketfleet.api.checking import ManifestError
        from rocketfleet.api.manifest import read_documents
    except ModuleNotFoundError as error:
        raise click.ClickException(MISSING_EXTRA) from error
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
        documents = read_documents(text, str(path))
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{path} is not UTF-8 text") from error
    except ManifestError as error:
        raise click.ClickException(str(error)) from error
    groups = {group.metadata.name: group for group in documents.groups}
    known = ", ".join(sorted(groups))
    if name is None and len(groups) != 1:
        raise click.UsageError(f"say which group: {path} has {len(groups)} ({known})")
    group = documents.groups[0] if name is None else groups.get(name)
    if group is None:
        raise click.ClickException(f"{path} has no ConsumerGroup {name}; it has: {known}")
    namespace = group.metadata.namespace
    return group, {secret: content for (place, secret), content in documents.secrets.items() if place == namespace}
