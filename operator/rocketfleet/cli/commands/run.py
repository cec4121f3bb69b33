"""`rocketfleet run`: manifests on this machine, with no cluster: real workers, the same planner, drain and status."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketfleet.base.counting import counted
from rocketfleet.cli.access.connection import local_instead
from rocketfleet.cli.running.run_screen import RunScreen, wants_table
from rocketfleet.cli.running.run_state import STATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.api.consumer_group import ConsumerGroup
    from rocketfleet.controller.local.manifests import ManifestFiles
    from rocketfleet.controller.local.run import LocalRun
    from rocketfleet.controller.planning.actions import Event

FILE_SECONDS = 0.5
SHOW_SECONDS = 0.5
WRONG_MANIFEST, UNSAFE, CUT_SHORT, LEFT = 2, 1, 5, 130  # 5 is the worker's, for the same


@click.command()
@click.option(
    "--file",
    "-f",
    "files",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    required=True,
    metavar="FILE",
    help="ConsumerGroup manifests: a file, or a directory of them. Repeatable.",
)
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=STATE,
    show_default=True,
    help="Where members, their logs and the objects' state are kept.",
)
@click.option("--plain", is_flag=True, help="Plain lines even on a terminal; so do NO_TTY and CI in the environment.")
@click.option("--verbose", "-v", is_flag=True, help="Also log warnings and informational messages.")
def run(*, files: tuple[Path, ...], state_dir: Path, plain: bool, verbose: bool) -> None:
    """Run ConsumerGroup manifests on this machine, with real workers as processes.

    Edits of the files are followed: what is changed is rolled out, what is removed is drained and deleted. Ctrl-C
    drains all members and ends; a second one no longer waits for their handlers. Should this command be killed, the
    members go on, and the next `rocketfleet run` on the same --state-dir finds them again.

    Exit codes: 0 all members drained, 1 not all of their offsets are safe, 2 the manifests are wrong, 5 drained but
    handlers were cut short: their messages will be delivered again.
    """
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    with RunScreen(table=wants_table(plain=plain)) as screen:
        code = asyncio.run(_run(files, state_dir, screen))
    sys.exit(code)


async def _run(paths: Sequence[Path], state_dir: Path, screen: RunScreen) -> int:
    from rocketfleet.api.checking import ManifestError
    from rocketfleet.controller.local.manifests import ManifestFiles
    from rocketfleet.controller.local.run import LocalRun
    from rocketfleet.controller.reconciling.backend import BackendError

    files = ManifestFiles(paths)
    files.changed()
    try:
        wish = files.read()
        async with LocalRun(state_dir, partial(_tell, screen)) as local:
            screen.logs = local.logs
            for _, name in local.left_over(wish):
                screen.say(f"{name} ran here before and is in no manifest now: it is drained and removed")
            local.apply(wish)
            if not wish.groups:
                screen.say(f"no ConsumerGroup in {', '.join(map(str, paths))} yet: waiting for one")
            for key in wish.groups:
                screen.say(f"logs of {key[1]}: {local.logs(key)}")
            return await _until_stopped(local, files, screen)
    except ManifestError as error:
        for line in error.problems:
            click.echo(f"Error: {line}", err=True)
        return WRONG_MANIFEST
    except BackendError as error:
        click.echo(f"Error: {error}", err=True)
        return UNSAFE


def _tell(screen: RunScreen, group: ConsumerGroup, event: Event) -> None:
    from rocketfleet.controller.planning.actions import EventReason

    screen.event(group, event)
    if event.reason is EventReason.UNREACHABLE:
        advice = local_instead(group.spec.cluster.name_servers).removeprefix("; ")
        if advice:
            screen.say(f"!   {advice}")


async def _until_stopped(local: LocalRun, files: ManifestFiles, screen: RunScreen) -> int:
    loop = asyncio.get_running_loop()
    stop, leave = asyncio.Event(), asyncio.Event()

    def signalled() -> None:
        if not stop.is_set():
            screen.say("draining all members; press Ctrl-C again to stop waiting for handlers")
            stop.set()
        elif not local.hurried:
            screen.say("no longer waiting for handlers; press Ctrl-C again to leave the members as they are")
            local.hurry()
        else:
            leave.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled)
    beside = [
        loop.create_task(_follow(local, files, screen)),
        loop.create_task(_show(local, screen)),
    ]
    try:
        await stop.wait()
        beside[0].cancel()
        draining, leaving = loop.create_task(local.stop()), loop.create_task(leave.wait())
        await asyncio.wait({draining, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not draining.done():
            draining.cancel()
            screen.say("left; the next rocketfleet run finds the members again")
            return LEFT
        code, words = ending(safe=draining.result(), abandoned=local.abandoned)
        screen.say(words)
        return code
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


def ending(*, safe: bool, abandoned: int) -> tuple[int, str]:
    """The exit code and the last line."""
    rest = f"; {counted(abandoned)} did not finish and will be delivered again" if abandoned else ""
    if not safe:
        return UNSAFE, f"not all members' offsets are safe{rest}"
    return (CUT_SHORT if abandoned else 0), f"all members are drained{rest}"


async def _follow(local: LocalRun, files: ManifestFiles, screen: RunScreen) -> None:
    """Take over edits. One that is broken is said, and what was there goes on."""
    from rocketfleet.api.checking import ManifestError

    while True:
        await asyncio.sleep(FILE_SECONDS)
        if not files.changed():
            continue
        try:
            local.apply(files.read())
        except ManifestError as error:
            screen.say("! the manifests are wrong, what ran before goes on:")
            for line in error.problems:
                screen.say(f"!   {line}")
        else:
            screen.say("the manifests were read again")


async def _show(local: LocalRun, screen: RunScreen) -> None:
    while True:
        keys = local.backend.objects.keys
        held = (local.backend.objects.get(key) for key in keys)
        screen.show([one.group for one in held if one is not None], {key: local.lag(key) for key in keys})
        await asyncio.sleep(SHOW_SECONDS)
