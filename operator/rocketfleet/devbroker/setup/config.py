"""What is asked for, and where it will be: the shape of a fleet, the names of its processes, its directory.

A fleet is one name server, one or more masters (`broker-a`, `broker-b`, …), perhaps a slave of each (`broker-a-slave`)
and perhaps a proxy. With a controller, which runs inside the name server, the names of a broker's two processes say
nothing about their roles: the controller makes one of them the master, and the other when that one dies.
"""

import re
import string
from dataclasses import dataclass
from pathlib import Path

from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.setup.ports import SPACING

CLUSTER = "DefaultCluster"
LOOPBACK = "127.0.0.1"
NAME_SERVER, PROXY, SLAVE_SUFFIX = "name-server", "proxy", "-slave"
CONTROLLER = "controller"
"""No process of its own: what the controller's port goes by."""
MOST_BROKERS = len(string.ascii_lowercase)

# What identifies a process or says where it listens and writes is decided here, and state kept elsewhere relies on it.
RESERVED_PROPERTIES = frozenset(
    {
        "brokerClusterName",
        "brokerName",
        "brokerId",
        "brokerIP1",
        "brokerIP2",
        "bindAddress",
        "listenPort",
        "haListenPort",
        "namesrvAddr",
        "storePathRootDir",
        "storePathCommitLog",
        "autoCreateTopicEnable",
        "autoCreateSubscriptionGroup",
        "authenticationEnabled",
        "authorizationEnabled",
        "initAuthenticationUser",
        "innerClientAuthenticationCredentials",
    }
)


@dataclass(frozen=True)
class FleetSpec:
    """What `rocketfleet broker start` was asked for."""

    brokers: int = 1
    slave: bool = False
    controller: bool = False
    proxy: bool = False
    acl: bool = False
    tls: bool = False
    tls_client_auth: bool = False
    heap: str = "256m"
    auto_create_topics: bool = True
    auto_create_groups: bool = True
    properties: tuple[tuple[str, str], ...] = ()
    name_server_port: int | None = None
    broker_port: int | None = None
    proxy_port: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= MOST_BROKERS:
            raise DevBrokerError(f"A fleet has 1 to {MOST_BROKERS} brokers, not {self.brokers}.")
        if self.tls_client_auth and not self.tls:
            raise DevBrokerError("Client certificates can be asked for only with TLS: add --tls.")
        if self.controller and not self.slave:
            raise DevBrokerError("A controller needs a second replica of each broker to choose from: add --slave.")
        heap_megabytes(self.heap)
        for key, value in self.properties:
            if key in RESERVED_PROPERTIES:
                raise DevBrokerError(f"The broker property {key} is decided by the other options; it cannot be set.")
            if not re.fullmatch(r"[A-Za-z][\w.]*", key) or "\n" in value:
                raise DevBrokerError(f"{key}={value} is not a broker property.")

    @property
    def broker_names(self) -> tuple[str, ...]:
        """The names under which brokers are registered; a slave has its master's."""
        return tuple(f"broker-{letter}" for letter in string.ascii_lowercase[: self.brokers])

    @property
    def broker_processes(self) -> tuple[str, ...]:
        """Each master, followed by its slave."""
        return tuple(
            process
            for name in self.broker_names
            for process in ((name, name + SLAVE_SUFFIX) if self.slave else (name,))
        )

    @property
    def processes(self) -> tuple[str, ...]:
        """In the order in which they start."""
        return (NAME_SERVER, *self.broker_processes, *([PROXY] if self.proxy else []))

    @property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """The processes again: those of a wave start side by side, when those of the wave before are up."""
        last = (PROXY,) if self.proxy else ()
        if self.controller:
            # A replica that was not in step when all were stopped is not up before the one that was is master.
            return (NAME_SERVER,), self.broker_processes, last
        slaves = tuple(process for process in self.broker_processes if is_slave(process))
        # A slave learns its master's address when it registers; one that is first would wait for its next turn.
        return (NAME_SERVER,), self.broker_names, slaves + last

    @property
    def listeners(self) -> tuple[str, ...]:
        """Everything that needs a port."""
        return (*self.processes, *([CONTROLLER] if self.controller else []))

    @property
    def needs_certificates(self) -> bool:
        return self.tls or self.proxy

    @property
    def given_ports(self) -> dict[str, int]:
        given = {}
        if self.name_server_port is not None:
            given[NAME_SERVER] = self.name_server_port
        if self.broker_port is not None:
            for place, process in enumerate(self.broker_processes):
                given[process] = self.broker_port + SPACING * place
        if self.proxy and self.proxy_port is not None:
            given[PROXY] = self.proxy_port
        return given


def heap_megabytes(heap: str) -> int:
    """The size of a heap such as `256m` or `1g`."""
    match = re.fullmatch(r"(\d+)([mMgG])", heap)
    megabytes = int(match.group(1)) * (1024 if match.group(2) in "gG" else 1) if match else 0
    if megabytes < 64:
        raise DevBrokerError(f"A broker's heap is given as in 256m or 1g and is at least 64m, not {heap!r}.")
    return megabytes


def broker_name_of(process: str) -> str:
    return process.removesuffix(SLAVE_SUFFIX)


def is_slave(process: str) -> bool:
    return process.endswith(SLAVE_SUFFIX)


@dataclass(frozen=True)
class Layout:
    """Where things are in a fleet's directory."""

    directory: Path

    @property
    def state(self) -> Path:
        return self.directory / "state.json"

    @property
    def lock(self) -> Path:
        """Taken by each command in turn; its being there also says that the directory is a fleet's."""
        return self.directory / "rocketfleet.lock"

    @property
    def credentials(self) -> Path:
        return self.directory / "credentials.json"

    @property
    def tls(self) -> Path:
        return self.directory / "tls"

    @property
    def configuration(self) -> Path:
        return self.directory / "conf"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def home(self, process: str) -> Path:
        """RocketMQ's home and the user's home, as this process sees them: logs/ and tmp/ are below it."""
        return self.directory / "home" / process

    def output(self, process: str) -> Path:
        return self.home(process) / "output.log"

    @property
    def tls_properties(self) -> Path:
        return self.configuration / "tls.properties"
