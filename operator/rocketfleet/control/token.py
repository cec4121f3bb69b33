"""Who may call: the bearer token of the control port.

The token comes from the environment or from a file, which is read again at every check, because a mounted Secret
changes under a running pod. Who knows it sends it, or better a proof that it is known (proof.py). Without a token
nobody may change anything, and only callers on this machine may look at the assignment; the probes and metrics are
open, because those who ask for them have no way to prove who they are.
"""

import hmac
import ipaddress
import time
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path

from rocketfleet.control import proof

_MOST_BYTES = 4096


class Access(Enum):
    OPEN = auto()  # probes and metrics
    READ = auto()  # the token, or without one only from this machine
    CHANGE = auto()  # the token, always


class TokenError(ValueError):
    """The token cannot be had; the message says why, and never what it is."""


class Token:
    """The expected token, or none."""

    def __init__(
        self,
        value: str | None = None,
        file: Path | None = None,
        *,
        pod: str | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._value = value or None
        self._file = file
        self._pod = pod or None
        self._wall = wall
        if file is not None:
            self._expected()  # a wrong file is better told now than at the first call

    def __repr__(self) -> str:
        return f"Token({'from a file' if self._file else 'set' if self._value else 'none'})"

    @property
    def is_set(self) -> bool:
        return self._file is not None or self._value is not None

    def refusal(
        self, access: Access, authorization: str | None, peer: str, *, method: str = "", path: str = ""
    ) -> tuple[int, str] | None:
        """Why a caller may not, as a status and a sentence; None if it may."""
        if access is Access.OPEN:
            return None
        if not self.is_set:
            if access is Access.READ and _is_loopback(peer):
                return None
            return 403, (
                "this worker has no control token: set ROCKETFLEET_CONTROL_TOKEN or --token-file to allow this call"
            )
        try:
            expected = self._expected()
        except TokenError as error:
            return 503, str(error)
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() == proof.SCHEME:
            why = proof.refusal(given.strip(), expected, self._pod, method, path, self._wall())
            return None if why is None else (403, why)
        if scheme.lower() != "bearer" or not given:
            return 401, "this call needs the control token: send it as 'Authorization: Bearer …'"
        if not hmac.compare_digest(given.strip().encode("latin-1", "replace"), expected):
            return 403, "the control token is wrong"
        return None

    def _expected(self) -> bytes:
        if self._file is None:
            return (self._value or "").strip().encode()
        try:
            with self._file.open("rb") as file:
                content = file.read(_MOST_BYTES).strip()
        except OSError as error:
            raise TokenError(f"cannot read the control token from {self._file}: {error.strerror}") from error
        if not content:
            raise TokenError(f"{self._file} is empty: it must hold the control token")
        return content


def _is_loopback(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
