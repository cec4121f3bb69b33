"""A small cluster of scripted peers for the producer's tests: a name server that tells routes, and brokers that store.

Everything from the producer down to the sockets is real. What brokers do is written here after what a real one does,
and checked against real ones in tests/broker/producer; here they can be made to fail in ways a real one seldom does.
"""

import asyncio
import inspect
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.unit.client.peer import Channel, Peer

from rocketfleet.base.backoff import BackoffPolicy
from rocketfleet.client.config import ClientConfig
from rocketfleet.wire.bodies import BrokerData, QueueData, TopicRouteData
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.message import decode_batch, decode_properties, encode_offset_id

Script = Callable[[Channel, Command], Any]
SENDS = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)


class Broker:
    """Stores what it is sent. `before` may act first: whatever it does other than return None replaces the answer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.peer = Peer(self._serve)
        self.before: Script | None = None
        self.status = ResponseCode.SUCCESS
        self.stored: list[Command] = []
        self.asked: list[Command] = []
        self._offsets = itertools.count()

    def of(self, code: RequestCode) -> list[Command]:
        """The requests of one kind."""
        return [command for command in self.asked if command.code == code]

    async def _serve(self, channel: Channel, command: Command) -> None:
        self.asked.append(command)
        if self.before is not None:
            handled = self.before(channel, command)
            if inspect.isawaitable(handled):
                handled = await handled
            if handled is not None:
                return
        if command.code in SENDS:
            self.stored.append(command)
            fields = self._receipt(command)
            if not command.is_oneway:
                channel.answer(command, self.status, fields=fields)
        elif not command.is_oneway:
            channel.answer(command, fields={"offset": "0"})

    def _receipt(self, command: Command) -> dict[str, str]:
        count = 1
        if command.code == RequestCode.SEND_BATCH_MESSAGE:
            count = len(decode_batch(command.body, command.fields["b"]))
        offsets = [next(self._offsets) for _ in range(count)]
        ids = [encode_offset_id("127.0.0.1", self.peer.port, offset * 100) for offset in offsets]
        return {
            "msgId": ",".join(ids),
            "queueId": command.fields["e"],
            "queueOffset": str(offsets[0]),
            "transactionId": decode_properties(command.fields["i"]).get("UNIQ_KEY", ""),
            "MSG_REGION": "DefaultRegion",
            "TRACE_ON": "true",
        }


def refusing(code: int, remark: str = "no") -> Script:
    """Answer sends with a code."""

    def script(channel: Channel, command: Command) -> bool | None:
        if command.code not in SENDS:
            return None
        channel.answer(command, code, remark)
        return True

    return script


def silent(_channel: Channel, command: Command) -> bool | None:
    """Take sends and never answer them."""
    return True if command.code in SENDS else None


def hanging_up(channel: Channel, command: Command) -> bool | None:
    """End the connection at the first send."""
    if command.code not in SENDS:
        return None
    channel.reset()
    return True


class Cluster:
    """The name server's view and the brokers behind it."""

    def __init__(self, *names: str, queues: int = 4) -> None:
        self.brokers = {name: Broker(name) for name in names}
        self.name_server = Peer(self._tell)
        self.registered = set(names)
        self.topics = {"t": queues, "u": queues}
        self.asked_for: list[str] = []

    def __getitem__(self, name: str) -> Broker:
        return self.brokers[name]

    def config(self, **settings: Any) -> ClientConfig:
        settings.setdefault("backoff", BackoffPolicy(0.01, 0.05))
        return ClientConfig((self.name_server.address,), **settings)

    def _tell(self, channel: Channel, command: Command) -> None:
        topic = command.fields.get("topic", "")
        self.asked_for.append(topic)
        names = sorted(self.registered)
        if topic not in self.topics or not names:
            channel.answer(command, ResponseCode.TOPIC_NOT_EXIST, f"No topic route info in name server for {topic}")
            return
        count = self.topics[topic]
        route = TopicRouteData(
            tuple(QueueData(name, count, count, 6) for name in names),
            tuple(BrokerData("c", name, {0: self.brokers[name].peer.address}) for name in names),
        )
        channel.answer(command, body=route.encode())


@asynccontextmanager
async def cluster_of(*names: str, queues: int = 4) -> AsyncIterator[Cluster]:
    """Start a cluster."""
    cluster = Cluster(*names, queues=queues)
    await cluster.name_server.listen()
    for broker in cluster.brokers.values():
        await broker.peer.listen()
    try:
        yield cluster
    finally:
        await asyncio.gather(cluster.name_server.stop(), *(broker.peer.stop() for broker in cluster.brokers.values()))
