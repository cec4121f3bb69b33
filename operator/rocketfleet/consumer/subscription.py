"""What a member wants of a topic: tags or an SQL92 expression, checked again on arrival.

The broker filters tags by hash code, so two tags with one hash come through together: `wanted` compares the text. It
is None where every message is wanted, so that the common case costs nothing.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rocketfleet.wire.bodies import ExpressionType, SubscriptionData
from rocketfleet.wire.errors import BodyError
from rocketfleet.wire.message import ReceivedMessage

ALL = "*"


def _version() -> int:
    """Milliseconds, as Java has it: a member that subscribes anew has a larger version than before."""
    return int(time.time() * 1000)


@dataclass(frozen=True, slots=True)
class Subscription:
    """One topic with its expression. `version` must not move between heartbeat and pull: the broker compares it."""

    topic: str
    expression: str = ALL
    type: ExpressionType = ExpressionType.TAG
    version: int = field(default_factory=_version, compare=False)

    def __post_init__(self) -> None:
        if not self.topic:
            raise ValueError("a subscription needs a topic")
        try:
            _ = self.data
        except BodyError as error:
            raise ValueError(str(error)) from error

    @property
    def data(self) -> SubscriptionData:
        """As the broker is told."""
        return SubscriptionData.of(self.topic, self.expression.strip(), self.type, version=self.version)

    @property
    def wanted(self) -> Callable[[list[ReceivedMessage]], list[ReceivedMessage]] | None:
        """A filter for what a pull brought, or None when all of it is wanted."""
        tags = self.data.tags_set
        if not tags:
            return None
        return lambda messages: [message for message in messages if message.tags in tags]
