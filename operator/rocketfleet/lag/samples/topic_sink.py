"""History in a RocketMQ topic: lines of JSON, many to a message. How long they stay is the broker's retention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocketfleet.lag.samples.history import bodies
from rocketfleet.wire.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.lag.samples.history import LagSample
    from rocketfleet.producer import Producer

TAG: Final = "lag"


class TopicSink:
    """The producer is the caller's, and must have been started; it is not closed here."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    async def write(self, samples: Sequence[LagSample]) -> None:
        """Send the samples. The first message that is refused ends it."""
        for body in bodies(samples):
            await self._producer.send(Message(self._topic, body, tags=TAG))

    async def close(self) -> None:
        """Nothing is held back."""
