"""Which settings a command ends up with, from options, environment, files and the directory's own broker."""

import json
import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rocketfleet.base.processes import Identity, began
from rocketfleet.cli.access import connection as module
from rocketfleet.cli.access.connection import ConnectionOptions, connection_options, local_broker, local_instead
from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.client.transport.keys import read_credentials
from rocketfleet.devbroker import state
from rocketfleet.devbroker.setup.config import NAME_SERVER, FleetSpec, Layout
from rocketfleet.wire.acl import Credentials

ACCESS, SECRET = "ROCKETFLEET_ACCESS_KEY", "ROCKETFLEET_SECRET_KEY"


def settings(
    directory: Path, *arguments: str, environment: dict[str, str] | None = None
) -> tuple[ClientConfig | None, str]:
    """The settings that a command with these arguments gets, and what it says otherwise."""
    seen: list[ClientConfig] = []

    @click.command()
    @connection_options
    def probe(connection: ConnectionOptions) -> None:
        seen.append(connection.config(environment or {}, directory))

    result = CliRunner().invoke(probe, list(arguments), env=dict(environment or {}))
    assert result.exit_code in (0, 1, 2), result.exception
    return (seen[0] if seen else None), result.output


def of(directory: Path, *arguments: str, environment: dict[str, str] | None = None) -> ClientConfig:
    config, said = settings(directory, *arguments, environment=environment)
    assert config is not None, said
    return config


def run_a_broker_in(directory: Path, port: int, *, acl: bool = False, tls: bool = False) -> Layout:
    """A state file that says a name server runs: this very process."""
    layout = Layout(directory / ".rocketfleet" / "broker")
    layout.directory.mkdir(parents=True)
    beginning = began(os.getpid())
    assert beginning is not None
    processes = {NAME_SERVER: Identity(os.getpid(), beginning)}
    state.save(
        layout.state, state.FleetState(FleetSpec(acl=acl, tls=tls), {NAME_SERVER: port}, "java", "jars", processes)
    )
    return layout


def test_the_default_is_the_usual_port_on_this_machine(tmp_path: Path) -> None:
    config = of(tmp_path)
    assert of(tmp_path, environment={"ROCKETFLEET_TIMEOUT": "7.5"}).timeout == 7.5
    assert config.name_servers == ("127.0.0.1:9876",)
    assert config.credentials is None
    assert config.tls is None
    assert config.timeout == 3.0


def test_an_option_beats_the_environment_and_the_environment_the_local_broker(tmp_path: Path) -> None:
    run_a_broker_in(tmp_path, 7001)
    environment = {"ROCKETFLEET_NAME_SERVERS": "a:1;b:2"}
    assert of(tmp_path).name_servers == ("127.0.0.1:7001",)
    assert of(tmp_path, environment=environment).name_servers == ("a:1", "b:2")
    assert of(tmp_path, "--name-server", "c:3", environment=environment).name_servers == ("c:3",)


def test_a_local_broker_that_is_gone_does_not_count(tmp_path: Path) -> None:
    layout = run_a_broker_in(tmp_path, 7001)
    remembered = state.load(layout.state)
    assert remembered is not None
    remembered.processes[NAME_SERVER] = Identity(os.getpid(), "another boot/1")
    state.save(layout.state, remembered)
    assert local_broker(tmp_path) is None
    assert of(tmp_path).name_servers == ("127.0.0.1:9876",)


def test_who_asked_in_vain_on_this_machine_is_told_of_the_local_broker(tmp_path: Path) -> None:
    assert local_instead(["127.0.0.1:9876"], tmp_path) == ""
    run_a_broker_in(tmp_path, 7001)
    assert "127.0.0.1:7001" in local_instead(["127.0.0.1:9876", "localhost:9877"], tmp_path)
    assert local_instead(["127.0.0.1:7001"], tmp_path) == ""  # it is the one that does not answer
    assert local_instead(["127.0.0.1:9876", "rocketmq:9876"], tmp_path) == ""  # another cluster was meant


def test_the_local_brokers_credentials_and_certificates_come_with_it(tmp_path: Path) -> None:
    layout = run_a_broker_in(tmp_path, 7001, acl=True, tls=True)
    layout.credentials.write_text(json.dumps({"access_key": "admin", "secret_key": "hidden"}))
    config = of(tmp_path)
    assert config.credentials == Credentials("admin", "hidden")
    assert config.tls is not None
    assert Path(config.tls.ca_file or "").parent == layout.tls
    assert "hidden" not in repr(config)


def test_they_do_not_go_to_another_name_server(tmp_path: Path) -> None:
    layout = run_a_broker_in(tmp_path, 7001, acl=True, tls=True)
    layout.credentials.write_text(json.dumps({"access_key": "admin", "secret_key": "hidden"}))
    config = of(tmp_path, "--name-server", "elsewhere:9876")
    assert config.credentials is None
    assert config.tls is None


def test_credentials_from_the_environment(tmp_path: Path) -> None:
    config = of(tmp_path, environment={ACCESS: "me", SECRET: "s3cret", "ROCKETFLEET_SECURITY_TOKEN": "t"})
    assert config.credentials == Credentials("me", "s3cret", "t")


@pytest.mark.parametrize(("given", "missing"), [(ACCESS, SECRET), (SECRET, ACCESS)])
def test_half_of_the_credentials_is_an_error_that_names_the_other_half(
    tmp_path: Path, given: str, missing: str
) -> None:
    config, said = settings(tmp_path, environment={given: "s3cret"})
    assert config is None
    assert missing in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    "text",
    [
        "accessKey: me\nsecretKey: s3cret\n",
        "# tools.yml\naccessKey: 'me'\nsecretKey: \"s3cret\"\nother: x\n",
        "access_key=me\nsecret_key = s3cret",
        '{"accessKey": "me", "secretKey": "s3cret", "n": 1}',
        '{"access_key": "me", "secret_key": "s3cret"}',
    ],
)
def test_credentials_from_a_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "credentials"
    file.write_text(text)
    assert read_credentials(file) == Credentials("me", "s3cret")
    assert of(tmp_path, "--credentials-file", str(file)).credentials == Credentials("me", "s3cret")


def test_credentials_from_a_directory_win_over_the_environment_and_are_followed(tmp_path: Path) -> None:
    place = tmp_path / "secret"
    place.mkdir()
    (place / "accessKey").write_text("me\n")
    _, said = settings(tmp_path, "--credentials-directory", str(place))
    assert "has no secretKey" in said
    (place / "secretKey").write_text("s3cret")
    environment = {ACCESS: "another", SECRET: "another"}
    config = of(tmp_path, "--credentials-directory", str(place), environment=environment)
    assert config.credentials == Credentials("me", "s3cret")
    assert config.credentials_path == str(place)


def test_a_secret_may_contain_separators(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("accessKey: a=b\nsecretKey = c:d=e\n")
    assert read_credentials(file) == Credentials("a=b", "c:d=e")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("accessKey: me\n", "secretKey"),
        ("secretKey: s3cret", "accessKey"),
        ("s3cret", "accessKey"),
        ("[1]", "accessKey"),
    ],
)
def test_an_incomplete_file_is_named_and_not_quoted(tmp_path: Path, text: str, missing: str) -> None:
    file = tmp_path / "credentials"
    file.write_text(text)
    _, said = settings(tmp_path, "--credentials-file", str(file))
    assert f"has no {missing}" in said
    assert "s3cret" not in said


def test_a_binary_file_holds_no_credentials(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_bytes(b"\xff\xfe")
    _, said = settings(tmp_path, "--credentials-file", str(file))
    assert "not UTF-8" in said


def test_tls_options(tmp_path: Path) -> None:
    authority, certificate, key = (tmp_path / name for name in ("ca", "cert", "key"))
    for file in (authority, certificate, key):
        file.touch()
    assert of(tmp_path, "--tls").tls == TlsConfig()
    assert of(tmp_path, "--ca-file", str(authority)).tls == TlsConfig(ca_file=str(authority))
    assert of(tmp_path, "--no-hostname-check").tls == TlsConfig(check_hostname=False)
    assert of(tmp_path, "--tls-server-name", "mq").tls == TlsConfig(server_name="mq")
    config = of(
        tmp_path,
        *("--cert-file", str(certificate), "--key-file", str(key)),
        environment={"ROCKETFLEET_TLS_KEY_PASSWORD": "pw"},
    )
    assert config.tls == TlsConfig(cert_file=str(certificate), key_file=str(key), key_password="pw")
    _, said = settings(tmp_path, "--key-file", str(key))
    assert "without a certificate" in said


def test_the_short_form_of_before_is_taken_with_a_word_about_it(tmp_path: Path) -> None:
    config, said = settings(tmp_path, "-n", "c:3")
    assert config is not None
    assert config.name_servers == ("c:3",)
    assert "-n for the name server is deprecated: write --name-server" in said
    config, said = settings(tmp_path, "-n", "shop")
    assert config is None
    assert "-n is short for --namespace, which this command does not have" in said
    config, said = settings(tmp_path, "-n", "c:3", "--name-server", "d:4")
    assert config is None


def test_a_bad_address_is_a_sentence(tmp_path: Path) -> None:
    config, said = settings(tmp_path, "--name-server", "nonsense")
    assert config is None
    assert "'nonsense' is not an address" in said


def test_no_option_takes_a_secret() -> None:
    names = [name for option in module._OPTIONS for name in _names(option)]
    assert names
    assert not [name for name in names if "secret" in name or "password" in name or "token" in name]


def _names(option: object) -> list[str]:
    @click.command()
    def probe() -> None: ...

    assert callable(option)
    option(probe)
    return [name for parameter in probe.params for name in parameter.opts]
