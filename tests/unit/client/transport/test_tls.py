"""TLS: who is trusted, who is not, and what is said about it."""

from __future__ import annotations

import logging
import shutil
import ssl
from typing import TYPE_CHECKING

import pytest
from tests.unit.client.certificates import Authority, Pair
from tests.unit.client.peer import Peer

from rocketfleet.base.backoff import BackoffPolicy
from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.client.errors import ConnectError, RocketMQError
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.client.transport.tls import FollowedContext, context
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request

if TYPE_CHECKING:
    from pathlib import Path

AT_ONCE = BackoffPolicy(first=1e-9, limit=1e-9)
MAX = RequestCode.GET_MAX_OFFSET


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def _server(pair: Pair, clients: Authority | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(pair.cert, pair.key)
    if clients is not None:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(clients.file)
    return made


def _remoting(tls: TlsConfig) -> Remoting:
    return Remoting(ClientConfig("127.0.0.1:1", tls=tls))


async def test_a_server_that_our_authority_signed_is_trusted(authority: Authority) -> None:
    server = authority.issue("broker", ("127.0.0.1",))
    async with Peer(tls=_server(server)) as peer:
        remoting = _remoting(TlsConfig(ca_file=authority.file))
        answer = await remoting.call(peer.address, request(MAX, body=b"x" * 300_000))
        assert len(answer.body) == 300_000
        assert peer.channels[0].writer.get_extra_info("ssl_object").selected_alpn_protocol() is None
        await remoting.close()


async def test_a_stranger_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "stranger").issue("broker", ("127.0.0.1",))
    async with Peer(tls=_server(stranger)) as peer:
        remoting = _remoting(TlsConfig(ca_file=authority.file))
        with pytest.raises(ConnectError, match=r"certificate is not trusted: .*issuer"):
            await remoting.call(peer.address, request(MAX))
        await remoting.close()
        # Without a CA file it is the system's authorities that count, and they do not know ours either.
        remoting = _remoting(TlsConfig())
        with pytest.raises(ConnectError, match="certificate is not trusted"):
            await remoting.call(peer.address, request(MAX))
        await remoting.close()


async def test_the_host_name_is_checked_unless_told_otherwise(authority: Authority) -> None:
    other = authority.issue("broker", ("broker.example",))
    async with Peer(tls=_server(other)) as peer:
        strict = _remoting(TlsConfig(ca_file=authority.file))
        with pytest.raises(ConnectError, match=r"certificate is not trusted: .*127\.0\.0\.1"):
            await strict.call(peer.address, request(MAX))
        await strict.close()
        for lenient in (
            TlsConfig(ca_file=authority.file, check_hostname=False),
            TlsConfig(ca_file=authority.file, server_name="broker.example"),
            TlsConfig(verify=False),
        ):
            remoting = _remoting(lenient)
            assert (await remoting.call(peer.address, request(MAX))).code == 0
            await remoting.close()


@pytest.mark.parametrize("password", [None, "s3cret"])
async def test_a_client_certificate_is_shown(authority: Authority, password: str | None) -> None:
    server, client = authority.issue("broker", ("127.0.0.1",)), authority.issue("worker", password=password)
    async with Peer(tls=_server(server, clients=authority)) as peer:
        tls = TlsConfig(ca_file=authority.file, cert_file=client.cert, key_file=client.key, key_password=password)
        remoting = _remoting(tls)
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        shown = peer.channels[0].writer.get_extra_info("peercert")
        assert shown["subject"] == ((("commonName", "worker"),),)
        assert "s3cret" not in repr(tls)
        await remoting.close()
        anonymous = _remoting(TlsConfig(ca_file=authority.file))
        with pytest.raises(RocketMQError):  # TLS 1.3 says so only after the handshake, so it may be a lost connection
            await anonymous.call(peer.address, request(MAX))
        await anonymous.close()


async def test_a_peer_that_speaks_no_tls(authority: Authority) -> None:
    async with Peer() as peer:
        remoting = _remoting(TlsConfig(ca_file=authority.file))
        with pytest.raises(ConnectError):
            await remoting.call(peer.address, request(MAX), timeout=2)
        await remoting.close()


async def test_plain_text_to_a_peer_that_speaks_tls(authority: Authority) -> None:
    server = authority.issue("broker", ("127.0.0.1",))
    async with Peer(tls=_server(server)) as peer:
        remoting = Remoting(ClientConfig("127.0.0.1:1"))
        with pytest.raises(RocketMQError):
            await remoting.call(peer.address, request(MAX), timeout=2)
        await remoting.close()


def test_files_that_cannot_be_loaded_are_named(authority: Authority, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    client = authority.issue("worker", password="s3cret")
    with pytest.raises(ValueError, match=r"cannot load the certificate authorities from .*missing\.pem: No such file"):
        context(TlsConfig(ca_file=str(tmp_path / "missing.pem")))
    with pytest.raises(ValueError, match=r"cannot load the certificate authorities from .*nonsense\.pem"):
        context(TlsConfig(ca_file=str(nonsense)))
    with pytest.raises(ValueError, match=r"cannot load the client certificate from .*missing\.pem"):
        context(TlsConfig(cert_file=str(tmp_path / "missing.pem")))
    with pytest.raises(ValueError, match=r"worker\.key is encrypted: give key_password"):
        context(TlsConfig(cert_file=client.cert, key_file=client.key))
    with pytest.raises(ValueError, match="cannot load the client certificate") as caught:
        context(TlsConfig(cert_file=client.cert, key_file=client.key, key_password="wrong-s3cret"))
    assert "wrong-s3cret" not in str(caught.value)
    with pytest.raises(ValueError, match="without a certificate file"):
        TlsConfig(key_file=client.key)


async def test_an_authority_that_is_renewed_counts_for_the_next_connection(tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    trusted = tmp_path / "trusted.pem"
    shutil.copy(old.file, trusted)
    async with Peer(tls=_server(new.issue("broker", ("127.0.0.1",)))) as peer:
        remoting = Remoting(ClientConfig("127.0.0.1:1", tls=TlsConfig(ca_file=str(trusted)), backoff=AT_ONCE))
        with pytest.raises(ConnectError, match="certificate is not trusted"):
            await remoting.call(peer.address, request(MAX))
        shutil.copy(new.file, trusted)
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        await remoting.close()


def test_a_set_that_does_not_fit_together_leaves_the_one_from_before(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = authority.issue("old"), authority.issue("new")
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    shutil.copy(old.cert, cert)
    shutil.copy(old.key, key)
    followed = FollowedContext(TlsConfig(ca_file=authority.file, cert_file=str(cert), key_file=str(key)))
    before = followed.current()
    assert followed.current() is before
    shutil.copy(new.cert, cert)  # and the key is still on its way
    with caplog.at_level(logging.WARNING):
        assert followed.current() is before
        assert followed.current() is before
    assert len(caplog.records) == 1
    shutil.copy(new.key, key)
    assert followed.current() is not before
