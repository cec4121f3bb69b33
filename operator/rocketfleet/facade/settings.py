"""What a facade's producer is told by its setters, and what the producer underneath makes of it.

Name servers come from `set_name_server_address`, else from the address that `set_name_server_domain` names, else from
the environment variable NAMESRV_ADDR, which the native library reads too.
"""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketfleet.client.config import ClientConfig
from rocketfleet.producer.checks import MAX_MESSAGE_SIZE
from rocketfleet.producer.options import ProducerOptions
from rocketfleet.wire.message.compression import DEFAULT_LEVEL

if TYPE_CHECKING:
    from rocketfleet.wire.acl import Credentials

NAME_SERVER_VARIABLE = "NAMESRV_ADDR"
_FETCH_SECONDS = 5.0
_LONGEST_LIST = 1 << 16


@dataclass
class Settings:
    """The values as the original has them: times in milliseconds."""

    group: str
    name_servers: str = ""
    name_server_domain: str = ""
    instance_name: str = ""
    credentials: Credentials | None = None
    timeout: int = 3000
    compress_level: int = DEFAULT_LEVEL
    max_message_size: int = MAX_MESSAGE_SIZE

    @property
    def seconds(self) -> float:
        return self.timeout / 1000

    def client(self) -> ClientConfig:
        """Where to connect to, and as whom. A ValueError or OSError says what is wrong."""
        name_servers = self.name_servers
        if not name_servers and self.name_server_domain:
            name_servers = fetch_name_servers(self.name_server_domain)
        name_servers = name_servers or os.environ.get(NAME_SERVER_VARIABLE, "")
        if not name_servers:
            raise ValueError(f"no name server is known: call set_name_server_address, or set {NAME_SERVER_VARIABLE}")
        return ClientConfig(
            name_servers=name_servers,
            credentials=self.credentials,
            timeout=self.seconds,
            instance_name=self.instance_name,
        )

    def options(self) -> ProducerOptions:
        """How to send."""
        if not 0 <= self.compress_level <= 9:
            raise ValueError(f"the compress level must be between 0 and 9, not {self.compress_level}")
        return ProducerOptions(
            send_timeout=self.seconds,
            compression_level=self.compress_level,
            max_message_size=self.max_message_size,
        )


def fetch_name_servers(domain: str) -> str:
    """The list of name servers that a web server hands out. It is fetched once, when the producer starts."""
    url = domain if "://" in domain else f"http://{domain}"
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{domain!r} is not an address of a web server: write http://host/path")
    with urllib.request.urlopen(url, timeout=_FETCH_SECONDS) as answer:  # noqa: S310 - http and https only, see above
        text: str = answer.read(_LONGEST_LIST).decode("utf-8", "replace")
    return text.strip()
