"""What the producer's tests against real brokers share."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.broker.cluster import Cluster
from tests.broker.producer.patience import PATIENT
from tests.support.broker_settings import update_broker_config

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.devbroker.setup.config import FleetSpec


@pytest.fixture(scope="session", autouse=True)
def _patient_broker(broker: Cluster) -> None:
    """The shared broker takes its time, too."""

    async def change() -> None:
        async with Client(ClientConfig(broker.name_server, timeout=30.0)) as client:
            await update_broker_config(client.remoting, broker.broker_address, dict(PATIENT))

    asyncio.run(change())


@pytest.fixture(scope="session")
def _asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("asking"))
    cluster.start(
        FleetSpec(
            properties=(
                *PATIENT,
                ("transactionCheckInterval", "1000"),
                ("transactionTimeOut", "2000"),
            )
        )
    )
    yield cluster
    cluster.stop(delete_data=True, grace=2.0)


@pytest.fixture
def asking(_asking: Cluster) -> Iterator[Cluster]:
    """A broker that asks about open transactions after two seconds, not after half a minute."""
    yield _asking
    _asking.settle()
