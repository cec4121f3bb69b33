"""The traffic of a run: small messages into every queue, and a record of each that a broker has acknowledged.

Each broker has a sender of its own, so that one which is away holds up nothing but itself. A message is sent to one
queue and attempted once: what became of a send without an answer nobody knows, so its message counts as never sent.
"""

import asyncio
import itertools
import time
from typing import Self

from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.producer import Producer
from rocketfleet.testing.history import EventKind, Recorder
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

SEND_SECONDS = 2.0
PAUSE_SECONDS = 0.2  # after a send that failed


class Traffic:
    """Use as `async with`; it flows between `start` and `stop`."""

    def __init__(self, name_server: str, topic: str, brokers: tuple[str, ...], rate: float, recorder: Recorder) -> None:
        self._topic = topic
        self._brokers = brokers
        self._pause = len(brokers) / rate
        self._recorder = recorder
        self._producer = Producer(ClientConfig(name_server, route_refresh=2.0), "faults-traffic")
        self._numbers = itertools.count()
        self._senders: list[asyncio.Task[None]] = []
        self.sent = 0
        self.failed = 0

    async def __aenter__(self) -> Self:
        await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self._producer.close()

    def start(self) -> None:
        self._senders = [
            asyncio.create_task(self._send_to(broker), name=f"send to {broker}") for broker in self._brokers
        ]

    async def stop(self) -> None:
        """Send nothing more; what is under way is waited for."""
        senders, self._senders = self._senders, []
        for sender in senders:
            sender.cancel()
        results = await asyncio.gather(*senders, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def send_some(self, to_each: int) -> None:
        """So many messages into each queue, now."""
        for queue in await self._producer.queues(self._topic):
            for _ in range(to_each):
                await self._send(queue)

    async def _send_to(self, broker: str) -> None:
        for turn in itertools.count():
            began = time.monotonic()
            try:
                queues = [queue for queue in await self._producer.queues(self._topic) if queue.broker == broker]
                if queues:
                    await self._send(queues[turn % len(queues)])
            except RocketMQError:
                self.failed += 1
                await asyncio.sleep(PAUSE_SECONDS)
            await asyncio.sleep(max(0.0, began + self._pause - time.monotonic()))

    async def _send(self, queue: MessageQueue) -> None:
        one, began = f"n{next(self._numbers)}", time.monotonic()
        # Not to be cut off by `stop`: the broker may have it by then, and the record would not.
        sending = asyncio.ensure_future(
            self._producer.send(Message(self._topic, one.encode()), queue=queue, timeout=SEND_SECONDS)
        )
        cancelled = False
        while not sending.done():
            try:
                await asyncio.wait({sending})
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            sending.exception()
            if sending.exception() is not None:
                raise asyncio.CancelledError
        result = sending.result()
        self._recorder.note(
            EventKind.SENT, message=one, queue=result.queue, offset=result.queue_offset, began=round(began, 6)
        )
        self.sent += 1
        if cancelled:
            raise asyncio.CancelledError
