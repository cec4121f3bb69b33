"""A steady load on a producer, and a record of every message: when it was begun, whether and by whom it was stored."""

import asyncio
from dataclasses import dataclass
from typing import Self

from rocketfleet.client.errors import RocketMQError
from rocketfleet.producer import Producer, SendResult
from rocketfleet.wire.message import Message


@dataclass
class Sent:
    """One message of the load."""

    result: SendResult | None = None
    error: RocketMQError | None = None


class Load:
    """`async with Load(producer, topic) as load:` sends all the time, several messages at once."""

    def __init__(self, producer: Producer, topic: str, in_flight: int = 8, pause: float = 0.002) -> None:
        self._producer = producer
        self._topic = topic
        self._in_flight = in_flight
        self._pause = pause
        self._over = False
        self.sent: list[Sent] = []

    async def __aenter__(self) -> Self:
        self._workers = [asyncio.ensure_future(self._send_on()) for _ in range(self._in_flight)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over = True
        await asyncio.gather(*self._workers)

    async def _send_on(self) -> None:
        while not self._over:
            one = Sent()
            self.sent.append(one)
            try:
                one.result = await self._producer.send(Message(self._topic, b"%d" % len(self.sent)))
            except RocketMQError as error:
                one.error = error
            await asyncio.sleep(self._pause)

    def stored(self, broker: str | None = None, since: int = 0) -> list[SendResult]:
        """What was acknowledged of the messages begun after the first `since`, by this broker if one is named."""
        results = [one.result for one in self.sent[since:] if one.result is not None]
        return [result for result in results if broker is None or result.queue.broker == broker]

    @property
    def errors(self) -> list[RocketMQError]:
        """Sends that failed in the end."""
        return [one.error for one in self.sent if one.error is not None]
