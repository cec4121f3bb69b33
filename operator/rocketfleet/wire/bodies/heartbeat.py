"""What a client tells its brokers about itself: the groups it is in, and what they subscribe to."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

from rocketfleet.wire.bodies.codec import Body, wire_name
from rocketfleet.wire.enums import ConsumeFromWhere, ExpressionType, MessageModel
from rocketfleet.wire.errors import BodyError
from rocketfleet.wire.message.tags import tag_hash

SUBSCRIBE_ALL: Final = "*"


class ConsumeType(StrEnum):
    """Who drives: the user's code (pull), the client (push), or the broker hands out messages (pop)."""

    PULL = "CONSUME_ACTIVELY"
    PUSH = "CONSUME_PASSIVELY"
    POP = "CONSUME_POP"


@dataclass(frozen=True, slots=True)
class SubscriptionData(Body):
    """One topic a group subscribes to. `subscription` builds one from an expression.

    Members of a group must send the same; a broker compares `sub_version` (milliseconds since the epoch) to find the
    newest.
    """

    topic: str = ""
    sub_string: str = SUBSCRIBE_ALL
    tags_set: frozenset[str] = frozenset()
    code_set: frozenset[int] = frozenset()
    sub_version: int = 0
    expression_type: str = ExpressionType.TAG.wire
    class_filter_mode: bool = False

    @classmethod
    def of(
        cls, topic: str, expression: str, expression_type: ExpressionType = ExpressionType.TAG, *, version: int
    ) -> Self:
        """The subscription an expression means: `*`, tags joined by `||`, or an SQL92 condition."""
        if expression_type is not ExpressionType.TAG:
            if not expression.strip():
                raise BodyError(f"the subscription of {topic} needs an {expression_type} expression")
            return cls(topic=topic, sub_string=expression, sub_version=version, expression_type=expression_type.wire)
        if not expression or expression == SUBSCRIBE_ALL:
            return cls(topic=topic, sub_version=version)
        tags = frozenset(tag.strip() for tag in expression.split("||") if tag.strip())
        if not tags:
            raise BodyError(f"the subscription of {topic} has no tag in {expression!r}; use * for all messages")
        return cls(
            topic=topic,
            sub_string=expression,
            tags_set=tags,
            code_set=frozenset(map(tag_hash, tags)),
            sub_version=version,
        )


@dataclass(frozen=True, slots=True)
class ProducerData(Body):
    """A producer group the client is in."""

    group_name: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerData(Body):
    """A consumer group the client is in."""

    group_name: str = ""
    consume_type: str = ConsumeType.PUSH
    message_model: str = MessageModel.CLUSTERING.wire
    consume_from_where: str = ConsumeFromWhere.LAST_OFFSET.wire
    subscription_data_set: tuple[SubscriptionData, ...] = ()
    unit_mode: bool = False


@dataclass(frozen=True, slots=True)
class HeartbeatData(Body):
    """The body of HEART_BEAT."""

    client_id: str = field(default="", metadata=wire_name("clientID"))
    producer_data_set: tuple[ProducerData, ...] = ()
    consumer_data_set: tuple[ConsumerData, ...] = ()
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


@dataclass(frozen=True, slots=True)
class CheckClientRequest(Body):
    """The body of CHECK_CLIENT_CONFIG: asks the broker whether it can evaluate an SQL92 subscription."""

    client_id: str = ""
    group: str = ""
    subscription_data: SubscriptionData | None = None
    namespace: str | None = None
