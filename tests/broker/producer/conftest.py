"""What the producer's tests against real brokers share."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster import Cluster
from tests.broker.producer.patience import PATIENT

from rocketfleet.devbroker.config import FleetSpec


@pytest.fixture(scope="session")
def _asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("asking"))
    cluster.start(
        FleetSpec(
            properties=(
                *PATIENT,
                ("transactionCheckInterval", "1000"),
                ("transactionTimeOut", "2000"),
                ("transactionOpBatchInterval", "100"),
            )
        )
    )
    yield cluster
    cluster.stop(delete_data=True, grace=2.0)


@pytest.fixture
def asking(_asking: Cluster) -> Iterator[Cluster]:
    """A broker that asks about open transactions after two seconds, not after half a minute.

    It notes in batches which are ended, every 3 s by default; asking sooner than that, it would ask about those too.
    """
    yield _asking
    _asking.settle()
