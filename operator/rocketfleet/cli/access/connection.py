"""Where a command connects to, and as whom: the options that every command towards RocketMQ has.

The name server is the one given, or `ROCKETFLEET_NAME_SERVERS`, or that of the broker which `rocketfleet broker
start` runs for this directory (with its credentials and certificates, if it has any), or 127.0.0.1:9876.

Secrets come from the environment or from a file, never from an argument: arguments are visible to every user of the
machine and stay in the shell's history.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rocketfleet.client.transport.address import parse
from rocketfleet.client.variables import (
    ACCESS_KEY_VARIABLE,
    KEY_PASSWORD_VARIABLE,
    NAME_SERVERS_VARIABLE,
    SECRET_KEY_VARIABLE,
    SECURITY_TOKEN_VARIABLE,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rocketfleet.client.config import ClientConfig, TlsConfig
    from rocketfleet.wire.acl import Credentials

F = TypeVar("F", bound="Callable[..., Any]")

DEFAULT_NAME_SERVER = "127.0.0.1:9876"
_THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})
LOCAL_BROKER_DIRECTORY = Path(".rocketfleet/broker")
TIMEOUT_VARIABLE = "ROCKETFLEET_TIMEOUT"


@dataclass(frozen=True)
class ConnectionOptions:
    """What the options say, before anything is looked up."""

    name_server: str | None
    credentials_file: Path | None
    tls: bool
    ca_file: Path | None
    cert_file: Path | None
    key_file: Path | None
    server_name: str | None
    check_hostname: bool
    timeout: float
    credentials_directory: Path | None = None

    def config(
        self, environment: Mapping[str, str] | None = None, directory: Path | None = None, **settings: Any
    ) -> ClientConfig:
        """The client's settings. A click error says what is missing or wrong."""
        from rocketfleet.client.config import ClientConfig

        environment = os.environ if environment is None else environment
        path = self.credentials_file or self.credentials_directory
        credentials = _from_environment(environment) if path is None else _read(path)
        name_servers, tls = self.name_server, self._tls(environment)
        if name_servers is None:
            local = local_broker(Path.cwd() if directory is None else directory)
            if local is not None:
                name_servers = local.name_server
                credentials = credentials or local.credentials
                tls = tls or local.tls
        try:
            return ClientConfig(
                name_servers=name_servers or DEFAULT_NAME_SERVER,
                credentials=credentials,
                credentials_path=None if path is None else str(path.absolute()),
                tls=tls,
                timeout=self.timeout,
                **settings,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    def _tls(self, environment: Mapping[str, str]) -> TlsConfig | None:
        from rocketfleet.client.config import TlsConfig

        files = (self.ca_file, self.cert_file, self.key_file)
        if not self.tls and not any(files) and self.server_name is None and self.check_hostname:
            return None
        ca_file, cert_file, key_file = (None if file is None else str(file) for file in files)
        try:
            return TlsConfig(
                ca_file=ca_file,
                cert_file=cert_file,
                key_file=key_file,
                key_password=environment.get(KEY_PASSWORD_VARIABLE) or None,
                check_hostname=self.check_hostname,
                server_name=self.server_name,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error


@dataclass(frozen=True)
class LocalBroker:
    """The development broker of a directory, as far as a client needs to know it."""

    name_server: str
    credentials: Credentials | None
    tls: TlsConfig | None


def _read(path: Path) -> Credentials:
    from rocketfleet.client.transport.keys import read_credentials

    try:
        return read_credentials(path)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def _from_environment(environment: Mapping[str, str]) -> Credentials | None:
    from rocketfleet.wire.acl import Credentials

    access_key, secret_key = environment.get(ACCESS_KEY_VARIABLE), environment.get(SECRET_KEY_VARIABLE)
    if bool(access_key) != bool(secret_key):
        missing = SECRET_KEY_VARIABLE if access_key else ACCESS_KEY_VARIABLE
        raise click.UsageError(f"credentials are incomplete: set {missing} too, or give --credentials-file")
    if not access_key or not secret_key:
        return None
    return Credentials(access_key, secret_key, environment.get(SECURITY_TOKEN_VARIABLE) or None)


def local_broker(directory: Path) -> LocalBroker | None:
    """The development broker of this directory, if its name server runs."""
    from rocketfleet.client.config import TlsConfig
    from rocketfleet.devbroker import state
    from rocketfleet.devbroker.setup import certificates
    from rocketfleet.devbroker.setup.config import LOOPBACK, NAME_SERVER, Layout
    from rocketfleet.devbroker.setup.credentials import load_admin
    from rocketfleet.wire.acl import Credentials

    layout = Layout(directory.absolute() / LOCAL_BROKER_DIRECTORY)
    found = state.load(layout.state)
    if found is None or NAME_SERVER not in found.living:
        return None
    admin = load_admin(layout.credentials) if found.spec.acl else None
    tls = None
    if found.spec.tls:
        tls = TlsConfig(
            ca_file=str(layout.tls / certificates.CA),
            cert_file=str(layout.tls / certificates.CLIENT),
            key_file=str(layout.tls / certificates.CLIENT_KEY),
        )
    credentials = None if admin is None else Credentials(admin.access_key, admin.secret_key)
    return LocalBroker(f"{LOOPBACK}:{found.ports[NAME_SERVER]}", credentials, tls)


def local_instead(asked: Iterable[str], directory: Path | None = None) -> str:
    """Advice for when none of these name servers can be reached: where this directory's own is, or nothing.

    `rocketfleet broker start` takes free ports, while examples have 9876. An address elsewhere was meant as it is.
    """
    asked = tuple(asked)
    if any(parse(address).host not in _THIS_MACHINE for address in asked):
        return ""
    found = local_broker(Path.cwd() if directory is None else directory)
    if found is None or found.name_server in asked:
        return ""
    return f"; the name server that `rocketfleet broker start` runs for this directory is {found.name_server}"


def connection_options(command: F) -> F:
    """Give a command the options of a connection; it gets them as `connection`."""

    @functools.wraps(command)
    def with_connection(*args: Any, old_name_server: str | None, **options: Any) -> Any:
        if old_name_server is not None:
            options["name_server"] = _as_before(old_name_server, options["name_server"])
        fields = {name: options.pop(name) for name in ConnectionOptions.__dataclass_fields__}
        return command(*args, connection=ConnectionOptions(**fields), **options)

    decorated: Any = with_connection
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = decorated
    return result


def _as_before(given: str, name_server: str | None) -> str:
    """-n was the name server here, and is the namespace in every command that knows one."""
    if ":" not in given or name_server not in (None, os.environ.get(NAME_SERVERS_VARIABLE)):
        raise click.UsageError(
            "-n is short for --namespace, which this command does not have: give the name server with "
            "--name-server HOST:PORT"
        )
    click.echo("-n for the name server is deprecated: write --name-server", err=True)
    return given


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option("-n", "old_name_server", hidden=True, metavar="HOST:PORT", allow_from_autoenv=False),
    click.option(
        "--name-server",
        envvar=NAME_SERVERS_VARIABLE,
        metavar="HOST:PORT",
        help="Name server; several are separated by a semicolon. Default: that of the broker which "
        f"`rocketfleet broker start` runs for this directory, else {DEFAULT_NAME_SERVER}. "
        f"[env: {NAME_SERVERS_VARIABLE}]",
    ),
    click.option(
        "--credentials-file",
        type=_FILE,
        metavar="FILE",
        help="File with accessKey and secretKey. It is watched: a renewed key is used at once. "
        f"[env, instead: {ACCESS_KEY_VARIABLE}, {SECRET_KEY_VARIABLE}]",
    ),
    click.option(
        "--credentials-directory",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="DIR",
        help="Directory with the files accessKey and secretKey, as a Secret is mounted. It is watched too.",
    ),
    click.option("--tls", is_flag=True, help="Use TLS. Implied by --ca-file, --cert-file and --key-file."),
    click.option("--ca-file", type=_FILE, metavar="FILE", help="Trust certificates signed by these authorities."),
    click.option("--cert-file", type=_FILE, metavar="FILE", help="The client's own certificate."),
    click.option(
        "--key-file",
        type=_FILE,
        metavar="FILE",
        help=f"The certificate's key. [password: env {KEY_PASSWORD_VARIABLE}]",
    ),
    click.option(
        "--tls-server-name",
        "server_name",
        metavar="NAME",
        help="The name in the servers' certificate, if not their address.",
    ),
    click.option(
        "--no-hostname-check",
        "check_hostname",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Do not check the host name in certificates; the authority is still verified.",
    ),
    click.option(
        "--timeout",
        envvar=TIMEOUT_VARIABLE,
        type=click.FloatRange(min=0, min_open=True),
        default=3.0,
        show_default=True,
        metavar="SECONDS",
        help=f"How long to wait for an answer. [env: {TIMEOUT_VARIABLE}]",
    ),
)
