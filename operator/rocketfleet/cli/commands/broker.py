"""`rocketfleet broker …`: a real RocketMQ on this machine, started and stopped with one command."""

import json
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

from rocketfleet.devbroker import mqadmin
from rocketfleet.devbroker.describe import describe, render
from rocketfleet.devbroker.distribution.download import REPOSITORY_VARIABLE
from rocketfleet.devbroker.distribution.jars import CACHE_VARIABLE, provide_jars
from rocketfleet.devbroker.distribution.lock import VERSION
from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.launch import clean_environment
from rocketfleet.devbroker.reporting import StreamReporter
from rocketfleet.devbroker.setup.config import MOST_BROKERS, FleetSpec
from rocketfleet.devbroker.setup.credentials import VARIABLE as ADMIN_VARIABLE

NOT_RUNNING = 3

F = TypeVar("F", bound=Callable[..., Any])


class SentenceGroup(click.Group):
    """Turns what went wrong into one line and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DevBrokerError as problem:
            raise click.ClickException(str(problem)) from None
        except OSError as problem:
            raise click.ClickException(f"{problem.filename or 'Input or output'}: {problem.strerror}.") from None


def directory_option(command: F) -> F:
    return click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".rocketfleet/broker"),
        show_default=True,
        help="The fleet's directory: data, logs, certificates, state.",
    )(command)


@click.group(cls=SentenceGroup)
def broker() -> None:
    """Run a real RocketMQ on this machine for development and tests.

    Needs Java 17 or newer and nothing else; RocketMQ's jars are fetched from Maven's repository at the first start.
    """


@broker.command()
@click.option("--repository", help="The base address of a Maven repository.")
def fetch(*, repository: str | None) -> None:
    """Fetch RocketMQ's jars into the cache, or say that they are there. `start` does this by itself."""
    directory = provide_jars(repository, StreamReporter(sys.stderr))
    click.echo(f"RocketMQ {VERSION}: {sum(1 for _ in directory.glob('*.jar'))} jars in {directory}")


@broker.command(
    epilog=f"""Everything listens on 127.0.0.1, but for the ports that RocketMQ binds on all addresses whatever it is
    told: replication (a broker's port + 1) and the proxy's two. A broker on port p also takes p - 2 and p + 1.

    Environment: {CACHE_VARIABLE} (where jars are kept, default ~/.cache/rocketfleet), {REPOSITORY_VARIABLE}, JAVA_HOME,
    {ADMIN_VARIABLE} (user:secret of the administrator; without it, a secret is made)."""
)
@directory_option
@click.option(
    "--brokers",
    type=click.IntRange(1, MOST_BROKERS),
    default=1,
    show_default=True,
    help="Masters: broker-a, broker-b, …",
)
@click.option("--slave", is_flag=True, help="A slave for each master.")
@click.option(
    "--controller",
    is_flag=True,
    help="A slave for each master, and a controller that makes it the master when that one dies.",
)
@click.option("--proxy", is_flag=True, help="The proxy, for gRPC clients.")
@click.option(
    "--acl",
    is_flag=True,
    help=f"ACL 2.0 with one administrator, from {ADMIN_VARIABLE} or made here and kept in the directory.",
)
@click.option("--tls", is_flag=True, help="TLS only, by a CA of the fleet's own.")
@click.option(
    "--tls-client-auth", is_flag=True, help="TLS, and clients must show a certificate of that CA (one is made)."
)
@click.option("--heap", default=FleetSpec.heap, show_default=True, help="A broker's Java heap.")
@click.option(
    "--auto-create-topics/--no-auto-create-topics",
    default=True,
    show_default=True,
    help="Topics appear when first sent to.",
)
@click.option(
    "--auto-create-groups/--no-auto-create-groups",
    default=True,
    show_default=True,
    help="Groups appear when first used.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Another broker property, or (rocketmq.…) JVM property.",
)
@click.option("--name-server-port", type=click.IntRange(1, 65535), help="Default: a free one, kept for later starts.")
@click.option("--broker-port", type=click.IntRange(3, 65535), help="The first broker's; further ones follow 10 apart.")
@click.option("--proxy-port", type=click.IntRange(1, 65534), help="For gRPC; remoting is on the next port.")
@click.option("--repository", help="The base address of a Maven repository.")
@click.option("--json", "as_json", is_flag=True, help="Print everything a program needs.")
@click.pass_context
def start(
    ctx: click.Context,
    /,
    *,
    directory: Path,
    slave: bool,
    controller: bool,
    tls: bool,
    tls_client_auth: bool,
    settings: Sequence[str],
    repository: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Start RocketMQ and wait until it is ready.

    In a directory where it ran before, it continues on the same data and ports.
    """
    spec = FleetSpec(
        slave=slave or controller,
        controller=controller,
        tls=tls or tls_client_auth,
        tls_client_auth=tls_client_auth,
        properties=_properties(settings),
        **options,
    )
    _end_on_signals()
    fleet = Fleet(directory, StreamReporter(sys.stderr))
    if not fleet.start(spec, repository=repository):
        given = {
            {"settings": "properties"}.get(name, name)
            for name in ctx.params
            if ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE
        }
        running = fleet.known().spec
        other = sorted(name for name in given if hasattr(spec, name) and getattr(spec, name) != getattr(running, name))
        if other:
            raise DevBrokerError(
                f"RocketMQ already runs in {fleet.directory} with another value of {', '.join(other)}: "
                "stop it first, or use another --dir."
            )
        click.echo(f"RocketMQ already runs in {fleet.directory}.", err=True)
    _show(fleet, as_json)


@broker.command()
@directory_option
@click.option("--delete-data", is_flag=True, help="Also delete messages, offsets, logs, certificates and secrets.")
def stop(directory: Path, delete_data: bool) -> None:
    """Stop what `start` started in this directory, and nothing else.

    Brokers end in good order, which takes them about 12 seconds; with --delete-data they end at once.
    """
    fleet = Fleet(directory, StreamReporter(sys.stderr))
    known = fleet.layout.lock.exists()
    ended = fleet.stop(delete_data=delete_data)
    click.echo(f"Stopped {', '.join(ended)}." if ended else "Nothing was running.")
    if delete_data and known:
        click.echo(f"Deleted RocketMQ's data in {fleet.directory}.")


@broker.command()
@directory_option
@click.option("--json", "as_json", is_flag=True, help="As `start --json` prints it.")
def status(directory: Path, as_json: bool) -> None:
    """Say which processes live and answer. Exits with 3 if RocketMQ is not running, or only partly."""
    fleet = Fleet(directory)
    if fleet.state() is None:
        click.echo(
            json.dumps({"directory": str(fleet.directory), "running": False})
            if as_json
            else "Nothing was started here."
        )
        sys.exit(NOT_RUNNING)
    document = _show(fleet, as_json)
    if not document["running"]:
        sys.exit(NOT_RUNNING)


_PASS_THROUGH = {"ignore_unknown_options": True, "help_option_names": ["--help"]}


@broker.command(context_settings=_PASS_THROUGH)
@directory_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def admin(directory: Path, arguments: Sequence[str]) -> None:
    """Run RocketMQ's mqadmin: name server, credentials and TLS are filled in.

    For example: rocketfleet broker admin consumerProgress -g orders
    """
    _mqadmin(directory, list(arguments))


@broker.group(cls=SentenceGroup)
def topic() -> None:
    """Short forms of mqadmin's topic commands."""


@topic.command("list", context_settings=_PASS_THROUGH)
@directory_option
@click.argument("further", nargs=-1, type=click.UNPROCESSED)
def topic_list(directory: Path, further: Sequence[str]) -> None:
    """List topics."""
    _mqadmin(directory, ["topicList", *further])


@topic.command("create", context_settings=_PASS_THROUGH)
@directory_option
@click.argument("name")
@click.option("--queues", type=click.IntRange(1), default=8, show_default=True, help="On each master.")
@click.argument("further", nargs=-1, type=click.UNPROCESSED)
def topic_create(directory: Path, name: str, queues: int, further: Sequence[str]) -> None:
    """Create a topic on every master, or change it. Further arguments go to mqadmin updateTopic."""
    _mqadmin(directory, mqadmin.topic_create(name, queues, further))


@topic.command("delete", context_settings=_PASS_THROUGH)
@directory_option
@click.argument("name")
@click.argument("further", nargs=-1, type=click.UNPROCESSED)
def topic_delete(directory: Path, name: str, further: Sequence[str]) -> None:
    """Delete a topic."""
    _mqadmin(directory, mqadmin.topic_delete(name, further))


@broker.group(cls=SentenceGroup)
def group() -> None:
    """Short forms of mqadmin's consumer group commands."""


@group.command("list", context_settings=_PASS_THROUGH)
@directory_option
@click.argument("further", nargs=-1, type=click.UNPROCESSED)
def group_list(directory: Path, further: Sequence[str]) -> None:
    """List groups with their members and lag."""
    _mqadmin(directory, ["consumerProgress", *further])


@group.command("create", context_settings=_PASS_THROUGH)
@directory_option
@click.argument("name")
@click.argument("further", nargs=-1, type=click.UNPROCESSED)
def group_create(directory: Path, name: str, further: Sequence[str]) -> None:
    """Create a group on every master, or change it. Further arguments go to mqadmin updateSubGroup."""
    _mqadmin(directory, mqadmin.group_create(name, further))


@group.command("delete", context_settings=_PASS_THROUGH)
@directory_option
@click.argument("name")
@click.argument("further", nargs=-1, type=click.UNPROCESSED)
def group_delete(directory: Path, name: str, further: Sequence[str]) -> None:
    """Delete a group; its offsets stay, unless you add -r true."""
    _mqadmin(directory, mqadmin.group_delete(name, further))


def _properties(settings: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE.", param_hint="--set")
        pairs.append((key.strip(), value.strip()))
    return tuple(pairs)


def _show(fleet: Fleet, as_json: bool) -> dict[str, Any]:
    document = describe(fleet)
    click.echo(json.dumps(document, indent=2) if as_json else render(document))
    return document


def _mqadmin(directory: Path, arguments: list[str]) -> NoReturn:
    fleet = Fleet(directory)
    command = fleet.admin_command(arguments)
    sys.exit(0 if mqadmin.relay(command, clean_environment(), sys.stdout, sys.stderr) else 1)


def _end_on_signals() -> None:
    """A start that is told to end must take with it what it has started, as it does on Ctrl-C."""

    def end(number: int, _: object) -> NoReturn:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        with suppress(ValueError):  # not in the main thread: then signals are not ours to handle
            signal.signal(number, end)
