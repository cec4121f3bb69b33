"""A certificate authority of a fleet's own, for TLS on loopback: one server certificate, one client certificate.

Made once for a directory and kept, so that clients which trust its CA go on doing so after a restart. The CA's key is
never written: nobody can sign anything more with it.
"""

import datetime
import ipaddress
import os
from pathlib import Path

from rocketfleet.devbroker.errors import DevBrokerError

LIFETIME = datetime.timedelta(days=825)  # the longest that strict clients accept in a server certificate
RENEW_BEFORE = datetime.timedelta(days=30)

CA, SERVER, SERVER_KEY, CLIENT, CLIENT_KEY = "ca.pem", "server.pem", "server.key", "client.pem", "client.key"


def provide_certificates(directory: Path, now: datetime.datetime) -> None:
    """Make sure that the directory holds a CA, a server's and a client's certificate that are valid for a while yet."""
    try:
        from cryptography import x509
    except ImportError:
        raise DevBrokerError(
            "TLS needs the packages of the `broker` extra: in a checkout, pip install '.[broker]'."
        ) from None
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = (CA, SERVER, SERVER_KEY, CLIENT, CLIENT_KEY)
    if all((directory / name).exists() for name in names):
        present = x509.load_pem_x509_certificate((directory / SERVER).read_bytes())
        if present.not_valid_after_utc - now > RENEW_BEFORE:
            return
    for name, content in make_certificates(now).items():
        _write(directory / name, content, 0o600 if name.endswith(".key") else 0o644)


def make_certificates(now: datetime.datetime) -> dict[str, bytes]:
    """File name → content, all PEM; keys are PKCS #8 and not encrypted, the form that RocketMQ's netty reads."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def name(common_name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])

    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = name("Rocketfleet development CA")

    def certificate(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
            .not_valid_after(now + LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
        )

    def usage(*, signs_certificates: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=signs_certificates,
            crl_sign=signs_certificates,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )

    def leaf(common_name: str, purpose: x509.ObjectIdentifier) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            certificate(name(common_name), key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.SubjectAlternativeName(
                    [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
                ),
                critical=False,
            )
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), private

    authority = (
        certificate(authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    server, server_key = leaf("localhost", ExtendedKeyUsageOID.SERVER_AUTH)
    client, client_key = leaf("rocketfleet development client", ExtendedKeyUsageOID.CLIENT_AUTH)
    return {
        CA: authority.public_bytes(serialization.Encoding.PEM),
        SERVER: server,
        SERVER_KEY: server_key,
        CLIENT: client,
        CLIENT_KEY: client_key,
    }


def _write(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    temporary.replace(path)
