"""`python -m tests.faults`: random faults against a real group, from a seed, with a verdict. `make faults` runs it."""

import asyncio
import contextlib
import itertools
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import click
from tests.faults import network
from tests.faults.brokers import Brokers
from tests.faults.faults_by_kind import FAULTS
from tests.faults.modes import UnknownModeError, read_mode, words
from tests.faults.run import FaultRun, RunFailedError, RunOptions
from tests.faults.schedule import RULES, FaultFamily, FaultSchedule, draw_schedule
from tests.faults.verdict import RunVerdict

from rocketfleet.base.counting import counted
from rocketfleet.devbroker.errors import DevBrokerError

FAMILIES = tuple(family for family in FaultFamily if any(RULES[kind].family is family for kind in FAULTS))
FOUND, FAILED, INTERRUPTED = 1, 2, 130


@click.command(context_settings={"max_content_width": 110})
@click.option("--seed", type=int, help="The first seed; later runs count on from it. [a random one]")
@click.option("--runs", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds to play.")
@click.option("--mode", "modes", multiple=True, metavar="WORDS",
              help=f"What the group is like: words separated by commas out of {', '.join(words())}. Repeatable: each "
              "seed is played in each mode. [Concurrent and Orderly in turn]")  # fmt: skip
@click.option("--duration", type=click.FloatRange(min=5), default=60.0, show_default=True, metavar="SECONDS",
              help="How long faults come; setting up and settling come on top.")  # fmt: skip
@click.option("--only", "only", multiple=True, type=click.Choice([family.value for family in FAMILIES]),
              help="Draw only faults of this family. Repeatable. [all that this machine can make]")  # fmt: skip
@click.option("--schedule", "schedule_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              metavar="FILE", help="Replay a schedule that was printed or kept; no seed is drawn.")  # fmt: skip
@click.option("--package", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Take the members' rocketfleet from this directory: the operator/ of another checkout.")  # fmt: skip
@click.option("--settle", type=click.FloatRange(min=1), default=180.0, show_default=True, metavar="SECONDS",
              help="How long the group may take, after the last fault, to handle and commit everything.")  # fmt: skip
@click.option("--directory", type=click.Path(path_type=Path), metavar="DIR",
              help="Where histories and logs are written. [a new temporary one]")  # fmt: skip
@click.option("--keep", is_flag=True, help="Keep the history when the verdict is good, too.")
@click.option("--show", is_flag=True, help="Print the schedule as JSON and do nothing else.")
def main(
    *,
    seed: int | None,
    runs: int,
    modes: tuple[str, ...],
    duration: float,
    only: tuple[str, ...],
    schedule_file: Path | None,
    package: Path | None,
    settle: float,
    directory: Path | None,
    keep: bool,
    show: bool,
) -> None:
    """Play random faults against a consumer group of real processes on real brokers, and judge what happened.

    Everything follows from the seed: which faults, when, against whom. A verdict is bad if something is found that
    docs/guarantees.md promises not to happen; then the schedule and the history are kept, and the directory is named.

    \b
    python -m tests.faults                                   one run, a random seed
    python -m tests.faults --seed 7 --runs 5 --mode Orderly  seeds 7 to 11
    python -m tests.faults --schedule FILE                   the same faults again

    Exit codes: 0 nothing found, 1 something found, 2 the harness itself failed, 130 interrupted.
    """
    try:
        given = [read_mode(mode) for mode in modes] or [read_mode("Concurrent"), read_mode("Orderly")]
    except UnknownModeError as error:
        raise click.BadParameter(str(error)) from error
    wanted = [FaultFamily(family) for family in only] or list(FAMILIES)
    if package is not None and FaultFamily.MANIFEST in wanted:
        click.echo("faults of the family manifest are left out: --package is about members only", err=True)
        wanted.remove(FaultFamily.MANIFEST)
    families = _playable(wanted, show=show)
    if schedule_file is not None:
        schedules = [_replayed(schedule_file, families)] * runs
    else:
        first = random.SystemRandom().randrange(1_000_000) if seed is None else seed
        # Modes that were named are all played with each seed; else they take turns.
        chosen = [given if modes else [given[turn % len(given)]] for turn in range(runs)]
        schedules = [
            draw_schedule(first + turn, mode, duration, families) for turn in range(runs) for mode in chosen[turn]
        ]
    if show:
        for schedule in schedules:
            click.echo(schedule.to_json(), nl=False)
        return
    place = directory or Path(tempfile.mkdtemp(prefix="rocketfleet-faults-"))
    place.mkdir(parents=True, exist_ok=True)
    options = RunOptions(package, keep, settle)
    try:
        verdicts = asyncio.run(_play_all(schedules, place, options))
    except (RunFailedError, DevBrokerError) as error:
        click.echo(f"the harness failed: {error}\nwhat it has written is in {place}", err=True)
        sys.exit(FAILED)
    except (KeyboardInterrupt, asyncio.CancelledError):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    bad = [verdict for verdict in verdicts if verdict.findings]
    with contextlib.suppress(OSError):
        place.rmdir()
    if len(verdicts) > 1:
        click.echo(f"{counted(len(verdicts), 'run')}, {len(bad)} with findings")
    sys.exit(FOUND if bad else 0)


def _playable(families: list[FaultFamily], *, show: bool) -> list[FaultFamily]:
    """The families that this machine can make; the others are named."""
    if show:
        return families
    able: dict[FaultFamily, Callable[[], str | None]] = {
        FaultFamily.NETWORK: network.enter_own_namespace,
    }
    reasons = {family: reason for family in families if (reason := able.get(family, lambda: None)()) is not None}
    for family, reason in reasons.items():
        click.echo(f"faults of the family {family} are left out: {reason}", err=True)
    return [family for family in families if family not in reasons]


def _replayed(path: Path, families: list[FaultFamily]) -> FaultSchedule:
    schedule = FaultSchedule.from_json(path.read_text())
    faults = tuple(fault for fault in schedule.faults if RULES[fault.kind].family in families and fault.kind in FAULTS)
    left_out = len(schedule.faults) - len(faults)
    if left_out:
        click.echo(f"{counted(left_out, 'fault')} of the schedule cannot be made here and are left out", err=True)
    return replace(schedule, faults=faults)


async def _play_all(schedules: list[FaultSchedule], place: Path, options: RunOptions) -> list[RunVerdict]:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    started, verdicts = time.monotonic(), list[RunVerdict]()

    def say(words: str) -> None:
        click.echo(f"{time.monotonic() - started:7.1f}  {words}")

    brokers = Brokers(place / "brokers")
    try:
        for schedule in schedules:
            directory = _new_directory(place, f"seed-{schedule.seed}-{str(schedule.mode).replace(',', '-')}")
            click.echo(schedule.to_json(), nl=False)
            with _history_is_named(directory):
                verdict = await FaultRun(schedule, brokers, directory, say, options).play()
            click.echo(str(verdict))
            if verdict.findings:
                click.echo(f"history, logs and schedule: {directory}")
            verdicts.append(verdict)
    finally:
        brokers.close()
        with contextlib.suppress(OSError):
            shutil.rmtree(place / "brokers", ignore_errors=True)
    return verdicts


def _new_directory(place: Path, name: str) -> Path:
    """One that is not there yet."""
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(path for one in names if not (path := place / one).exists())


@contextlib.contextmanager
def _history_is_named(directory: Path) -> Iterator[None]:
    try:
        yield
    except RunFailedError:
        click.echo(f"what was written until then: {directory}", err=True)
        raise


if __name__ == "__main__":
    main()
