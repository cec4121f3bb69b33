"""`rocketfleet worker`: one member of a consumer group, with a handler of yours.

The options about the group are made from the table in `worker/configuration/setting_table.py`. Each can be given as an
option, as a variable ROCKETFLEET_… or, those about the group, in a settings file; an option wins over a variable, a
variable over the file. Click reads the variables (`auto_envvar_prefix`), so the options of a connection have theirs
too.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from rocketfleet.base.settings_error import SettingsError
from rocketfleet.cli.access.connection import ConnectionOptions, connection_options
from rocketfleet.cli.options.member_process import FILE, PLACE, PREFIX, TOKEN_VARIABLE, member_options
from rocketfleet.cli.output import show_json
from rocketfleet.control import exit_codes
from rocketfleet.worker.configuration.setting_table import SETTINGS, Kind, Setting
from rocketfleet.worker.configuration.setting_values import items_from_text, queue_from_text, subscription_from_text
from rocketfleet.worker.handler_loading import HandlerError, load_handler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocketfleet.client.config import ClientConfig
    from rocketfleet.control.port import ControlPort
    from rocketfleet.control.token import Token
    from rocketfleet.worker.configuration.settings_file import Values
    from rocketfleet.worker.member import MemberSpec
    from rocketfleet.worker.processes.lifeline import Lifeline

_log = logging.getLogger(__name__)


class WrongSettings(click.ClickException):
    """One line, and the exit code that says that another try would end the same way."""

    exit_code = exit_codes.SETTINGS


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # which older versions of click do not subscript


class Item(_ParamType):
    """An item of a list; in the environment items are separated by semicolons."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except SettingsError as error:
            self.fail(str(error), param, ctx)

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        return items_from_text(rv)


class _Choice(click.Choice):  # type: ignore[type-arg]  # which older versions of click do not subscript
    """One that is refused is told the choices as the help has them, not in small letters."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return f"{value!r} is not one of {', '.join(map(str, self.choices))}"


_LISTS = {
    Kind.SUBSCRIPTIONS: Item("topic", subscription_from_text),
    Kind.QUEUES: Item("queue", queue_from_text),
    Kind.TEXTS: Item("text", str),
}
_SINGLE: dict[Kind, Any] = {Kind.TEXT: str, Kind.NUMBER: int, Kind.SECONDS: float}


def _option(setting: Setting) -> Callable[[Any], Any]:
    """The click option of one line of the table. Nothing given is None, or an empty tuple."""
    flag, help_text = f"--{setting.option}", f"{setting.described} [file: {setting.key}]"
    if setting.kind in _LISTS:
        return click.option(
            flag, setting.parameter, multiple=True, type=_LISTS[setting.kind], metavar=setting.metavar, help=help_text
        )
    if setting.kind is Kind.SWITCH:
        return click.option(f"{flag}/--no-{setting.option}", setting.parameter, default=None, help=help_text)
    kind = _Choice(setting.choices, case_sensitive=False) if setting.choices else _SINGLE[setting.kind]
    metavar = f"[{'|'.join(setting.choices)}]" if setting.choices else setting.metavar
    return click.option(flag, setting.parameter, type=kind, metavar=metavar, help=help_text)


def _settings_options(command: Any) -> Any:
    for setting in reversed(SETTINGS):
        command = _option(setting)(command)
    return command


@click.command(
    context_settings={"auto_envvar_prefix": PREFIX, "max_content_width": 120},
    short_help="Run a member of a consumer group with a handler of yours.",
    epilog="Every option can be given as an environment variable: ROCKETFLEET_ and its name in capitals, as in "
    "ROCKETFLEET_BATCH_SIZE; lists in the plural (ROCKETFLEET_TOPICS, _ROOMS, _QUEUES). Exit codes: 0 drained, "
    "1 failed, 2 wrong settings or handler, 3 the group could not be joined, 4 drained but not every offset confirmed, "
    "5 drained but handlers were cut short.",
)
@click.option("--handler", metavar="MODULE:FUNCTION", help="What gets the messages: a function, plain or async.")
@click.option("--path", type=PLACE, metavar="DIR", help="Where the handler's module is. [the working directory]")
@click.option("--settings", type=FILE, metavar="FILE", help="JSON with the keys of a ConsumerGroup's spec.")
@_settings_options
@connection_options
@member_options
@click.option("--offset-directory", type=PLACE, metavar="DIR", help="Broadcasting: where offsets are kept.")
@click.option("--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="Members in this worker.")
@click.option("--startup-timeout", type=click.FloatRange(min=1), default=300.0, show_default=True,
              metavar="SECONDS", help="/healthz fails when the handler's import takes longer.")  # fmt: skip
@click.option("--stuck-after", type=click.FloatRange(min=0, min_open=True), default=30.0, show_default=True,
              metavar="SECONDS", help="/healthz fails when the event loop has not run for so long.")  # fmt: skip
@click.option("--show-settings", is_flag=True, help="Print all settings of the group as JSON, and which are defaults.")
def worker(connection: ConnectionOptions, **options: Any) -> None:
    """Consume as a member of a group, until told to stop (SIGTERM, SIGINT, POST /drain); then drain and end.

    The handler is a function of one message, or of a list of them if its parameter is annotated so. When it returns the
    message is done; when it raises, or returns RETRY, the message comes again later.
    """
    from rocketfleet.control import last_words, logs
    from rocketfleet.worker import whole_lines
    from rocketfleet.worker.processes import lifeline

    line = lifeline.adopt(os.environ)
    if not options["show_settings"]:
        whole_lines.install()
    logs.configure(options["log_format"], options["log_level"], None if line is None else line.process)
    try:
        code = _run(connection, options, line)
    except (SettingsError, HandlerError, click.ClickException) as error:
        sentence = error.format_message() if isinstance(error, click.ClickException) else str(error)
        if line is None:
            last_words.leave_sentence(options["last_words"], sentence)
        if options["log_format"] == "text":
            raise WrongSettings(sentence) from error
        _log.error("%s", sentence)  # whoever wants JSON wants nothing else
        code = exit_codes.SETTINGS
    sys.exit(code)


def _run(connection: ConnectionOptions, options: dict[str, Any], line: Lifeline | None) -> int:
    from rocketfleet.control import identity
    from rocketfleet.control.port import ControlPort
    from rocketfleet.worker.configuration import settings

    values = _values(options)
    consumer_settings, strategy = settings.consumer_settings(values), settings.strategy(values)
    if options["show_settings"]:
        _show_settings(values)
        return exit_codes.DRAINED
    if not options["handler"]:
        raise SettingsError("no handler is named: give --handler module:function, or ROCKETFLEET_HANDLER")
    client_id = identity.choose_client_id(options["client_id"], os.environ)
    made_up = identity.is_made_up(options["client_id"], os.environ)
    port = ControlPort(options["bind"], options["port"], options["port_file"])
    if line is None and options["processes"] > 1:
        return _run_parent(options, client_id, made_up, port, _token(options), consumer_settings.drain_timeout)
    words_file = options["last_words"] if line is None else None  # of several processes, the parent writes them
    if line is not None:
        client_id, port = identity.process_client_id(client_id, line.process), ControlPort()
    from rocketfleet.worker.process import Launch, run

    config = connection.config(client_id=client_id, client_id_made_up=made_up)
    launch = Launch(
        consumer_settings,
        client_id,
        lambda: _spec(options, config, consumer_settings, strategy),
        options["startup_timeout"],
    )
    return run(launch, port, _token(options, line), line, words_file)


def _show_settings(values: Values) -> None:
    """All settings on standard output, in the form of a settings file; which of them are defaults beside it."""
    from rocketfleet.worker.configuration import settings

    everything = settings.with_defaults(values)
    show_json(settings.as_json(everything))
    defaults = [key for key, value in everything.items() if key not in values and value is not None]
    if defaults:
        click.echo(f"not given, so the default: {', '.join(defaults)}", err=True)


def _values(options: dict[str, Any]) -> Values:
    """What was given about the group: in the file, and over it by variables and options."""
    from rocketfleet.worker.configuration import settings_file

    values: Values = {}
    if options["settings"] is not None:
        values = settings_file.read(options["settings"], by_operator=settings_file.from_operator(os.environ))
    for setting in SETTINGS:
        given = options[setting.parameter]
        if given is not None and given != ():
            values[setting.key] = list(given) if isinstance(given, tuple) else given
    return values


def _token(options: dict[str, Any], line: Lifeline | None = None) -> Token:
    from rocketfleet.client.variables import POD_UID_VARIABLE
    from rocketfleet.control.token import Token, TokenError

    try:
        if line is not None:
            return Token(line.token)
        return Token(os.environ.get(TOKEN_VARIABLE), options["token_file"], pod=os.environ.get(POD_UID_VARIABLE))
    except TokenError as error:
        raise SettingsError(str(error)) from error


def _spec(options: dict[str, Any], config: ClientConfig, consumer_settings: Any, strategy: Any) -> MemberSpec:
    from rocketfleet.worker.member import MemberSpec

    return MemberSpec(
        config=config,
        settings=consumer_settings,
        strategy=strategy,
        handler=load_handler(options["handler"], options["path"]),
        offset_directory=options["offset_directory"],
        stuck_after=options["stuck_after"],
        join_timeout=options["join_timeout"],
    )


def _run_parent(
    options: dict[str, Any], client_id: str, made_up: bool, port: ControlPort, token: Token, drain_timeout: float
) -> int:
    from rocketfleet.control.identity import CLIENT_ID_VARIABLE, MADE_UP_VARIABLE
    from rocketfleet.worker.processes.parent import Parent

    # A child is this same command line again. Its id is ours, even if we made it up, with its number behind.
    command = [sys.executable, *sys.orig_argv[1:]]
    environment = {**os.environ, CLIENT_ID_VARIABLE: client_id, **({MADE_UP_VARIABLE: "yes"} if made_up else {})}
    parent = Parent(
        options["processes"], command, environment, drain_timeout=drain_timeout, words_file=options["last_words"]
    )
    return asyncio.run(parent.run(port, token))
