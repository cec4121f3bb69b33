"""`rocketfleet reset-offsets`: move a resting group to the beginning, the end, a time, or what a file says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from rocketfleet.cli.access.group_access import GroupSource, group_options, open_group
from rocketfleet.cli.moving_offsets import offset_files
from rocketfleet.cli.moving_offsets.offset_moving import HowToMove, move_offsets, read_all, take_snapshot
from rocketfleet.cli.moving_offsets.offset_target import (
    AtTime,
    Earliest,
    FromFile,
    Latest,
    Target,
    TargetError,
    likely_meant,
    parse_target,
)
from rocketfleet.cli.output import OutputFormat, asynchronous, output_option
from rocketfleet.group.at_brokers import GroupAtBrokers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocketfleet.group.at_brokers import Reading
    from rocketfleet.wire.queue import MessageQueue


@click.command(
    "reset-offsets",
    short_help="Move a resting group to latest, earliest, a time, or a snapshot.",
    epilog="\b\nExamples:\n  rocketfleet reset-offsets orders --to -2h --dry-run\n"
    "  rocketfleet reset-offsets orders --to 2026-01-31T08:00:00Z --topic orders\n"
    "  rocketfleet reset-offsets orders --to orders.offsets.json --yes",
)
@click.argument("group", required=False)
@click.option(
    "--to",
    required=True,
    metavar="latest|earliest|TIME|FILE",
    help="The end or the beginning of each queue; the first message at or after a time, as 2026-01-31T08:00:00Z or as "
    "-2h (s, m, h, d, w); or a file of snapshot-offsets.",
)
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic. [default: all subscribed]")
@click.option("--dry-run", is_flag=True, help="Show what would happen, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--force", is_flag=True, help="Take a file of another group or cluster.")
@output_option
@group_options
@asynchronous
async def reset_offsets(
    access: GroupSource,
    group: str | None,
    to: str,
    topics: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    force: bool,
    output: OutputFormat,
) -> int:
    """Move a group's offsets, in all queues of its topics.

    The group has to be at rest: suspended, or without members. Every queue is shown with its offset now, where it would
    go (never outside of the queue) and how many messages are skipped or come again; then you are asked; then the
    offsets are read once more, and if one has changed meanwhile nothing is written. What was written is read back.

    Messages that failed and wait to be tried again are in the group's retry topic, which stays as it is unless named:
    --topic %RETRY%GROUP.
    """
    if to == "-" and not (yes or dry_run):
        raise click.UsageError("standard input is the snapshot, so you cannot be asked: add --yes, or --dry-run")
    try:
        target = parse_target(to, time.time())
        snapshot = offset_files.read(target.path) if isinstance(target, FromFile) else None
    except TargetError as error:
        raise click.UsageError(str(error)) from error
    except offset_files.SnapshotError as error:
        meant = likely_meant(to)
        raise click.UsageError(
            f"--to {to} is neither latest, earliest nor a time, and as a file: {error}"
            + (f". Did you mean --to {meant}?" if meant else ". A time ago is written as -2h, -90m or -1d12h")
        ) from error
    async with open_group(access, group) as opened:
        name = opened.group.group_name
        subscribed = [one.topic for one in opened.group.spec.subscriptions]
        place = GroupAtBrokers(opened.client, name, topics or subscribed)
        _check_topics(topics, [*subscribed, place.retry_topic], name)
        queues = await place.queues(retries=snapshot is not None and not topics)
        reading = await read_all(place, queues)
        if snapshot is not None:
            asked = take_snapshot(snapshot, name, await place.clusters(), force=force)
            if topics:
                asked = {queue: offset for queue, offset in asked.items() if queue.topic in topics}
        else:
            asked = await _asked(place, reading, target)
        return await move_offsets(opened, place, reading, asked, HowToMove(dry_run, yes, output))


def _check_topics(given: Iterable[str], known: list[str], group: str) -> None:
    for topic in given:
        if topic not in known:
            raise click.UsageError(f"group {group} does not subscribe to {topic}; its topics are {', '.join(known)}")


async def _asked(place: GroupAtBrokers, reading: Reading, target: Target) -> dict[MessageQueue, int]:
    offsets = reading.offsets()
    match target:
        case Latest():
            return {queue: at.end for queue, at in offsets.items()}
        case Earliest():
            return {queue: at.first for queue, at in offsets.items()}
        case AtTime(milliseconds):
            return await place.at_time(reading.queues, milliseconds)
        case FromFile():
            raise AssertionError("a file has been read before")
