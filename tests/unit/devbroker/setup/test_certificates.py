"""The fleet's own CA: OpenSSL must accept what it signs, on both sides, and nothing else."""

import datetime
import ssl
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocketfleet.devbroker.setup import certificates
from rocketfleet.devbroker.setup.certificates import LIFETIME, RENEW_BEFORE, provide_certificates

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime.datetime.now(datetime.UTC)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    provide_certificates(made, NOW)
    return made


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> None:
    """A whole TLS handshake in memory, and one byte each way, so that a refusal of either side is seen."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    steps: list[Callable[[], object]] = [
        ours.do_handshake,
        theirs.do_handshake,
        lambda: ours.write(b"?"),
        lambda: theirs.read(1),
    ]
    steps += [lambda: theirs.write(b"!"), lambda: ours.read(1)]
    for _ in range(20):
        while steps:
            try:
                steps[0]()
            except ssl.SSLWantReadError:
                steps[:2] = reversed(steps[:2])
                break
            steps.pop(0)
    assert not steps


def contexts(directory: Path, *, mutual: bool) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    client = ssl.create_default_context(cafile=directory / certificates.CA)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(directory / certificates.SERVER, directory / certificates.SERVER_KEY)
    if mutual:
        server.load_verify_locations(directory / certificates.CA)
        server.verify_mode = ssl.CERT_REQUIRED
    return client, server


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_server_is_accepted_by_its_names(directory: Path, host: str) -> None:
    handshake(*contexts(directory, mutual=False), host)


def test_the_server_is_refused_by_another_name(directory: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(*contexts(directory, mutual=False), "example.org")


def test_a_client_with_our_certificate_is_accepted(directory: Path) -> None:
    client, server = contexts(directory, mutual=True)
    client.load_cert_chain(directory / certificates.CLIENT, directory / certificates.CLIENT_KEY)
    handshake(client, server, "localhost")


def test_a_client_without_one_is_refused(directory: Path) -> None:
    with pytest.raises(ssl.SSLError):
        handshake(*contexts(directory, mutual=True), "localhost")


def test_another_fleets_ca_is_not_trusted(directory: Path, tmp_path: Path) -> None:
    provide_certificates(tmp_path, NOW)
    client, _ = contexts(tmp_path, mutual=False)
    _, server = contexts(directory, mutual=False)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client, server, "localhost")


def test_they_are_kept_until_they_near_their_end(tmp_path: Path) -> None:
    provide_certificates(tmp_path, NOW)
    first = (tmp_path / certificates.CA).read_bytes()
    provide_certificates(tmp_path, NOW + datetime.timedelta(days=300))
    assert (tmp_path / certificates.CA).read_bytes() == first
    provide_certificates(tmp_path, NOW + LIFETIME - RENEW_BEFORE + datetime.timedelta(days=1))
    assert (tmp_path / certificates.CA).read_bytes() != first


def test_keys_are_the_owners_alone_and_the_cas_is_not_kept(directory: Path) -> None:
    keys = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.glob("*.key")}
    assert keys == {certificates.SERVER_KEY: 0o600, certificates.CLIENT_KEY: 0o600}
