"""The TLS context of a client, from its configuration; what cannot be loaded becomes a sentence that names the file."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketfleet.client.config import TlsConfig


def context(tls: TlsConfig) -> ssl.SSLContext:
    """Make the context. RocketMQ negotiates no application protocol, so none is offered."""
    try:
        made = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=tls.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"cannot load the certificate authorities from {tls.ca_file}: {_reason(error)}") from error
    made.check_hostname = tls.check_hostname and tls.verify
    made.verify_mode = ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE
    if tls.cert_file:
        password = tls.key_password

        def ask() -> str:
            # Without a callback OpenSSL would prompt on the terminal and hang a service for ever.
            if password is None:
                raise ValueError(f"the key in {tls.key_file or tls.cert_file} is encrypted: give key_password")
            return password

        try:
            made.load_cert_chain(tls.cert_file, tls.key_file, ask)
        except (OSError, ssl.SSLError) as error:
            files = tls.cert_file if tls.key_file is None else f"{tls.cert_file} and {tls.key_file}"
            raise ValueError(f"cannot load the client certificate from {files}: {_reason(error)}") from error
    return made


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
