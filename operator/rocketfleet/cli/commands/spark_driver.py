"""`rocketfleet spark driver`: the driver of a ConsumerGroup with engine Spark, as its pod or process runs it.

It is told what a worker is told, in the same variables and files; what is about Spark stands in the settings file.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from rocketfleet.base.settings_error import SettingsError
from rocketfleet.cli.access.connection import ConnectionOptions, connection_options
from rocketfleet.cli.options.member_process import FILE, PLACE, PREFIX, TOKEN_VARIABLE, member_options
from rocketfleet.control import exit_codes

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)


@click.command(
    context_settings={"auto_envvar_prefix": PREFIX, "max_content_width": 120},
    short_help="Run the driver of a ConsumerGroup with engine Spark.",
    epilog="Every option can be given as an environment variable: ROCKETFLEET_ and its name in capitals. Exit codes: "
    "0 drained, 1 failed, 2 wrong settings or pipeline, 3 the group could not be joined, 4 drained but not every "
    "offset confirmed.",
)
@click.option("--settings", type=FILE, required=True, metavar="FILE", help="JSON, with a section `spark`.")
@click.option("--path", type=PLACE, metavar="DIR", help="Where the pipeline's module is.")
@connection_options
@member_options
@click.option("--executor-template", type=FILE, metavar="FILE", help="Master k8s: the pod template of executors.")
@click.option("--stuck-after", type=click.FloatRange(min=0, min_open=True), default=120.0, show_default=True,
              metavar="SECONDS", help="/healthz fails when the query was not looked at for so long.")  # fmt: skip
def driver(connection: ConnectionOptions, **options: Any) -> None:
    """Run the pipeline of a group as its one member, until told to stop (SIGTERM, POST /drain): then finish the batch
    under way, write the group's offsets back, and end.
    """
    from rocketfleet.control import last_words, logs

    logs.configure(options["log_format"], options["log_level"])
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        code = _run(connection, options)
    except (SettingsError, click.ClickException) as error:
        sentence = error.format_message() if isinstance(error, click.ClickException) else str(error)
        _log.error("%s", sentence)
        last_words.leave_sentence(options["last_words"], sentence)
        code = exit_codes.SETTINGS
    sys.exit(code)


def _run(connection: ConnectionOptions, options: dict[str, Any]) -> int:
    from rocketfleet.client.variables import POD_UID_VARIABLE
    from rocketfleet.control.identity import choose_client_id
    from rocketfleet.control.port import ControlPort
    from rocketfleet.control.token import Token, TokenError
    from rocketfleet.spark.driver import process, settings
    from rocketfleet.spark.driver.driver import DriverSpec
    from rocketfleet.spark.driver.session import place_in
    from rocketfleet.worker.configuration.settings_file import from_operator
    from rocketfleet.worker.handler_loading import HandlerError, put_on_path

    path: Path | None = options["path"]
    try:
        token = Token(os.environ.get(TOKEN_VARIABLE), options["token_file"], pod=os.environ.get(POD_UID_VARIABLE))
        if path is not None:
            put_on_path(path)
    except (TokenError, HandlerError) as error:
        raise SettingsError(str(error)) from error
    client_id = choose_client_id(options["client_id"], os.environ)
    spec = DriverSpec(
        settings=settings.read(options["settings"], by_operator=from_operator(os.environ)),
        config=connection.config(client_id=client_id),
        place=place_in(os.environ, options["executor_template"], None if path is None else path.resolve()),
        join_timeout=options["join_timeout"],
        stuck_after=options["stuck_after"],
    )
    port = ControlPort(options["bind"], options["port"], options["port_file"])
    return process.run(spec, port, token, options["last_words"])
