"""Ports: never two claims on one, given ones obeyed, earlier ones kept."""

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketfleet.devbroker.errors import PortError
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.devbroker.setup.ports import HIGHEST, LOWEST, choose_ports, claims, is_free

_specs = st.builds(FleetSpec, brokers=st.integers(1, 5), slave=st.booleans(), proxy=st.booleans())
_ports = st.integers(LOWEST + 2, LOWEST + 60)


def _all_claims(ports: dict[str, int]) -> list[int]:
    return [number for process, port in ports.items() for number in claims(process, port)]


@settings(deadline=None)  # a busy machine is no bug
@given(
    spec=_specs, busy=st.sets(_ports), earlier=st.dictionaries(st.sampled_from(FleetSpec(brokers=5).processes), _ports)
)
def test_no_port_is_claimed_twice_or_taken(spec: FleetSpec, busy: set[int], earlier: dict[str, int]) -> None:
    ports = choose_ports(spec.processes, given={}, earlier=earlier, free=lambda port: port not in busy)
    claimed = _all_claims(ports)
    assert list(ports) == list(spec.processes)
    assert len(claimed) == len(set(claimed))
    assert not busy.intersection(claimed)
    assert all(LOWEST <= port <= HIGHEST for port in claimed)


@settings(deadline=None)  # a busy machine is no bug
@given(spec=_specs)
def test_the_same_ports_are_chosen_again(spec: FleetSpec) -> None:
    first = choose_ports(spec.processes, given={}, earlier={}, free=lambda port: True)
    assert choose_ports(spec.processes, given={}, earlier=first, free=lambda port: True) == first


@settings(deadline=None)  # a busy machine is no bug
@given(spec=_specs, base=st.integers(10, 60000))
def test_given_ports_are_used_and_earlier_ones_give_way(spec: FleetSpec, base: int) -> None:
    earlier = {"name-server": base + 1}
    ports = choose_ports(spec.processes, given={"broker-a": base}, earlier=earlier, free=lambda port: True)
    assert ports["broker-a"] == base
    assert ports["name-server"] != base + 1
    claimed = _all_claims(ports)
    assert len(claimed) == len(set(claimed))


def test_a_brokers_three_ports_and_the_proxys_two() -> None:
    assert claims("broker-a-slave", 10911) == (10909, 10911, 10912)
    assert claims("proxy", 8081) == (8081, 8082)
    assert claims("name-server", 9876) == (9876,)


def test_a_given_port_that_is_taken_is_named() -> None:
    with pytest.raises(PortError, match=r"Port 10912 is taken \(broker-a on 10911 takes 10909, 10911 and 10912\)"):
        choose_ports(["broker-a"], given={"broker-a": 10911}, earlier={}, free=lambda port: port != 10912)


def test_given_ports_that_clash_with_each_other_are_named() -> None:
    with pytest.raises(PortError, match="Port 10909 is taken"):
        choose_ports(
            ["name-server", "broker-a"],
            given={"name-server": 10909, "broker-a": 10911},
            earlier={},
            free=lambda port: True,
        )


def test_a_port_out_of_range_is_not_called_taken() -> None:
    with pytest.raises(PortError, match="cannot listen on port 65535"):
        choose_ports(["broker-a"], given={"broker-a": 65535}, earlier={}, free=lambda port: True)


def test_when_nothing_is_free_it_says_so() -> None:
    with pytest.raises(PortError, match="No free ports for name-server"):
        choose_ports(["name-server"], given={}, earlier={}, free=lambda port: False)


@pytest.fixture(params=["127.0.0.1", ""])
def listener(request: pytest.FixtureRequest) -> Iterator[int]:
    with socket.create_server((request.param, 0)) as server:
        yield server.getsockname()[1]


def test_a_port_with_a_listener_is_not_free(listener: int) -> None:
    assert not is_free(listener)


def test_a_port_is_free_again_though_old_connections_linger() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()  # the server's side closes first: it is the one that lingers
            assert client.recv(1) == b""
    assert is_free(port)
