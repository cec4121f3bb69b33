"""Everything that is in a topic, read with this project's own client: for tests that compare what was sent."""

import asyncio
from collections.abc import Callable

from tests.support.waiting import wait_until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_messages, broker_offsets
from rocketfleet.wire.message import ReceivedMessage

GROUP = "TOOLS_CONSUMER"  # every broker has it


async def _read(name_server: str, topic: str) -> list[ReceivedMessage]:
    messages: list[ReceivedMessage] = []
    async with Client(ClientConfig((name_server,), timeout=30)) as client:
        for queue in await client.subscribe_queues(topic):
            address = client.master(queue.broker)
            offset = await broker_offsets.min_offset(client.remoting, address, queue)
            end = await broker_offsets.max_offset(client.remoting, address, queue)
            while offset < end:
                command = broker_messages.pull_request(GROUP, queue, offset, sys_flag=4, subscription="*")
                pulled = await broker_messages.pull(client.remoting, address, command)
                messages += pulled.messages(queue.broker) if pulled.body else []
                offset = pulled.next_begin_offset
    return messages


def messages_of(name_server: str, topic: str) -> list[ReceivedMessage]:
    """All messages of a topic, queue by queue."""
    return asyncio.run(_read(name_server, topic))


def wait_for_messages(
    name_server: str, topic: str, enough: Callable[[list[ReceivedMessage]], bool], seconds: float = 60
) -> list[ReceivedMessage]:
    """Read until there is enough: one-way, delayed and transactional messages take a moment."""
    messages: list[ReceivedMessage] = []

    def read() -> bool:
        messages[:] = messages_of(name_server, topic)
        return enough(messages)

    wait_until(
        read,
        f"enough messages of {topic}",
        seconds,
        every=0.1,
        report=lambda: f"only these came: {[message.body[:40] for message in messages]}",
    )
    return messages
