"""The `rocketfleet` command: a table of commands, each imported only when it is called.

A worker pod runs `rocketfleet worker` on the base package alone, so a command must not import what another one needs.
"""

import importlib

import click

# name → (module:attribute, the line shown by --help)
COMMANDS: dict[str, tuple[str, str]] = {
    "allocate": ("rocketfleet.cli.allocate:allocate", "Ask an allocation strategy which queues a member gets."),
    "broker": ("rocketfleet.cli.broker:broker", "Run a real RocketMQ on this machine for development and tests."),
    "cluster": ("rocketfleet.cli.cluster:cluster", "Show the brokers of a cluster."),
    "demo": ("rocketfleet.cli.demo:demo", "Show a group that grows and shrinks under traffic, on this machine."),
    "group": ("rocketfleet.cli.group:group", "List, create, inspect and delete consumer groups."),
    "send": ("rocketfleet.cli.send:send", "Send messages to a topic."),
    "topic": ("rocketfleet.cli.topic:topic", "List, create, inspect and delete topics."),
    "worker": ("rocketfleet.cli.worker:worker", "Run a member of a consumer group with a handler of yours."),
}


class LazyGroup(click.Group):
    """A click group that imports a command when it is called, not when the program starts."""

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
