"""`rocketfleet restore-offsets`: take a resting group back to where a snapshot says it was."""

from __future__ import annotations

from pathlib import Path

import click

from rocketfleet.cli.access.group_access import GroupSource, group_options, open_group
from rocketfleet.cli.moving_offsets import offset_files
from rocketfleet.cli.moving_offsets.offset_moving import HowToMove, move_offsets, read_all, take_snapshot
from rocketfleet.cli.output import OutputFormat, asynchronous, output_option
from rocketfleet.group.at_brokers import GroupAtBrokers


@click.command(
    "restore-offsets",
    short_help="Take a resting group back to a snapshot of its offsets.",
    epilog="\b\nExamples:\n  rocketfleet restore-offsets orders orders.offsets.json --dry-run\n"
    "  rocketfleet restore-offsets orders - --yes < orders.offsets.json",
)
@click.argument("group", required=False)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--dry-run", is_flag=True, help="Show what would happen, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--force", is_flag=True, help="Take a snapshot of another group or cluster.")
@output_option
@group_options
@asynchronous
async def restore_offsets(
    access: GroupSource,
    group: str | None,
    file: Path | None,
    dry_run: bool,
    yes: bool,
    force: bool,
    output: OutputFormat,
) -> int:
    """Move a group's offsets to those in a file of snapshot-offsets; - is standard input, and then --yes is needed.

    Goes about it as reset-offsets does: the group has to be at rest, everything is shown before, checked again and read
    back. Queues that have come since the snapshot, or had no offset then, stay as they are; queues that are gone are
    named; an offset outside of its queue becomes the nearest within.

    GROUP may be left out with -f and a manifest that has only one.
    """
    if file is None:  # the only word is the file, if a manifest says of which group
        if group is None or access.manifest is None:
            raise click.UsageError("give the group and the file: restore-offsets GROUP FILE")
        file, group = Path(group), None
    if str(file) == "-" and not (yes or dry_run):
        raise click.UsageError("standard input is the snapshot, so you cannot be asked: add --yes, or --dry-run")
    try:
        snapshot = offset_files.read(file)
    except offset_files.SnapshotError as error:
        raise click.ClickException(str(error)) from error
    async with open_group(access, group) as opened:
        name = opened.group.group_name
        place = GroupAtBrokers(opened.client, name, (one.topic for one in opened.group.spec.subscriptions))
        reading = await read_all(place, await place.queues(retries=True))
        asked = take_snapshot(snapshot, name, await place.clusters(), force=force)
        return await move_offsets(opened, place, reading, asked, HowToMove(dry_run, yes, output))
