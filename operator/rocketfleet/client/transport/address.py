"""Addresses as RocketMQ writes them: `host:port`, where the host may be a name, an IPv4 or an IPv6 address.

Brokers register IPv6 addresses in brackets or without, depending on their version, so the port is whatever follows the
last colon, as in Java.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SEPARATORS = re.compile(r"[;,\s]+")


class Address(NamedTuple):
    """Where a peer listens; `str()` gives the form that `parse` reads."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str) -> Address:
    """Read `host:port`, `[::1]:9876` or `::1:9876`; a ValueError says what is wrong with anything else."""
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon or not host:
        raise ValueError(f"{text!r} is not an address: write host:port, for example 10.0.0.1:9876 or [::1]:9876")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{text!r} is not an address: the port must be a number from 1 to 65535")
    if "[" in host or "]" in host or "/" in host:
        raise ValueError(f"{text!r} is not an address: write host:port without a scheme, path or stray brackets")
    return Address(host, int(port))


def parse_list(text: str) -> tuple[str, ...]:
    """Split a list of addresses at commas, semicolons or blanks, check each, and drop what is repeated."""
    found = dict.fromkeys(str(parse(item)) for item in _SEPARATORS.split(text.strip()) if item)
    if not found:
        raise ValueError("the list of addresses is empty: write host:port, several separated by a semicolon")
    return tuple(found)
