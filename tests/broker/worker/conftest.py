"""Workers that end with the test, and messages for them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.worker.worker_process import WorkerProcess

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_offsets
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

Start = Callable[..., WorkerProcess]
Send = Callable[[str, list[str]], Coroutine[Any, Any, None]]
Offset = Callable[[str, MessageQueue], Awaitable[int | None]]


@pytest.fixture
def start_worker(broker: Cluster, topic: str, group: str, tmp_path: Path) -> Iterator[Start]:
    """start_worker("slowly", "--threads", "2", environment={…}) starts a worker of the test's topic and group."""
    workers: list[WorkerProcess] = []

    def start(handler: str, *arguments: str, name: str = "", **more: Any) -> WorkerProcess:
        environment = {
            "ROCKETFLEET_NAME_SERVERS": broker.name_server,
            "ROCKETFLEET_GROUP": group,
            "ROCKETFLEET_TOPICS": topic,
            "ROCKETFLEET_CONSUME_FROM_WHERE": "FirstOffset",
            "ROCKETFLEET_HANDLER": f"handlers_under_test:{handler}",
            **more.pop("environment", {}),
        }
        worker = WorkerProcess(tmp_path / "worker", name or f"worker-{len(workers)}", arguments, environment, **more)
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.kill()


@pytest.fixture
async def client(broker: Cluster) -> AsyncIterator[Client]:
    async with Client(ClientConfig((broker.name_server,))) as client:
        yield client


@pytest.fixture
async def send(client: Client) -> AsyncIterator[Send]:
    """await send(topic, ["a", "b"]) sends messages with these bodies, to all queues in turn."""
    async with Producer(client, group="test-producer") as producer:

        async def send(topic: str, bodies: list[str]) -> None:
            for body in bodies:
                await producer.send(Message(topic, body.encode()))

        yield send


@pytest.fixture
def offset_at_broker(client: Client, topic: str) -> Offset:
    """What the broker has stored for a group's queue."""

    async def offset(group: str, queue: MessageQueue) -> int | None:
        await client.route(topic)
        return await broker_offsets.query_offset(
            client.remoting, client.master(queue.broker), group, queue, zero_if_not_found=False
        )

    return offset
