"""From a name on the command line to a group at its broker: which object is meant, where its RocketMQ is, and as whom.

The object comes from the cluster of the kubeconfig or, with `-f`, from a manifest. Its RocketMQ is where the object
says, unless `--name-server` says otherwise; its credentials and certificates are those of the object's Secrets, unless
options or the environment have others. With `-f`, Secrets stand in the same file. If the development broker of this
directory is the one meant, it lends its own.

With `--name-server` and nothing that names a cluster or a manifest there is no object: the name is the group's own, and
what is known of it is what its brokers know (`group_by_name.py`). So groups of Java, or of a bare worker, can be looked
after too.

The addresses in an object are made for pods. From a laptop they often lead nowhere, and neither do the addresses that
the name server gives out; so a failure to connect says how to run the same command inside the cluster.
"""

from __future__ import annotations

import base64
import binascii
import functools
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rocketfleet.cli.access.connection import (
    TIMEOUT_VARIABLE,
    ConnectionOptions,
    LocalBroker,
    local_broker,
    local_instead,
)
from rocketfleet.cli.access.in_cluster_command import ACCOUNT, IMAGE, arguments_of, inside_the_cluster, run_in
from rocketfleet.cli.access.kube_access import KubeAccess, KubeOptions, Missing, kube_options, open_cluster
from rocketfleet.cli.access.manifest_file import Secrets, read_file, read_group
from rocketfleet.client.client import Client
from rocketfleet.client.errors import ConnectError, NoNameServer, PartialFailure, RequestTimeout, RocketMQError
from rocketfleet.client.transport.address import parse_list
from rocketfleet.client.variables import ACCESS_KEY_VARIABLE, SECRET_KEY_VARIABLE
from rocketfleet.wire.acl import Credentials

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from rocketfleet.api.consumer_group import ConsumerGroup
    from rocketfleet.api.spec import Cluster
    from rocketfleet.client.config import ClientConfig

    ReadSecret = Callable[[str], Awaitable[dict[str, bytes]]]
    Files = tuple[Path | None, Path | None, Path | None]

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True)
class BrokerOptions:
    """What the options say about RocketMQ; nothing given is as the object has it."""

    name_server: str | None
    credentials_file: Path | None
    ca_file: Path | None
    cert_file: Path | None
    key_file: Path | None
    timeout: float


@dataclass(frozen=True)
class GroupSource:
    """Where a group is looked for."""

    kube: KubeOptions
    manifest: Path | None
    broker: BrokerOptions

    @property
    def by_name(self) -> bool:
        """Whether the group is one at a name server, without an object."""
        return self.manifest is None and self.broker.name_server is not None and not self.kube.given

    @property
    def needs_no_cluster(self) -> bool:
        return self.manifest is not None or self.by_name


@dataclass(frozen=True)
class OpenGroup:
    """A group, and a client towards its RocketMQ. `kube` is None if it did not come from a cluster."""

    group: ConsumerGroup
    kube: KubeAccess | None
    client: Client


def group_options(command: F) -> F:
    """Give a command the options of a group's place; it gets them as `access`."""

    @functools.wraps(command)
    def with_access(*args: Any, kube: KubeOptions, manifest: Path | None, **options: Any) -> Any:
        broker = BrokerOptions(**{name: options.pop(name) for name in BrokerOptions.__dataclass_fields__})
        return command(*args, access=GroupSource(kube, manifest, broker), **options)

    decorated: Any = with_access
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = kube_options(decorated)
    return result


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option(
        "--filename",
        "-f",
        "manifest",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Take the ConsumerGroup from a manifest: no cluster is needed.",
    ),
    click.option(
        # Without a variable: one that is set for another purpose must not lead a reset to another cluster.
        "--name-server",
        metavar="HOST:PORT",
        help="RocketMQ's name server. [default: the object's nameServers] Without -f, -n, --context and --kubeconfig, "
        "GROUP is the consumer group's name there, and no cluster is needed.",
    ),
    click.option(
        "--credentials-file",
        type=_FILE,
        metavar="FILE",
        help="File with accessKey and secretKey. [default: the object's Secret] "
        f"[env, instead: {ACCESS_KEY_VARIABLE}, {SECRET_KEY_VARIABLE}]",
    ),
    click.option("--ca-file", type=_FILE, metavar="FILE", help="TLS: CA certificates. [default: the object's Secret]"),
    click.option(
        "--cert-file", type=_FILE, metavar="FILE", help="TLS: client certificate. [default: the object's Secret]"
    ),
    click.option("--key-file", type=_FILE, metavar="FILE", help="TLS: its key. [default: the object's Secret]"),
    click.option(
        "--timeout",
        envvar=TIMEOUT_VARIABLE,
        type=click.FloatRange(min=0, min_open=True),
        default=3.0,
        show_default=True,
        metavar="SECONDS",
        help=f"How long to wait for a broker's answer. [env: {TIMEOUT_VARIABLE}]",
    ),
)


@asynccontextmanager
async def open_group(access: GroupSource, name: str | None) -> AsyncIterator[OpenGroup]:
    """Find the group and make a client for its RocketMQ. Failures to connect come out with advice."""
    if name is None and access.manifest is None:
        raise click.UsageError("say which group: its name, or -f with a manifest that has only one")
    async with AsyncExitStack() as stack:
        kube: KubeAccess | None = None
        group: ConsumerGroup | None = None
        if access.manifest is not None:
            group, secrets = read_file(access.manifest, name)
            read_secret = _beside(secrets)
        elif access.by_name:
            read_secret = _beside({})
        else:
            assert name is not None
            kube = await stack.enter_async_context(open_cluster(access.kube))
            group = read_group(await kube.group(name), f"ConsumerGroup {name}")
            read_secret = _of_cluster(kube)
        config = await broker_config(access.broker, None if group is None else group.spec.cluster, read_secret, stack)
        client = await stack.enter_async_context(Client(config))
        try:
            if group is None:
                from rocketfleet.cli.access.group_by_name import find_group

                assert name is not None
                group = await find_group(client, name)
            yield OpenGroup(group, kube, client)
        except RocketMQError as error:
            outside = kube is not None and not kube.in_cluster and unreachable(error)
            advice = _advice(group) if group is not None and outside else ""
            if kube is None and unreachable(error):
                advice = local_instead(config.name_servers)
            raise click.ClickException(f"{error}{advice}") from error


def unreachable(error: RocketMQError) -> bool:
    """Whether it was about not getting through, and not about what the other side said."""
    if isinstance(error, NoNameServer | PartialFailure):
        return any(unreachable(one) for one in error.errors.values())
    return isinstance(error, ConnectError | RequestTimeout)


def _advice(group: ConsumerGroup) -> str:
    context = click.get_current_context(silent=True)
    namespace, name = group.key
    command = (
        f"{run_in(namespace)} -- rocketfleet … {name} -n {namespace}"
        if context is None
        else inside_the_cluster(context.command, arguments_of(context), namespace)
    )
    return (
        ".\nThe addresses in a ConsumerGroup, and those that its name server gives out, may be reachable only inside "
        f"the cluster. A pod of the group's namespace can run it there:\n  {command}\n"
        f'The account {ACCOUNT} is made once per namespace: docs/operations.md says how, "From outside the cluster". '
        f"{IMAGE} is the image that the operator runs. --name-server names another way in, if there is one"
    )


# -- as whom ----------------------------------------------------------------------------------------------------------


def _of_cluster(kube: KubeAccess) -> ReadSecret:
    async def read(name: str) -> dict[str, bytes]:
        data = (await kube.secret(name)).get("data") or {}
        try:
            return {key: base64.b64decode(value) for key, value in data.items()}
        except (binascii.Error, TypeError, ValueError):
            raise click.ClickException("it does not hold what a Secret should") from None

    return read


def _beside(secrets: Secrets) -> ReadSecret:
    async def read(name: str) -> dict[str, bytes]:
        if name not in secrets:
            raise Missing("it is not in the manifest's file")
        return secrets[name]

    return read


async def broker_config(
    options: BrokerOptions, cluster: Cluster | None, read_secret: ReadSecret, stack: AsyncExitStack
) -> ClientConfig:
    """The client's settings. Certificates out of a Secret lie in a directory that ends with the stack."""
    servers = options.name_server or ("" if cluster is None else ";".join(cluster.name_servers))
    tls = cluster.tls if cluster is not None and cluster.tls is not None and cluster.tls.enabled else None
    local = _local(servers)
    files: Files = (options.ca_file, options.cert_file, options.key_file)
    if tls is not None and tls.secret_name is not None and not any(files) and (local is None or local.tls is None):
        files = await _certificates(tls.secret_name, read_secret, stack)
    config = ConnectionOptions(
        name_server=servers,
        credentials_file=options.credentials_file,
        tls=tls is not None,
        ca_file=files[0],
        cert_file=files[1],
        key_file=files[2],
        server_name=None if tls is None else tls.server_name,
        check_hostname=tls is None or tls.check_hostname,
        timeout=options.timeout,
    ).config()
    if local is not None:
        config = replace(
            config,
            credentials=config.credentials or local.credentials,
            tls=config.tls if any(files) else local.tls or config.tls,
        )
    if config.credentials is not None or cluster is None or cluster.credentials is None:
        return config
    return replace(config, credentials=await _credentials(cluster.credentials.secret_name, read_secret))


def _local(servers: str) -> LocalBroker | None:
    """This directory's development broker, if it is the one that is meant."""
    found = local_broker(Path.cwd())
    return found if found is not None and found.name_server in parse_list(servers) else None


async def _certificates(name: str, read_secret: ReadSecret, stack: AsyncExitStack) -> Files:
    values = await _secret(name, read_secret, "give --ca-file, --cert-file and --key-file instead")
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rocketfleet-")))
    paths: list[Path | None] = []
    for key in ("ca.crt", "tls.crt", "tls.key"):
        path = directory / key if values.get(key) else None
        if path is not None:
            path.write_bytes(values[key])  # the directory is for its owner alone
        paths.append(path)
    return paths[0], paths[1], paths[2]


async def _credentials(name: str, read_secret: ReadSecret) -> Credentials:
    instead = f"give --credentials-file, or set {ACCESS_KEY_VARIABLE} and {SECRET_KEY_VARIABLE}"
    values = await _secret(name, read_secret, instead)
    access_key, secret_key, token = (
        values.get(key, b"").decode("utf-8", "replace").strip() for key in ("accessKey", "secretKey", "securityToken")
    )
    if not access_key or not secret_key:
        raise click.ClickException(f"Secret {name} has no {'secretKey' if access_key else 'accessKey'}: {instead}")
    return Credentials(access_key, secret_key, token or None)


async def _secret(name: str, read_secret: ReadSecret, instead: str) -> dict[str, bytes]:
    try:
        return await read_secret(name)
    except click.ClickException as error:
        raise click.ClickException(f"cannot read Secret {name}: {error.message}; {instead}") from error
