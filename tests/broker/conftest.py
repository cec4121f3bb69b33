"""A real RocketMQ under the tests: one broker for the whole run, topics and groups of its own for each test.

`broker` is started once. A test may kill, pause or restart it: afterwards it is made whole again before the next test
begins. A test that needs another shape (two masters, slaves, ACL, TLS, a proxy) asks `make_cluster` for a cluster of
its own, which costs about ten seconds.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.java_main import JavaPrograms

from rocketfleet.devbroker.setup.config import FleetSpec


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One name server and one master, for the whole run."""
    cluster = Cluster(tmp_path_factory.mktemp("broker"))
    cluster.start(FleetSpec())
    try:
        yield cluster
    finally:
        cluster.stop(delete_data=True)


@pytest.fixture(autouse=True)
def _mend_broker(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "broker" in request.fixturenames:
        request.getfixturevalue("broker").settle()


@pytest.fixture
def make_topic(broker: Cluster) -> Callable[..., str]:
    """make_topic(queues=8, order=False, message_type="FIFO") creates a topic and returns its name."""
    return broker.create_topic


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    """A fresh topic with 8 queues."""
    return make_topic()


@pytest.fixture
def make_group(broker: Cluster) -> Callable[..., str]:
    """make_group(consumeMessageOrderly=True, retryMaxTimes=3) creates a consumer group and returns its name."""
    return broker.create_group


@pytest.fixture
def group(make_group: Callable[..., str]) -> str:
    """A fresh consumer group."""
    return make_group()


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """make_cluster(brokers=2, slave=True, acl=True, tls=True, proxy=True) starts a cluster that ends with the test."""
    clusters: list[Cluster] = []

    def make(**spec: Any) -> Cluster:
        cluster = Cluster(tmp_path / f"cluster-{len(clusters)}")
        clusters.append(cluster)
        cluster.start(FleetSpec(**spec))
        return cluster

    yield make
    for cluster in clusters:
        cluster.stop(delete_data=True)


@pytest.fixture(scope="session")
def _java_programs(tmp_path_factory: pytest.TempPathFactory) -> JavaPrograms:
    return JavaPrograms(tmp_path_factory.mktemp("java"))


@pytest.fixture
def java(_java_programs: JavaPrograms) -> Iterator[JavaPrograms]:
    """java.run("Name.java", *args) runs a program of tests/broker/java to its end, java.start(…) one that lives on."""
    yield _java_programs
    _java_programs.end_started()
