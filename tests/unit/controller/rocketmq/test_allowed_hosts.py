"""Where the operator may connect: what is listed, and what never."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.controller.rocketmq.allowed_hosts import ANY_HOST, allowed_hosts

API_SERVER = ("10.96.0.1", "api.example")


@pytest.mark.parametrize("host", ["mq", "mq.shop.svc", "10.1.2.3", "fd00::1", "203.0.113.9"])
def test_without_a_list_all_are_allowed(host: str) -> None:
    assert ANY_HOST.refused_name_server(host) is None


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("169.254.169.254", "link-local"),
        ("::ffff:169.254.169.254", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "no host"),
        ("::", "no host"),
        ("224.0.0.1", "multicast"),
        ("10.96.0.1", "API server"),
        ("::ffff:10.96.0.1", "API server"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("64:ff9b::a60:1", "API server"),
        ("2002:a9fe:a9fe::1", "link-local"),
        ("::7f00:1", "loopback"),
        ("::ffff:0:7f00:1", "loopback"),
        ("fd00:ec2::254", "metadata"),
        ("fd20:ce::254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("mq", "no address"),
    ],
)
def test_some_addresses_are_never_connected_to(address: str, said: str) -> None:
    hosts = allowed_hosts((), API_SERVER)
    refusal = hosts.refused_address(address)
    assert refusal is not None
    assert said in refusal
    if said != "no address":
        assert said in str(hosts.refused_name_server(address))
        assert said in str(hosts.refused_name_server(f"[{address}]"))


@pytest.mark.parametrize("host", ["api.example", "API.Example."])
def test_the_api_server_is_known_by_its_name_too(host: str) -> None:
    assert "API server" in str(allowed_hosts([".example"], API_SERVER).refused_name_server(host))


def test_only_what_is_listed_is_allowed() -> None:
    hosts = allowed_hosts(["mq.example", ".rocketmq.svc", "10.20.0.0/16", "fd00:1::/32", "192.0.2.7"], API_SERVER)
    for host in ("mq.example", "MQ.example.", "a.rocketmq.svc", "10.20.3.4", "fd00:1::5", "192.0.2.7"):
        assert hosts.refused_name_server(host) is None, host
    for host in ("other.example", "xmq.example", "rocketmq.svc", "rocketmq.svc.evil.example", "10.21.0.1", "192.0.2.8"):
        assert "--allowed-name-servers" in str(hosts.refused_name_server(host)), host


def test_brokers_are_what_an_allowed_name_server_says() -> None:
    hosts = allowed_hosts([".rocketmq.svc"], API_SERVER)
    assert hosts.refused_address("10.244.1.7") is None
    assert hosts.refused_address("169.254.169.254") is not None


def test_a_listed_network_is_meant_but_never_the_api_server() -> None:
    hosts = allowed_hosts(["127.0.0.0/8", "10.0.0.0/8"], API_SERVER)
    assert hosts.refused_name_server("127.0.0.1") is None
    assert hosts.refused_address("127.0.0.1") is None
    assert hosts.refused_address("10.96.0.1") is not None


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "100.100.100.200", "64:ff9b::a9fe:a9fe"])
def test_a_large_network_does_not_mean_what_happens_to_be_in_it(address: str) -> None:
    for listed in (["0.0.0.0/0", "::/0"], ["100.64.0.0/10", "126.0.0.0/7", "64:ff9b::/96"]):
        hosts = allowed_hosts(listed)
        assert hosts.refused_name_server(address) is not None
        assert hosts.refused_address(address) is not None
    assert allowed_hosts(["100.100.100.200", "169.254.0.0/16", "127.0.0.0/8"]).refused_address(address) is None


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/8", "mq:9876", "*.example", ".", "a b", "http://mq/"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no (host|network)"):
        allowed_hosts([text])


@given(st.ip_addresses(), st.ip_addresses(v=4), st.integers(0, 32))
def test_an_address_is_allowed_exactly_if_a_network_holds_it(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, base: ipaddress.IPv4Address, length: int
) -> None:
    network = ipaddress.ip_network((base, length), strict=False)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    never = ANY_HOST.refused_address(str(address)) is not None
    allowed = allowed_hosts([str(network)]).refused_name_server(str(address)) is None
    assert allowed is ((mapped or address) in network) or never
