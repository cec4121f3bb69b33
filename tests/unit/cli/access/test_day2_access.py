"""From a manifest to a client's settings: whose credentials and certificates win, and where they are kept."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import click
import pytest

from rocketfleet.api.spec import Cluster
from rocketfleet.cli.access import group_access
from rocketfleet.cli.access.connection import LocalBroker
from rocketfleet.cli.access.group_access import BrokerOptions, broker_config, unreachable
from rocketfleet.cli.access.manifest_file import read_file
from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.client.errors import ConnectError, NoNameServer, NoRoute, PartialFailure, RequestTimeout
from rocketfleet.wire.acl import Credentials

SECRETS = {"keys": {"accessKey": b"user\n", "secretKey": b"hunter2\n"}, "certs": {"ca.crt": b"CA"}}
PLAIN: dict[str, Any] = {"nameServers": ["ns-1:9876", "ns-2:9876"]}
SECURED = PLAIN | {
    "credentials": {"secretName": "keys"},
    "tls": {"secretName": "certs", "serverName": "mq", "checkHostname": False},
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("ROCKETFLEET_ACCESS_KEY", "ROCKETFLEET_SECRET_KEY", "ROCKETFLEET_SECURITY_TOKEN"):
        monkeypatch.delenv(variable, raising=False)


def config(cluster: Mapping[str, Any], **options: Any) -> tuple[ClientConfig, list[str], bytes | None]:
    """The settings, the Secrets that were read, and what the file of authorities held while it was there."""
    read: list[str] = []

    async def secret(name: str) -> dict[str, bytes]:
        read.append(name)
        if name not in SECRETS:
            raise click.ClickException("not there")
        return SECRETS[name]

    async def run() -> tuple[ClientConfig, bytes | None]:
        given = BrokerOptions(
            **{name: options.get(name) for name in BrokerOptions.__dataclass_fields__ if name != "timeout"}, timeout=5.0
        )
        async with AsyncExitStack() as stack:
            made = await broker_config(given, Cluster.model_validate(cluster), secret, stack)
            ca_file = None if made.tls is None or made.tls.ca_file is None else Path(made.tls.ca_file)
            held = None if ca_file is None else ca_file.read_bytes()
        assert ca_file is None or options.get("ca_file") or not ca_file.exists()
        return made, held

    made, held = asyncio.run(run())
    return made, read, held


def test_a_plain_cluster_needs_no_secret() -> None:
    made, read, _ = config(PLAIN)
    assert made.name_servers == ("ns-1:9876", "ns-2:9876")
    assert (made.credentials, made.tls, made.timeout, read) == (None, None, 5.0, [])


def test_credentials_and_certificates_of_the_object_s_secrets() -> None:
    made, read, authorities = config(SECURED)
    assert made.credentials == Credentials("user", "hunter2", None)
    assert made.tls is not None
    assert (made.tls.server_name, made.tls.check_hostname, made.tls.cert_file) == ("mq", False, None)
    assert authorities == b"CA"
    assert sorted(read) == ["certs", "keys"]
    assert "hunter2" not in repr(made)


def test_options_and_variables_win_and_spare_the_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "ca"
    mine.write_bytes(b"mine")
    monkeypatch.setenv("ROCKETFLEET_ACCESS_KEY", "me")
    monkeypatch.setenv("ROCKETFLEET_SECRET_KEY", "secret")
    made, read, authorities = config(SECURED, ca_file=mine, name_server="other:1")
    assert made.name_servers == ("other:1",)
    assert made.credentials == Credentials("me", "secret", None)
    assert authorities == b"mine"
    assert read == []


def test_a_local_broker_lends_its_own_only_if_it_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    lent = LocalBroker("ns-2:9876", Credentials("admin", "x"), TlsConfig(server_name="local"))
    monkeypatch.setattr(group_access, "local_broker", lambda _directory: lent)
    made, read, _ = config(SECURED)
    assert (made.credentials, made.tls, read) == (lent.credentials, lent.tls, [])
    made, read, _ = config(SECURED, name_server="other:1")
    assert made.credentials == Credentials("user", "hunter2", None)
    assert sorted(read) == ["certs", "keys"]


def test_a_secret_that_cannot_be_read_says_what_to_give_instead() -> None:
    with pytest.raises(click.ClickException) as refused:
        config(PLAIN | {"credentials": {"secretName": "none"}})
    assert refused.value.message.startswith("cannot read Secret none: not there; give --credentials-file")
    with pytest.raises(click.ClickException) as refused:
        config(PLAIN | {"credentials": {"secretName": "certs"}})
    assert "Secret certs has no accessKey" in refused.value.message
    with pytest.raises(click.ClickException) as refused:
        config(PLAIN | {"tls": {"secretName": "none"}})
    assert "give --ca-file" in refused.value.message


def test_secrets_stand_beside_the_group_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(
        """
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {accessKey: user, secretKey: hunter2}
---
apiVersion: rocketfleet.io/v1alpha1
kind: ConsumerGroup
metadata: {name: orders}
spec:
  cluster: {nameServers: ["ns:9876"], credentials: {secretName: keys}}
  subscriptions: [{topic: orders}]
  worker: {handler: "handlers:handle"}
"""
    )
    group, secrets = read_file(path, None)
    assert group.group_name == "orders"
    assert secrets == {"keys": {"accessKey": b"user", "secretKey": b"hunter2"}}


def test_what_counts_as_out_of_reach() -> None:
    away = ConnectError("a:1", "refused")
    assert unreachable(away)
    assert unreachable(RequestTimeout("a:1", 10, 1.0))
    assert unreachable(NoNameServer({"a:1": away}))
    assert unreachable(PartialFailure({"a": NoRoute("t", "none"), "b": away}))
    assert not unreachable(NoRoute("t", "none"))
    assert not unreachable(PartialFailure({"a": NoRoute("t", "none")}))
