"""Moving a group's offsets, as `reset-offsets` and `restore-offsets` do it: preview, question, check, write, read back.

What may happen and what would is decided in `group/offset_change.py`; here it is asked, shown and done.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from rocketfleet.base.counting import counted
from rocketfleet.cli.output import OutputFormat, show_json, table
from rocketfleet.client.errors import RocketMQError
from rocketfleet.group.offset_change import OffsetChange, drifted, plan_change, unconfirmed, why_not
from rocketfleet.wire.enums import MessageModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocketfleet.cli.access.group_access import OpenGroup
    from rocketfleet.cli.moving_offsets.offset_files import OffsetSnapshot
    from rocketfleet.group.at_brokers import GroupAtBrokers, Reading
    from rocketfleet.wire.queue import MessageQueue

MOST_NAMED = 10  # queues named in a message, before it says how many more there are


@dataclass(frozen=True)
class HowToMove:
    """What the options say."""

    dry_run: bool
    yes: bool
    output: OutputFormat


async def read_all(place: GroupAtBrokers, queues: Iterable[MessageQueue]) -> Reading:
    """The offsets of all these queues; half of them are no ground for a change."""
    reading = await place.read(tuple(queues))
    missing = [queue for queue in reading.queues if queue not in reading.offsets()]
    if missing:
        reasons = (
            "; ".join(f"{name}: {error}" for name, error in reading.errors.items()) or "the broker has no such queue"
        )
        raise click.ClickException(f"the offsets of {_named(missing)} are not known ({reasons}): nothing was changed")
    return reading


async def move_offsets(
    opened: OpenGroup, place: GroupAtBrokers, reading: Reading, asked: Mapping[MessageQueue, int], how: HowToMove
) -> int:
    """The whole of it; what it returns is the command's exit code."""
    refusal = await _refusal(opened, place)
    if refusal is not None and not how.dry_run:
        raise click.ClickException(refusal)
    change = plan_change(reading.offsets(), asked)
    if how.output == "table":
        _show_preview(place.group, change)
    if opened.group.spec.engine.value == "Spark":
        click.echo(
            "a Spark group goes on by its checkpoint, and writes that back over these offsets: give spark.checkpoint "
            "another place before the group runs again",
            err=True,
        )
    if how.dry_run or not change.to_write:
        if refusal is not None:
            click.echo(f"now it would be refused: {refusal}", err=True)
        _conclude(how, place.group, change, written=False)
        return 0
    if not how.yes:
        click.confirm(f"Write {counted(len(change.to_write), 'offset')} of group {place.group}?", abort=True, err=True)
    await _check_again(opened, place, change)
    await _write(place, change)
    await _tell_operator(opened)
    _conclude(how, place.group, change, written=True)
    latecomers = await place.members()
    if latecomers:
        click.echo(
            f"{counted(len(latecomers), 'member')} joined while offsets were written ({_named(sorted(latecomers))}) "
            "and may have begun at the old ones: suspend the group and do it again",
            err=True,
        )
        return 1
    return 0


async def _refusal(opened: OpenGroup, place: GroupAtBrokers) -> str | None:
    """Why the group must not be moved, and what to do about it."""
    spec, (namespace, name) = opened.group.spec, opened.group.key
    broadcasting = spec.message_model is MessageModel.BROADCASTING
    members = frozenset[str]() if broadcasting else await place.members()
    reason = why_not(place.group, members, broadcasting=broadcasting)
    if reason is None or broadcasting:
        return reason
    if opened.kube is None:
        return f"{reason}. Stop them first"
    if spec.suspend:
        return f"{reason}. The group is suspended and they are on their way out: try again when they are gone"
    return (
        f"{reason}. Suspend the group first, and resume it afterwards:\n"
        f"  rocketfleet suspend {name} -n {namespace} --wait"
    )


async def _check_again(opened: OpenGroup, place: GroupAtBrokers, change: OffsetChange) -> None:
    """Between preview and yes, minutes may have passed."""
    refusal = await _refusal(opened, place)
    if refusal is not None:
        raise click.ClickException(f"nothing was changed: meanwhile {refusal}")
    mismatches = drifted(change, await place.committed([move.queue for move in change.moves]))
    if mismatches:
        raise click.ClickException(
            "nothing was changed: since the preview, somebody else has moved the group "
            f"({_named(mismatches)}). Look again, and start anew"
        )


async def _write(place: GroupAtBrokers, change: OffsetChange) -> None:
    failure: RocketMQError | None = None
    try:
        await place.write({move.queue: move.to for move in change.to_write})
    except RocketMQError as error:
        failure = error
    try:
        wrong = unconfirmed(change, await place.committed([move.queue for move in change.to_write]))
    except RocketMQError as error:
        raise click.ClickException(
            f"offsets were written, but could not be read back ({error}): run the command again to see where they are"
        ) from error
    if wrong:
        done = len(change.to_write) - len(wrong)
        because = f": {failure}" if failure is not None else ""
        raise click.ClickException(
            f"{done} of {len(change.to_write)} offsets were written; not moved are {_named(wrong)}{because}. "
            "Run the command again to move the rest"
        ) from failure


async def _tell_operator(opened: OpenGroup) -> None:
    """Note at the object that it was on purpose, or the operator would call the group rewound."""
    if opened.kube is None:
        return
    from rocketfleet.api.names import OFFSETS_MOVED

    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    try:
        await opened.kube.annotate_group(opened.group.key[1], {OFFSETS_MOVED: moment})
    except click.ClickException as error:
        click.echo(f"the operator could not be told, and may call the group rewound: {error.message}", err=True)


def take_snapshot(
    snapshot: OffsetSnapshot, group: str, clusters: tuple[str, ...], *, force: bool
) -> dict[MessageQueue, int]:
    """The offsets of a snapshot, if it is of this group and cluster, or that is not to matter."""
    if snapshot.group != group and not force:
        raise click.ClickException(
            f"the snapshot is of group {snapshot.group}, not of {group}: add --force if it is meant for this one"
        )
    if set(snapshot.clusters) != set(clusters) and not force:
        raise click.ClickException(
            f"the snapshot is of cluster {', '.join(snapshot.clusters) or 'unknown'}, and the group is on "
            f"{', '.join(clusters)}, where the same offsets are other messages: add --force to use it all the same"
        )
    return snapshot.stored()


# -- showing ----------------------------------------------------------------------------------------------------------


def _show_preview(group: str, change: OffsetChange) -> None:
    if change.moves:
        rows = [
            [move.queue.topic, move.queue.broker, move.queue.queue_id, "none" if move.now is None else move.now,
             move.to, move.messages, _note(move.clamped, move.asked, move.messages)]
            for move in change.moves
        ]  # fmt: skip
        click.echo(table(["TOPIC", "BROKER", "QUEUE", "NOW", "TO", "MESSAGES", "NOTE"], rows))
    else:
        click.echo(f"there is no queue of group {group} to move")
    parts = []
    if change.skipped:
        parts.append(f"{counted(change.skipped, 'message')} would be skipped")
    if change.repeated:
        parts.append(f"{counted(change.repeated, 'message')} would come again")
    if parts:
        click.echo("\n" + ", ".join(parts))
    if change.left:
        click.echo(f"left as they are, for nothing was asked of them: {_named(change.left)}", err=True)
    if change.absent:
        click.echo(f"asked for, but not there now: {_named(change.absent)}", err=True)


def _note(clamped: bool, asked: int, messages: int | None) -> str:
    """What is worth saying about a row."""
    if clamped:
        return f"{asked} is outside the queue"
    if messages is None:
        return "no offset yet"
    if messages == 0:
        return ""
    return "skipped" if messages > 0 else "again"


def _conclude(how: HowToMove, group: str, change: OffsetChange, *, written: bool) -> None:
    if how.output == "json":
        show_json(
            {
                "group": group,
                "dry_run": how.dry_run,
                "written": len(change.to_write) if written else 0,
                "skipped": change.skipped,
                "repeated": change.repeated,
                "queues": [
                    {**_queue(move.queue), "now": move.now, "to": move.to, "messages": move.messages,
                     "clamped": move.clamped}
                    for move in change.moves
                ],
                "left": [_queue(queue) for queue in change.left],
                "absent": [_queue(queue) for queue in change.absent],
            }
        )  # fmt: skip
    elif written:
        click.echo(f"{counted(len(change.to_write), 'offset')} of group {group} written and read back")
    elif how.dry_run:
        click.echo("dry run: nothing was changed")
    else:
        click.echo("every offset is there already: nothing was changed")


def _queue(queue: MessageQueue) -> dict[str, Any]:
    return {"topic": queue.topic, "broker": queue.broker, "queue": queue.queue_id}


def _named(things: Iterable[object]) -> str:
    named = [str(thing) for thing in things]
    more = len(named) - MOST_NAMED
    return ", ".join(named[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
