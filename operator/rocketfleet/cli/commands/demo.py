"""`rocketfleet demo`: shows the promise on a laptop, in about a minute."""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketfleet.cli.running.run_screen import wants_table

if TYPE_CHECKING:
    from rocketfleet.demo.group_view import GroupView
    from rocketfleet.demo.run import Demo


class DemoScreen:
    """Plain lines, and on a terminal one live line below them."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._started = time.monotonic()
        self._shown = ""
        self._last_plain = 0.0

    def say(self, words: str) -> None:
        self.clear()
        click.echo(f"{time.monotonic() - self._started:6.1f} s  {words}")

    def show(self, demo: "Demo", view: "GroupView") -> None:
        going = demo.group is None or demo.group.metadata.deletion_timestamp is not None
        lag = "-" if going else "?" if view.lag is None else str(view.lag)
        parts = [f"{pod} {view.share_of(client_id)}" for pod, client_id in demo.members()]
        line = f"sent {len(demo.sent)}  lag {lag}  {'  '.join(parts)}"
        if self._live:
            self.clear()
            self._shown = line[: _columns() - 1]
            click.echo(self._shown, nl=False)
            sys.stdout.flush()
        elif time.monotonic() - self._last_plain > 1.0:
            self._last_plain = time.monotonic()
            self.say(line)

    def clear(self) -> None:
        """Take the live line away."""
        if self._shown:
            click.echo("\r" + " " * len(self._shown) + "\r", nl=False)
            self._shown = ""


def _columns() -> int:
    try:
        return os.get_terminal_size().columns
    except OSError:
        return 120


@click.command()
@click.option("--plain", is_flag=True, help="Plain lines even on a terminal; so do NO_TTY and CI in the environment.")
def demo(*, plain: bool) -> None:
    """Show a group that grows and shrinks under traffic, on this machine.

    Starts a real RocketMQ on loopback, runs a ConsumerGroup manifest with the operator's planner on the local backend,
    sends traffic, scales 2 → 4 → 1, and compares what was sent with what was handled. The exit code is 1 if anything
    was lost, repeated or out of order.
    """
    from rocketfleet.controller.reconciling.backend import BackendError
    from rocketfleet.demo.run import Demo, DemoFailedError
    from rocketfleet.devbroker.errors import DevBrokerError

    screen = DemoScreen(live=wants_table(plain=plain))
    with tempfile.TemporaryDirectory(prefix="rocketfleet-demo-", ignore_cleanup_errors=True) as directory:
        try:
            verdict = asyncio.run(Demo(Path(directory), screen.say, screen.show).run())
        except (DemoFailedError, DevBrokerError, BackendError) as error:
            screen.say(f"the demo failed: {error}")
            sys.exit(1)
        except KeyboardInterrupt:
            screen.say("stopped")
            sys.exit(130)
    screen.clear()
    click.echo(f"VERDICT {verdict}")
    sys.exit(0 if verdict.good else 1)
