"""What a client is told when it is made: where the name servers are, how to prove who it is, how long to wait."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rocketfleet.base.backoff import RECONNECT, BackoffPolicy
from rocketfleet.client.transport.address import parse_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocketfleet.wire.acl import Credentials


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """TLS towards name servers and brokers alike. Without a CA file the system's authorities are trusted.

    `check_hostname=False` still verifies the chain: brokers register under IP addresses, which certificates
    seldom name. `verify=False` trusts anybody and is for experiments only. `server_name` replaces the address
    in the check, for clusters whose brokers share one certificate.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True
    verify: bool = True
    server_name: str | None = None

    def __post_init__(self) -> None:
        if self.key_file and not self.cert_file:
            raise ValueError("a key file was given without a certificate file: give both, or neither")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The settings of one client. Times are in seconds.

    `name_servers` may be one string of addresses separated by semicolons or commas, as Java has it, or several strings;
    it is kept as a tuple of single addresses.
    `dead_after`: a connection on which a request timed out and nothing at all arrived for this long is given up.
    `route_expiry`: a topic whose route nobody asked for in this time is no longer refreshed.
    `credentials_path`: a file with the credentials, or a directory with a file for each. It is followed: what is there
    counts, and a key that is renewed there is used from then on.
    `refused_address`: says why an address, as a name was resolved to it, must not be connected to, or None.
    `client_id_made_up`: nobody chose the client id, nor the instance in it, so that the next start will have another.
    """

    name_servers: Sequence[str]
    credentials: Credentials | None = None
    tls: TlsConfig | None = None
    timeout: float = 3.0
    connect_timeout: float = 3.0
    backoff: BackoffPolicy = RECONNECT
    dead_after: float = 30.0
    route_refresh: float = 30.0
    route_expiry: float = 600.0
    client_id: str = ""
    instance_name: str = ""
    unit_name: str = ""
    client_id_made_up: bool = False
    credentials_path: str | None = None
    refused_address: Callable[[str], str | None] | None = None

    def __post_init__(self) -> None:
        given = self.name_servers if isinstance(self.name_servers, str) else ";".join(self.name_servers)
        object.__setattr__(self, "name_servers", parse_list(given))
        for name in ("timeout", "connect_timeout", "dead_after", "route_refresh", "route_expiry"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0 seconds, not {getattr(self, name)}")
        if not self.client_id:
            object.__setattr__(self, "client_id_made_up", not self.instance_name)
            object.__setattr__(self, "client_id", new_client_id(self.instance_name, self.unit_name))


def new_client_id(instance_name: str = "", unit_name: str = "") -> str:
    """A client id in Java's form `host@instance[@unit]` that is unique among containers too.

    In containers all processes have the same pid and often the same address, and two members with one id share their
    queues without knowing. So the host part is the host's name, which in a pod is the pod's, and the default instance
    has random bits beside the pid.
    """
    instance = instance_name or f"{os.getpid()}#{secrets.token_hex(6)}"
    parts = [socket.gethostname() or "localhost", instance]
    if unit_name:
        parts.append(unit_name)
    return "@".join(parts)
