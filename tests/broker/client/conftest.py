"""What the client's tests against a real broker share: a client, and Java's word for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.client.oracle import Oracle, member_of, oracle_of

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.broker.cluster import Cluster
    from tests.broker.java_main import JavaPrograms


@pytest.fixture(scope="session")
def oracle(broker: Cluster, _java_programs: JavaPrograms) -> Iterator[Oracle]:
    """Java's administration client for the shared broker."""
    with oracle_of(_java_programs, broker.name_server) as made:
        yield made


@pytest.fixture
async def client(broker: Cluster) -> AsyncIterator[Client]:
    """Our client for the shared broker."""
    async with Client(ClientConfig(broker.name_server, timeout=10.0)) as made:
        yield made


@pytest.fixture
def address(broker: Cluster) -> str:
    """The broker's address."""
    return broker.broker_address


@pytest.fixture
def join(broker: Cluster, _java_programs: JavaPrograms) -> Callable[[str, str, str], AbstractContextManager[str]]:
    """join(group, topic, mode) is a Java member for the length of a block; mode is orderly or concurrent."""
    return lambda group, topic, mode: member_of(_java_programs, broker.name_server, group, topic, mode)
