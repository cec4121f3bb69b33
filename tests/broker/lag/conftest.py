"""The consumer tests' scene, and a monitor beside it."""

from collections.abc import AsyncIterator

import pytest
from tests.broker.cluster import Cluster
from tests.broker.lag.watching import Watch


@pytest.fixture
async def watch(broker: Cluster) -> AsyncIterator[Watch]:
    made = Watch(broker)
    await made.open()
    yield made
    await made.close()
