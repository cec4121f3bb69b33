"""What may be asked for, and how the processes are named."""

from typing import Any

import pytest

from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.setup.config import RESERVED_PROPERTIES, FleetSpec, heap_megabytes


def test_processes_are_named_in_the_order_they_start() -> None:
    assert FleetSpec().processes == ("name-server", "broker-a")
    assert FleetSpec(brokers=2, slave=True, proxy=True).processes == (
        "name-server",
        "broker-a",
        "broker-a-slave",
        "broker-b",
        "broker-b-slave",
        "proxy",
    )


def test_slaves_start_after_their_masters() -> None:
    assert FleetSpec(brokers=2, slave=True, proxy=True).waves == (
        ("name-server",),
        ("broker-a", "broker-b"),
        ("broker-a-slave", "broker-b-slave", "proxy"),
    )


def test_with_a_controller_no_replica_waits_for_the_other() -> None:
    spec = FleetSpec(slave=True, controller=True, proxy=True)
    assert spec.waves == (("name-server",), ("broker-a", "broker-a-slave"), ("proxy",))
    assert [name for wave in spec.waves for name in wave] == list(spec.processes)


def test_a_controller_has_a_port_and_no_process() -> None:
    spec = FleetSpec(slave=True, controller=True)
    assert spec.processes == FleetSpec(slave=True).processes
    assert spec.listeners == (*spec.processes, "controller")
    assert FleetSpec(slave=True).listeners == spec.processes


def test_given_ports_are_spread_over_the_brokers() -> None:
    spec = FleetSpec(brokers=2, slave=True, name_server_port=9876, broker_port=10911, proxy_port=8081)
    assert spec.given_ports == {
        "name-server": 9876,
        "broker-a": 10911,
        "broker-a-slave": 10921,
        "broker-b": 10931,
        "broker-b-slave": 10941,
    }


@pytest.mark.parametrize(("heap", "megabytes"), [("64m", 64), ("256M", 256), ("1g", 1024), ("2G", 2048)])
def test_heaps(heap: str, megabytes: int) -> None:
    assert heap_megabytes(heap) == megabytes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"heap": "63m"}, "at least 64m"),
        ({"heap": "1024"}, "as in 256m"),
        ({"heap": "1g -XX:+X"}, "as in 256m"),
        ({"brokers": 0}, "1 to 26 brokers"),
        ({"brokers": 27}, "1 to 26 brokers"),
        ({"tls_client_auth": True}, "add --tls"),
        ({"controller": True}, "add --slave"),
        ({"properties": (("a b", "c"),)}, "not a broker property"),
        ({"properties": (("key", "c\nlistenPort=1"),)}, "not a broker property"),
    ],
)
def test_what_cannot_be_asked_for(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DevBrokerError, match=sentence):
        FleetSpec(**options)


@pytest.mark.parametrize("key", sorted(RESERVED_PROPERTIES))
def test_properties_that_are_decided_otherwise_cannot_be_set(key: str) -> None:
    with pytest.raises(DevBrokerError, match=key):
        FleetSpec(properties=((key, "x"),))
