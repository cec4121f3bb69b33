"""The `rocketfleet` command: a table of commands, each imported only when it is called.

A worker pod runs `rocketfleet worker` on the base package alone, so a command must not import what another one needs.
"""

import importlib
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from rocketfleet import __version__
from rocketfleet.cli.access.in_cluster_command import remember_arguments

# name → (module:attribute, the line shown by --help)
COMMANDS: dict[str, tuple[str, str]] = {
    "allocate": (
        "rocketfleet.cli.commands.allocate:allocate",
        "Ask an allocation strategy which queues a member gets.",
    ),
    "broker": (
        "rocketfleet.cli.commands.broker:broker",
        "Run a real RocketMQ on this machine for development and tests.",
    ),
    "cluster": ("rocketfleet.cli.commands.cluster:cluster", "Show the brokers of a cluster."),
    "crds": ("rocketfleet.cli.commands.crds:crds", "Print the custom resource definition for Kubernetes."),
    "demo": (
        "rocketfleet.cli.commands.demo:demo",
        "Show a group that grows and shrinks under traffic, on this machine.",
    ),
    "drain": ("rocketfleet.cli.commands.drain:drain", "Drain one pod of a group, and have it replaced."),
    "group": ("rocketfleet.cli.commands.group:group", "List, create, inspect and delete consumer groups."),
    "lag": ("rocketfleet.cli.commands.lag:lag", "Show a group's lag in every queue."),
    "members": ("rocketfleet.cli.commands.members:members", "Show the members of a group."),
    "operator": (
        "rocketfleet.cli.commands.operator:operator",
        "Look after the ConsumerGroups of a Kubernetes cluster.",
    ),
    "rebalance": ("rocketfleet.cli.commands.rebalance:rebalance", "Make a group rebalance."),
    "reset-offsets": (
        "rocketfleet.cli.commands.reset_offsets:reset_offsets",
        "Move a resting group to latest, earliest, a time, or a snapshot.",
    ),
    "restore-offsets": (
        "rocketfleet.cli.commands.restore_offsets:restore_offsets",
        "Take a resting group back to a snapshot of its offsets.",
    ),
    "restart": ("rocketfleet.cli.commands.rollout:restart", "Replace a group's pods one by one, each drained."),
    "resume": ("rocketfleet.cli.commands.rollout:resume", "Start the members of a suspended group again."),
    "run": ("rocketfleet.cli.commands.run:run", "Run ConsumerGroup manifests on this machine, without a cluster."),
    "send": ("rocketfleet.cli.commands.send:send", "Send messages to a topic."),
    "snapshot-offsets": (
        "rocketfleet.cli.commands.snapshot_offsets:snapshot_offsets",
        "Write a group's offsets to a file.",
    ),
    "spark": ("rocketfleet.cli.commands.spark:spark", "Run pipelines on Spark, with the data source rocketmq."),
    "status": ("rocketfleet.cli.commands.status:status", "Show the status of groups."),
    "suspend": ("rocketfleet.cli.commands.rollout:suspend", "Drain all members of a group and keep it at rest."),
    "topic": ("rocketfleet.cli.commands.topic:topic", "List, create, inspect and delete topics."),
    "worker": ("rocketfleet.cli.commands.worker:worker", "Run a member of a consumer group with a handler of yours."),
}

KUBECTL = "kubectl rocketfleet"
# What is about a cluster and its objects. The others can be called there too, but nobody looks for them there.
IN_KUBECTL = frozenset({
    "crds", "drain", "lag", "members", "rebalance", "reset-offsets", "restart", "restore-offsets", "resume",
    "snapshot-offsets", "status", "suspend",
})  # fmt: skip


class LazyGroup(click.Group):
    """A click group that imports a command when it is called, not when the program starts."""

    def main(self, *args: Any, **extra: Any) -> Any:
        # kubectl finds plugins by their file's name, but people type it as two words.
        if extra.get("prog_name") is None and Path(sys.argv[0]).stem == "kubectl-rocketfleet":
            extra["prog_name"] = KUBECTL
        given = args[0] if args else extra.get("args")
        if (sys.argv[1:] if given is None else list(given))[:1] == ["worker"]:
            from rocketfleet.worker import stop_signals

            # What it imports else takes half a second, and several where processors are scarce.
            with stop_signals.taken_early():
                return super().main(*args, **extra)
        return super().main(*args, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        remember_arguments(ctx, args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(IN_KUBECTL if ctx.info_name == KUBECTL else COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # click looks for what was meant among commands that are imported already: here, none.
            if args[0] in COMMANDS or args[0].startswith("-"):
                raise
            meant = "".join(f" Did you mean '{name}'?" for name in get_close_matches(args[0], COMMANDS, n=1))
            raise click.UsageError(f"No such command '{args[0]}'.{meant}", ctx) from error

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module_name, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module_name), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The default would import every command just to read its help line.
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])
        if ctx.info_name == KUBECTL:
            formatter.write_paragraph()
            formatter.write_text("`rocketfleet --help` lists the commands that are not about Kubernetes too.")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """RocketMQ consumer groups on Kubernetes, and the tools around them."""


if __name__ == "__main__":
    main()
