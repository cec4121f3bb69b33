"""What a member wants of a topic: tags or an SQL92 expression, checked again on arrival.

The broker filters tags by hash code, so two tags with one hash come through together: `wanted` compares the text. It
is None where every message is wanted, so that the common case costs nothing.

`created, paid` is one tag to RocketMQ, which no message has: the group would skip every message, commit past them and
look healthy. So a tag with a separator in it that is not `||` is refused. `any_tag` takes it all the same, for code
that is moved over from clients that do.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rocketfleet.wire.bodies import SubscriptionData
from rocketfleet.wire.enums import ExpressionType
from rocketfleet.wire.errors import BodyError
from rocketfleet.wire.message import ReceivedMessage

ALL = "*"
BLANKS: Final = " \t\r\n"
NOT_IN_TAGS: Final = {
    ",": "a comma", ";": "a semicolon", "|": "a single |", " ": "a blank", "\t": "a tab", "\r": "a line end",
    "\n": "a line end",
}  # fmt: skip


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
    any_tag: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not self.topic:
            raise ValueError("a subscription needs a topic")
        if self.type is ExpressionType.TAG and not self.any_tag and (problem := tags_problem(self.expression)):
            raise ValueError(problem)
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


def tags_problem(expression: str) -> str | None:
    """Why an expression can match no message that anybody meant, and what to write; None if it can."""
    for tag in (part.strip(BLANKS) for part in expression.split("||")):
        for character, name in NOT_IN_TAGS.items():
            if character in tag:
                return (
                    f"the tag {tag!r} has {name} in it, so no message will match: join tags with ||, as created || paid"
                )
    return None
