"""Reading back what was sent: every queue of a topic from its beginning, by plain pulls."""

from tests.support.waiting import until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_offsets
from rocketfleet.client.requests.broker_messages import pull, pull_request
from rocketfleet.wire.message import ReceivedMessage

READER = "producer-test-reader"


async def read_all(client: Client, topic: str) -> list[ReceivedMessage]:
    """All messages of a topic, queue by queue."""
    await client.routes.refresh(topic)
    found: list[ReceivedMessage] = []
    for queue in await client.subscribe_queues(topic):
        address = client.master(queue.broker)
        offset = await broker_offsets.min_offset(client.remoting, address, queue)
        end = await broker_offsets.max_offset(client.remoting, address, queue)
        while offset < end:
            command = pull_request(READER, queue, offset, sys_flag=4, subscription="*")
            answer = await pull(client.remoting, address, command, 10.0)
            found += answer.messages(queue.broker)
            assert answer.next_begin_offset > offset, f"{queue} stands still at {offset} of {end}"
            offset = answer.next_begin_offset
    return found


async def read_once_there(
    cluster: str | ClientConfig, topic: str, count: int, *, within: float = 60.0
) -> list[ReceivedMessage]:
    """The same, once there are so many. The cluster is given by its name server, or by a whole configuration."""
    config = ClientConfig(cluster, timeout=10.0) if isinstance(cluster, str) else cluster
    async with Client(config) as client:
        messages: list[ReceivedMessage] = []

        async def read() -> bool:
            messages[:] = await read_all(client, topic)
            return len(messages) >= count

        await until(
            read, f"{count} messages in {topic}", within, every=0.05, report=lambda: f"there are {len(messages)}"
        )
        return messages
