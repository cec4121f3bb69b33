"""The scene of members in one process, on the broker of the whole run."""

from collections.abc import AsyncIterator

import pytest
from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Scene


@pytest.fixture
async def stage(broker: Cluster) -> AsyncIterator[Scene]:
    made = Scene(broker)
    await made.open()
    yield made
    await made.close()
