"""A broker, a producer, and as many members of a group as a test wants: what the consumer's tests stand on."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from tests.broker.cluster import Cluster
from tests.support import waiting

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConnectError, ConnectionLost
from rocketfleet.client.requests import broker_members, broker_messages, broker_offsets
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import Message, ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

DEADLINE = 40.0


async def until(condition: Callable[[], Any], what: str = "", seconds: float = DEADLINE) -> None:
    """Wait until a condition holds; one whose broker cannot be reached does not hold yet.

    The client of a test, too, has to find out that a broker is back.
    """
    await waiting.until(condition, what, seconds, every=0.02, ignoring=(ConnectError, ConnectionLost))


class Got:
    """A handler that takes everything and remembers it."""

    def __init__(self, answer: Callable[[ReceivedMessage], Any] = lambda _message: None) -> None:
        self.messages: list[ReceivedMessage] = []
        self.tries: list[int] = []  # as it was then: a message that is tried again in place is the same one
        self.answer = answer
        self._writing = threading.Lock()

    def __call__(self, message: ReceivedMessage) -> Any:
        with self._writing:  # workers run side by side
            self.messages.append(message)
            self.tries.append(message.reconsume_times)
        return self.answer(message)

    @property
    def bodies(self) -> list[str]:
        return [message.body.decode() for message in self.messages]

    def __len__(self) -> int:
        return len(self.messages)


class Scene:
    """See the module. Everything that is started here is stopped with the test."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = Client(self.config())
        self.producer = Producer(self.client, "consumer-tests")
        self.members: list[Consumer] = []

    def config(self, **given: Any) -> ClientConfig:
        # Patient: on a machine that is busy with other things, a slow answer is not what these tests are about.
        return ClientConfig(name_servers=(self.cluster.name_server,), **{"timeout": 30.0, **given})

    async def open(self) -> None:
        self.client.start()
        await self.producer.start()

    async def close(self) -> None:
        await asyncio.gather(*(member.stop() for member in self.members))
        await self.producer.close()
        await self.client.close()

    # -- members ------------------------------------------------------------------------------------------------------

    def made(
        self,
        group: str,
        topic: str | tuple[Subscription, ...],
        handler: Callable[..., Any],
        *,
        client: dict[str, Any] | None = None,
        consumer: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Consumer:
        """A member that is not started. It reads from the beginning, unless the settings say otherwise."""
        subscriptions = (Subscription(topic),) if isinstance(topic, str) else topic
        given = {"consume_from_where": ConsumeFromWhere.FIRST_OFFSET, "drain_timeout": 5.0, **settings}
        member = Consumer(
            self.config(**(client or {})),
            ConsumerSettings(group, subscriptions, **given),
            handler,
            **{"strategy": "AVG", **(consumer or {})},
        )
        self.members.append(member)
        return member

    async def member(self, *args: Any, **kwargs: Any) -> Consumer:
        """A member that is started."""
        member = self.made(*args, **kwargs)
        await member.start()
        return member

    # -- messages -----------------------------------------------------------------------------------------------------

    async def send(self, topic: str, *bodies: str | int, queue: int | None = None, **parts: Any) -> None:
        """Send messages one after the other, to one queue or round and round."""
        for body in bodies:
            where = None if queue is None else MessageQueue(topic, "broker-a", queue)
            await self.producer.send(Message(topic, str(body).encode(), **parts), queue=where)

    async def fill(self, topic: str, queue: int, count: int, first: int = 0) -> None:
        """Send `count` numbered messages to one queue, in batches."""
        where = MessageQueue(topic, "broker-a", queue)
        for start in range(first, first + count, 200):
            batch = [Message(topic, str(n).encode()) for n in range(start, min(start + 200, first + count))]
            await self.producer.send_batch(batch, queue=where)

    async def read(self, topic: str, queue: int = 0) -> list[ReceivedMessage]:
        """Everything in a queue, without a group."""
        where, messages = MessageQueue(topic, "broker-a", queue), list[ReceivedMessage]()
        while True:
            command = broker_messages.pull_request(
                "readers", where, len(messages), max_messages=32, sys_flag=4, subscription="*"
            )
            answer = await broker_messages.pull(self.client.remoting, self.address, command)
            if answer.code != ResponseCode.SUCCESS:
                return messages
            messages.extend(answer.messages("broker-a"))

    async def found(
        self, topic: str, count: int, queue: int = 0, which: Callable[[ReceivedMessage], bool] = lambda _message: True
    ) -> list[ReceivedMessage]:
        """The messages of a queue, once there are so many: what is stored can be read only a moment later."""
        messages: list[ReceivedMessage] = []

        async def there() -> bool:
            nonlocal messages
            messages = [message for message in await self.read(topic, queue) if which(message)]
            return len(messages) >= count

        await until(there, f"{count} messages in queue {queue} of {topic}")
        return messages

    async def delayed(self, group: str, level: int, count: int) -> list[ReceivedMessage]:
        """The messages that wait to come again to a group after the delay of a level."""
        retry = f"%RETRY%{group}"
        return await self.found(
            "SCHEDULE_TOPIC_XXXX", count, level - 1, lambda message: message.properties["REAL_TOPIC"] == retry
        )

    # -- what the broker knows ----------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        return self.cluster.broker_address

    async def committed(self, group: str, topic: str, queue: int = 0) -> int | None:
        where = MessageQueue(topic, "broker-a", queue)
        return await broker_offsets.query_offset(
            self.client.remoting, self.address, group, where, zero_if_not_found=False
        )

    async def commit(self, group: str, topic: str, offset: int, queue: int = 0) -> None:
        where = MessageQueue(topic, "broker-a", queue)
        await broker_offsets.update_offset(self.client.remoting, self.address, group, where, offset)

    async def ids(self, group: str) -> tuple[str, ...]:
        return await broker_members.consumer_ids(self.client.remoting, self.address, group)


def queues(topic: str, count: int) -> set[MessageQueue]:
    return {MessageQueue(topic, "broker-a", number) for number in range(count)}


def of_topic(member: Consumer, topic: str) -> set[int]:
    """The numbers of the queues that a member owns of a topic."""
    return {queue.queue_id for queue in member.owned if queue.topic == topic}
