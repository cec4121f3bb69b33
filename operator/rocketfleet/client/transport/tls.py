"""The TLS context of a client, from its configuration; what cannot be loaded becomes a sentence that names the file.

Certificates are renewed while a client runs. `FollowedContext` makes the context anew when its files have changed; a
set that does not fit together, because it is only half written, leaves the context as it was.
"""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING

from rocketfleet.client.transport.followed_files import fingerprint

if TYPE_CHECKING:
    from rocketfleet.client.config import TlsConfig


_log = logging.getLogger(__name__)


class FollowedContext:
    """The context for the next connection. ValueError if the files cannot be loaded at the beginning."""

    def __init__(self, tls: TlsConfig) -> None:
        self._tls = tls
        self._files = tuple(path for path in (tls.ca_file, tls.cert_file, tls.key_file) if path)
        self._seen = fingerprint(self._files)
        self._made = context(tls)

    def current(self) -> ssl.SSLContext:
        """As the files are now; as they were, if they cannot be loaded."""
        seen = fingerprint(self._files)
        if seen != self._seen:
            self._seen = seen
            try:
                self._made = context(self._tls)
                _log.info("the TLS files have changed: new connections use them")
            except ValueError as error:
                _log.warning(
                    "the TLS files have changed, but cannot be used, and those from before are kept: %s", error
                )
        return self._made


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
