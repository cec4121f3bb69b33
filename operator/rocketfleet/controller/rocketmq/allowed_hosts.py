"""Where the operator may connect on behalf of a manifest: a rule about hosts and addresses, decided purely.

Whoever may write a ConsumerGroup chooses name servers, and those choose brokers; the operator connects from its own
place in the network, and says in a condition how that went. So whoever runs the operator may list the name servers that
may be named, and some addresses are never connected to: link-local ones and others at which clouds keep their metadata,
loopback, what is no host at all, and the API server. A listed network of that very kind (127.0.0.0/8) is meant, but for
the API server; a large one that happens to hold such addresses (0.0.0.0/0) is not. An IPv4 address that travels in one
of IPv6 (NAT64, 6to4) is judged too.

A name is judged as it is written, against names and suffixes; an address against networks. What a name resolves to, and
what a name server gives out as a broker, is judged when it is about to be connected to.
"""

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Where clouds answer with credentials, beside link-local addresses: AWS, Google, Alibaba, Azure, Oracle.
_METADATA = frozenset(
    ipaddress.ip_network(address)
    for address in (
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    )
)
_NEVER: dict[str, Callable[[_Address | _Network], bool]] = {
    "a link-local address": lambda one: one.is_link_local,
    "a loopback address": lambda one: one.is_loopback,
    "a multicast address": lambda one: one.is_multicast,
    "no host's address": lambda one: one.is_unspecified,
    "a cloud's metadata service": lambda one: ipaddress.ip_network(one) in _METADATA,
}
# IPv6 networks whose last 32 bits are an IPv4 address: NAT64, its prefix for local use, SIIT, and an old form.
_CARRIERS = tuple(
    ipaddress.IPv6Network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96")
)


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The rule. Nothing listed: every name server is allowed."""

    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()  # each with its dot in front
    networks: tuple[_Network, ...] = ()
    api_server: frozenset[str] = frozenset()  # its names and addresses

    def refused_name_server(self, host: str) -> str | None:
        """Why a name server may not be connected to, as a sentence; None: it may."""
        name, address = _plain(host), _address(host)
        if name in self.api_server or (address is not None and str(address) in self.api_server):
            return f"{host} is the Kubernetes API server: it is never connected to as a name server"
        if self._lists_something and not self._listed(name, address):
            return (
                f"{host} is not among the name servers that this operator may connect to: whoever runs it can add it "
                "to --allowed-name-servers (operator.allowedNameServers of the chart)"
            )
        return None if address is None else self.refused_address(str(address))

    def refused_address(self, address: str) -> str | None:
        """Why an address may not be connected to, whatever led to it; None: it may."""
        known = _address(address)
        if known is None:
            return f"{address} is no address"
        for one in (known, *_carried(known)):
            if str(one) in self.api_server:
                return f"{address} is the Kubernetes API server: it is never connected to as a broker"
            kind = next((kind for kind, holds in _NEVER.items() if holds(one)), None)
            if kind is not None and not any(one in network and _NEVER[kind](network) for network in self.networks):
                return f"{address} is {kind}: the operator does not connect to it"
        return None

    @property
    def _lists_something(self) -> bool:
        return bool(self.names or self.suffixes or self.networks)

    def _listed(self, name: str, address: _Address | None) -> bool:
        if address is not None:
            return any(address in network for network in self.networks)
        return name in self.names or name.endswith(self.suffixes)


ANY_HOST = AllowedHosts()


def allowed_hosts(listed: Iterable[str], api_server: Iterable[str] = ()) -> AllowedHosts:
    """Read a list of names, suffixes (with a dot in front), addresses and networks. ValueError says what is wrong."""
    names, suffixes, networks = set[str](), list[str](), list[_Network]()
    for text in listed:
        entry = _plain(text)
        if "/" in entry or _address(entry) is not None:
            try:
                networks.append(ipaddress.ip_network(entry))
            except ValueError as error:
                raise ValueError(f"{text!r} is no network: {error}") from None
        elif not entry.strip(".") or any(sign in entry for sign in ":* "):
            raise ValueError(
                f"{text!r} is no host: give a name (mq.example), a suffix (.rocketmq.svc), an address or a network "
                "(10.0.0.0/8), without a port"
            )
        elif entry.startswith("."):
            suffixes.append(entry)
        else:
            names.add(entry)
    servers = frozenset(str(_address(host) or _plain(host)) for host in api_server if host)
    return AllowedHosts(frozenset(names), tuple(suffixes), tuple(networks), servers)


def _plain(host: str) -> str:
    return host.strip().strip("[]").lower().rstrip(".") or host


def _address(host: str) -> _Address | None:
    """The address, if it is one. An IPv4 address in the clothes of IPv6 is the IPv4 address."""
    try:
        address = ipaddress.ip_address(_plain(host).partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _carried(address: _Address) -> Iterable[ipaddress.IPv4Address]:
    """The IPv4 address that an IPv6 address leads to, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    if address.sixtofour is not None:
        yield address.sixtofour
    if int(address) > 1 and any(address in network for network in _CARRIERS):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
