"""A broker that waits: on a machine with more to do, it would turn messages away that lie in its queue for 200 ms."""

import asyncio

import pytest
from tests.broker.cluster import Cluster
from tests.support.broker_settings import update_broker_config

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig


@pytest.fixture(scope="session", autouse=True)
def _patient_broker(broker: Cluster) -> None:
    async def change() -> None:
        async with Client(ClientConfig((broker.name_server,), timeout=30)) as client:
            settings = {"waitTimeMillsInSendQueue": "30000"}
            await update_broker_config(client.remoting, broker.broker_address, settings)

    asyncio.run(change())
