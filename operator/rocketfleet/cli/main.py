"""The `rocketfleet` command: a table of commands, each imported only when it is called.

A worker pod runs `rocketfleet worker` on the base package alone, so a command must not import what another one needs.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

import click

# name → (module:attribute, the line shown by --help)
COMMANDS: dict[str, tuple[str, str]] = {
    "allocate": ("rocketfleet.cli.allocate:allocate", "Ask an allocation strategy which queues a member gets."),
    "broker": ("rocketfleet.cli.broker:broker", "Run a real RocketMQ on this machine for development and tests."),
    "cluster": ("rocketfleet.cli.cluster:cluster", "Show the brokers of a cluster."),
    "crds": ("rocketfleet.cli.crds:crds", "Print the custom resource definition for Kubernetes."),
    "demo": ("rocketfleet.cli.demo:demo", "Show a group that grows and shrinks under traffic, on this machine."),
    "drain": ("rocketfleet.cli.drain:drain", "Drain one pod of a group, and have it replaced."),
    "group": ("rocketfleet.cli.group:group", "List, create, inspect and delete consumer groups."),
    "lag": ("rocketfleet.cli.lag:lag", "Show a group's lag in every queue."),
    "members": ("rocketfleet.cli.members:members", "Show the members of a group."),
    "operator": ("rocketfleet.cli.operator:operator", "Look after the ConsumerGroups of a Kubernetes cluster."),
    "rebalance": ("rocketfleet.cli.rebalance:rebalance", "Have a group share out its queues anew."),
    "reset-offsets": (
        "rocketfleet.cli.reset_offsets:reset_offsets",
        "Move a resting group to latest, earliest, a time, or a snapshot.",
    ),
    "restore-offsets": (
        "rocketfleet.cli.restore_offsets:restore_offsets",
        "Take a resting group back to a snapshot of its offsets.",
    ),
    "run": ("rocketfleet.cli.run:run", "Run ConsumerGroup manifests on this machine, without a cluster."),
    "send": ("rocketfleet.cli.send:send", "Send messages to a topic."),
    "snapshot-offsets": ("rocketfleet.cli.snapshot_offsets:snapshot_offsets", "Write a group's offsets to a file."),
    "spark": ("rocketfleet.cli.spark:spark", "Run pipelines on Spark, with the data source rocketmq."),
    "status": ("rocketfleet.cli.status:status", "Show how groups are."),
    "topic": ("rocketfleet.cli.topic:topic", "List, create, inspect and delete topics."),
    "worker": ("rocketfleet.cli.worker:worker", "Run a member of a consumer group with a handler of yours."),
}


class LazyGroup(click.Group):
    """A click group that imports a command when it is called, not when the program starts."""

    def main(self, *args: Any, **extra: Any) -> Any:
        # kubectl finds plugins by their file's name, but people type it as two words.
        if extra.get("prog_name") is None and Path(sys.argv[0]).stem == "kubectl-rocketfleet":
            extra["prog_name"] = "kubectl rocketfleet"
        return super().main(*args, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

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


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rocketfleet")
def main() -> None:
    """RocketMQ consumer groups on Kubernetes, and the tools around them."""


if __name__ == "__main__":
    main()
