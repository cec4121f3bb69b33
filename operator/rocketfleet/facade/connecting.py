"""The setters that producers and consumers of the facade share: where to connect to, and as whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.facade.message import Text, text_of
from rocketfleet.wire.acl import Credentials

if TYPE_CHECKING:
    from rocketfleet.facade.settings import Settings


class Connecting:
    """Whoever has settings that may be changed until it is started."""

    def _unstarted(self) -> Settings:
        """The settings; an error once it runs."""
        raise NotImplementedError

    def set_name_server_address(self, addr: Text) -> None:
        """host:port, several separated by a semicolon."""
        self._unstarted().name_servers = text_of(addr, "a name server address")

    def set_name_server_domain(self, domain: Text) -> None:
        """A web server that hands out the list of name servers; asked once, at the start."""
        self._unstarted().name_server_domain = text_of(domain, "a name server domain")

    set_namesrv_addr = set_name_server_address
    set_namesrv_domain = set_name_server_domain

    def set_session_credentials(self, access_key: Text, access_secret: Text, channel: Text = "") -> None:
        """Who signs requests. The channel is a label of Alibaba's cloud that no broker looks at; it is not sent."""
        text_of(channel, "a channel")
        key, secret = text_of(access_key, "an access key"), text_of(access_secret, "an access secret")
        self._unstarted().credentials = Credentials(key, secret)
