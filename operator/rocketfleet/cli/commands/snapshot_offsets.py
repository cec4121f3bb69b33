"""`rocketfleet snapshot-offsets`: keep where a group is, for the day somebody wants it back there."""

from __future__ import annotations

import time
from pathlib import Path

import click

from rocketfleet.base.counting import counted
from rocketfleet.cli.access.group_access import GroupSource, group_options, open_group
from rocketfleet.cli.moving_offsets import offset_files
from rocketfleet.cli.moving_offsets.offset_moving import read_all
from rocketfleet.cli.moving_offsets.offset_target import time_text
from rocketfleet.cli.output import asynchronous
from rocketfleet.group.at_brokers import GroupAtBrokers
from rocketfleet.wire.enums import MessageModel

STANDARD_OUTPUT = frozenset({"-", "json"})
"""-o json is a habit from the other commands."""


@click.command(
    "snapshot-offsets",
    short_help="Write a group's offsets to a file.",
    epilog="\b\nExamples:\n  rocketfleet snapshot-offsets orders -o orders.offsets.json\n"
    "  rocketfleet snapshot-offsets orders > orders.offsets.json",
)
@click.argument("group", required=False)
@click.option(
    "--output",
    "-o",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to; json, as other commands have it, is standard output too. [default: standard output]",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@group_options
@asynchronous
async def snapshot_offsets(access: GroupSource, group: str | None, path: Path | None, force: bool) -> int:
    """Write where a group is in every queue, its retry topic included, as JSON.

    `restore-offsets` takes the group back there. The group may run meanwhile; then each offset is of a slightly
    different moment. The file is written as a whole or not at all, and only if every broker answered.
    """
    async with open_group(access, group) as opened:
        name = opened.group.group_name
        if opened.group.spec.message_model is MessageModel.BROADCASTING:
            raise click.ClickException(
                f"{name} is a broadcasting group: each member keeps its offsets itself, and the broker knows none"
            )
        place = GroupAtBrokers(opened.client, name, (one.topic for one in opened.group.spec.subscriptions))
        moment = time_text(time.time())
        reading = await read_all(place, await place.queues(retries=True))
        snapshot = offset_files.OffsetSnapshot(name, await place.clusters(), moment, reading.committed)
    if path is None or str(path) in STANDARD_OUTPUT:
        click.echo(offset_files.encode(snapshot), nl=False)
    else:
        try:
            offset_files.write(path, snapshot, replace=force)
        except offset_files.SnapshotError as error:
            raise click.ClickException(str(error)) from error
    stored = len(snapshot.stored())
    none = (
        f"; {counted(len(snapshot.offsets) - stored, 'more has', 'more have')} none"
        if stored < len(snapshot.offsets)
        else ""
    )
    click.echo(f"the offsets of {counted(stored, 'queue')} of group {name} at {moment}{none}", err=True)
    return 0
